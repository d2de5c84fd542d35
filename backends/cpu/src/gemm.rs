//! Whole-matrix products: one loop nest for every unit, with packed operands and rows divided among threads.
//!
//! D is the result of a chain of instructions along k, each taking the previous one's d as c, so every bit equals that
//! of a product tile by tile: a block of D stays in registers along a stretch of k, and in memory, without loss,
//! between stretches. Edges are padded with +0.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mxprobe_api::{Elements, GemmOperands};

use crate::pack::ROW_BYTES;

/// Multiplies a block: `steps` steps along k. A step of A is a group of consecutive k for each row of the block, a step
/// of B is vectors of 16 groups (for AMX, a step is two tiles of each); `sums` holds C before and D after, row-major,
/// its rows `stride` bytes apart.
///
/// # Safety
/// The instruction is usable in this process, `steps` is not 0, and the memory has the length that this implies.
pub(crate) type Kernel = unsafe fn(steps: usize, a: *const u8, b: *const u8, sums: *mut u8, stride: usize);

/// The blocking for a unit, and the kernel that multiplies a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// Rows of a block.
    rows: usize,
    /// Columns of a block.
    columns: usize,
    /// Bytes of consecutive k that one step takes from a row of A: 4 for a dot instruction, 64 for a tile.
    step_bytes: usize,
    /// Steps before the loop moves on to the next columns: few enough that a block's B stays in the first- or
    /// second-level cache.
    stretch: usize,
    /// Blocks of rows that share a block of B while it is cached.
    group: usize,
    kernel: Kernel,
}

/// Elements in a vector of sums, and columns of a tile.
const VECTOR: usize = 16;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Bytes of a group: the consecutive k that contribute to one 32-bit element in one instruction.
const GROUP: usize = 4;

impl Unit {
    pub(crate) const fn dots(kernel: Kernel) -> Self {
        Self { rows: 6, columns: 64, step_bytes: GROUP, stretch: 256, group: 64, kernel }
    }

    pub(crate) const fn tiles(kernel: Kernel) -> Self {
        Self { rows: 32, columns: 32, step_bytes: ROW_BYTES, stretch: 64, group: 8, kernel }
    }

