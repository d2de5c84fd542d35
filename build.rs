//! Records what is built, for the provenance of reports: the commit where there is one, the target and the compiler. Tells
//! tests what this machine has, so that those that cannot run are ignored with their reason.
use std::{env, fs, path::Path, process::Command};

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Sets `cfg(NAME)`, without which tests that need something are ignored: if it is there, or if a variable requires it.
fn tell(name: &str, variable: &str, is_there: bool) {
    println!("cargo::rustc-check-cfg=cfg({name})");
    println!("cargo::rerun-if-env-changed={variable}");
    if is_there || env::var_os(variable).is_some_and(|value| value == "1") {
        println!("cargo::rustc-cfg={name}");
    }
}

/// Whether this CPU has a feature, by the name that Linux gives it.
fn has_feature(name: &str) -> bool {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == name)
}

/// Whether the loader knows a BLAS, or `MXPROBE_BLAS` names one.
fn has_blas() -> bool {
    println!("cargo::rerun-if-env-changed=MXPROBE_BLAS");
    let listed = Command::new("ldconfig").arg("-p").output().map(|output| output.stdout).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed).into_owned();
    env::var_os("MXPROBE_BLAS").is_some()
        || ["libopenblas", "libmkl_rt", "libblis"].iter().any(|name| listed.contains(name))
}

fn tell_tests() {
    tell("avx512_bf16", "MXPROBE_REQUIRE_CPU", has_feature("avx512_bf16"));
    tell("amx_bf16", "MXPROBE_REQUIRE_CPU", has_feature("amx_bf16"));
    let dot_units = ["avx512_vnni", "avx_vnni", "avx512_bf16", "amx_tile"];
    tell("dot_units", "MXPROBE_REQUIRE_CPU", dot_units.iter().any(|name| has_feature(name)));
    tell("blas", "MXPROBE_REQUIRE_BLAS", has_blas());
    println!("cargo::rerun-if-env-changed=MXPROBE_VULKAN_RUN");
    let runner = env::var("MXPROBE_VULKAN_RUN").unwrap_or_else(|_| ".vulkan/run".to_owned());
    tell("vulkan_drivers", "MXPROBE_REQUIRE_VULKAN", Path::new(&runner).exists());
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
    for path in ["src", "backends", "Cargo.lock"].into_iter().chain(log.as_deref()) {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
