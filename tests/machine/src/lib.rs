//! What this machine has, for build scripts: each thing sets a `cfg`, without which tests that need it are ignored with their
//! reason. A variable `MXPROBE_REQUIRE_…=1` sets it all the same, and the tests then fail where the thing is missing.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "cargo reads a build script's standard output")]

use std::{env, fs, path::Path, process::Command};

/// Sets `cfg(NAME)` if the thing is there, or if the variable requires it.
pub fn tell(name: &str, variable: &str, is_there: bool) {
    println!("cargo::rustc-check-cfg=cfg({name})");
    println!("cargo::rerun-if-env-changed={variable}");
    if is_there || env::var_os(variable).is_some_and(|value| value == "1") {
        println!("cargo::rustc-cfg={name}");
    }
}

/// `cfg(avx512_bf16)`, `cfg(amx_bf16)` and `cfg(dot_units)`, any instruction that multiplies and adds pairs or tiles; required
/// by `MXPROBE_REQUIRE_CPU`.
pub fn tell_cpu() {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    // By the names that Linux gives the features.
    let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    let tell_cpu = |name, is_there| tell(name, "MXPROBE_REQUIRE_CPU", is_there);
    tell_cpu("avx512_bf16", has("avx512_bf16"));
    tell_cpu("amx_bf16", has("amx_bf16"));
    tell_cpu("dot_units", ["avx512_vnni", "avx_vnni", "avx512_bf16", "amx_tile"].into_iter().any(has));
}

/// `cfg(blas)`, a BLAS that the loader knows or `MXPROBE_BLAS` names; required by `MXPROBE_REQUIRE_BLAS`.
pub fn tell_blas() {
    println!("cargo::rerun-if-env-changed=MXPROBE_BLAS");
    let listed = Command::new("ldconfig").arg("-p").output().map(|output| output.stdout).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let is_listed = ["libopenblas", "libmkl_rt", "libblis"].iter().any(|name| listed.contains(name));
    tell("blas", "MXPROBE_REQUIRE_BLAS", is_listed || env::var_os("MXPROBE_BLAS").is_some());
}

/// Where a variable says that something is, or where it is usually; the script runs again when that changes.
pub fn place(variable: &str, usual: &str) -> std::path::PathBuf {
    println!("cargo::rerun-if-env-changed={variable}");
    let place = env::var_os(variable).map_or_else(|| usual.into(), std::path::PathBuf::from);
    // Of what is not there cargo would say that it changed each time; the scripts that fetch it touch the build script.
    if place.exists() {
        println!("cargo::rerun-if-changed={}", Path::new(&place).display());
    }
    place
}

/// What runs programs behind devices: `cfg(numpy)`, the Python that `MXPROBE_PYTHON` names, else the one of
/// `scripts/python-tools`; `cfg(cpp_compiler)`, the one that `CXX` names, else `c++`; `cfg(arm_emulator)`, that of
/// `scripts/emulators`; `cfg(onednn)`, of `scripts/python-tools` too. Required by `MXPROBE_REQUIRE_WORKERS`.
pub fn tell_workers() {
    let tell_workers = |name, is_there| tell(name, "MXPROBE_REQUIRE_WORKERS", is_there);
    println!("cargo::rerun-if-env-changed=CXX");
    let compiler = env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let answers = |mut command: Command| command.output().is_ok_and(|output| output.status.success());
    let mut asked = Command::new(compiler);
    asked.arg("--version");
    tell_workers("cpp_compiler", answers(asked));
    let python = place("MXPROBE_PYTHON", ".python/bin/python");
    let mut asked = Command::new(&python);
    asked.args(["-c", "import numpy, ml_dtypes"]);
    tell_workers("numpy", answers(asked));
    tell_workers("onednn", Path::new(".python/lib/libdnnl.so.3").exists());
    tell_workers("arm_emulator", place("MXPROBE_EMULATORS", ".emulators/done").exists());
}
