//! The device's results for calls of a function, and the readings that explain them.

use mxprobe_api::{Decoded, Format, Rounding, ScalarFunction};

use foldhash::{HashSet, HashSetExt};

use super::{
    exact::{self, Shared, Steps},
    once::{Mode, Other},
    subject::Subject,
};
use crate::findings::Evidence;

/// The results about one function, for later questions.
#[derive(Debug)]
pub(crate) struct Found {
    pub(super) function: ScalarFunction,
    pub(super) calls: Calls,
    /// All readings that explain every call; empty if there is none.
    pub(super) readings: Vec<(Mode, Steps)>,
    /// The reading that explains the most calls.
    pub(super) nearest: (Mode, Steps),
}

impl Found {
    /// Finds a call whose result contradicts another reading: evidence of what was computed, with that reading's result
    /// under `name`.
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
    /// The result of a call according to a reading.
    pub(super) fn expected(&self, at: usize, (mode, steps): (Mode, Steps)) -> Result<u64, Other> {
        exact::result(self.function, self.format, &self.operands[at], mode, steps)
    }

    /// As [`Calls::expected`], with operations that several readings of a call share.
    pub(super) fn expected_of(&self, at: usize, (mode, steps): (Mode, Steps), shared: &Shared) -> Result<u64, Other> {
        exact::result_of(self.function, self.format, &self.operands[at], mode, steps, shared)
    }

    /// The calls that a reading does not explain, at most `at_most` of them.
    pub(super) fn wrong(&self, reading: (Mode, Steps), at_most: usize) -> Vec<usize> {
        (0..self.operands.len()).filter(|at| self.differs(*at, reading)).take(at_most).collect()
    }

    /// Filters the readings that explain every call. The treatment of subnormals matters only for calls in which they
    /// occur, so all other calls are checked once for all readings of the same steps and direction.
    pub(super) fn explaining(&self, mut readings: Vec<(Mode, Steps)>) -> Vec<(Mode, Steps)> {
        let is_rounded = exact::is_rounded(self.function);
        // All directions are one if no result is rounded.
        let direction = |mode: Mode| if is_rounded { mode.rounding } else { Rounding::NearestEven };
        let mut seen = HashSet::new();
        let kinds = readings.iter().map(|(mode, steps)| (direction(*mode), *steps)).filter(|kind| seen.insert(*kind));
        let tiny = self.tiny_calls(kinds.collect());
        let mut judged: Vec<((Mode, Steps), bool)> = Vec::new();
        readings.retain(|(mode, steps)| {
            let reading = (Mode { rounding: direction(*mode), ..*mode }, *steps);
            let Some((_, rest)) = tiny.iter().find(|(kind, _)| *kind == (reading.0.rounding, *steps)) else {
                return false;
            };
            if let Some((_, explains)) = judged.iter().find(|(known, _)| *known == reading) {
                return *explains;
            }
            let explains = rest.iter().all(|at| !self.differs(*at, reading));
            judged.push((reading, explains));
            explains
        });
        readings
    }

    /// The directions and steps that explain every call without subnormals, with the other calls. The last calls are
    /// ordinary values, which contradict most wrong steps immediately.
    fn tiny_calls(&self, kinds: Vec<(Rounding, Steps)>) -> Vec<((Rounding, Steps), Vec<usize>)> {
        let shared = Shared::new();
        let mut left: Vec<_> = kinds.into_iter().map(|kind| (kind, Vec::new())).collect();
        for at in (0..self.operands.len()).rev() {
            let operands = &self.operands[at];
            left.retain_mut(|((rounding, steps), tiny)| {
                let (expected, is_tiny) =
                    exact::unflushed(self.function, self.format, operands, *rounding, *steps, &shared);
                if is_tiny {
                    tiny.push(at);
                }
                is_tiny || !self.contradicts(at, expected)
            });
            if left.is_empty() {
                break;
            }
        }
        left
    }

    fn differs(&self, at: usize, reading: (Mode, Steps)) -> bool {
        self.contradicts(at, self.expected(at, reading))
    }

    /// Whether the device returned a different result.
    fn contradicts(&self, at: usize, expected: Result<u64, Other>) -> bool {
        let to = self.function.result(self.format);
        match expected {
            Ok(bits) => bits != self.results[at],
            Err(Other::Nan) => !matches!(to.decode(self.results[at]), Decoded::Nan { .. }),
            Err(Other::Open) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use mxprobe_api::{DotOrder, Subnormals};

    use super::{
        super::{
            cases,
            functions::{Registers, readings},
        },
        *,
    };

    #[test]
    fn readings_are_held_against_subnormal_calls_alone_where_the_others_agree_with_the_same_bits() {
        let functions = [
            ScalarFunction::Add,
            ScalarFunction::Multiply,
            ScalarFunction::Divide,
            ScalarFunction::SquareRoot,
            ScalarFunction::Fma,
            ScalarFunction::MultiplyAdd,
            ScalarFunction::Dot4 { order: DotOrder::Pairwise },
            ScalarFunction::Convert { to: Format::E4M3 },
            ScalarFunction::Convert { to: Format::S32 },
            ScalarFunction::Remainder,
            ScalarFunction::CopySign,
            ScalarFunction::Compare,
        ];
        for (function, format) in
            functions.into_iter().flat_map(|function| [(function, Format::F16), (function, Format::F32)])
        {
            let operands = cases::calls(function, format, 7);
            let all = readings(function, format, Registers::OfX87);
            for (daz, results) in [
                (false, Subnormals::Keep),
                (true, Subnormals::Keep),
                (false, Subnormals::FlushAfterRounding),
                (true, Subnormals::FlushBeforeRounding),
                (false, Subnormals::FlushToPositiveZero),
            ] {
                let (_, steps) = all[all.len() / 3];
                let unit = Mode { rounding: Rounding::NearestEven, daz, results };
                let nan = function.result(format).nan().unwrap_or(0);
                let bits = |x: &Vec<u64>| exact::result(function, format, x, unit, steps).unwrap_or(nan);
                let results = operands.iter().map(bits).collect();
                let calls = Calls { function, format, operands: operands.clone(), results };
                let one_by_one: Vec<(Mode, Steps)> =
                    all.iter().copied().filter(|reading| calls.wrong(*reading, 1).is_empty()).collect();
                assert!(one_by_one.contains(&(unit, steps)), "{function} of {format}, {unit:?}");
                assert_eq!(calls.explaining(all.clone()), one_by_one, "{function} of {format}, {unit:?}");
            }
        }
    }
}
