//! Records the build for the provenance of reports: the commit if there is one, the target and the compiler. Detects
//! what this machine has, so that tests that cannot run are ignored with a reason.
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
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
    // The packages' files need not be checked; the script that fetches them touches this one.
    println!("cargo::rerun-if-env-changed=MXPROBE_PYTHON_TOOLS");
    let python = PathBuf::from(env::var_os("MXPROBE_PYTHON_TOOLS").unwrap_or_else(|| ".python".into()));
    tell("python_tools", "MXPROBE_REQUIRE_PYTHON", python.join("bin/python").exists());
    tell("vectors", "MXPROBE_REQUIRE_VECTORS", place("MXPROBE_VECTORS", "../shared/vectors").is_dir());
    println!("cargo::rerun-if-env-changed=MXPROBE_CHROMIUM");
    let chromium = env::var_os("MXPROBE_CHROMIUM").unwrap_or_else(|| "chromium".into());
    let chromium = chromium.to_string_lossy();
    tell("chromium", "MXPROBE_REQUIRE_CHROMIUM", output(&chromium, &["--version"]).is_some());
    let path = env::var_os("PATH").unwrap_or_default();
    let is_installed = |name: &&str| env::split_paths(&path).any(|folder| folder.join(name).exists());
    tell("slurm", "MXPROBE_REQUIRE_SLURM", ["slurmctld", "slurmd", "munged", "sbatch"].iter().all(is_installed));
    tell("no_nvidia_driver", "MXPROBE_REQUIRE_NO_NVIDIA_DRIVER", !Path::new("/dev/nvidiactl").exists());
}

/// Makes the linker, if it can, drop two parts of the program: the unwinding tables, 1.5 MB, which nothing reads if a
/// panic ends the process without symbols for a backtrace, as in the profile `release`; and the relocations
/// that let the program be loaded at any address, 0.7 MB. Does nothing when cross-compiling, or if the linker refuses.
fn leave_out_what_nothing_reads(rustc: &str) -> Option<()> {
    let set = |name: &str| env::var(name).ok();
    let out = PathBuf::from(env::var_os("OUT_DIR")?);
    let is_release = out.ancestors().nth(3)?.ends_with("release");
    if !is_release || set("CARGO_CFG_TARGET_OS")? != "linux" || set("TARGET") != set("HOST") {
        return None;
    }
    let (script, source, program) = (out.join("tables.ld"), out.join("probe.rs"), out.join("probe"));
    let tables = "*(.eh_frame) *(.eh_frame_hdr) *(.gcc_except_table .gcc_except_table.*)";
    fs::write(&script, format!("SECTIONS {{ /DISCARD/ : {{ {tables} }} }} INSERT AFTER .rodata;\n")).ok()?;
    fs::write(&source, "fn main() {}\n").ok()?;
    let flags = set("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let runs = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    // Links an empty program with one more argument each time, and runs it.
    let mut taken = Vec::new();
    for argument in [format!("-Wl,-T,{}", script.display()), "-no-pie".to_owned()] {
        let mut probe = Command::new(rustc);
        probe.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty())).args(["-C", "panic=abort"]);
        if let Some(linker) = set("RUSTC_LINKER") {
            probe.args(["-C", &format!("linker={linker}")]);
        }
        taken.push(argument);
        probe.args(taken.iter().flat_map(|argument| ["-C".to_owned(), format!("link-arg={argument}")]));
        probe.arg("-o").arg(&program).arg(&source).stderr(Stdio::null());
        if !runs(&mut probe) || !runs(&mut Command::new(&program)) {
            taken.pop();
        }
    }
    taken.iter().for_each(|argument| println!("cargo::rustc-link-arg-bins={argument}"));
    Some(())
}

fn main() {
    tell_tests();
    println!("cargo::rustc-env=MXPROBE_TARGET={}", env::var("TARGET").expect("set by cargo"));
    let rustc = env::var("RUSTC").expect("set by cargo");
    println!("cargo::rustc-env=MXPROBE_RUSTC={}", output(&rustc, &["--version"]).unwrap_or_default());
    leave_out_what_nothing_reads(&rustc);
    println!("cargo::rerun-if-changed=build.rs");
    // A package from a registry has no repository, or lies in an unrelated one: then the commit is not recorded.
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
    for path in ["src", "analysis", "backends", "models", "shaders", "Cargo.lock"].into_iter().chain(log.as_deref()) {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
