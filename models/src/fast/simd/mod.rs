//! The kernels whose lanes are columns, and their dispatch to the processor's instructions.
//!
//! The only module with `unsafe`: pointers into packed matrices, and instructions that are detected at run time.
#![allow(unsafe_code, clippy::needless_range_loop)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod block;
mod chain;
mod double;
mod grids;
mod halves;
mod integer;
mod lanes;
mod square;
mod sums;
mod tree;
mod widest;

pub(crate) use block::{COLUMNS, Number, ROWS, Row, block_sums};
pub(crate) use chain::{Chain, Join};
pub(super) use grids::{Factors, Forms, LEAST_UNIT_OF_VALUES, run_grids};
pub(crate) use integer::Clamp;
pub(super) use square::eight_by_eight_pairs;
pub(crate) use widest::on_avx512;
pub(super) use widest::on_vectors;
pub use widest::{Vectorised, vectorised};

use mxprobe_api::Rounding;

use super::{
    path::{Path, fastest},
    sums::{Context, SumNode, SumTerm},
    tree::{Flush, Input, Nan, Step, StepKind},
};
use chain::Task;
use lanes::{Lanes, Portable};

/// The number of columns in a panel of B, for the widest and the narrowest panel.
pub(super) const WIDE_PANEL: usize = 64;
pub(super) const NARROW_PANEL: usize = 16;

/// Rows of A, packed for a chain.
#[derive(Debug, Default)]
pub(super) struct PackedA {
    pub values: Vec<f32>,
    pub codes: Vec<u32>,
    pub bases: Vec<i32>,
    /// The number of elements in a row, and of blocks in it.
    pub k: usize,
    pub blocks: usize,
}

/// A panel of B, packed for a chain: `k × panel`.
#[derive(Debug, Default)]
pub(super) struct PackedB {
    pub values: Vec<f32>,
    pub codes: Vec<u8>,
    pub bases: Vec<i32>,
    pub k: usize,
    pub blocks: usize,
    pub panel: usize,
}

/// Rows of A, each of `k` words; or a panel of B or of A, `k × panel`.
#[derive(Debug, Default)]
pub(super) struct Packed<T> {
    pub values: Vec<T>,
    pub k: usize,
    pub panel: usize,
}

/// The work of one kernel call.
pub(super) struct Piece<'a, A, B, T> {
    pub path: Path,
    /// Packed rows of A, and the first row to take; for some kernels also a panel of A, for a single row of D.
    pub a: &'a A,
    pub row: usize,
    /// A packed panel of B.
    pub b: &'a B,
    /// The range of operations along k.
    pub steps: std::ops::Range<usize>,
    /// The accumulators, in rows of the panel: c on entry, d on return.
    pub accumulators: &'a mut [T],
    /// A word for each row, which gets a bit for each column whose result must not be used.
    pub left: &'a mut [u64],
}

/// Pointers to rows of A from `row` on, or to a panel of A, and to a panel of B, all from word `from` on. They are valid up
/// to word `to` and for `rows` rows.
fn operands<T>(
    (a, row, rows): (&Packed<T>, usize, usize),
    b: &Packed<T>,
    (from, to): (usize, usize),
) -> (*const T, *const T) {
    assert!(from <= to && to <= a.k && to <= b.k);
    assert!(b.values.len() >= b.k * b.panel);
    assert!(b.panel == WIDE_PANEL || b.panel == NARROW_PANEL);
    let b_values = b.values[from * b.panel..].as_ptr();
    if a.panel != 0 {
        assert!((row, rows, a.panel) == (0, 1, b.panel) && a.values.len() >= a.k * a.panel);
        return (a.values[from * a.panel..].as_ptr(), b_values);
    }
    assert!(a.values.len() >= (row + rows) * a.k);
    (a.values[row * a.k + from..].as_ptr(), b_values)
}

/// A task that a kernel can perform in lanes of any kind.
trait Job {
    /// # Safety
    /// The processor has the instructions of `V`, and the job's pointers are valid.
    unsafe fn run<V: Lanes, const NG: usize>(&self);
}

