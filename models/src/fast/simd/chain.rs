//! The kernel of fused chains: d = (… ((c + block of products) + block of products) …), columns in lanes.
//!
//! One block adds `L` exact products and the accumulator on one grid, `F` bits below the largest exponent, truncates
//! each term in magnitude, and rounds the sum once. A term is `truncate(a · b · 2^(F − E))`: a product of two
//! significands of at most 12 bits and its multiple by a power of two are exact in f32 in every case that matters, and
//! the sum is computed in i32.
//!
//! **Exponents.** The operands of a block are kept relative to an exponent of their row's or column's block, so that
//! the largest is 0. The data that decides E is kept in a byte next to each operand: 0 for a zero, else 127 +
//! max(relative exponent, −63). The largest sum M of two bytes is then below 128 if and only if every product is zero.
//! If M is 192 or more, it comes from two operands with relative exponents above −63, so E is `M − 254` plus the two
//! base exponents. In between, some operand was clamped and the lane is left to the scalar evaluator. Formats with at
//! most five exponent bits span at most 29 powers of two, so their M is at least 254 − 58 = 196 and no check is needed.
//!
//! **Products.** If M ≥ 192, the largest product lies at or above 2^−62, relative. Any product that reaches the grid is
//! at least 2^(−62−F−2) ≥ 2^−89, far from where f32 underflows; one that underflows is below 2^−126 times the scale of
//! at most 2^(F+62) ≤ 2^87, so it counts as 0 either way. If M < 128, products are 0 and the scale only has to be
//! finite.
//!
//! **Width of the sum.** Significands are at most 2 − 2^−q, q ≤ 10, so a truncated product is below 4·2^F·(1 − 2^−11)².
//! Sixteen of them at F = 25 are below 2^31·(1 − 2^−11)² and fit an i32; the accumulator, below 2^(F+1), may not fit in
//! addition to them. A block is therefore added in parts of at most `31 − F − 2` bits of products, the parts and the
//! accumulator are added with a check for overflow (`CHECK`), and a lane that overflows is left to the scalar
//! evaluator. For F = 25 and L ≤ 8, F = 24 and L ≤ 16, F = 23 and L ≤ 32, or F = 13, (4·L + 2)·2^F < 2^31 and no check
//! is needed.
//!
//! **Range.** A lane whose E ever exceeds 119 is left to the scalar evaluator: below that, a sum of 2^31 units is below
//! 2^128 for every F ≥ 23, and a sum of 4·L + 2 is for F = 13. So an f32 accumulator is never infinite or NaN here. Results
//! below the normal range are exact in AVX-512, whose scaling rounds toward zero; on other paths they are left as well.
//!
//! **Infinities.** Operands and c are finite here, so a sum of f16 that became infinite stays so until the next operation,
//! or in a chain that begins with c, to its end: `frozen` holds it, and the lane goes on from 0. If c is added afterwards,
//! the next operation finds an infinite c and leaves the lane to the scalar evaluator: its chain may become the opposite
//! infinity.
//!
//! **Aligning in halves.** If 2^t may lie outside f32, t is split into two factors. The first product can underflow
//! only if the second factor is below 1 as well and the result therefore far below 1; it can be rounded, but not to 1.

use super::lanes::{LOW, Lanes};

/// The step after a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    /// None: the chain began with c.
    Nothing,
    /// Adds c to the result, to nearest even: the chain began with +0.
    AddC,
}

/// The parameters of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    /// The number of products in a block.
    pub len: usize,
    /// The number of products that are added without a check for overflow.
    pub part: usize,
    pub fraction_bits: i32,
    pub floor: i32,
    /// The number of blocks in one operation.
    pub blocks: usize,
    pub join: Join,
    /// The bits kept of an f32 result.
    pub mask: i32,
    /// The smallest normal exponents of c and of d.
    pub least: (i32, i32),
    /// Whether results are f16.
    pub half: bool,
    /// Whether an f16 beyond the range is an infinity; if not, it is left to the scalar evaluator.
    pub infinite: bool,
    /// Whether base exponents differ from block to block. If not, `base` is the sum of both.
    pub wide: bool,
    pub base: i32,
}

/// Several rows through several whole operations, for the columns of one panel.
pub(super) struct Task<'a> {
    pub chain: &'a Chain,
    /// The number of operations.
    pub steps: usize,
    /// Whether these operations are the first ones.
    pub first: bool,
    pub rows: usize,
    /// Values, codes and base exponents of A. The strides are the numbers of elements from one row to the next.
    pub a: (*const f32, *const u32, *const i32),
    pub a_stride: usize,
    pub a_base_stride: usize,
    /// Values, codes and base exponents of B, in rows of one panel's columns.
    pub b: (*const f32, *const u8, *const i32),
    /// The number of columns in the panel.
    pub panel: usize,
    /// Accumulators, `rows × panel`.
    pub accumulators: *mut f32,
    /// A word for each row, with a bit for each column that is left to the scalar evaluator.
    pub left: *mut u64,
}

