//! Tells tests whether NVIDIA's assembler is there, so that those that need it are ignored with their reason otherwise.
use std::{env, path::PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MXPROBE_CUDA_TOOLS");
    let tools = env::var_os("MXPROBE_CUDA_TOOLS").map_or_else(|| PathBuf::from("../../.cuda"), PathBuf::from);
    let is_there = ["ptxas", "ptxas-12", "nvdisasm"].iter().all(|tool| tools.join(tool).exists());
    tell("cuda_tools", "MXPROBE_REQUIRE_PTXAS", is_there);
}

/// Sets `cfg(NAME)`, without which tests that need something are ignored: if it is there, or if a variable requires it.
fn tell(name: &str, variable: &str, is_there: bool) {
    println!("cargo::rustc-check-cfg=cfg({name})");
    println!("cargo::rerun-if-env-changed={variable}");
    if is_there || env::var_os(variable).is_some_and(|value| value == "1") {
        println!("cargo::rustc-cfg={name}");
    }
}
