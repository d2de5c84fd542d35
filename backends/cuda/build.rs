//! Detects NVIDIA's assembler, so that tests that need it are ignored with a reason if it is missing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let tools = mxprobe_machine::place("MXPROBE_CUDA_TOOLS", "../../.cuda");
    let is_there = ["ptxas", "ptxas-12", "nvdisasm"].iter().all(|tool| tools.join(tool).exists());
    mxprobe_machine::tell("cuda_tools", "MXPROBE_REQUIRE_PTXAS", is_there);
}
