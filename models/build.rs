//! Lists the files of `units/` for `library.rs`, so that a new unit is a new file and nothing else; and tells tests whether
//! the reference dots are there, so that those that need them are ignored with their reason otherwise.
use std::{env, fs, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=units");
    let directory = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("units");
    let mut files: Vec<_> = fs::read_dir(&directory)
        .expect("units/ is part of the crate")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut list = String::from("[\n");
    for file in files {
        let name = file.file_name().expect("a file has a name");
        list += &format!("    ({:?}, include_str!({file:?})),\n", Path::new("models/units").join(name));
    }
    list += "]\n";
    let out = Path::new(&env::var_os("OUT_DIR").expect("set by cargo")).join("models.rs");
    fs::write(out, list).expect("OUT_DIR can be written");
    let vectors = mxprobe_machine::place("MXPROBE_VECTORS", "../../shared/vectors");
    mxprobe_machine::tell("vectors", "MXPROBE_REQUIRE_VECTORS", vectors.is_dir());
}
