//! Exact sums of a few products and a value, rounded once to f32, again and again: the factors are f64, and so is the
//! value in its register.
//!
//! **Products.** All products of a block are multiples of one power of two and less than another. A sum of them is exact
//! in f64 if 53 bits lie between these; if there are too many, then that of half of them may be, and the sum of a fold
//! has three terms. Other blocks are left, and those with NaN or infinities.
//!
//! **Rounding.** Two terms are added to odd, in f64. Rounding that number to f32 gives the right result, because 53 bits
//! are at least 24 plus 2 (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using
//! rounding to odd", 2008). Of three terms x, y and the value, let u and v be the sum of x and y and its error, and s and
//! t that of the value and u and its error. The kernel adds t and v to odd, and s to that. If t + v is exact, so is all
//! but the last addition. Otherwise t is not 0, so that s is at least half of u, and t + v is less than two units in the
//! last place of s. The number that stands for t + v is an odd multiple of its own last place, which is at most a 2^50th
//! of that unit. Results, and what lies halfway between two of them, are even multiples of it, and so is s: none lies
//! between the exact sum and the one that is rounded.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use std::ops::Range;

use super::{
    factors::{Factors, Span},
    place::{column_of, row_of},
};
use crate::fast::{grids::ExactFolds, simd::halves::Halves};

/// Rows through several operations, for the columns of one panel, with factors in f64.
pub(super) struct Doubles<'a> {
    folds: &'a ExactFolds,
    /// The numbers of products of an operation, and of operations.
    len: usize,
    steps: usize,
    a: *const f64,
    a_stride: usize,
    b: *const f64,
    width: usize,
    rows: &'a [Span],
    panel: Span,
    accumulators: *mut f32,
}

