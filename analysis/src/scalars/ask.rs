//! The way in which each question of scalar arithmetic is asked.

use mxprobe_api::Error;

use super::{found::Found, subject::Subject};
use crate::findings::{self, Finding};

/// A question of scalar arithmetic.
pub(crate) type Probe = findings::Probe<Ask>;

/// Answers a question from the results about every function, and adds each finding as soon as it is known.
type Question = fn(&Subject<'_>, &[Found], &mut Vec<Finding>) -> Result<(), Error>;

/// The way in which a question of scalar arithmetic is asked.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    /// For each function of the group that the probe names.
    Function,
    /// Once, after the functions.
    Question(Question),
    /// Not by itself: the question before it in the list answers it too.
    Along,
    /// Only if a run names it, since it takes millions of calls.
    Named,
}
