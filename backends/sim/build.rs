//! Lists the files of `models/` for `library.rs`, so that a new unit is a new file and nothing else.
use std::{env, fs, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=models");
    let directory = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("models");
    let mut files: Vec<_> = fs::read_dir(&directory)
        .expect("models/ is part of the crate")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut list = String::from("[\n");
    for file in files {
        let name = file.file_name().expect("a file has a name");
        list += &format!("    ({:?}, include_str!({file:?})),\n", Path::new("models").join(name));
    }
    list += "]\n";
    let out = Path::new(&env::var_os("OUT_DIR").expect("set by cargo")).join("models.rs");
    fs::write(out, list).expect("OUT_DIR can be written");
}