    /// Computes D = A·B + C.
    ///
    /// # Safety
    /// The instruction is usable in this process; the product was validated for an operation with 32-bit sums and
    /// operands of 1 or 2 bytes.
    pub(crate) unsafe fn multiply(self, product: &GemmOperands<'_>, threads: usize) -> Elements {
        let GemmOperands { m, n, k, a, b, c, .. } = *product;
        let mut d = c.clone();
        if m == 0 || n == 0 {
            return d;
        }
        // At least one step: a product with k = 0 is one operation on zeros and C.
        let row_bytes = k * a.format().storage_bytes();
        let steps = row_bytes.div_ceil(self.step_bytes).max(1);
        let packed_b = PackedB::new(self, b, (k, n), steps, threads);
        // Reduce the rows per group so that the number of groups is about a multiple of the threads.
        let blocks = m.div_ceil(self.rows);
        let threads = threads.clamp(1, blocks);
        let rows = blocks.div_ceil(blocks.div_ceil(self.group).next_multiple_of(threads)) * self.rows;
        let groups: Vec<Mutex<&mut [u8]>> = d.bytes_mut().chunks_mut(rows * n * GROUP).map(Mutex::new).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut packed_a = vec![0; rows * self.stretch * self.step_bytes];
            let mut edge = vec![0; self.rows * self.columns * GROUP];
            while let Some((group, part)) = taken(&next, &groups) {
                let part = &mut **part.lock().expect("no thread panics with it");
                for first in (0..steps).step_by(self.stretch) {
                    let count = self.stretch.min(steps - first);
                    let block_bytes = self.rows * count * self.step_bytes;
                    for (block, packed) in packed_a.chunks_exact_mut(block_bytes).take(rows / self.rows).enumerate() {
                        let from = (group * rows + block * self.rows, first * self.step_bytes);
                        self.pack_a(a.bytes(), (m, row_bytes), from, packed);
                    }
                    for column in 0..n.div_ceil(self.columns) {
                        let of_b = packed_b.stretch(column, first, count);
                        let blocks = part.chunks_mut(self.rows * n * GROUP);
                        for (sums, of_a) in blocks.zip(packed_a.chunks_exact(block_bytes)) {
                            // SAFETY: the caller vouches for the instruction; A and B were packed for this unit and
                            // `count` steps, at least one.
                            unsafe { self.block(count, of_a, of_b, sums, (n, column), &mut edge) };
                        }
                    }
                }
            }
        };
        on_threads(threads, work);
        drop(groups);
        d
    }

    /// Multiplies one block of D: `sums` holds rows of `n` elements, and the block starts `column` blocks into them. At
    /// an edge, the full block is computed in the separate buffer `edge`.
    ///
    /// # Safety
    /// As for [`Kernel`], for `count`, `of_a` and `of_b`.
    unsafe fn block(
        self,
        count: usize,
        of_a: &[u8],
        of_b: &[u8],
        sums: &mut [u8],
        (n, column): (usize, usize),
        edge: &mut [u8],
    ) {
        let (stride, first) = (n * GROUP, column * self.columns * GROUP);
        let width = (self.columns * GROUP).min(stride - first);
        let (of_a, of_b) = (of_a.as_ptr(), of_b.as_ptr());
        if sums.len() == self.rows * stride && width == self.columns * GROUP {
            prefetch(sums.as_ptr().wrapping_add(self.rows * stride + first), self.rows, width, stride);
            // SAFETY: the caller vouches for the operands; the block's rows, `stride` bytes apart, lie within `sums`.
            unsafe { (self.kernel)(count, of_a, of_b, sums.as_mut_ptr().add(first), stride) };
            return;
        }
        let edge_stride = self.columns * GROUP;
        edge.fill(0);
        for (line, edge) in sums.chunks_exact(stride).zip(edge.chunks_exact_mut(edge_stride)) {
            edge[..width].copy_from_slice(&line[first..][..width]);
        }
        // SAFETY: as above; `edge` has the size of a whole block.
        unsafe { (self.kernel)(count, of_a, of_b, edge.as_mut_ptr(), edge_stride) };
        for (line, edge) in sums.chunks_exact_mut(stride).zip(edge.chunks_exact(edge_stride)) {
            line[first..][..width].copy_from_slice(&edge[..width]);
        }
    }

    /// Packs steps of a block's rows of A, starting at `row` and byte `at` of k, with +0 beyond the ends. A step is the
    /// groups of the rows one after another; for AMX, the rows of a tile.
    fn pack_a(self, a: &[u8], (m, row_bytes): (usize, usize), (row, at): (usize, usize), packed: &mut [u8]) {
        let is_whole = row + self.rows <= m && at + packed.len() / self.rows <= row_bytes;
        if !is_whole {
            packed.fill(0);
        }
        for line in 0..self.rows.min(m.saturating_sub(row)) {
            let bytes = a[(row + line) * row_bytes..][..row_bytes].get(at..).unwrap_or_default();
            match self.step_bytes {
                GROUP => pack_line::<GROUP>(bytes, packed, self.rows, line),
                _ => pack_line::<ROW_BYTES>(bytes, packed, self.rows, line),
            }
        }
    }
}

/// Asks for the sums of the next block, which are too far apart for the processor to foresee.
fn prefetch(sums: *const u8, rows: usize, width: usize, stride: usize) {
    for at in (0..rows).flat_map(|row| (0..width).step_by(LINE_BYTES).map(move |line| row * stride + line)) {
        // SAFETY: a prefetch of any address is allowed, and every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(sums.wrapping_add(at).cast()) };
    }
}

/// Copies a line, `STEP` bytes at a time, to the place of its row in each step of `rows` rows; the last piece may be
/// shorter.
fn pack_line<const STEP: usize>(line: &[u8], packed: &mut [u8], rows: usize, row: usize) {
    let (whole, rest) = line.as_chunks::<STEP>();
    let mut steps = packed.chunks_exact_mut(rows * STEP);
    for (bytes, step) in whole.iter().zip(&mut steps) {
        step[row * STEP..][..STEP].copy_from_slice(bytes);
    }
    if let Some(step) = steps.next() {
        step[row * STEP..][..rest.len()].copy_from_slice(rest);
    }
}

