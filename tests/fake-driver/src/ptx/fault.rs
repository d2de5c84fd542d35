//! Why PTX is refused.

use std::fmt;

/// Why PTX cannot be compiled.
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
