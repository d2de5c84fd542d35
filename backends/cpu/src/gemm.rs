//! Whole-matrix products: one loop nest for every unit, with packed operands and rows divided among threads.
//!
//! D is the result of a chain of instructions along k, each taking the previous one's d as c, so every bit equals that
//! of a product tile by tile: a block of D stays in registers along a stretch of k, and in memory, without loss,
//! between stretches. Edges are padded with +0.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::mem::MaybeUninit;
use std::sync::{Mutex, atomic::AtomicUsize};

use mxprobe_api::{Elements, GemmOperands};

use crate::{
    packed::{Kept, PackedB, PlaceOfA},
    pages,
    shared::{on_threads, taken},
    unit::{GROUP, LINE_BYTES, Unit},
};

impl Unit {
    /// Computes D = A·B + C.
    ///
    /// # Safety
    /// The instruction is usable in this process; the product was validated for an operation with 32-bit sums and
    /// operands of 1 or 2 bytes.
    pub(crate) unsafe fn multiply(self, product: &GemmOperands<'_>, threads: usize, kept: &Kept) -> Elements {
        let GemmOperands { m, n, k, a, b, c, .. } = *product;
        let d_bytes = m * n * GROUP;
        if d_bytes == 0 {
            return c.clone();
        }
        // At least one step: a product with k = 0 is one operation on zeros and C.
        let row_bytes = k * a.format().storage_bytes();
        let steps = row_bytes.div_ceil(self.step_bytes).max(1);
        let packed_b = PackedB::new(self, b, (k, n), steps, threads, kept);
        // Reduce the rows per group so that the number of groups is about a multiple of the threads.
        let blocks = m.div_ceil(self.rows);
        let threads = threads.clamp(1, blocks);
        let rows = blocks.div_ceil(blocks.div_ceil(self.group).next_multiple_of(threads)) * self.rows;
        let place = PlaceOfA::new(self, self.stretch.min(steps));
        let mut d = pages::room(d_bytes);
        let group_bytes = rows * n * GROUP;
        let of_c = c.bytes().chunks(group_bytes);
        let of_d = d.spare_capacity_mut()[..d_bytes].chunks_mut(group_bytes);
        let groups: Vec<_> = of_c.zip(of_d).map(Mutex::new).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut room = vec![0; rows / self.rows * place.block + LINE_BYTES];
            let first_line = pages::first_line(&room);
            let packed_a = &mut room[first_line..];
            let mut edge = vec![0; self.rows * self.columns * GROUP];
            // SAFETY: the caller vouches for the instruction, and this thread uses tiles only here.
            let _configured = self.configure.map(|configure| unsafe { configure() });
            while let Some((group, part)) = taken(&next, &groups) {
                let (of_c, of_d) = &mut *part.lock().expect("no thread panics with it");
                let blocks = of_d.len().div_ceil(self.rows * n * GROUP);
                for first in (0..steps).step_by(self.stretch) {
                    let count = self.stretch.min(steps - first);
                    for (block, packed) in packed_a.chunks_exact_mut(place.block).take(blocks).enumerate() {
                        let from = (group * rows + block * self.rows, first * self.step_bytes, count);
                        place.pack(self, (a.bytes(), m, row_bytes), from, packed);
                    }
                    for column in 0..n.div_ceil(self.columns) {
                        let of_b = packed_b.stretch(column, first, count);
                        let of_c = of_c.chunks(self.rows * n * GROUP);
                        let sums = of_c.zip(of_d.chunks_mut(self.rows * n * GROUP));
                        for (at, (c, d)) in sums.enumerate() {
                            let of_a = &packed_a[at * place.block..][..place.block];
                            let sums = Sums { c: if first == 0 { Some(c) } else { None }, d, columns: n };
                            // SAFETY: the caller vouches for the instruction; its tiles are configured; A and B were packed
                            // for this unit and `count` steps, at least one; D was written if C is not read.
                            unsafe { self.block(count, (of_a, place.stride), of_b, sums, column, &mut edge) };
                        }
                    }
                }
            }
        };
        on_threads(threads, work);
        drop(groups);
        // SAFETY: the first stretch wrote every element of every block.
        unsafe { d.set_len(d_bytes) };
        Elements::from_bytes(c.format(), d).expect("elements of 32 bits")
    }

    /// Multiplies one block of D, which starts `column` blocks into the rows. At an edge, the full block is computed in
    /// the separate buffer `edge`.
    ///
    /// # Safety
    /// As for [`Kernel`], for `count`, `of_a` and `of_b`; D was written if there is no C.
    unsafe fn block(
        self,
        count: usize,
        (of_a, a_stride): (&[u8], usize),
        of_b: &[u8],
        sums: Sums<'_>,
        column: usize,
        edge: &mut [u8],
    ) {
        let (stride, first) = (sums.columns * GROUP, column * self.columns * GROUP);
        let width = (self.columns * GROUP).min(stride - first);
        let rows = sums.d.len() / stride;
        let (of_a, of_b) = (of_a.as_ptr(), of_b.as_ptr());
        let d = sums.d.as_mut_ptr().cast::<u8>().wrapping_add(first);
        let c = sums.c.map_or(d.cast_const(), |c| c.as_ptr().wrapping_add(first));
        if rows == self.rows && width == self.columns * GROUP {
            prefetch(c.wrapping_add(self.rows * stride), self.rows, width, stride);
            // SAFETY: the caller vouches for the operands; the block's rows, `stride` bytes apart, lie within C and D.
            unsafe { (self.kernel)(count, of_a, a_stride, of_b, c, d, stride) };
            return;
        }
        let edge_stride = self.columns * GROUP;
        edge.fill(0);
        for (row, edge) in edge.chunks_exact_mut(edge_stride).take(rows).enumerate() {
            // SAFETY: `width` bytes of a row of C, or of D, lie there; D was written if it is read.
            unsafe { std::ptr::copy_nonoverlapping(c.add(row * stride), edge.as_mut_ptr(), width) };
        }
        let sums = edge.as_mut_ptr();
        // SAFETY: as above; `edge` has the size of a whole block.
        unsafe { (self.kernel)(count, of_a, a_stride, of_b, sums, sums, edge_stride) };
        for (row, edge) in edge.chunks_exact(edge_stride).take(rows).enumerate() {
            // SAFETY: `width` bytes of a row of D lie there.
            unsafe { std::ptr::copy_nonoverlapping(edge.as_ptr(), d.add(row * stride), width) };
        }
    }
}

/// The rows of C and D of a block.
struct Sums<'a> {
    /// C; none if D has the sums of the stretches before.
    c: Option<&'a [u8]>,
    d: &'a mut [MaybeUninit<u8>],
    /// Elements of a row.
    columns: usize,
}

/// Asks for the sums of the next block, which are too far apart for the processor to foresee.
fn prefetch(sums: *const u8, rows: usize, width: usize, stride: usize) {
    for at in (0..rows).flat_map(|row| (0..width).step_by(LINE_BYTES).map(move |line| row * stride + line)) {
        // SAFETY: a prefetch of any address is allowed, and every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(sums.wrapping_add(at).cast()) };
    }
}
