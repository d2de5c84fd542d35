//! The kernels whose lanes are columns, and their dispatch to what the processor has.
//!
//! The one place with `unsafe`: pointers into packed matrices, and instructions that are looked for at run time.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod chain;
mod lanes;

pub(crate) use chain::{Chain, Join};

use super::Path;
use chain::Task;
use lanes::{Lanes, Portable};

/// Columns in a panel of B, the widest and the narrowest.
pub(super) const WIDE_PANEL: usize = 64;
pub(super) const NARROW_PANEL: usize = 16;

/// The fastest path of this processor.
pub(super) fn fastest() -> Path {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
        {
            return Path::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Path::Avx2;
        }
    }
    Path::Portable
}

/// Rows of A, made ready for a chain.
#[derive(Debug, Default)]
pub(super) struct PackedA {
    pub values: Vec<f32>,
    pub codes: Vec<u32>,
    pub bases: Vec<i32>,
    /// Elements of a row, and blocks of one.
    pub k: usize,
    pub blocks: usize,
}

/// A panel of B, made ready for a chain: `k × panel`.
#[derive(Debug, Default)]
pub(super) struct PackedB {
    pub values: Vec<f32>,
    pub codes: Vec<u8>,
    pub bases: Vec<i32>,
    pub k: usize,
    pub blocks: usize,
    pub panel: usize,
}

/// Runs rows of A from `row` on through operations `steps` of a panel of B.
///
/// `accumulators` are `rows × panel`: c at first, d at last. `left`, one word a row, gets a bit for each column of a row whose result is
/// not to be used.
#[allow(clippy::too_many_arguments)]
pub(super) fn run_chain(
    path: Path,
    chain: &Chain,
    a: &PackedA,
    row: usize,
    b: &PackedB,
    steps: std::ops::Range<usize>,
    accumulators: &mut [f32],
    left: &mut [u64],
) {
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
    assert!(path <= fastest());
    // SAFETY: the processor has the instructions, as just asserted; the lengths were asserted above.
    unsafe {
        match path {
            #[cfg(target_arch = "x86_64")]
            Path::Avx512 if b.panel == WIDE_PANEL => avx512_wide(&task),
            #[cfg(target_arch = "x86_64")]
            Path::Avx512 => avx512_narrow(&task),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 if b.panel == WIDE_PANEL => avx2_wide(&task),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => avx2_narrow(&task),
            _ => select::<Portable, 1>(&task),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512_wide(task: &Task<'_>) {
    // SAFETY: this function's features, and its caller's.
    unsafe { select::<avx512::Avx512, 4>(task) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512_narrow(task: &Task<'_>) {
    // SAFETY: as above.
    unsafe { select::<avx512::Avx512, 1>(task) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2_wide(task: &Task<'_>) {
    // SAFETY: as above.
    unsafe { select::<avx2::Avx2, 4>(task) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2_narrow(task: &Task<'_>) {
    // SAFETY: as above.
    unsafe { select::<avx2::Avx2, 2>(task) }
}

#[inline(always)]
unsafe fn select<V: Lanes, const NG: usize>(task: &Task<'_>) {
    let check = !task.chain.fits_without_check();
    // SAFETY: the caller's.
    unsafe {
        match (task.chain.half, task.chain.wide, check) {
            (false, false, false) => chain::run::<V, NG, false, false, false>(task),
            (false, false, true) => chain::run::<V, NG, false, false, true>(task),
            (false, true, false) => chain::run::<V, NG, false, true, false>(task),
            (false, true, true) => chain::run::<V, NG, false, true, true>(task),
            (true, false, false) => chain::run::<V, NG, true, false, false>(task),
            (true, false, true) => chain::run::<V, NG, true, false, true>(task),
            (true, true, _) => chain::run::<V, NG, true, true, true>(task),
        }
    }
}

impl Chain {
    /// The most products of a part that no sum overflows: `4 · part · 2^F ≤ 2^31`.
    pub(super) fn largest_part(fraction_bits: i32) -> usize {
        1 << (29 - fraction_bits)
    }

    fn fits_without_check(&self) -> bool {
        (4 * self.len as u64 + 2) << self.fraction_bits < 1 << 31
    }
}
