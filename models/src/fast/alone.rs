//! Tiles of one element.

use mxprobe_api::{DotOperands, TileBatch};

use super::{Evaluator, kernels::Kernels};
use crate::threads;

impl Evaluator {
    /// The tiles as dots, which kernels compute many at a time, if each is a single element without scales.
    pub(super) fn alone<'a>(&self, batch: &'a TileBatch, at_most: usize) -> Option<DotOperands<'a>> {
        let (m, n, _) = self.id.shape.sizes();
        // Dots may take every core.
        let is_allowed = at_most >= threads();
        let has_lanes = !matches!(self.kernels(), Kernels::None | Kernels::Integer(_) | Kernels::Sums(_));
        let is_alone = m * n == 1 && batch.scale_a.is_none() && batch.scale_b.is_none();
        let TileBatch { tiles, a, b, c, .. } = batch;
        (is_alone && has_lanes && is_allowed).then_some(DotOperands {
            count: *tiles,
            a,
            b,
            c,
            scale_a: None,
            scale_b: None,
        })
    }
}
