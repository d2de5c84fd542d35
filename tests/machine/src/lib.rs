//! Detects the equipment of this machine for build scripts. Each tool or instruction sets a `cfg`; without it the tests
//! that need it are ignored with a reason. `MXPROBE_REQUIRE_…=1` sets the `cfg` regardless, so that these tests fail
//! if the tool is missing.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "cargo reads a build script's standard output")]

use std::{env, fs, path::Path, process::Command};

/// Sets `cfg(NAME)` if `is_there`, or if the variable requires it.
pub fn tell(name: &str, variable: &str, is_there: bool) {
    println!("cargo::rustc-check-cfg=cfg({name})");
    println!("cargo::rerun-if-env-changed={variable}");
    if is_there || env::var_os(variable).is_some_and(|value| value == "1") {
        println!("cargo::rustc-cfg={name}");
    }
}

/// Sets `cfg(avx512)` for vectors of 512 bits in every width of elements, `cfg(avx512_bf16)`, `cfg(amx_bf16)`, and
/// `cfg(dot_units)` for any instruction that multiplies and adds pairs or tiles; required by `MXPROBE_REQUIRE_CPU`.
pub fn tell_cpu() {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    // Linux's names of the features.
    let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    let tell_cpu = |name, is_there| tell(name, "MXPROBE_REQUIRE_CPU", is_there);
    tell_cpu("avx512", ["avx512f", "avx512bw", "avx512dq", "avx512vl"].into_iter().all(has));
    tell_cpu("avx512_bf16", has("avx512_bf16"));
    tell_cpu("amx_bf16", has("amx_bf16"));
    tell_cpu("dot_units", ["avx512_vnni", "avx_vnni", "avx512_bf16", "amx_tile"].into_iter().any(has));
}

/// Sets `cfg(blas)` if the loader knows a BLAS or `MXPROBE_BLAS` names one; required by `MXPROBE_REQUIRE_BLAS`.
pub fn tell_blas() {
    println!("cargo::rerun-if-env-changed=MXPROBE_BLAS");
    let listed = Command::new("ldconfig").arg("-p").output().map(|output| output.stdout).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let is_listed = ["libopenblas", "libmkl_rt", "libblis"].iter().any(|name| listed.contains(name));
    tell("blas", "MXPROBE_REQUIRE_BLAS", is_listed || env::var_os("MXPROBE_BLAS").is_some());
}

/// The path that a variable names, or the usual one; the build script runs again when the variable or the file changes.
pub fn place(variable: &str, usual: &str) -> std::path::PathBuf {
    println!("cargo::rerun-if-env-changed={variable}");
    let place = env::var_os(variable).map_or_else(|| usual.into(), std::path::PathBuf::from);
    // Cargo treats a missing file as changed every time; the scripts that fetch it touch the build script instead.
    if place.exists() {
        println!("cargo::rerun-if-changed={}", Path::new(&place).display());
    }
    place
}

/// Sets the `cfg`s of tools for programs that act as devices: `cfg(numpy)` for the Python that `MXPROBE_PYTHON` names,
/// else that of `scripts/python-tools`; `cfg(cpp_compiler)` for the compiler that `CXX` names, else `c++`;
/// `cfg(arm_emulator)` for the emulator of `scripts/emulators`; `cfg(onednn)` for oneDNN from `scripts/python-tools`.
/// Required by `MXPROBE_REQUIRE_WORKERS`.
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
