//! What the device returned for calls of a function, and the readings that explain it.

use mxprobe_api::{Decoded, Format, ScalarFunction};

use super::{
    exact::{self, Mode, Other, Steps},
    subject::Subject,
};
use crate::findings::Evidence;

/// What was found of one function, for the questions after it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(super) function: ScalarFunction,
    pub(super) calls: Calls,
    /// Every reading that explains all calls; empty where none does.
    pub(super) readings: Vec<(Mode, Steps)>,
    /// The reading that explains most of them.
    pub(super) nearest: (Mode, Steps),
}

impl Found {
    /// A call whose result another reading contradicts: what was computed, and what that reading says, under this name.
    pub(super) fn against(&self, subject: &Subject<'_>, reading: (Mode, Steps), name: &str) -> Option<Evidence> {
        let at = (0..self.calls.operands.len())
            .find(|at| self.calls.expected(*at, reading).is_ok_and(|bits| bits != self.calls.results[*at]))?;
        let rival = (name.to_owned(), self.calls.expected(at, reading).ok()?);
        let about = format!("{name} would give other bits");
        Some(subject.evidence(about, self.function, &self.calls.operands[at], self.calls.results[at], &[rival]))
    }
}

/// Calls of a function, with the device's results.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) function: ScalarFunction,
    pub(super) format: Format,
    pub(super) operands: Vec<Vec<u64>>,
    pub(super) results: Vec<u64>,
}

impl Calls {
    /// What a reading says of a call.
    pub(super) fn expected(&self, at: usize, (mode, steps): (Mode, Steps)) -> Result<u64, Other> {
        exact::result(self.function, self.format, &self.operands[at], mode, steps)
    }

    /// The calls that a reading does not explain, up to so many.
    pub(super) fn wrong(&self, reading: (Mode, Steps), at_most: usize) -> Vec<usize> {
        (0..self.operands.len()).filter(|at| self.differs(*at, reading)).take(at_most).collect()
    }

    /// Whether a reading explains every call. The last ones are ordinary values, which most readings fail at once.
    pub(super) fn are_explained(&self, reading: (Mode, Steps)) -> bool {
        !(0..self.operands.len()).rev().any(|at| self.differs(at, reading))
    }

    fn differs(&self, at: usize, reading: (Mode, Steps)) -> bool {
        let to = self.function.result(self.format);
        match self.expected(at, reading) {
            Ok(bits) => bits != self.results[at],
            Err(Other::Nan) => !matches!(to.decode(self.results[at]), Decoded::Nan { .. }),
            Err(Other::Open) => false,
        }
    }
}
