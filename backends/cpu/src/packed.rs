//! Operands of whole products in the order in which the kernels read them.

use std::{
    arch::x86_64::{
        _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_loadu_si256, _mm512_cvtepu8_epi32, _mm512_cvtepu16_epi32,
        _mm512_or_si512, _mm512_slli_epi32, _mm512_storeu_si512,
    },
    sync::{Mutex, atomic::AtomicUsize},
};

use mxprobe_api::Elements;

use crate::{
    pack::ROW_BYTES,
    pages,
    shared::{on_threads, taken},
    unit::{GROUP, LINE_BYTES, Unit},
};

/// Elements in a vector of sums, and columns of a tile.
const VECTOR: usize = 16;

/// Groups of consecutive k that are packed at a time: their rows of B stay in the first-level cache, and each lies on
/// one or two pages, while one block of columns after another is written.
const GROUPS_AT_ONCE: usize = 16;

/// The most bytes that are kept for the next product.
const MOST_KEPT: usize = 64 << 20;

/// Memory that products use one after another, so that its pages are not asked for again each time.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Vec<u8>>);

impl Kept {
    /// Memory of at least `len` bytes, with any values.
    fn take(&self, len: usize) -> Vec<u8> {
        let kept = std::mem::take(&mut *self.0.lock().expect("no thread panics with it"));
        if kept.len() < len { pages::zeros(len) } else { kept }
    }

    fn give_back(&self, bytes: Vec<u8>) {
        let mut kept = self.0.lock().expect("no thread panics with it");
        if (kept.len() + 1..=MOST_KEPT).contains(&bytes.len()) {
            *kept = bytes;
        }
    }
}

/// Where A lies in the blocks of a group of rows.
///
/// For dot products a row stays as it is, so that it is copied and not transposed. Rows lie a line further apart than they
/// are long: as far apart as a power of two, they would share a few sets of the first-level cache. For AMX, each step of a
/// block is its rows of the tiles, one after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaceOfA {
    /// Bytes from one row of a block to the next; for AMX, of a tile.
    pub(crate) stride: usize,
    /// Bytes of a block.
    pub(crate) block: usize,
}

impl PlaceOfA {
    /// For stretches of `steps` steps or fewer.
    pub(crate) fn new(unit: Unit, steps: usize) -> Self {
        let bytes = steps * unit.step_bytes;
        let is_tile = unit.has_tiles();
        let stride = if is_tile { ROW_BYTES } else { bytes.next_multiple_of(LINE_BYTES) + LINE_BYTES };
        Self { stride, block: unit.rows * if is_tile { bytes } else { stride } }
    }

    /// Copies `steps` steps of a block's rows of A, starting at `row` and byte `at` of k, with +0 beyond the ends.
    pub(crate) fn pack(
        self,
        unit: Unit,
        (a, m, row_bytes): (&[u8], usize, usize),
        (row, at, steps): (usize, usize, usize),
        packed: &mut [u8],
    ) {
        let bytes = steps * unit.step_bytes;
        if row + unit.rows > m || at + bytes > row_bytes {
            packed.fill(0);
        }
        for line in 0..unit.rows.min(m.saturating_sub(row)) {
            let from = &a[(row + line) * row_bytes..][..row_bytes][at..];
            let from = &from[..from.len().min(bytes)];
            if unit.has_tiles() {
                pack_tile_rows(from, packed, unit.rows, line);
            } else {
                packed[line * self.stride..][..from.len()].copy_from_slice(from);
            }
        }
    }
}

/// Copies a line, a row of a tile at a time, to its place in each step of `rows` rows; the last piece may be shorter.
fn pack_tile_rows(line: &[u8], packed: &mut [u8], rows: usize, row: usize) {
    let (whole, rest) = line.as_chunks::<ROW_BYTES>();
    let mut steps = packed.chunks_exact_mut(rows * ROW_BYTES);
    for (bytes, step) in whole.iter().zip(&mut steps) {
        step[row * ROW_BYTES..][..ROW_BYTES].copy_from_slice(bytes);
    }
    if !rest.is_empty()
        && let Some(step) = steps.next()
    {
        step[row * ROW_BYTES..][..rest.len()].copy_from_slice(rest);
    }
}

