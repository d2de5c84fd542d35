//! The command `mxprobe`, run by the package's entry point.

use std::ffi::OsString;

use pyo3::prelude::*;

use mxprobe::Backends;

/// Runs the command with these arguments, starting with the program's name. `again` is the program, with its first
/// arguments, that is started for device processes. Returns the exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>, again: Vec<OsString>) -> u8 {
    py.detach(|| Backends::included().started_by(again).run(arguments))
}