/// # Safety
/// The processor has the instructions of `V`; the task's pointers are valid for the extents it states; `NG · WIDTH`
/// divides the panel.
#[inline(always)]
pub(super) unsafe fn run<V: Lanes, const NG: usize, const HALF: bool, const WIDE: bool, const CHECK: bool>(
    task: &Task<'_>,
) {
    let columns = NG * V::WIDTH;
    let per_row = task.steps * task.chain.blocks * task.chain.len;
    debug_assert!(per_row <= task.a_stride || task.rows <= 1);
    for from in (0..task.panel).step_by(columns) {
        for row in 0..task.rows {
            // SAFETY: upheld by the caller.
            let left = unsafe { one_row::<V, NG, HALF, WIDE, CHECK, false>(task, row, from) };
            // Nothing was stored, so the row can be computed again, with infinities.
            if HALF && left && task.chain.infinite {
                // SAFETY: upheld by the caller.
                unsafe { one_row::<V, NG, HALF, WIDE, CHECK, true>(task, row, from) };
            }
        }
    }
}

/// Returns whether lanes are left to the scalar evaluator. If they are and infinities may occur, which are left too unless
/// `INFINITE`, nothing is stored.
#[inline(always)]
unsafe fn one_row<
    V: Lanes,
    const NG: usize,
    const HALF: bool,
    const WIDE: bool,
    const CHECK: bool,
    const INFINITE: bool,
>(
    task: &Task<'_>,
    row: usize,
    from: usize,
) -> bool {
    let chain = task.chain;
    let len = chain.len;
    // SAFETY: rows and columns are within the bounds of the task; the processor has the instructions.
    unsafe {
        let mut a_values = task.a.0.add(row * task.a_stride);
        let mut a_codes = task.a.1.add(row * task.a_stride);
        let mut a_base = task.a.2.add(row * task.a_base_stride);
        let mut b_values = task.b.0.add(from);
        let mut b_codes = task.b.1.add(from);
        let mut b_base = task.b.2.add(from);
        let accumulators = task.accumulators.add(row * task.panel + from);

        let zero = V::splat_i(0);
        let mut acc = [V::splat_f(0.0); NG];
        let mut saved = [V::splat_f(0.0); NG];
        let mut flags = [zero; NG];
        let mut highest = [zero; NG];
        let mut clamped = [V::splat_i(-1); NG];
        // An infinity, or 0.
        let mut frozen = [zero; NG];
        for g in 0..NG {
            acc[g] = V::load_f(accumulators.add(g * V::WIDTH));
            if HALF && chain.join == Join::Nothing {
                let is_frozen = is_infinite::<V>(acc[g]);
                if !INFINITE {
                    flags[g] = is_frozen;
                    continue;
                }
                frozen[g] = V::and(is_frozen, V::bits(acc[g]));
                acc[g] = V::from_bits(V::select(is_frozen, zero, V::bits(acc[g])));
            }
        }
        let fraction = V::splat_i(chain.fraction_bits);
        let floor = V::splat_i(chain.floor);
        let mask = V::splat_i(chain.mask);
        let mut least = V::splat_i(if task.first { chain.least.0 } else { chain.least.1 });
        for _ in 0..task.steps {
            if chain.join == Join::AddC {
                for g in 0..NG {
                    // c does not take part in the chain, so its range is checked here.
                    let magnitude = V::and(V::bits(acc[g]), V::splat_i(i32::MAX));
                    flags[g] = V::or(flags[g], V::greater(magnitude, V::splat_i(0x7b00_0000)));
                    saved[g] = acc[g];
                    acc[g] = V::splat_f(0.0);
                    frozen[g] = zero;
                }
            }
            for _ in 0..chain.blocks {
                let most = V::widest::<NG>(a_codes, b_codes, task.panel, len);
                let mut scales = [V::splat_f(0.0); NG];
                let mut addends = [zero; NG];
                let mut exponents = [zero; NG];
                for g in 0..NG {
                    let base = if WIDE {
                        V::add(V::splat_i(a_base.read() - 254), V::load_i(b_base.add(g * V::WIDTH)))
                    } else {
                        V::splat_i(chain.base - 254)
                    };
                    let some = V::greater(most[g], V::splat_i(127));
                    let of_products = V::select(some, V::add(most[g], base), V::splat_i(LOW));
                    let of_c = if HALF || WIDE {
                        V::exponent::<true>(acc[g], least)
                    } else {
                        V::exponent::<false>(acc[g], least)
                    };
                    let exponent = V::max(V::max(of_products, of_c), floor);
                    highest[g] = V::max(highest[g], exponent);
                    if WIDE {
                        clamped[g] = V::min_unsigned(clamped[g], V::sub(most[g], V::splat_i(128)));
                    }
                    let up = V::sub(fraction, exponent);
                    addends[g] = V::align(acc[g], up);
                    let up = V::add(V::add(up, base), V::splat_i(254));
                    scales[g] = V::power(V::max(V::min(up, V::splat_i(100)), V::splat_i(-127)));
                    exponents[g] = V::sub(zero, V::sub(fraction, exponent));
                }
                let mut sums = [zero; NG];
                if CHECK {
                    sums = addends;
                }
                let mut k = 0;
                while k < len {
                    let until = (k + chain.part).min(len);
                    let mut part = [zero; NG];
                    while k < until {
                        let a = V::splat_f(a_values.add(k).read());
                        let b = b_values.add(k * task.panel);
                        for g in 0..NG {
                            let product = V::mul(a, V::load_f(b.add(g * V::WIDTH)));
                            part[g] = V::add(part[g], V::truncate(V::mul(product, scales[g])));
                        }
                        k += 1;
                    }
                    for g in 0..NG {
                        if CHECK {
                            let sum = V::add(sums[g], part[g]);
                            let overflow = V::and(V::xor(sum, sums[g]), V::xor(sum, part[g]));
                            flags[g] = V::or(flags[g], overflow);
                            sums[g] = sum;
                        } else {
                            sums[g] = V::add(part[g], addends[g]);
                        }
                    }
                }
                let mut infinite = [zero; NG];
                for g in 0..NG {
                    let (value, unknown) = if HALF {
                        let (value, beyond, unknown) = V::round_to_f16(sums[g], exponents[g]);
                        infinite[g] = beyond;
                        (value, if INFINITE { unknown } else { V::or(unknown, beyond) })
                    } else {
                        V::round_toward_zero(sums[g], exponents[g])
                    };
                    flags[g] = V::or(flags[g], unknown);
                    acc[g] = if HALF { value } else { V::from_bits(V::and(V::bits(value), mask)) };
                    if !HALF && (WIDE || chain.mask != -1) {
                        // A negative sum that underflows, or all of whose bits are cut, is +0 as well.
                        acc[g] = V::add_f(acc[g], V::splat_f(0.0));
                    }
                }
                if INFINITE {
                    freeze::<V, NG>(&infinite, &mut acc, &mut frozen);
                }
                least = V::splat_i(chain.least.1);
                a_values = a_values.add(len);
                a_codes = a_codes.add(len);
                b_values = b_values.add(len * task.panel);
                b_codes = b_codes.add(len * task.panel);
                if WIDE {
                    a_base = a_base.add(1);
                    b_base = b_base.add(task.panel);
                }
            }
            if chain.join == Join::AddC {
                let mut infinite = [zero; NG];
                for g in 0..NG {
                    acc[g] = V::add_f(acc[g], saved[g]);
                    if HALF {
                        (acc[g], infinite[g]) = V::narrow_to_f16(acc[g]);
                        if !INFINITE {
                            flags[g] = V::or(flags[g], infinite[g]);
                        }
                    }
                }
                if INFINITE {
                    freeze::<V, NG>(&infinite, &mut acc, &mut frozen);
                    thaw::<V, NG>(&mut acc, &frozen);
                }
            }
        }
        if INFINITE && chain.join == Join::Nothing {
            thaw::<V, NG>(&mut acc, &frozen);
        }
        let mut left = 0;
        for g in 0..NG {
            let mut bad = V::or(flags[g], V::greater(highest[g], V::splat_i(119)));
            if WIDE {
                // Between 128 and 191: less than 64 above 128, unsigned.
                let inner = V::and(V::greater(V::splat_i(64), clamped[g]), V::greater(clamped[g], V::splat_i(-1)));
                bad = V::or(bad, inner);
            }
            left |= V::negative_lanes(bad) << (from + g * V::WIDTH);
        }
        if HALF && !INFINITE && chain.infinite && left != 0 {
            return true;
        }
        for g in 0..NG {
            V::store_f(accumulators.add(g * V::WIDTH), acc[g]);
        }
        *task.left.add(row) |= left;
        left != 0
    }
}

