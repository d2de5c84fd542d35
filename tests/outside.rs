//! A backend outside this workspace: builds the example in a folder of its own and runs it.
#![allow(missing_docs)]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The tables of this workspace's manifest that say how debug builds of packages of others are compiled. Its own are not
/// shared with another workspace, and compiled without optimisations.
fn profiles(root: &Path) -> String {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let mut is_dev = false;
    let lines = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            is_dev = line.starts_with("[profile.dev") && !line.starts_with("[profile.dev.package.mxprobe");
        }
        is_dev
    });
    lines.fold(String::new(), |text, line| text + "\n" + line)
}

/// Builds the example as a crate that depends on this one, and returns the path of its program.
fn build() -> std::path::PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    fs::create_dir_all(folder.join("src")).unwrap();
    let example = root.join("examples/backend");
    let manifest = fs::read_to_string(example.join("Cargo.toml")).unwrap();
    let own = root.to_str().unwrap();
    assert_eq!(manifest.matches("path = \"../..").count(), 2);
    let manifest = manifest.replace("path = \"../..", &format!("path = \"{own}"));
    fs::write(folder.join("Cargo.toml"), manifest + &profiles(root)).unwrap();
    fs::copy(example.join("src/main.rs"), folder.join("src/main.rs")).unwrap();
    // Use the same versions, so that nothing has to be fetched.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    // Reuse dependencies that this workspace compiles with the same features.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--offline", "--target-dir"])
        .arg(target)
        .current_dir(&folder)
        .output()
        .unwrap();
    text(&output);
    target.join("debug/mxprobe-systolic")
}

#[test]
fn a_backend_of_another_crate_has_every_command() {
    let program = build();
    let run = |arguments: &[&str]| text(&Command::new(&program).args(arguments).output().unwrap());
    let listed = run(&["list", "--backend", "systolic"]);
    assert!(listed.contains("Systolic array of 4×4 (software, 1 operation)"), "{listed}");
    // The device runs in its own process, started from the same program.
    let report = run(&["--device", "systolic:0", "--probe", "order", "--probe", "alignment.fraction_bits"]);
    assert!(report.contains("chain(c → p0…p7)"), "{report}");
    assert!(report.contains("rounded once, to 24 bits"), "{report}");
    // The included backends are still available.
    assert!(run(&["list", "--backend", "sim"]).contains("sim:h100"));
    let unknown = Command::new(&program).args(["list", "--backend", "tpu"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("systolic"), "the backends are named");
}

#[test]
#[should_panic(expected = "there is a backend `sim` already")]
fn two_backends_of_one_name_are_refused() {
    let _ = mxprobe::Backends::included().register(|| Box::new(mxprobe_sim::SimBackend));
}
