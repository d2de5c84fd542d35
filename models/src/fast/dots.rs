//! Dots that share no operands.

use std::ops::Range;

use mxprobe_api::{DotOperands, Elements};

use super::{Evaluator, Path, Sample};
use crate::gemm::threads;

/// Dots that are unpacked before they are computed, so that they stay in the first-level cache.
const AT_ONCE: usize = 64;

/// Starting a thread costs as much as a thousand dots.
const DOTS_PER_THREAD: usize = 1 << 14;

impl Evaluator {
    /// Computes d of dots that share no operands, several side by side where the path allows it, on every core if there
    /// are many.
    ///
    /// # Panics
    /// If the operands do not fit the operation; [`DotOperands::validate`] checks this.
    #[must_use]
    pub fn dots(&self, operands: &DotOperands<'_>) -> Elements {
        let shares = threads().min(operands.count / DOTS_PER_THREAD).max(1);
        let each = operands.count.div_ceil(shares).next_multiple_of(AT_ONCE).max(1);
        let mut found = Elements::zeros(self.id().d, operands.count);
        let size = found.format().storage_bytes();
        let mut parts = found.bytes_mut().chunks_mut(each * size).zip((0..operands.count).step_by(each));
        let work = |(into, first): (&mut [u8], usize)| self.dots_of(operands, first..first + into.len() / size, into);
        std::thread::scope(|scope| {
            let own = parts.next();
            parts.for_each(|part| drop(scope.spawn(move || work(part))));
            own.into_iter().for_each(work);
        });
        found
    }

    /// Computes d of some of the dots, as bytes.
    fn dots_of(&self, operands: &DotOperands<'_>, dots: Range<usize>, into: &mut [u8]) {
        let size = into.len() / dots.len().max(1);
        let mut put = |at: usize, d: u64| into[at * size..][..size].copy_from_slice(&d.to_le_bytes()[..size]);
        let mut sample = Sample::with_path(self.id(), self.flush(), self.path());
        for first in dots.clone().step_by(AT_ONCE) {
            let count = AT_ONCE.min(dots.end - first);
            let place = first - dots.start;
            sample.clear();
            (first..first + count).for_each(|at| sample.push_from(operands, at));
            if self.path() == Path::Exact {
                (0..count).for_each(|at| put(place + at, sample.exact(at, self)));
            } else {
                self.visit(&sample, 0..count, |at, d| {
                    put(place + at, d);
                    true
                });
            }
        }
    }
}
