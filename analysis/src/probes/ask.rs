//! How the questions about matrix operations are asked.

use mxprobe_api::Error;

use super::{facts::Facts, subject::Subject};
use crate::findings::{self, Finding};

/// A question about a matrix operation.
pub(crate) type Probe = findings::Probe<Ask>;

/// Asks a question given earlier facts, and adds each finding as soon as it is known.
pub(super) type Question = fn(&Subject<'_>, &mut Facts, &mut Vec<Finding>) -> Result<(), Error>;

/// When and how a question about a matrix operation is asked.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    /// Before everything else; if it fails, only questions that need no computation follow.
    First(fn(&Subject<'_>) -> Finding),
    /// After the preceding questions in the list.
    Question(Question),
    /// Answered by the preceding question in the list, because it depends on its result or shares its batch.
    Along,
    /// Whatever the outcome of the preceding questions; reports failures itself.
    Apart(fn(&Subject<'_>) -> Vec<Finding>),
    /// About the device's code: like [`Ask::Apart`], and asked even if the first question failed.
    Code(fn(&Subject<'_>) -> Vec<Finding>),
}
