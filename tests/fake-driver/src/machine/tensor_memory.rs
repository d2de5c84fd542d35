//! Tensor memory and barriers of a block: 128 lanes of 512 columns of 32 bits.

use std::collections::BTreeMap;

pub(super) const LANES: u32 = 128;
pub(super) const COLUMNS: u32 = 512;
/// Cells from one lane to the next: not a power of two, whose multiples would share a few sets of the cache.
pub(super) const PITCH: u32 = COLUMNS + 16;
/// The content of tensor memory before it is written.
pub(super) const FRESH: u32 = 0xcdcd_cdcd;

/// The tensor memory and the barriers of one block.
#[derive(Debug, Default)]
pub(super) struct Tensor {
    /// The first column of the one allocation, and its number of columns.
    pub allocated: Option<(u32, u32)>,
    /// By lane, then by column.
    pub cells: Vec<u32>,
    pub barriers: BTreeMap<u64, Barrier>,
    pub under_way: Vec<UnderWay>,
}

/// An `mbarrier`.
#[derive(Debug)]
pub(super) struct Barrier {
    pub count: u64,
    pub pending: u64,
    pub phases: u64,
}

/// The result of a multiply that has not been waited for.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// The barrier at which it arrives; `None` until it is committed.
    pub barrier: Option<u64>,
    /// Whether a wait has polled for it: it arrives only at a second poll, so that polling once is never enough.
    pub asked: bool,
    pub column: u32,
    pub n: u32,
    /// Row-major.
    pub d: Vec<u64>,
}

impl Tensor {
    /// Whether memory is allocated; at the end of a kernel, whether it failed to free it.
    pub(super) fn is_held(&self) -> bool {
        self.allocated.is_some()
    }

    /// The cells of `columns` columns of one lane; `None` unless all are in the allocation.
    pub(super) fn row(&self, lane: u32, column: u32, columns: u32) -> Option<&[u32]> {
        let first = self.cell(lane, column)?;
        self.cell(lane, column + columns.checked_sub(1)?)?;
        self.cells.get(first..first + columns as usize)
    }

    /// The index of a cell; `None` outside the allocation.
    pub(super) fn cell(&self, lane: u32, column: u32) -> Option<usize> {
        let (start, columns) = self.allocated?;
        (lane < LANES && (start..start + columns).contains(&column)).then_some((lane * PITCH + column) as usize)
    }
}
