//! Compiles a C program against the header, and links it with each form of the library.
#![allow(missing_docs)]
#![cfg(unix)]

use std::{
    fs,
    mem::{offset_of, size_of},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use mxprobe_c::OperationRecord;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Finds a form of the library, which cargo puts next to this test or one folder above.
fn library(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let mut folders = here.ancestors().skip(1).take(2);
    let found = folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.exists()));
    found.unwrap_or_else(|| panic!("{name} is not beside {}", here.display()))
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn compile(program: &str, libraries: &[PathBuf]) -> PathBuf {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program);
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]).arg(folder().join("include"));
    command.arg(format!("-DOPERATION_BYTES={}", size_of::<OperationRecord>()));
    command.arg(format!("-DID_OFFSET={}", offset_of!(OperationRecord, id)));
    command.arg(format!("-DSCALE_OFFSET={}", offset_of!(OperationRecord, scale)));
    command.arg(format!("-DVERSION=\"{}\"", env!("CARGO_PKG_VERSION")));
    command.arg("-o").arg(&made).arg(folder().join("tests/model.c")).args(libraries).args(["-lm", "-lpthread"]);
    if cfg!(target_os = "linux") {
        command.args(["-ldl", "-lgcc_s"]);
    }
    text(&command.output().unwrap());
    made
}

#[test]
fn a_program_in_c_computes_and_is_told_what_is_wrong() {
    let shared = library(if cfg!(target_os = "macos") { "libmxprobe_c.dylib" } else { "libmxprobe_c.so" });
    let program = compile("with-shared", std::slice::from_ref(&shared));
    let path = if cfg!(target_os = "macos") { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
    let output = Command::new(program).env(path, shared.parent().unwrap()).output().unwrap();
    assert_eq!(text(&output), "every check held\n");
}

#[test]
fn a_program_in_c_may_have_the_library_inside() {
    let program = compile("with-static", &[library("libmxprobe_c.a")]);
    assert_eq!(text(&Command::new(program).output().unwrap()), "every check held\n");
}

/// The functions that a text declares or defines: words that start with `mxprobe_` and precede a parenthesis.
fn functions(text: &str, before: &str) -> Vec<String> {
    let mut found: Vec<String> = text
        .match_indices("mxprobe_")
        .filter(|(at, _)| text[..*at].ends_with(before) || (before.is_empty() && text[..*at].ends_with([' ', '*'])))
        .filter_map(|(at, _)| {
            let name: String = text[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            text[at + name.len()..].starts_with('(').then_some(name)
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn the_header_declares_what_the_library_exports() {
    let header = fs::read_to_string(folder().join("include/mxprobe.h")).unwrap();
    let code = header.split("#include <stdint.h>").nth(1).unwrap();
    let without_comments: String = code
        .split("/*")
        .enumerate()
        .map(|(at, part)| if at == 0 { part } else { part.split("*/").nth(1).unwrap() })
        .collect();
    let source = fs::read_to_string(folder().join("src/lib.rs")).unwrap();
    let exported = functions(&source, "extern \"C\" fn ");
    assert_eq!(functions(&without_comments, ""), exported);
    assert_eq!(exported.len(), 9, "{exported:?}");
    assert_eq!(source.matches("#[unsafe(no_mangle)]").count(), exported.len());
}
