//! How the questions of scalar arithmetic are asked.

use mxprobe_api::Error;

use super::{found::Found, subject::Subject};
use crate::findings::{self, Finding};

/// A question of scalar arithmetic.
pub(crate) type Probe = findings::Probe<Ask>;

/// Asks with what was found of every function, and adds each finding as soon as it is known.
type Question = fn(&Subject<'_>, &[Found], &mut Vec<Finding>) -> Result<(), Error>;

/// How a question of scalar arithmetic is asked.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    /// Of each function of the group that the probe names.
    Function,
    /// After the functions.
    Question(Question),
    /// Answered by the question before it in the list.
    Along,
    /// Only where a run names it, since it takes millions of calls.
    Named,
}
