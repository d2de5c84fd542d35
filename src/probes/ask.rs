//! How the questions of matrix operations are asked.

use mxprobe_api::Error;

use super::{facts::Facts, subject::Subject};
use crate::findings::{self, Finding};

/// A question of a matrix operation.
pub(crate) type Probe = findings::Probe<Ask>;

/// Asks with what was found before, and adds each finding as soon as it is known.
pub(super) type Question = fn(&Subject<'_>, &mut Facts, &mut Vec<Finding>) -> Result<(), Error>;

/// How a question of a matrix operation is asked.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    /// Before everything else; if it fails nothing is asked that computes.
    First(fn(&Subject<'_>) -> Finding),
    /// After the questions before it in the list.
    Question(Question),
    /// Answered by the question before it in the list: one needs what another finds, or one batch answers several.
    Along,
    /// Whatever became of the questions before; reports failures itself.
    Apart(fn(&Subject<'_>) -> Vec<Finding>),
    /// Of the device's code: as [`Ask::Apart`], and even if the first question failed.
    Code(fn(&Subject<'_>) -> Vec<Finding>),
}
