//! Records what is built, for the provenance of reports: the commit where there is one, the target and the compiler.
use std::{env, path::Path, process::Command};

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn main() {
    println!("cargo::rustc-env=MXPROBE_TARGET={}", env::var("TARGET").expect("set by cargo"));
    let rustc = env::var("RUSTC").expect("set by cargo");
    println!("cargo::rustc-env=MXPROBE_RUSTC={}", output(&rustc, &["--version"]).unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
    // A package from a registry has no repository, or lies in somebody else's: then there is no commit to name.
    let root = env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
    let top = output("git", &["rev-parse", "--show-toplevel"]);
    if top.and_then(|top| Path::new(&top).canonicalize().ok()) != Path::new(&root).canonicalize().ok() {
        return;
    }
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]);
    let changes = output("git", &["status", "--porcelain", "--untracked-files=no"]);
    if let (Some(commit), Some(changes)) = (commit, changes) {
        println!("cargo::rustc-env=MXPROBE_COMMIT={commit}");
        println!("cargo::rustc-env=MXPROBE_DIRTY={}", !changes.is_empty());
    }
    let log = output("git", &["rev-parse", "--git-path", "logs/HEAD"]);
    for path in ["src", "backends", "Cargo.lock"].into_iter().chain(log.as_deref()) {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
