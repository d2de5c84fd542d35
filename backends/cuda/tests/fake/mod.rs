//! Runs tests in a subprocess with the fake driver, since the driver library is chosen only once per process.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::{env, path::Path, process::Command};

/// Runs one of this program's ignored tests on the fake driver, as an H100 unless `environment` says otherwise.
#[track_caller]
pub(crate) fn on_fake_driver(test: &str, environment: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    mxprobe_fake_driver::install(folder.path()).unwrap();
    in_folder(folder.path(), test, environment);
}

/// The same with the libraries in `folder`.
#[track_caller]
pub(crate) fn in_folder(folder: &Path, test: &str, environment: &[(&str, &str)]) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test]).env("LD_LIBRARY_PATH", folder);
    command.env_remove("MXPROBE_FAKE_FAULT").env("MXPROBE_FAKE_MODEL", "h100");
    command.envs(environment.iter().copied());
    let said = command.output().unwrap();
    let out = String::from_utf8_lossy(&said.stdout);
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && out.contains("1 passed"), "{test} {environment:?}: {out}{err}");
}
