//! Compares `shaders/rendered/`, which holds every form of kernel, with the kernels passed to drivers, byte for byte
//! (SPIR-V disassembled).
//!
//! Each language compares its own folder, with a file for each form: no file may differ, be missing, or be left over.
//! `MXPROBE_BLESS=1` writes them.
#![allow(missing_docs)]
#![cfg(any(feature = "ptx", feature = "spirv", feature = "wgsl"))]

#[cfg(feature = "ptx")]
#[path = "rendered/ptx.rs"]
mod ptx;
#[cfg(feature = "spirv")]
#[path = "rendered/spirv.rs"]
mod spirv;
#[cfg(feature = "wgsl")]
#[path = "rendered/wgsl.rs"]
mod wgsl;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Texts by file, relative to the language's folder.
type Files = BTreeMap<PathBuf, String>;

/// Adds a kernel; its name must be unique.
fn add(files: &mut Files, name: &str, text: String) {
    assert!(files.insert(name.into(), text).is_none(), "two kernels are called {name}");
}

/// The files below a folder.
fn stored(folder: &Path, below: &Path, into: &mut Files) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let (path, name) = entry.map(|entry| (entry.path(), below.join(entry.file_name()))).unwrap();
        if path.is_dir() {
            stored(&path, &name, into);
        } else {
            into.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

/// The first line that differs, with its number.
fn first_difference(stored: &str, now: &str) -> String {
    let alike = stored.lines().zip(now.lines()).take_while(|(was, is)| was == is).count();
    let [was, is] = [stored, now].map(|text| text.lines().nth(alike).unwrap_or("(the end)"));
    format!("line {} is\n    {was}\nand now\n    {is}", alike + 1)
}

/// Compares the files of a language with the current kernels.
#[track_caller]
fn compare(language: &str, now: &Files) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rendered").join(language);
    let mut there = Files::new();
    stored(&folder, Path::new(""), &mut there);
    if std::env::var_os("MXPROBE_BLESS").is_some() {
        for name in there.keys().filter(|name| !now.contains_key(*name)) {
            fs::remove_file(folder.join(name)).unwrap();
        }
        for (name, text) in now {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        return;
    }
    let mut wrong = Vec::new();
    for (name, text) in now {
        match there.get(name) {
            None => wrong.push(format!("{} is missing", name.display())),
            Some(stored) if stored != text => {
                wrong.push(format!("{}: {}", name.display(), first_difference(stored, text)));
            }
            Some(_) => {}
        }
    }
    let left_over = there.keys().filter(|name| !now.contains_key(*name));
    wrong.extend(left_over.map(|name| format!("{} is not a form of kernel any more", name.display())));
    let (count, shown) = (wrong.len(), wrong.iter().take(5).cloned().collect::<Vec<_>>().join("\n"));
    assert!(wrong.is_empty(), "{count} of shaders/rendered/{language}; MXPROBE_BLESS=1 writes them anew\n{shown}");
}
