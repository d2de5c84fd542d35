//! The kernel of chains of f64 fused multiply-adds, columns in lanes.
//!
//! A result that is NaN or infinite is left to the scalar evaluator; an intermediate one propagates to the result.
// Only x86-64 has such a path so far.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_unsafe, unused_variables))]

use mxprobe_api::Rounding;

use crate::fast::path::Path;

/// Several rows through several products, for the columns of one panel.
pub(super) struct Doubles {
    pub products: usize,
    pub rows: usize,
    pub a: *const f64,
    pub a_stride: usize,
    /// Whether A is a panel, for a single row, instead of rows.
    pub a_is_panel: bool,
    pub b: *const f64,
    pub panel: usize,
    pub accumulators: *mut f64,
    pub left: *mut u64,
}

/// # Safety
/// The processor has the instructions of `path`, and the task's pointers are valid for the extents it states.
pub(super) unsafe fn run(path: Path, rounding: Rounding, task: &Doubles) {
    // SAFETY: upheld by the caller.
    unsafe {
        match (path, rounding) {
            #[cfg(target_arch = "x86_64")]
            (Path::Avx512, Rounding::NearestEven) => x86::avx512::<{ x86::NEAREST }>(task),
            #[cfg(target_arch = "x86_64")]
            (Path::Avx512, Rounding::TowardZero) => x86::avx512::<{ x86::TOWARD_ZERO }>(task),
            #[cfg(target_arch = "x86_64")]
            (Path::Avx512, Rounding::Down) => x86::avx512::<{ x86::DOWN }>(task),
            #[cfg(target_arch = "x86_64")]
            (Path::Avx512, Rounding::Up) => x86::avx512::<{ x86::UP }>(task),
            #[cfg(target_arch = "x86_64")]
            (Path::Avx2, Rounding::NearestEven) => x86::avx2(task),
            _ => unreachable!("the plan was made for a path that has its rounding"),
        }
    }
}

/// Sets a bit for each column whose result is NaN or infinite.
///
/// # Safety
/// The task's pointers are valid, and `row` is one of its rows.
unsafe fn leave_specials(task: &Doubles, row: usize) {
    let mut left = 0;
    for column in 0..task.panel {
        // SAFETY: upheld by the caller.
        let value = unsafe { *task.accumulators.add(row * task.panel + column) };
        left |= u64::from(!value.is_finite()) << column;
    }
    // SAFETY: upheld by the caller.
    unsafe { *task.left.add(row) |= left };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Doubles, leave_specials};

    pub(super) const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    pub(super) const TOWARD_ZERO: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    pub(super) const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    pub(super) const UP: i32 = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;

    /// # Safety
    /// The task's pointers are valid; a panel is a multiple of 16.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn avx512<const ROUNDING: i32>(task: &Doubles) {
        for row in 0..task.rows {
            for from in (0..task.panel).step_by(16) {
                // SAFETY: rows, columns and products are within the bounds of the task.
                unsafe {
                    let to = task.accumulators.add(row * task.panel + from);
                    let mut acc = [_mm512_loadu_pd(to), _mm512_loadu_pd(to.add(8))];
                    for k in 0..task.products {
                        let a = if task.a_is_panel {
                            let a = task.a.add(k * task.panel + from);
                            [_mm512_loadu_pd(a), _mm512_loadu_pd(a.add(8))]
                        } else {
                            [_mm512_set1_pd(task.a.add(row * task.a_stride + k).read()); 2]
                        };
                        let b = task.b.add(k * task.panel + from);
                        acc[0] = _mm512_fmadd_round_pd::<ROUNDING>(a[0], _mm512_loadu_pd(b), acc[0]);
                        acc[1] = _mm512_fmadd_round_pd::<ROUNDING>(a[1], _mm512_loadu_pd(b.add(8)), acc[1]);
                    }
                    _mm512_storeu_pd(to, acc[0]);
                    _mm512_storeu_pd(to.add(8), acc[1]);
                }
            }
            // SAFETY: the row is one of the task's.
            unsafe { leave_specials(task, row) };
        }
    }

    /// # Safety
    /// The task's pointers are valid; a panel is a multiple of 16.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2(task: &Doubles) {
        for row in 0..task.rows {
            for from in (0..task.panel).step_by(16) {
                // SAFETY: rows, columns and products are within the bounds of the task.
                unsafe {
                    let to = task.accumulators.add(row * task.panel + from);
                    let mut acc = [_mm256_setzero_pd(); 4];
                    for (part, acc) in acc.iter_mut().enumerate() {
                        *acc = _mm256_loadu_pd(to.add(4 * part));
                    }
                    for k in 0..task.products {
                        let (of_row, of_panel) = (row * task.a_stride + k, k * task.panel + from);
                        let b = task.b.add(of_panel);
                        for (part, acc) in acc.iter_mut().enumerate() {
                            let a = if task.a_is_panel {
                                _mm256_loadu_pd(task.a.add(of_panel + 4 * part))
                            } else {
                                _mm256_set1_pd(task.a.add(of_row).read())
                            };
                            *acc = _mm256_fmadd_pd(a, _mm256_loadu_pd(b.add(4 * part)), *acc);
                        }
                    }
                    for (part, acc) in acc.iter().enumerate() {
                        _mm256_storeu_pd(to.add(4 * part), *acc);
                    }
                }
            }
            // SAFETY: the row is one of the task's.
            unsafe { leave_specials(task, row) };
        }
    }
}
