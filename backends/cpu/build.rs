//! Tells tests what this machine has, so that those that cannot run are ignored with their reason.
use std::{env, fs, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    tell("avx512_bf16", "MXPROBE_REQUIRE_CPU", has_feature("avx512_bf16"));
    tell("amx_bf16", "MXPROBE_REQUIRE_CPU", has_feature("amx_bf16"));
    let dot_units = ["avx512_vnni", "avx_vnni", "avx512_bf16", "amx_tile"];
    tell("dot_units", "MXPROBE_REQUIRE_CPU", dot_units.iter().any(|name| has_feature(name)));
    tell("blas", "MXPROBE_REQUIRE_BLAS", has_blas());
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
