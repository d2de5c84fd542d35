//! The kernel of integer sums, columns in lanes: two products per instruction.

use super::{Job, lanes::Lanes};

/// Several rows through several operations, for the columns of one panel; words hold two factors of 16 bits.
pub(super) struct Integers {
    pub pairs: usize,
    pub saturates: bool,
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
                        let mut sum = if self.saturates { [V::splat_i(0); NG] } else { acc };
                        for _ in 0..self.pairs {
                            let factors = V::splat_i(a.read().cast_signed());
                            for g in 0..NG {
                                let products = V::pairs(factors, V::load_i(b.add(g * V::WIDTH).cast()));
                                sum[g] = V::add(sum[g], products);
                            }
                            a = a.add(1);
                            b = b.add(self.panel);
                        }
                        if self.saturates {
                            for g in 0..NG {
                                sum[g] = clamped_sum::<V>(acc[g], sum[g]);
                            }
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
