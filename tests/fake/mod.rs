//! Runs the command with the fake CUDA driver in place of the driver's library.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::{
    path::Path,
    process::{Command, Stdio},
    sync::OnceLock,
};

/// A folder that holds the fake driver as `libcuda.so.1`.
pub(crate) fn fake_driver() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        mxprobe_fake_driver::install(folder.path()).unwrap();
        folder
    });
    folder.path()
}

/// The output of the command.
pub(crate) struct Said {
    /// Its exit code.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

/// Runs the command with the fake driver in place of the driver's library, and with these environment variables.
pub(crate) fn on_fake_driver(environment: &[(&str, &str)], arguments: &[&str]) -> Said {
    in_folder(fake_driver(), environment, arguments)
}

/// The same with the library in this folder.
pub(crate) fn in_folder(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
    command.args(arguments).stdin(Stdio::null()).env("LD_LIBRARY_PATH", folder);
    for name in ["MXPROBE_DEVICE", "CLICOLOR_FORCE", "MXPROBE_FAKE_MODEL", "MXPROBE_FAKE_FAULT", "MXPROBE_FAKE_FLIP"] {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied());
    let output = command.output().expect("mxprobe starts");
    let said = Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(!said.err.contains("panicked"), "{}", said.err);
    said
}
