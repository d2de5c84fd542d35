//! Operands in memory that the instruction reads itself: matrices, core matrices in shared memory, and tensor memory.

use mxprobe_api::{Format, OperationId};

use super::packed::{LANES, Layout, container_bits, index, registers_of};

/// Whether k follows the rows of an operand (A, m×k) or precedes its columns (B, k×n).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Rows,
    Columns,
}

/// A, m×k, or the transpose of B, n×k, as a matrix in memory.
pub(super) fn row_major(id: &OperationId, format: Format, side: Side) -> Layout {
    let (m, n, k) = id.shape.sizes();
    let lines = if side == Side::Rows { m } else { n };
    let place = |line, at| if side == Side::Rows { index(line, at, k) } else { index(at, line, n) };
    let places = (0..lines).flat_map(|line| (0..k).map(move |at| place(line, at))).collect();
    Layout { container_bits: format.bits() as usize, shift: 0, dense_bits: None, places, elements: lines * k, group: 1 }
}

/// C or D as a matrix in memory.
pub(super) fn matrix(id: &OperationId, format: Format) -> Layout {
    let (m, n, _) = id.shape.sizes();
    let places = (0..u32::try_from(m * n).expect("a tile is small")).collect();
    Layout { container_bits: format.bits() as usize, shift: 0, dense_bits: None, places, elements: m * n, group: 1 }
}

/// An operand in shared memory without swizzle, k contiguous: core matrices of 8 rows (or columns) of 16 bytes,
/// starting with all those of the first 16 bytes of k (PTX ISA 9.0, 9.7.15.5.1.1).
pub(super) fn core_matrices(id: &OperationId, format: Format, side: Side) -> Layout {
    let (m, n, k) = id.shape.sizes();
    let lines = if side == Side::Rows { m } else { n };
    let container_bits = container_bits(id, format);
    let per_core = 128 / container_bits;
    let mut places = Vec::with_capacity(lines * k);
    for core in 0..k / per_core {
        for line in 0..lines {
            for at in core * per_core..(core + 1) * per_core {
                places.push(match side {
                    Side::Rows => index(line, at, k),
                    Side::Columns => index(at, line, n),
                });
            }
        }
    }
    // PTX ISA 9.0, 9.7.16.3.1: next to 8-bit elements, every 16 elements of 4 or 6 bits take 16 bytes.
    let dense_bits = (container_bits > format.bits() as usize).then_some(format.bits());
    Layout { container_bits, shift: 0, dense_bits, places, elements: lines * k, group: 1 }
}

/// Scales of A and of B in tensor memory: the scales of a line are the bytes of one word, lines 32c to 32c+31 are lanes
/// of column c, and each of the four warps has its own copy (PTX ISA 9.0, 9.7.16.10.7).
pub(super) fn scales_by_lane(id: &OperationId, block: usize) -> (Layout, Layout) {
    let (m, n, k) = id.shape.sizes();
    let blocks = k / block;
    let threads = 4 * LANES;
    // With fewer than 32 lines, the words of the other lanes are not read.
    let a = registers_of(threads, m.div_ceil(LANES), 4, |thread, column, s| {
        index((column * LANES + thread % LANES) % m, s % blocks, blocks)
    });
    let b = registers_of(threads, n.div_ceil(LANES), 4, |thread, column, s| {
        index(s % blocks, (column * LANES + thread % LANES) % n, n)
    });
    let layout =
        |places, elements| Layout { container_bits: 8, shift: 0, dense_bits: None, places, elements, group: 1 };
    (layout(a, m * blocks), layout(b, blocks * n))
}

/// C and D of `tcgen05` with m = 128: row i is lane i of tensor memory, each element has its own 32-bit column (PTX ISA
/// 9.0, 9.7.16.10.5), and each lane loads its row.
pub(super) fn rows_by_lane(id: &OperationId) -> Layout {
    let (m, n, _) = id.shape.sizes();
    let places = registers_of(m, n, 1, |lane, column, _| index(lane, column, n));
    Layout { container_bits: 32, shift: 0, dense_bits: None, places, elements: m * n, group: 1 }
}
