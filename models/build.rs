//! Lists the files of `units/` and of `recipes/`, so that adding a unit or recipe means adding a file and nothing else.
//! Also tells tests whether the reference dots and the recordings are available; without them, the tests that need them
//! are ignored with a reason.
use std::{env, fs, path::Path};

/// Writes a list of the `.toml` files of a folder with their texts, as Rust.
fn list(folder: &str) {
    println!("cargo::rerun-if-changed={folder}");
    let directory = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join(folder);
    let mut files: Vec<_> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{folder}/ is part of the crate: {error}"))
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut list = String::from("[\n");
    for file in files {
        let name = Path::new("models").join(folder).join(file.file_name().expect("a file has a name"));
        list += &format!("    ({name:?}, include_str!({file:?})),\n");
    }
    list += "]\n";
    let out = Path::new(&env::var_os("OUT_DIR").expect("set by cargo")).join(format!("{folder}.rs"));
    fs::write(out, list).expect("OUT_DIR can be written");
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    list("units");
    list("recipes");
    let vectors = mxprobe_machine::place("MXPROBE_VECTORS", "../../shared/vectors");
    mxprobe_machine::tell("vectors", "MXPROBE_REQUIRE_VECTORS", vectors.is_dir());
    let recordings = mxprobe_machine::place("MXPROBE_RECORDINGS", "../target/recordings/done");
    mxprobe_machine::tell("recordings", "MXPROBE_REQUIRE_RECORDINGS", recordings.exists());
}