/// −1 in lanes that hold an infinity.
///
/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn is_infinite<V: Lanes>(x: V::F) -> V::I {
    // SAFETY: upheld by the caller.
    unsafe { V::greater(V::and(V::bits(x), V::splat_i(i32::MAX)), V::splat_i(0x7f7f_ffff)) }
}

/// Freezes lanes whose values just became infinite, unless they are frozen, and sets their values to 0.
///
/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn freeze<V: Lanes, const NG: usize>(infinite: &[V::I; NG], acc: &mut [V::F; NG], frozen: &mut [V::I; NG]) {
    // SAFETY: upheld by the caller.
    unsafe {
        for g in 0..NG {
            let is_frozen = is_infinite::<V>(V::from_bits(frozen[g]));
            frozen[g] = V::select(is_frozen, frozen[g], V::and(infinite[g], V::infinity_like(acc[g])));
            acc[g] = V::from_bits(V::select(infinite[g], V::splat_i(0), V::bits(acc[g])));
        }
    }
}

/// Puts the infinities of frozen lanes in place of their values.
///
/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn thaw<V: Lanes, const NG: usize>(acc: &mut [V::F; NG], frozen: &[V::I; NG]) {
    // SAFETY: upheld by the caller.
    unsafe {
        for (value, frozen) in acc.iter_mut().zip(frozen) {
            let is_frozen = is_infinite::<V>(V::from_bits(*frozen));
            *value = V::from_bits(V::select(is_frozen, *frozen, V::bits(*value)));
        }
    }
}