impl<'a> Doubles<'a> {
    /// Some rows and operations; `None` if factors were not packed as f64. Results take the place of `accumulators`, as
    /// many as the rows have in the panel.
    pub(super) fn of(
        (folds, len): (&'a ExactFolds, usize),
        (a, rows): (&'a Factors, Range<usize>),
        b: &Factors,
        steps: Range<usize>,
        accumulators: *mut f32,
    ) -> Option<Self> {
        let skipped = steps.start * len;
        let [panel] = b.spans[..] else { return None };
        if a.spans.len() < rows.end {
            return None;
        }
        assert!(a.doubles.len() >= rows.end * a.k && b.doubles.len() >= b.k * b.panel);
        assert!(steps.end * len <= a.k.min(b.k));
        Some(Self {
            folds,
            len,
            steps: steps.len(),
            a: a.doubles[rows.start * a.k + skipped..].as_ptr(),
            a_stride: a.k,
            b: b.doubles[skipped * b.panel..].as_ptr(),
            width: b.panel,
            rows: &a.spans[rows],
            panel,
            accumulators,
        })
    }

    /// Whether sums of so many products are exact in f64, as one product always is.
    fn is_exact(&self, row: Span, products: usize) -> bool {
        if products == 1 {
            return true;
        }
        let [of_a, of_b] = self.folds.fraction_bits;
        let most = row.most + self.panel.most + 2 + products.next_power_of_two().ilog2().cast_signed();
        let least = row.least + self.panel.least - of_a - of_b;
        most - least <= 53
    }
}

/// The location of the factors of one operation: `R` rows of A, and the panel of B.
#[derive(Clone, Copy)]
struct At<const R: usize> {
    a: [usize; R],
    b: usize,
}

impl Doubles<'_> {
    /// Computes all rows; returns a bit for each block that is left, in the order of rows, and of as many columns at
    /// a time as these take.
    ///
    /// # Safety
    /// The processor has the instructions of `V`, the pointers are valid, and the k of all terms are below the length of an
    /// operation.
    #[inline(always)]
    pub(super) unsafe fn fold<V: Halves, const NG: usize, const R: usize>(&self) -> u64 {
        let products = self.folds.products;
        let mut left = 0;
        let mut bit = 0;
        for from in (0..self.width).step_by(NG / R * V::WIDTH) {
            for row in (0..self.rows.len()).step_by(R) {
                let rows = &self.rows[row..(row + R).min(self.rows.len())];
                let is_finite = rows.iter().all(|row| row.most + self.panel.most < 1000);
                let are_exact = |products: usize| rows.iter().all(|row| self.is_exact(*row, products));
                // SAFETY: upheld by the caller.
                let is_done = unsafe {
                    if is_finite && are_exact(products) {
                        self.exact_rows::<V, NG, R, true>(row, from)
                    } else if is_finite && are_exact(products.div_ceil(2)) {
                        self.exact_rows::<V, NG, R, false>(row, from)
                    } else {
                        false
                    }
                };
                left |= u64::from(!is_done) << bit;
                bit += 1;
            }
        }
        left
    }

    /// Computes `R` rows from `first` on; the last row takes the place of those beyond it. Sums of products are exact if
    /// `EXACT`, otherwise those of half of them. Returns whether it could: not if a result is infinite or NaN.
    #[inline(always)]
    unsafe fn exact_rows<V: Halves, const NG: usize, const R: usize, const EXACT: bool>(
        &self,
        first: usize,
        from: usize,
    ) -> bool {
        // SAFETY: rows, columns and products are within the bounds of the task; the processor has the instructions.
        unsafe {
            let folds = self.folds;
            let rows: [usize; R] = std::array::from_fn(|at| (first + at).min(self.rows.len() - 1));
            let accumulators = |g: usize| {
                let row = rows[row_of::<NG, R>(g)];
                self.accumulators.add(row * self.width + from + column_of::<V, NG, R>(g))
            };
            let mut values = [V::splat_f(0.0); NG];
            for g in 0..NG {
                values[g] = V::load_f(accumulators(g));
            }
            let mut wide = values.map(|value| V::widen(value));
            for step in 0..self.steps {
                let at = At {
                    a: rows.map(|row| row * self.a_stride + step * self.len),
                    b: step * self.len * self.width + from,
                };
                for terms in folds.terms.chunks_exact(folds.products) {
                    let (one, other) = terms.split_at(if EXACT { terms.len() } else { terms.len() / 2 });
                    let sums = self.sums_of_products::<V, NG, R>(one, at);
                    let others = if EXACT { sums } else { self.sums_of_products::<V, NG, R>(other, at) };
                    for g in 0..NG {
                        let mut odd = sums[g];
                        for half in 0..2 {
                            let value = wide[g][half];
                            odd[half] = if EXACT {
                                V::sum_to_odd(value, sums[g][half])
                            } else {
                                let (sum, error) = V::two_sum(sums[g][half], others[g][half]);
                                let (all, lost) = V::two_sum(value, sum);
                                V::corrected_to_odd(all, V::sum_to_odd(lost, error))
                            };
                        }
                        values[g] = V::narrow(odd);
                        if folds.positive_zero {
                            values[g] = V::add_f(values[g], V::splat_f(0.0));
                        }
                        wide[g] = V::widen(values[g]);
                    }
                }
            }
            // A value that is infinite or NaN remains one of the two.
            let mut largest = V::splat_i(0);
            for value in values {
                largest = V::max(largest, V::and(V::bits(value), V::splat_i(i32::MAX)));
            }
            if V::any_greater(largest, V::splat_i(0x7f7f_ffff)) {
                return false;
            }
            for g in 0..NG {
                V::store_f(accumulators(g), values[g]);
            }
            true
        }
    }

    /// Sums of some products in groups of lanes.
    #[inline(always)]
    unsafe fn sums_of_products<V: Halves, const NG: usize, const R: usize>(
        &self,
        terms: &[usize],
        at: At<R>,
    ) -> [[V::D; 2]; NG] {
        // SAFETY: as in `exact_rows`.
        unsafe {
            // Any product added to −0 keeps its sign.
            let mut sums = [[V::splat_d(-0.0); 2]; NG];
            for k in terms {
                let of_a = at.a.map(|row| V::splat_d(self.a.add(row + k).read()));
                for g in 0..NG {
                    let of_b = self.b.add(at.b + k * self.width + column_of::<V, NG, R>(g));
                    for half in 0..2 {
                        let of_b = V::load_d(of_b.add(half * V::WIDTH / 2));
                        sums[g][half] = V::fma_d(of_a[row_of::<NG, R>(g)], of_b, sums[g][half]);
                    }
                }
            }
            sums
        }
    }
}