/// B in the layout that the kernels read: for each block of columns, step after step, vectors (rows of a tile) of 16
/// columns, each with a group of consecutive k. +0 stands beyond the ends.
pub(crate) struct PackedB<'a> {
    bytes: Vec<u8>,
    /// The offset of the data in `bytes`.
    start: usize,
    /// Bytes of one step of a block.
    step: usize,
    steps: usize,
    kept: &'a Kept,
}

impl<'a> PackedB<'a> {
    pub(crate) fn new(
        unit: Unit,
        b: &Elements,
        (k, n): (usize, usize),
        steps: usize,
        threads: usize,
        kept: &'a Kept,
    ) -> Self {
        let step = unit.columns * unit.step_bytes;
        let packed_bytes = n.div_ceil(unit.columns) * steps * step;
        let mut bytes = kept.take(packed_bytes + LINE_BYTES);
        let start = pages::first_line(&bytes);
        // Each thread takes a few rows of B, and with them a piece of every block of columns.
        let at_once = (GROUPS_AT_ONCE * GROUP / unit.step_bytes).max(1);
        let mut pieces: Vec<Vec<&mut [u8]>> = Vec::new();
        pieces.resize_with(steps.div_ceil(at_once), Vec::new);
        for block in bytes[start..][..packed_bytes].chunks_mut(steps * step) {
            let own = block.chunks_mut(at_once * step);
            pieces.iter_mut().zip(own).for_each(|(pieces, piece)| pieces.push(piece));
        }
        let pieces: Vec<_> = pieces.into_iter().map(Mutex::new).collect();
        let next = AtomicUsize::new(0);
        on_threads(threads.min(pieces.len()), || {
            while let Some((at, pieces)) = taken(&next, &pieces) {
                let mut pieces = pieces.lock().expect("no thread panics with it");
                let from =
                    Rows { b: b.bytes(), k, n, first: at * at_once * unit.step_bytes / b.format().storage_bytes() };
                pack_b(unit, from, b.format().storage_bytes(), &mut pieces);
            }
        });
        drop(pieces);
        Self { bytes, start, step, steps, kept }
    }

    pub(crate) fn stretch(&self, block: usize, first: usize, count: usize) -> &[u8] {
        &self.bytes[self.start + (block * self.steps + first) * self.step..][..count * self.step]
    }
}

impl Drop for PackedB<'_> {
    fn drop(&mut self) {
        self.kept.give_back(std::mem::take(&mut self.bytes));
    }
}

/// Rows of B from `first`.
#[derive(Clone, Copy)]
struct Rows<'a> {
    b: &'a [u8],
    k: usize,
    n: usize,
    first: usize,
}

/// Packs rows of B into a piece of each block of columns, with the widest vectors of this processor.
fn pack_b(unit: Unit, from: Rows<'_>, size: usize, pieces: &mut [&mut [u8]]) {
    let is_wide = is_x86_feature_detected!("avx512f");
    match (size, is_wide) {
        // SAFETY: the processor has these instructions.
        (1, true) => unsafe { pack_b_avx512::<1>(unit, from, pieces) },
        // SAFETY: as above.
        (_, true) => unsafe { pack_b_avx512::<2>(unit, from, pieces) },
        (1, false) => pack_pieces::<1, false>(unit, from, pieces),
        (_, false) => pack_pieces::<2, false>(unit, from, pieces),
    }
}

#[target_feature(enable = "avx512f")]
fn pack_b_avx512<const SIZE: usize>(unit: Unit, from: Rows<'_>, pieces: &mut [&mut [u8]]) {
    pack_pieces::<SIZE, true>(unit, from, pieces);
}

