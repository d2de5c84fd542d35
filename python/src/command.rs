//! The command `mxprobe`, as the package's entry point runs it.

use std::ffi::OsString;

use pyo3::prelude::*;

use mxprobe::Backends;

/// Runs the command with these arguments, the program's name first. `again` is the program, with its first arguments, that is
/// started for the processes of devices. Returns the exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>, again: Vec<OsString>) -> u8 {
    py.detach(|| Backends::included().started_by(again).run(arguments))
}
