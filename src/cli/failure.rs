//! Failures of commands: one line, its causes, one line of help, and an exit code.

use std::{
    fmt::{self, Display},
    io::{self, Write},
};

use crate::plain;
use anstyle::{AnsiColor, Style};
use mxprobe_api::Error;

/// The result of a command: an exit code if it finished.
pub(crate) type Outcome = Result<u8, Failure>;

/// The answer to the question is "no".
pub(crate) const NO: u8 = 1;
/// Wrong usage, or an input or output error.
pub(crate) const USAGE: u8 = 2;
/// No usable device.
pub(crate) const NO_DEVICE: u8 = 3;
/// Finished, but something failed or timed out.
pub(crate) const INCOMPLETE: u8 = 4;
/// Interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command ends early. Displays as its first line only.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    causes: Vec<String>,
    help: Option<String>,
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Failure {
    /// Wrong usage, or an input or output error.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(USAGE, message)
    }

    /// The answer to the question is "no".
    pub(crate) fn no(message: impl Display) -> Self {
        Self::new(NO, message)
    }

    /// No usable device.
    pub(crate) fn no_device(message: impl Display) -> Self {
        Self::new(NO_DEVICE, message)
    }

    /// The device failed.
    pub(crate) fn incomplete(message: impl Display) -> Self {
        Self::new(INCOMPLETE, message)
    }

    /// Converts the error of an invalid request, or of a device that failed.
    pub(crate) fn of_device(error: Error) -> Self {
        if error.is_invalid() || error.is_unsupported() {
            Self::usage(error)
        } else if error.is_missing_driver() {
            Self::no_device(error)
        } else {
            Self::incomplete(error)
        }
    }

    /// Changes the exit code for a command whose exit code says whether a device is healthy: this failure cannot tell.
    pub(crate) fn unjudged(mut self) -> Self {
        if matches!(self.code, NO_DEVICE | INCOMPLETE) {
            self.code = USAGE;
        }
        self
    }

    fn new(code: u8, message: impl Display) -> Self {
        Self { code, message: message.to_string(), causes: Vec::new(), help: None }
    }

    /// Standard output could not be written. A reader that closed the pipe early is not a failure.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { code: 0, message: String::new(), causes: Vec::new(), help: None };
        }
        Self::usage(format!("standard output cannot be written: {error}"))
    }

    /// Whether there is nothing to report, because a reader closed the pipe early.
    pub(crate) fn is_silent(&self) -> bool {
        self.message.is_empty()
    }

    /// Adds a cause below the first line.
    pub(crate) fn cause(mut self, cause: impl Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    /// Sets the help: a fact and an action.
    pub(crate) fn help(mut self, help: impl Display) -> Self {
        self.help = Some(help.to_string());
        self
    }

    /// Prints the failure on standard error, and returns the exit code.
    pub(crate) fn report(&self) -> u8 {
        let mut text = String::new();
        if !self.message.is_empty() {
            let (red, bold) = (AnsiColor::Red.on_default().bold(), Style::new().bold());
            text += &format!("{red}error:{red:#} {}\n", plain::lines(&self.message));
            for cause in &self.causes {
                text += &format!("  {}\n", plain::lines(cause));
            }
            if let Some(help) = &self.help {
                text += &format!("{bold}help:{bold:#} {}\n", plain::lines(help));
            }
        }
        // If standard error is closed, there is nowhere left to report the error.
        let _ = anstream::stderr().write_all(text.as_bytes());
        self.code
    }
}
