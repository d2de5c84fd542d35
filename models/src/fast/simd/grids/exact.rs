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

use super::{
    Grids, MOST_ROWS, column_of,
    factors::{Factors, Span},
    row_of,
};
use crate::fast::{grids::ExactFolds, simd::halves::Halves};

/// Exact folds, and their factors.
pub(super) struct Doubles<'a> {
    folds: &'a ExactFolds,
    a: *const f64,
    b: *const f64,
    rows: &'a [Span],
    panel: Span,
}

impl<'a> Doubles<'a> {
    /// The factors of a task whose rows begin at `row`; `None` if they were not packed, or there is only one row.
    pub(super) fn of(
        folds: &'a ExactFolds,
        task: &Grids<'_>,
        (a, row): (&'a Factors, usize),
        b: &Factors,
        start: usize,
    ) -> Option<Self> {
        let (last, skipped) = (row + task.rows, start * task.context.len);
        let [panel] = b.spans[..] else { return None };
        if !(2..=MOST_ROWS).contains(&task.rows) || a.spans.len() < last {
            return None;
        }
        assert!(a.doubles.len() >= last * a.k && b.doubles.len() >= b.k * b.panel);
        assert!(folds.terms.iter().all(|k| *k < task.context.len));
        let (of_a, of_b) = (a.doubles[row * a.k + skipped..].as_ptr(), b.doubles[skipped * b.panel..].as_ptr());
        Some(Self { folds, a: of_a, b: of_b, rows: &a.spans[row..last], panel })
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

impl Grids<'_> {
    /// Computes all rows; returns a bit for each block that is left, in the order in which [`Grids::run`] takes them.
    ///
    /// # Safety
    /// The processor has the instructions of `V`, and the pointers are valid for the extents that the task states.
    #[inline(always)]
    pub(super) unsafe fn fold_exactly<V: Halves, const NG: usize, const R: usize>(&self, doubles: &Doubles<'_>) -> u64 {
        let products = doubles.folds.products;
        let mut left = 0;
        let mut bit = 0;
        for from in (0..self.panel).step_by(NG / R * V::WIDTH) {
            for row in (0..self.rows).step_by(R) {
                let rows = &doubles.rows[row..(row + R).min(self.rows)];
                let is_finite = rows.iter().all(|row| row.most + doubles.panel.most < 1000);
                let are_exact = |products: usize| rows.iter().all(|row| doubles.is_exact(*row, products));
                // SAFETY: upheld by the caller.
                let is_done = unsafe {
                    if is_finite && are_exact(products) {
                        self.exact_rows::<V, NG, R, true>(row, from, doubles)
                    } else if is_finite && are_exact(products.div_ceil(2)) {
                        self.exact_rows::<V, NG, R, false>(row, from, doubles)
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
        doubles: &Doubles<'_>,
    ) -> bool {
        // SAFETY: rows, columns and products are within the bounds of the task; the processor has the instructions.
        unsafe {
            let folds = doubles.folds;
            let rows: [usize; R] = std::array::from_fn(|at| (first + at).min(self.rows - 1));
            let accumulators = |g: usize| {
                let row = rows[row_of::<NG, R>(g)];
                self.accumulators.add(row * self.panel + from + column_of::<V, NG, R>(g))
            };
            let mut values = [V::splat_f(0.0); NG];
            for g in 0..NG {
                values[g] = V::load_f(accumulators(g));
            }
            let mut wide = values.map(|value| V::widen(value));
            for step in 0..self.steps {
                let at = At {
                    a: rows.map(|row| row * self.a_stride + step * self.context.len),
                    b: step * self.context.len * self.panel + from,
                };
                for terms in folds.terms.chunks_exact(folds.products) {
                    let (one, other) = terms.split_at(if EXACT { terms.len() } else { terms.len() / 2 });
                    let sums = self.sums_of_products::<V, NG, R>(one, at, doubles);
                    let others = if EXACT { sums } else { self.sums_of_products::<V, NG, R>(other, at, doubles) };
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
        doubles: &Doubles<'_>,
    ) -> [[V::D; 2]; NG] {
        // SAFETY: as in `exact_rows`.
        unsafe {
            // Any product added to −0 keeps its sign.
            let mut sums = [[V::splat_d(-0.0); 2]; NG];
            for k in terms {
                let of_a = at.a.map(|row| V::splat_d(doubles.a.add(row + k).read()));
                for g in 0..NG {
                    let of_b = doubles.b.add(at.b + k * self.panel + column_of::<V, NG, R>(g));
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
