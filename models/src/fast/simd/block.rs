//! The innermost loop of plain products: a block of sums stays in registers along a stretch of k.

use crate::fast::path::{Path, fastest};

/// Rows of a block.
pub(crate) const ROWS: usize = 12;

/// Columns of a block.
pub(crate) const COLUMNS: usize = 32;

/// Sums of products of one row and several columns.
pub(crate) type Row<T> = [T; COLUMNS];

/// A number that is multiplied in vectors: f64 or f32.
pub(crate) trait Number: Copy + Default + Send + Sync {
    /// Adds `steps` products to every sum of a block, k ascending, each by a fused multiply-add. `a` has `ROWS` numbers
    /// for each step, `b` has `COLUMNS`. The sums begin at +0.
    ///
    /// # Safety
    /// The processor has the instructions of `path`; `a` and `b` have the numbers of `steps` steps.
    unsafe fn block(path: Path, steps: usize, a: *const Self, b: *const Self, sums: &mut [Row<Self>; ROWS]);
}

/// The sums of a block: for each row and column, the products of all steps, k ascending, each added to +0 by a fused
/// multiply-add.
///
/// # Panics
/// If `a` and `b` have different numbers of steps.
pub(crate) fn block_sums<T: Number>(path: Path, a: &[[T; ROWS]], b: &[Row<T>], sums: &mut [Row<T>; ROWS]) {
    assert_eq!(a.len(), b.len());
    // SAFETY: the path is one of this processor's, and the lengths are equal.
    unsafe { T::block(path.min(fastest()), a.len(), a.as_ptr().cast(), b.as_ptr().cast(), sums) }
}

/// A vector of numbers.
///
/// # Safety
/// Methods may be called only if the processor has the instructions of the implementation. Pointers must be valid for
/// `WIDTH` numbers.
trait Vector: Copy {
    type Number: Number;
    const WIDTH: usize;

    unsafe fn splat(value: Self::Number) -> Self;
    unsafe fn load(from: *const Self::Number) -> Self;
    unsafe fn store(self, to: *mut Self::Number);
    /// x·y + self, rounded once.
    unsafe fn plus_product(self, x: Self, y: Self) -> Self;
}

/// # Safety
/// As for [`Number::block`], with the instructions of `V`; `ROWS` is a multiple of `R`, and `COLUMNS` of `N` vectors.
#[inline(always)]
unsafe fn block<V: Vector, const R: usize, const N: usize>(
    steps: usize,
    a: *const V::Number,
    b: *const V::Number,
    sums: &mut [Row<V::Number>; ROWS],
) {
    const { assert!(ROWS.is_multiple_of(R) && COLUMNS.is_multiple_of(N * V::WIDTH)) }
    for column in (0..COLUMNS).step_by(N * V::WIDTH) {
        for row in (0..ROWS).step_by(R) {
            // SAFETY: rows, columns and steps are within the extents that the caller vouches for.
            unsafe {
                let mut held = [[V::splat(V::Number::default()); N]; R];
                for step in 0..steps {
                    let b = b.add(step * COLUMNS + column);
                    // No closure: it would not be compiled for the instructions of `V`.
                    let mut y = [V::splat(V::Number::default()); N];
                    for (at, y) in y.iter_mut().enumerate() {
                        *y = V::load(b.add(at * V::WIDTH));
                    }
                    for (line, held) in held.iter_mut().enumerate() {
                        let x = V::splat(a.add(step * ROWS + row + line).read());
                        for at in 0..N {
                            held[at] = held[at].plus_product(x, y[at]);
                        }
                    }
                }
                for (held, sums) in held.iter().zip(&mut sums[row..row + R]) {
                    for (at, vector) in held.iter().enumerate() {
                        vector.store(sums[column + at * V::WIDTH..][..V::WIDTH].as_mut_ptr());
                    }
                }
            }
        }
    }
}

macro_rules! number {
    ($number:ty, $wide:ident, $narrow:ident) => {
        impl Vector for [$number; 4] {
            type Number = $number;
            const WIDTH: usize = 4;

            #[inline(always)]
            unsafe fn splat(value: $number) -> Self {
                [value; 4]
            }
            #[inline(always)]
            unsafe fn load(from: *const $number) -> Self {
                // SAFETY: upheld by the caller.
                unsafe { from.cast::<Self>().read() }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $number) {
                // SAFETY: upheld by the caller.
                unsafe { to.cast::<Self>().write(self) }
            }
            #[inline(always)]
            unsafe fn plus_product(self, x: Self, y: Self) -> Self {
                std::array::from_fn(|at| x[at].mul_add(y[at], self[at]))
            }
        }

        impl Number for $number {
            unsafe fn block(path: Path, steps: usize, a: *const Self, b: *const Self, sums: &mut [Row<Self>; ROWS]) {
                // SAFETY: upheld by the caller.
                unsafe {
                    match path {
                        #[cfg(target_arch = "x86_64")]
                        Path::Avx512 => x86::$wide(steps, a, b, sums),
                        #[cfg(target_arch = "x86_64")]
                        Path::Avx2 => x86::$narrow(steps, a, b, sums),
                        _ => block::<[$number; 4], 2, 2>(steps, a, b, sums),
                    }
                }
            }
        }
    };
}

number!(f64, f64_avx512, f64_avx2);
number!(f32, f32_avx512, f32_avx2);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use crate::fast::simd::block::{ROWS, Row, Vector, block};

    macro_rules! vector {
        ($vector:ty, $number:ty, $width:literal, $splat:ident, $load:ident, $store:ident, $fma:ident) => {
            // SAFETY of the blocks: upheld by the caller, as the trait says.
            #[allow(clippy::undocumented_unsafe_blocks)]
            impl Vector for $vector {
                type Number = $number;
                const WIDTH: usize = $width;

                #[inline(always)]
                unsafe fn splat(value: $number) -> Self {
                    unsafe { $splat(value) }
                }
                #[inline(always)]
                unsafe fn load(from: *const $number) -> Self {
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $number) {
                    unsafe { $store(to, self) }
                }
                #[inline(always)]
                unsafe fn plus_product(self, x: Self, y: Self) -> Self {
                    unsafe { $fma(x, y, self) }
                }
            }
        };
    }

    vector!(__m512d, f64, 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd);
    vector!(__m512, f32, 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps);
    vector!(__m256d, f64, 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd);
    vector!(__m256, f32, 8, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps);

    macro_rules! kernel {
        ($name:ident, $vector:ty, $number:ty, $features:literal, $rows:literal, $vectors:literal) => {
            /// # Safety
            /// As for [`block`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(
                steps: usize,
                a: *const $number,
                b: *const $number,
                sums: &mut [Row<$number>; ROWS],
            ) {
                // SAFETY: this function's features; the rest is upheld by its caller.
                unsafe { block::<$vector, $rows, $vectors>(steps, a, b, sums) }
            }
        };
    }

    // As many sums as registers hold beside a factor of A and the vectors of B.
    kernel!(f64_avx512, __m512d, f64, "avx512f", 6, 4);
    kernel!(f32_avx512, __m512, f32, "avx512f", 12, 2);
    kernel!(f64_avx2, __m256d, f64, "avx2,fma", 6, 2);
    kernel!(f32_avx2, __m256, f32, "avx2,fma", 6, 2);
}