/// Packs rows of B into a piece of each block of columns. If `WIDE`, the processor has AVX-512F.
#[inline(always)]
fn pack_pieces<const SIZE: usize, const WIDE: bool>(
    unit: Unit,
    Rows { b, k, n, first }: Rows<'_>,
    pieces: &mut [&mut [u8]],
) {
    const { assert!(SIZE == 1 || SIZE == 2) }
    let per_group = GROUP / SIZE;
    let groups = unit.step_bytes / GROUP;
    for (block, piece) in pieces.iter_mut().enumerate() {
        let left = block * unit.columns;
        let columns = unit.columns.min(n - left);
        for (at_step, step) in piece.chunks_exact_mut(unit.columns * unit.step_bytes).enumerate() {
            for at_group in 0..groups {
                let line = first + (at_step * groups + at_group) * per_group;
                for row in line..line + per_group {
                    prefetch(b, (row * n + left + unit.columns) * SIZE);
                }
                for vector in 0..unit.columns / VECTOR {
                    // The rows of a tile are contiguous; a dot instruction's tile has one row.
                    let place = (vector * groups + at_group) * ROW_BYTES;
                    let packed = step[place..].first_chunk_mut().expect("a row of a tile");
                    let count = columns.saturating_sub(vector * VECTOR).min(VECTOR) * SIZE;
                    let from = (line * n + left + vector * VECTOR) * SIZE;
                    if count == VECTOR * SIZE && line + per_group <= k {
                        interleave::<SIZE, WIDE>(&b[from..], n * SIZE, packed);
                        continue;
                    }
                    let mut rows = [0; VECTOR * GROUP];
                    let lines = if count == 0 { 0 } else { per_group.min(k.saturating_sub(line)) };
                    for (at, row) in rows.chunks_exact_mut(VECTOR * SIZE).take(lines).enumerate() {
                        row[..count].copy_from_slice(&b[from + at * n * SIZE..][..count]);
                    }
                    interleave::<SIZE, WIDE>(&rows, VECTOR * SIZE, packed);
                }
            }
        }
    }
}

/// Asks for the columns of the next block, whose rows are too many and too far apart for the processor to foresee.
#[inline(always)]
fn prefetch(b: &[u8], at: usize) {
    // SAFETY: a prefetch of any address is allowed, and every x86-64 processor has it.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(b.as_ptr().wrapping_add(at).cast()) };
}

/// The groups of 16 columns, consecutive k of a column one after another, from rows that are `stride` bytes apart.
#[inline(always)]
fn interleave<const SIZE: usize, const WIDE: bool>(rows: &[u8], stride: usize, packed: &mut [u8; ROW_BYTES]) {
    if WIDE {
        assert!(rows.len() >= (GROUP / SIZE - 1) * stride + VECTOR * SIZE);
        // SAFETY: the caller knows that the processor has AVX-512F, and the rows lie within `rows`.
        return unsafe { interleave_avx512::<SIZE>(rows.as_ptr(), stride, packed) };
    }
    for (at, group) in packed.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
        for (row, element) in group.as_chunks_mut::<SIZE>().0.iter_mut().enumerate() {
            element.copy_from_slice(&rows[row * stride + at * SIZE..][..SIZE]);
        }
    }
}

/// # Safety
/// The processor has AVX-512F, and `rows` can be read for 16 elements at each multiple of `stride`, a group of them.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn interleave_avx512<const SIZE: usize>(rows: *const u8, stride: usize, packed: &mut [u8; ROW_BYTES]) {
    // SAFETY: the caller vouches for the rows; `packed` has the bytes of a vector.
    unsafe {
        let row = |at: usize| rows.add(at * stride);
        let groups = if SIZE == 1 {
            let wide = |at| _mm512_cvtepu8_epi32(_mm_loadu_si128(row(at).cast()));
            let low = _mm512_or_si512(wide(0), _mm512_slli_epi32::<8>(wide(1)));
            let high = _mm512_or_si512(wide(2), _mm512_slli_epi32::<8>(wide(3)));
            _mm512_or_si512(low, _mm512_slli_epi32::<16>(high))
        } else {
            let wide = |at| _mm512_cvtepu16_epi32(_mm256_loadu_si256(row(at).cast()));
            _mm512_or_si512(wide(0), _mm512_slli_epi32::<16>(wide(1)))
        };
        _mm512_storeu_si512(packed.as_mut_ptr().cast(), groups);
    }
}

#[cfg(test)]
mod tests {
    use mxprobe_api::{Format, GemmOperands, Random};

    use super::*;
    use crate::pack::{TILE_BYTES, pack_b as pack_tile};