/// Packs a block of columns starting at `left`, with +0 beyond the ends.
fn pack_columns<const SIZE: usize>(unit: Unit, b: &[u8], (k, n): (usize, usize), left: usize, packed: &mut [u8]) {
    const { assert!(SIZE == 1 || SIZE == 2) }
    let per_group = GROUP / SIZE;
    let groups = unit.step_bytes / GROUP;
    let step = unit.columns * unit.step_bytes;
    let columns = unit.columns.min(n - left);
    for group in 0..k.div_ceil(per_group) {
        let (at_step, at_group) = (group / groups, group % groups);
        for (vector, first) in (0..columns).step_by(VECTOR).enumerate() {
            let count = VECTOR.min(columns - first);
            // The rows of consecutive k that share the group.
            let mut rows = [[0u8; 2 * VECTOR]; GROUP];
            for (line, row) in (group * per_group..k).zip(&mut rows[..per_group]) {
                let from = (line * n + left + first) * SIZE;
                if count == VECTOR {
                    // A length known at compile time.
                    row[..VECTOR * SIZE].copy_from_slice(&b[from..][..VECTOR * SIZE]);
                } else {
                    row[..count * SIZE].copy_from_slice(&b[from..][..count * SIZE]);
                }
            }
            // The rows of a tile are contiguous; a dot instruction's tile has one row.
            let place = at_step * step + (vector * groups + at_group) * ROW_BYTES;
            let (words, _) = packed[place..][..ROW_BYTES].as_chunks_mut::<GROUP>();
            for (at, word) in words.iter_mut().enumerate() {
                *word = if SIZE == 1 {
                    [rows[0][at], rows[1][at], rows[2][at], rows[3][at]]
                } else {
                    [rows[0][2 * at], rows[0][2 * at + 1], rows[1][2 * at], rows[1][2 * at + 1]]
                };
            }
        }
    }
}

/// Takes the next part that no thread has taken; returns it with its index.
fn taken<'a, T>(next: &AtomicUsize, parts: &'a [T]) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    parts.get(at).map(|part| (at, part))
}

/// Runs `work` on `threads` threads, including this one.
fn on_threads(threads: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(&work)));
        work();
    });
}

/// B in the layout that the kernels read: for each block of columns, step after step, vectors (rows of a tile) of 16
/// columns, each with a group of consecutive k.
struct PackedB {
    bytes: Vec<u8>,
    /// The offset of the data in `bytes`, aligned to a cache line, so that no vector straddles two.
    start: usize,
    /// Bytes of one step of a block.
    step: usize,
    steps: usize,
}

impl PackedB {
    fn new(unit: Unit, b: &Elements, (k, n): (usize, usize), steps: usize, threads: usize) -> Self {
        let step = unit.columns * unit.step_bytes;
        let packed_bytes = n.div_ceil(unit.columns) * steps * step;
        let mut bytes = vec![0; packed_bytes + LINE_BYTES];
        let start = bytes.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES);
        let blocks: Vec<Mutex<&mut [u8]>> =
            bytes[start..][..packed_bytes].chunks_mut(steps * step).map(Mutex::new).collect();
        let next = AtomicUsize::new(0);
        on_threads(threads.min(blocks.len()), || {
            while let Some((at, block)) = taken(&next, &blocks) {
                let mut block = block.lock().expect("no thread panics with it");
                match b.format().storage_bytes() {
                    1 => pack_columns::<1>(unit, b.bytes(), (k, n), at * unit.columns, &mut block),
                    _ => pack_columns::<2>(unit, b.bytes(), (k, n), at * unit.columns, &mut block),
                }
            }
        });
        drop(blocks);
        Self { bytes, start, step, steps }
    }

    fn stretch(&self, block: usize, first: usize, count: usize) -> &[u8] {
        &self.bytes[self.start + (block * self.steps + first) * self.step..][..count * self.step]
    }
}
