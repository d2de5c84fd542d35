use std::fmt;

/// What went wrong, in one line with the value in it, and predicates to tell the cases apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Invalid,
    MissingDriver,
    Unsupported,
    DeviceLost,
    OutOfMemory,
    TimedOut,
    NothingWritten,
    SelfTest,
    Driver,
}

impl Error {
    /// The caller passed something wrong: an unknown name, a wrong length, a malformed number.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    /// The driver or the library that reaches the devices is not on this machine.
    pub fn missing_driver(message: impl Into<String>) -> Self {
        Self::new(Kind::MissingDriver, message)
    }

    /// The device is there and says that it cannot do this.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, message)
    }

    /// The device stopped working; nothing more can be asked of it.
    pub fn device_lost(message: impl Into<String>) -> Self {
        Self::new(Kind::DeviceLost, message)
    }

    /// Memory of the device or of the host ran out.
    pub fn out_of_memory(message: impl Into<String>) -> Self {
        Self::new(Kind::OutOfMemory, message)
    }

    /// The device did not answer within its time limit.
    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::new(Kind::TimedOut, message)
    }

    /// The device said it had finished and its output memory still holds what was there before.
    pub fn nothing_written(message: impl Into<String>) -> Self {
        Self::new(Kind::NothingWritten, message)
    }

    /// The exact small-integer self-test of an operation's layout gave a wrong result.
    pub fn self_test(message: impl Into<String>) -> Self {
        Self::new(Kind::SelfTest, message)
    }

    /// The driver refused a call with an error of its own.
    pub fn driver(message: impl Into<String>) -> Self {
        Self::new(Kind::Driver, message)
    }

    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The caller passed something wrong.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.kind == Kind::Invalid
    }

    /// The driver or library is not there.
    #[must_use]
    pub fn is_missing_driver(&self) -> bool {
        self.kind == Kind::MissingDriver
    }

    /// The device cannot do this.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.kind == Kind::Unsupported
    }

    /// The device is lost.
    #[must_use]
    pub fn is_device_lost(&self) -> bool {
        self.kind == Kind::DeviceLost
    }

    /// Memory ran out.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.kind == Kind::OutOfMemory
    }

    /// The time limit passed.
    #[must_use]
    pub fn is_timed_out(&self) -> bool {
        self.kind == Kind::TimedOut
    }

    /// The device wrote nothing.
    #[must_use]
    pub fn is_nothing_written(&self) -> bool {
        self.kind == Kind::NothingWritten
    }

    /// The layout self-test failed.
    #[must_use]
    pub fn is_self_test(&self) -> bool {
        self.kind == Kind::SelfTest
    }

    /// The same error with `: detail` after its text.
    #[must_use]
    pub fn detail(mut self, detail: impl fmt::Display) -> Self {
        self.message = format!("{}: {detail}", self.message);
        self
    }

    /// The same error with `context: ` in front of its text.
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
