//! The places of groups of lanes.

use crate::fast::simd::halves::Halves;

/// The row of a group of lanes.
#[inline(always)]
pub(super) const fn row_of<const NG: usize, const R: usize>(group: usize) -> usize {
    group / (NG / R)
}

/// The first column of a group of lanes.
#[inline(always)]
pub(super) const fn column_of<V: Halves, const NG: usize, const R: usize>(group: usize) -> usize {
    group % (NG / R) * V::WIDTH
}
