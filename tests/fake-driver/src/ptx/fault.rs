//! Errors in PTX.

use std::fmt;

/// An error that prevents PTX from being compiled, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub line: usize,
    pub text: String,
}

impl Fault {
    pub(crate) fn new(line: usize, text: impl fmt::Display) -> Self {
        Self { line, text: text.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ptxas application ptx input, line {}; error   : {}", self.line, self.text)
    }
}
