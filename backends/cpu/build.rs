//! Detects what this machine has, so that tests that cannot run are ignored with a reason.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    mxprobe_machine::tell_cpu();
    mxprobe_machine::tell_blas();
}
