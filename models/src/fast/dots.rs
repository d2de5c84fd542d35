//! Dots that share no operands.

use mxprobe_api::{DotOperands, Elements};

use super::{Evaluator, Path, Sample};

/// Dots that are unpacked before they are computed, so that they stay in the first-level cache.
const AT_ONCE: usize = 64;

impl Evaluator {
    /// Computes d of dots that share no operands, several side by side where the path allows it.
    ///
    /// # Panics
    /// If the operands do not fit the operation; [`DotOperands::validate`] checks this.
    #[must_use]
    pub fn dots(&self, operands: &DotOperands<'_>) -> Elements {
        let mut sample = Sample::with_path(self.id(), self.flush(), self.path());
        let mut found = Elements::zeros(self.id().d, operands.count);
        for first in (0..operands.count).step_by(AT_ONCE) {
            let count = AT_ONCE.min(operands.count - first);
            sample.clear();
            (first..first + count).for_each(|at| sample.push_from(operands, at));
            if self.path() == Path::Exact {
                (0..count).for_each(|at| found.set(first + at, sample.exact(at, self)));
            } else {
                self.visit(&sample, 0..count, |at, d| {
                    found.set(first + at, d);
                    true
                });
            }
        }
        found
    }
}
