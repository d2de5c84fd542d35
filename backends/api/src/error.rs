use std::fmt;

use serde::{Deserialize, Serialize};

/// An error: one line of text that contains the offending value, and predicates to tell the cases apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    #[serde(default)]
    kind: ErrorKind,
    message: String,
}

/// The kind of an [`Error`], as sent between processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// See [`Error::invalid`].
    Invalid,
    /// See [`Error::missing_driver`].
    MissingDriver,
    /// See [`Error::unsupported`].
    Unsupported,
    /// See [`Error::device_lost`].
    DeviceLost,
    /// See [`Error::out_of_memory`].
    OutOfMemory,
    /// See [`Error::timed_out`].
    TimedOut,
    /// See [`Error::nothing_written`].
    NothingWritten,
    /// See [`Error::self_test`].
    SelfTest,
    /// See [`Error::driver`]; also any kind that the reader does not know.
    #[default]
    #[serde(other)]
    Driver,
}

impl Error {
    /// Creates an error for invalid input from the caller: an unknown name, a wrong length, a malformed number.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Creates an error for a driver or library that is missing from this machine.
    pub fn missing_driver(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::MissingDriver, message)
    }

    /// Creates an error for a device that is present but reports that it cannot do this.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Creates an error for a device that stopped working and cannot be used any more.
    pub fn device_lost(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::DeviceLost, message)
    }

    /// Creates an error for a lack of device or host memory.
    pub fn out_of_memory(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::OutOfMemory, message)
    }

    /// Creates an error for a device that did not answer within its time limit.
    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TimedOut, message)
    }

    /// Creates an error for a device that reported completion, but whose output memory still holds its previous
    /// content.
    pub fn nothing_written(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NothingWritten, message)
    }

    /// Creates an error for a failed layout self-test of an operation, which uses exact small integers.
    pub fn self_test(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::SelfTest, message)
    }

    /// Creates an error for a call that the driver refused with an error of its own.
    pub fn driver(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Driver, message)
    }

    /// Creates an error of the given kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the caller passed invalid input.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.kind == ErrorKind::Invalid
    }

    /// Whether the driver or library is missing.
    #[must_use]
    pub fn is_missing_driver(&self) -> bool {
        self.kind == ErrorKind::MissingDriver
    }

    /// Whether the device cannot do this.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.kind == ErrorKind::Unsupported
    }

    /// Whether the device is lost.
    #[must_use]
    pub fn is_device_lost(&self) -> bool {
        self.kind == ErrorKind::DeviceLost
    }

    /// Whether memory ran out.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.kind == ErrorKind::OutOfMemory
    }

    /// Whether the time limit passed.
    #[must_use]
    pub fn is_timed_out(&self) -> bool {
        self.kind == ErrorKind::TimedOut
    }

    /// Whether the device wrote nothing.
    #[must_use]
    pub fn is_nothing_written(&self) -> bool {
        self.kind == ErrorKind::NothingWritten
    }

    /// Whether the layout self-test failed.
    #[must_use]
    pub fn is_self_test(&self) -> bool {
        self.kind == ErrorKind::SelfTest
    }

    /// Appends `: detail` to the text.
    #[must_use]
    pub fn detail(mut self, detail: impl fmt::Display) -> Self {
        self.message = format!("{}: {detail}", self.message);
        self
    }

    /// Prepends `context: ` to the text.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
