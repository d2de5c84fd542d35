//! Records what is built, for the provenance of reports: the commit where there is one, the target and the compiler. Tells
//! tests what this machine has, so that those that cannot run are ignored with their reason.
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use mxprobe_machine::{place, tell, tell_blas, tell_cpu, tell_workers};

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn tell_tests() {
    tell_cpu();
    tell_blas();
    tell_workers();
    tell("vulkan_drivers", "MXPROBE_REQUIRE_VULKAN", place("MXPROBE_VULKAN_RUN", ".vulkan/run").exists());
    // The packages' files need no look; the script that fetches them touches this one.
    println!("cargo::rerun-if-env-changed=MXPROBE_PYTHON_TOOLS");
    let python = PathBuf::from(env::var_os("MXPROBE_PYTHON_TOOLS").unwrap_or_else(|| ".python".into()));
    tell("python_tools", "MXPROBE_REQUIRE_PYTHON", python.join("bin/python").exists());
    tell("vectors", "MXPROBE_REQUIRE_VECTORS", place("MXPROBE_VECTORS", "../shared/vectors").is_dir());
    println!("cargo::rerun-if-env-changed=MXPROBE_CHROMIUM");
    let chromium = env::var_os("MXPROBE_CHROMIUM").unwrap_or_else(|| "chromium".into());
    let chromium = chromium.to_string_lossy();
    tell("chromium", "MXPROBE_REQUIRE_CHROMIUM", output(&chromium, &["--version"]).is_some());
    tell("no_nvidia_driver", "MXPROBE_REQUIRE_NO_NVIDIA_DRIVER", !Path::new("/dev/nvidiactl").exists());
}

fn main() {
    tell_tests();
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
    for path in ["src", "backends", "models", "shaders", "Cargo.lock"].into_iter().chain(log.as_deref()) {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
