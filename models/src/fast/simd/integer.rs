//! The kernel of integer sums, columns in lanes: two products per instruction.

use super::{Job, lanes::Lanes};

/// What happens to a sum of c and of products that 32 bits cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clamp {
    /// It wraps.
    Wraps,
    /// It is clamped. The products alone fit.
    Sum,
    /// It is clamped. The products alone add up to 2^31 at most, and to more than −2^31.
    SumToTop,
}

/// Several rows through several operations, for the columns of one panel; words hold two factors of 16 bits.
pub(super) struct Integers {
    pub pairs: usize,
    pub clamp: Clamp,
    pub steps: usize,
    pub rows: usize,
    pub a: *const u32,
    pub a_stride: usize,
    pub b: *const u32,
    pub panel: usize,
    pub accumulators: *mut i32,
}

impl Job for Integers {
    #[inline(always)]
    unsafe fn run<V: Lanes, const NG: usize>(&self) {
        for from in (0..self.panel).step_by(NG * V::WIDTH) {
            for row in 0..self.rows {
                // SAFETY: upheld by the caller; rows, columns and pairs are within the bounds of the task.
                unsafe {
                    let mut a = self.a.add(row * self.a_stride);
                    let mut b = self.b.add(from);
                    let accumulators = self.accumulators.add(row * self.panel + from);
                    let mut acc = [V::splat_i(0); NG];
                    for g in 0..NG {
                        acc[g] = V::load_i(accumulators.add(g * V::WIDTH));
                    }
                    for _ in 0..self.steps {
                        let mut sum = if self.clamp == Clamp::Wraps { acc } else { [V::splat_i(0); NG] };
                        for _ in 0..self.pairs {
                            let factors = V::splat_i(a.read().cast_signed());
                            for g in 0..NG {
                                let products = V::pairs(factors, V::load_i(b.add(g * V::WIDTH).cast()));
                                sum[g] = V::add(sum[g], products);
                            }
                            a = a.add(1);
                            b = b.add(self.panel);
                        }
                        for g in 0..NG {
                            sum[g] = match self.clamp {
                                Clamp::Wraps => sum[g],
                                Clamp::Sum => clamped_sum::<V>(acc[g], sum[g]),
                                Clamp::SumToTop => clamped_to_top::<V>(acc[g], sum[g]),
                            };
                        }
                        acc = sum;
                    }
                    for g in 0..NG {
                        V::store_i(accumulators.add(g * V::WIDTH), acc[g]);
                    }
                }
            }
        }
    }
}

/// Computes `x + y` clamped to 32 bits, where a `y` of −2^31 stands for 2^31.
#[inline(always)]
unsafe fn clamped_to_top<V: Lanes>(x: V::I, y: V::I) -> V::I {
    // SAFETY: upheld by the caller.
    unsafe {
        let top = V::greater(V::splat_i(i32::MIN + 1), y);
        // In two steps: 2^31 − 1, and 1.
        let sum = clamped_sum::<V>(x, V::add(y, top));
        clamped_sum::<V>(sum, V::sub(V::splat_i(0), top))
    }
}

/// Computes `x + y` clamped to 32 bits.
#[inline(always)]
unsafe fn clamped_sum<V: Lanes>(x: V::I, y: V::I) -> V::I {
    // SAFETY: upheld by the caller.
    unsafe {
        let sum = V::add(x, y);
        let zero = V::splat_i(0);
        let overflow = V::greater(zero, V::and(V::xor(sum, x), V::xor(sum, y)));
        let end = V::xor(V::greater(zero, x), V::splat_i(i32::MAX));
        V::select(overflow, end, sum)
    }
}
