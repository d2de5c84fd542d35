//! Starts this program, or another one, as the process of a device.

use std::{process::Command, sync::Arc, time::Duration};

use crate::isolate::Program;
use mxprobe_api::Error;

use crate::cli::{
    choose::{executable, registry::Entry},
    io::output,
};

/// The time limit for a backend's discovery.
const DISCOVERY: Duration = Duration::from_secs(30);

/// Discovers the devices of a backend in a process of its own.
///
/// # Errors
/// If that process does not start, dies or hangs.
pub(crate) fn discover(entry: &Entry) -> Result<crate::isolate::Found, Error> {
    program(DISCOVERY, false, || None).discover(Some(entry.name))
}

/// Describes a device that discovery does not list.
///
/// # Errors
/// If no device has this name, or the process does not start, dies or hangs.
pub(crate) fn describe(selector: &str) -> Result<crate::isolate::Described, Error> {
    program(DISCOVERY, false, || None).describe(selector)
}

/// Returns this program, as the process of a device.
pub(super) fn program(
    limit: Duration,
    forward_stderr: bool,
    stop: impl Fn() -> Option<String> + Send + Sync + 'static,
) -> Program {
    let command = || {
        let mut command = executable::this_program();
        command.arg("worker");
        command
    };
    of(command, limit, forward_stderr, stop)
}

/// Returns a program, as the process of a device.
pub(crate) fn of(
    command: impl Fn() -> Command + Send + Sync + 'static,
    limit: Duration,
    forward_stderr: bool,
    stop: impl Fn() -> Option<String> + Send + Sync + 'static,
) -> Program {
    let listener: crate::isolate::Listener =
        Arc::new(|process: u32, line: &str| output::note(format!("process {process}: {line}")));
    Program { command: Box::new(command), limit, stop: Box::new(stop), listener: forward_stderr.then_some(listener) }
}