    /// Multiplies as TDPBUUD does, from the places where it reads (*specified*: Intel SDM volume 2, TDPBUUD).
    unsafe fn tdpbuud(
        steps: usize,
        a: *const u8,
        _a_stride: usize,
        b: *const u8,
        c: *const u8,
        d: *mut u8,
        stride: usize,
    ) {
        // SAFETY: the places that `Kernel` describes for tiles.
        let byte = |from: *const u8, at: usize| u32::from(unsafe { *from.add(at) });
        for (row, column) in (0..32).flat_map(|row| (0..32).map(move |column| (row, column))) {
            let place = row * stride + 4 * column;
            // SAFETY: as above.
            let mut sum = unsafe { c.add(place).cast::<u32>().read_unaligned() };
            for (step, k) in (0..steps).flat_map(|step| (0..64).map(move |k| (step, k))) {
                let of_a = step * 2 * TILE_BYTES + row / 16 * TILE_BYTES + row % 16 * ROW_BYTES + k;
                let of_b =
                    step * 2 * TILE_BYTES + column / 16 * TILE_BYTES + k / 4 * ROW_BYTES + column % 16 * 4 + k % 4;
                sum = sum.wrapping_add(byte(a, of_a) * byte(b, of_b));
            }
            // SAFETY: as above.
            unsafe { d.add(place).cast::<u32>().write_unaligned(sum) };
        }
    }

    fn drawn(format: Format, len: usize) -> Elements {
        let mut random = Random(len as u64);
        Elements::from_bits(format, (0..len).map(|_| random.bits() >> 7))
    }

    #[test]
    fn tiles_are_where_the_tile_instructions_read_them() {
        for (m, n, k) in [(1, 1, 1), (32, 32, 64), (33, 31, 65), (64, 70, 4200), (300, 40, 130), (3, 2, 0)] {
            let (a, b) = (drawn(Format::U8, m * k), drawn(Format::U8, k * n));
            let c = drawn(Format::S32, m * n);
            let product = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
            let dot = |row: usize, column: usize| {
                let products = (0..k).map(|at| a.get(row * k + at) * b.get(at * n + column));
                (c.get(row * n + column) + products.sum::<u64>()) & 0xffff_ffff
            };
            let wanted = Elements::from_bits(Format::S32, (0..m * n).map(|at| dot(at / n, at % n)));
            let kept = Kept::default();
            // The stand-in needs no tiles, which most processors do not have.
            let unit = Unit { configure: None, ..Unit::tiles(tdpbuud) };
            for threads in [1, 2] {
                // SAFETY: the instruction's stand-in is usable everywhere.
                let d = unsafe { unit.multiply(&product, threads, &kept) };
                assert!(d == wanted, "{m}×{n}×{k} on {threads} threads");
            }
        }
    }

    #[test]
    fn tiles_of_b_are_packed_as_for_single_tiles() {
        let unit = Unit::tiles(tdpbuud);
        for (format, of_one) in [(Format::BF16, pack_tile::<2> as fn(&[u8], &mut [u8])), (Format::S8, pack_tile::<1>)] {
            let size = format.storage_bytes();
            let (k, n) = (3 * 64 / size, 64);
            let b = drawn(format, k * n);
            let kept = Kept::default();
            let packed = PackedB::new(unit, &b, (k, n), 3, 2, &kept);
            for (tile, step) in (0..n / 16).flat_map(|tile| (0..3).map(move |step| (tile, step))) {
                let rows = (step * 64 / size..(step + 1) * 64 / size).map(|row| (row * n + tile * 16) * size);
                let row_major: Vec<u8> = rows.flat_map(|at| b.bytes()[at..][..16 * size].to_vec()).collect();
                let mut wanted = [0; TILE_BYTES];
                of_one(&row_major, &mut wanted);
                let found = &packed.stretch(tile / 2, step, 1)[tile % 2 * TILE_BYTES..][..TILE_BYTES];
                assert_eq!(found, wanted, "{format}, tile {tile}, step {step}");
            }
        }
    }

    #[test]
    #[cfg_attr(not(avx512), ignore = "this CPU has no AVX-512")]
    fn rows_are_interleaved_alike_with_and_without_wide_vectors() {
        let bytes = drawn(Format::U8, 4 * 70);
        let (mut one, mut other) = ([0; ROW_BYTES], [1; ROW_BYTES]);
        interleave::<1, true>(bytes.bytes(), 70, &mut one);
        interleave::<1, false>(bytes.bytes(), 70, &mut other);
        assert_eq!(one, other);
        interleave::<2, true>(bytes.bytes(), 70, &mut one);
        interleave::<2, false>(bytes.bytes(), 70, &mut other);
        assert_eq!(one, other);
    }
}