/// Runs a job on `path`.
///
/// # Safety
/// The job's pointers are valid.
unsafe fn dispatch(path: Path, panel: usize, job: &impl Job) {
    // SAFETY: upheld by the caller.
    unsafe {
        if !dispatch_vectors(path, panel, job) {
            job.run::<Portable, 1>();
        }
    }
}

/// The same with vector instructions alone; returns whether the path has any.
///
/// # Safety
/// As for [`dispatch`].
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "only x86-64 has vectors"))]
unsafe fn dispatch_vectors(path: Path, panel: usize, job: &impl Job) -> bool {
    assert!(path <= fastest());
    // SAFETY: the processor has the instructions, as just asserted; the rest is upheld by the caller.
    unsafe {
        match path {
            #[cfg(target_arch = "x86_64")]
            Path::Avx512 if panel == WIDE_PANEL => avx512::<4>(job),
            #[cfg(target_arch = "x86_64")]
            Path::Avx512 => avx512::<1>(job),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 if panel == WIDE_PANEL => avx2::<4>(job),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => avx2::<2>(job),
            _ => return false,
        }
    }
    true
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512<const NG: usize>(job: &impl Job) {
    // SAFETY: this function's features; the rest is upheld by its caller.
    unsafe { job.run::<avx512::Avx512, NG>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const NG: usize>(job: &impl Job) {
    // SAFETY: as above.
    unsafe { job.run::<avx2::Avx2, NG>() }
}

/// Rows of A, or a panel of B, as significands, exponents and signs, and their scales likewise.
#[derive(Debug, Default)]
pub(super) struct Split {
    words: [Vec<i32>; 3],
    scales: [Vec<i32>; 3],
    /// The number of elements in a row or a column, and of its scales.
    pub k: usize,
    pub blocks: usize,
    pub panel: usize,
}

impl Split {
    #[inline(always)]
    pub(super) fn push(&mut self, words: [i32; 3]) {
        self.words.iter_mut().zip(words).for_each(|(of, word)| of.push(word));
    }

    pub(super) fn push_scale(&mut self, words: [i32; 3]) {
        self.scales.iter_mut().zip(words).for_each(|(of, word)| of.push(word));
    }

    pub(super) fn clear(&mut self) {
        self.words.iter_mut().chain(&mut self.scales).for_each(Vec::clear);
    }
}

/// Runs rows of A through operations with a panel of B, by sums on grids.
pub(super) fn run_sums(nodes: &[SumNode], context: &Context, piece: Piece<'_, Split, Split, f32>) {
    let Piece { path, a, row, b, steps, accumulators, left } = piece;
    let rows = left.len();
    assert!(accumulators.len() >= rows * b.panel && !nodes.is_empty());
    assert!(b.panel == WIDE_PANEL || b.panel == NARROW_PANEL);
    let (from, to) = (steps.start * context.len, steps.end * context.len);
    let (block, last_block) = (steps.start * context.blocks, steps.end * context.blocks);
    assert!(from <= to && to <= a.k && to <= b.k && last_block <= a.blocks && last_block <= b.blocks);
    for part in 0..3 {
        assert!(a.words[part].len() >= (row + rows) * a.k && b.words[part].len() >= b.k * b.panel);
        assert!(a.scales[part].len() >= (row + rows) * a.blocks && b.scales[part].len() >= b.blocks * b.panel);
    }
    for (index, node) in nodes.iter().enumerate() {
        assert!(node.rules.iter().flat_map(|rule| &rule.terms).all(|at| *at < node.terms.len()));
        assert!(node.terms.iter().all(|term| match *term {
            SumTerm::Product(k) => k < context.len && (context.blocks == 0 || k / context.block < context.blocks),
            SumTerm::C => true,
            SumTerm::Node(at, _) => at < index,
        }));
        assert!(context.blocks > 0 || !(node.scales_products || node.scales_sum));
    }
    let widest = nodes.iter().map(|node| node.terms.len()).max().unwrap_or(0);
    let mut terms = vec![sums::NO_TERMS; widest];
    let mut results = vec![sums::NO_TERMS; nodes.len()];
    let task = sums::Sums {
        nodes,
        context,
        steps: steps.len(),
        rows,
        a: [0, 1, 2].map(|part| a.words[part][row * a.k + from..].as_ptr()),
        a_scales: [0, 1, 2].map(|part| a.scales[part][row * a.blocks + block..].as_ptr()),
        a_stride: a.k,
        a_blocks: a.blocks,
        b: [0, 1, 2].map(|part| b.words[part][from * b.panel..].as_ptr()),
        b_scales: [0, 1, 2].map(|part| b.scales[part][block * b.panel..].as_ptr()),
        panel: b.panel,
        terms: terms.as_mut_ptr(),
        results: results.as_mut_ptr(),
        accumulators: accumulators.as_mut_ptr(),
        left: left.as_mut_ptr(),
    };
    // SAFETY: the lengths were asserted above.
    unsafe { dispatch(path, b.panel, &task) }
}

/// Runs rows of A through operations with a panel of B, by the processor's own arithmetic.
pub(super) fn run_tree(
    nodes: &[Step],
    len: usize,
    flush_c: Flush,
    has_infinities: bool,
    nans: &[Nan],
    piece: Piece<'_, Packed<f32>, Packed<f32>, f32>,
) {
    let Piece { path, a, row, b, steps, accumulators, left } = piece;
    let rows = left.len();
    assert!(accumulators.len() >= rows * b.panel && !nodes.is_empty());
    for (index, node) in nodes.iter().enumerate() {
        let input = |input: Input| !matches!(input, Input::Step(at) if at >= index);
        assert!(match node.kind {
            StepKind::Product(k) => k < len,
            StepKind::ProductAnd(k, x) => k < len && input(x),
            StepKind::Both(x, y) => input(x) && input(y),
            StepKind::One(x) => input(x),
        });
    }
    let (a_values, b_values) = operands((a, row, rows), b, (steps.start * len, steps.end * len));
    let mut results = vec![0.0f32; nodes.len() * WIDE_PANEL];
    assert!(nans.is_empty() || nans.len() == nodes.len());
    let job = tree::Tree {
        nodes,
        nans,
        len,
        flush_c,
        has_infinities,
        steps: steps.len(),
        rows,
        a: a_values,
        a_stride: a.k,
        b: b_values,
        panel: b.panel,
        results: results.as_mut_ptr(),
        accumulators: accumulators.as_mut_ptr(),
        left: left.as_mut_ptr(),
    };
    // SAFETY: `operands` and the assertions above.
    unsafe {
        match (nans.is_empty(), a.panel != 0) {
            (true, false) => dispatch(path, b.panel, &tree::Rows::<false, false>(job)),
            (true, true) => dispatch(path, b.panel, &tree::Rows::<false, true>(job)),
            (false, is_panel) => {
                assert!(!is_panel, "NaN of nodes are for rows of A");
                assert!(dispatch_vectors(path, b.panel, &tree::Rows::<true, false>(job)), "{path:?} has no vectors");
            }
        }
    }
}

/// Runs rows of A through operations with a panel of B, with `pairs` words of two 16-bit factors per operation.
pub(super) fn run_integers(pairs: usize, clamp: Clamp, piece: Piece<'_, Packed<u32>, Packed<u32>, i32>) {
    assert!(piece.a.panel == 0, "rows of A");
    let Piece { path, a, row, b, steps, accumulators, .. } = piece;
    let rows = accumulators.len() / b.panel;
    let (a_values, b_values) = operands((a, row, rows), b, (steps.start * pairs, steps.end * pairs));
    let job = integer::Integers {
        pairs,
        clamp,
        steps: steps.len(),
        rows,
        a: a_values,
        a_stride: a.k,
        b: b_values,
        panel: b.panel,
        accumulators: accumulators.as_mut_ptr(),
    };
    // SAFETY: `operands`; there are accumulators for as many rows.
    unsafe { dispatch(path, b.panel, &job) }
}

/// Runs rows of A through operations with a panel of B, with `len` fused multiply-adds each.
pub(super) fn run_doubles(rounding: Rounding, len: usize, piece: Piece<'_, Packed<f64>, Packed<f64>, f64>) {
    let Piece { path, a, row, b, steps, accumulators, left } = piece;
    let rows = left.len();
    assert!(accumulators.len() >= rows * b.panel);
    assert!(path <= fastest());
    let (a_values, b_values) = operands((a, row, rows), b, (steps.start * len, steps.end * len));
    let task = double::Doubles {
        products: steps.len() * len,
        rows,
        a: a_values,
        a_stride: a.k,
        a_is_panel: a.panel != 0,
        b: b_values,
        panel: b.panel,
        accumulators: accumulators.as_mut_ptr(),
        left: left.as_mut_ptr(),
    };
    // SAFETY: `operands` and the assertions above; the path's instructions are there.
    unsafe { double::run(path, rounding, &task) }
}

/// Runs rows of A through operations with a panel of B, by one chain of additions.
pub(super) fn run_chain(chain: &Chain, piece: Piece<'_, PackedA, PackedB, f32>) {
    let Piece { path, a, row, b, steps, accumulators, left } = piece;
    let rows = left.len();
    let (from, to) = (steps.start * chain.blocks * chain.len, steps.end * chain.blocks * chain.len);
    let (block, last_block) = (steps.start * chain.blocks, steps.end * chain.blocks);
    let bases = if chain.wide { last_block } else { 0 };
    // Every pointer below stays inside these slices.
    assert!(to <= a.k && to <= b.k && chain.part > 0);
    let last = row + rows;
    assert!(a.values.len() >= last * a.k && a.codes.len() >= last * a.k && a.bases.len() >= last * a.blocks);
    assert!(bases <= a.blocks && bases <= b.blocks);
    assert!(b.values.len() >= b.k * b.panel && b.codes.len() >= b.k * b.panel);
    assert!(b.bases.len() >= b.blocks * b.panel);
    assert!(accumulators.len() >= rows * b.panel);
    assert!(b.panel == WIDE_PANEL || b.panel == NARROW_PANEL);
    let block = if chain.wide { block } else { 0 };
    let task = Task {
        chain,
        steps: steps.len(),
        first: steps.start == 0,
        rows,
        a: (
            a.values[row * a.k + from..].as_ptr(),
            a.codes[row * a.k + from..].as_ptr(),
            a.bases[row * a.blocks + block..].as_ptr(),
        ),
        a_stride: a.k,
        a_base_stride: a.blocks,
        b: (
            b.values[from * b.panel..].as_ptr(),
            b.codes[from * b.panel..].as_ptr(),
            b.bases[block * b.panel..].as_ptr(),
        ),
        panel: b.panel,
        accumulators: accumulators.as_mut_ptr(),
        left: left.as_mut_ptr(),
    };
    // SAFETY: the lengths were asserted above.
    unsafe { dispatch(path, b.panel, &task) }
}

impl Job for Task<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes, const NG: usize>(&self) {
        let check = !self.chain.fits_without_check();
        // SAFETY: upheld by the caller.
        unsafe {
            match (self.chain.half, self.chain.wide, check) {
                (false, false, false) => chain::run::<V, NG, false, false, false>(self),
                (false, false, true) => chain::run::<V, NG, false, false, true>(self),
                (false, true, false) => chain::run::<V, NG, false, true, false>(self),
                (false, true, true) => chain::run::<V, NG, false, true, true>(self),
                (true, false, false) => chain::run::<V, NG, true, false, false>(self),
                (true, false, true) => chain::run::<V, NG, true, false, true>(self),
                (true, true, _) => chain::run::<V, NG, true, true, true>(self),
            }
        }
    }
}

impl Chain {
    /// The largest part that no sum overflows: `4 · part · 2^F ≤ 2^31`.
    pub(super) fn largest_part(fraction_bits: i32) -> usize {
        1 << (29 - fraction_bits)
    }

    fn fits_without_check(&self) -> bool {
        (4 * self.len as u64 + 2) << self.fraction_bits < 1 << 31
    }
}
