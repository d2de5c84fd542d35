//! Tells tests what this machine has, so that those that cannot run are ignored with their reason.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    mxprobe_machine::tell_cpu();
    mxprobe_machine::tell_blas();
}
