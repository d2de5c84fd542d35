//! This program, started as the process of a device, and others.

use std::{process::Command, sync::Arc, time::Duration};

use crate::isolate::Program;
use mxprobe_api::Error;

use crate::cli::{
    choose::{executable, registry::Entry},
    io::output,
};

/// How long a backend may look for its devices.
const DISCOVERY: Duration = Duration::from_secs(30);

/// What a backend finds in a process of its own.
///
/// # Errors
/// If that process does not start, dies or hangs.
pub(crate) fn discover(entry: &Entry) -> Result<crate::isolate::Found, Error> {
    program(DISCOVERY, false, || None).discover(Some(entry.name))
}

/// The description of a device that discovery does not list.
///
/// # Errors
/// If there is none of this name, or the process does not start, dies or hangs.
pub(crate) fn describe(selector: &str) -> Result<crate::isolate::Described, Error> {
    program(DISCOVERY, false, || None).describe(selector)
}

/// This program, as the process of a device.
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

/// A program, as the process of a device.
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
