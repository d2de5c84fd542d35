use std::fmt;

use mxprobe_api::OperationId;

/// A check that a device or a backend did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The name of the check, one of [`CHECKS`](crate::CHECKS), [`ABILITY_CHECKS`](crate::ABILITY_CHECKS),
    /// [`BACKEND_CHECKS`](crate::BACKEND_CHECKS) or [`CLASSES`](crate::CLASSES).
    pub check: &'static str,
    /// The operation under test, if the check was of one.
    pub operation: Option<OperationId>,
    /// The result found and the one expected, with bits.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.check)?;
        if let Some(operation) = &self.operation {
            write!(f, "{operation}: ")?;
        }
        f.write_str(&self.found)
    }
}
