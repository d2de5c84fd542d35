//! A group of lanes in the kernel of folds: values as integers, powers of two for products, and the rounding of totals.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use super::outcome::{Outcome, read_value};
use crate::fast::{
    grids::{FoldOutput, FoldRules},
    simd::halves::Halves,
    tree::Flush,
};

/// The largest exponents of the operands: of each row, and of the panel.
pub(super) struct Largest<'a> {
    pub rows: &'a [i32],
    pub panel: i32,
}

/// The kinds of folds, as constants.
pub(super) const DIRECT: u8 = 0;
pub(super) const WORDS: u8 = 1;
pub(super) const DOUBLES: u8 = 2;

/// The results so far of one group of lanes.
#[derive(Clone, Copy)]
pub(super) struct Group<V: Halves> {
    pub(super) value: V::F,
    /// The least distance of a result's magnitude from the smallest normal number, for results that may have been less
    /// before rounding; or from the smallest subnormal number, for results that were rounded twice.
    pub(super) near: V::I,
    /// −1 in lanes whose result is unknown.
    pub(super) unknown: V::I,
}

/// Sums of products on grids of their own, with their units, and the largest exponent of all products.
pub(super) struct Sums<V: Halves, const S: usize> {
    pub(super) totals: [V::I; S],
    pub(super) units: [V::I; S],
    pub(super) most: V::I,
}

impl<V: Halves, const S: usize> Sums<V, S> {
    /// The sums, rounded down to a unit that is not less than theirs, and `total`.
    #[inline(always)]
    pub(super) unsafe fn on_grid(&self, mut total: V::I, unit: V::I) -> V::I {
        for index in 0..S {
            // SAFETY: upheld by the caller.
            unsafe {
                total = V::add(total, V::shift_down(self.totals[index], V::sub(unit, self.units[index])));
            }
        }
        total
    }
}

/// The biased exponent of the unit of a fold.
#[inline(always)]
pub(super) unsafe fn unit_of<V: Halves>(rules: &FoldRules, most: V::I, field: V::I) -> V::I {
    // SAFETY: upheld by the caller.
    unsafe {
        let bias = 127 + rules.value_bits;
        let unit = V::max(V::add(most, V::splat_i(bias - rules.product_bits)), field);
        // The field is 1 at least.
        if rules.least_unit + bias > 1 { V::max(unit, V::splat_i(rules.least_unit + bias)) } else { unit }
    }
}

/// A value as an integer, shifted up, times a power of two.
pub(super) struct Significand<V: Halves> {
    pub(super) magnitude: V::I,
    pub(super) shifted: V::I,
    /// The field of its exponent, 1 for subnormal numbers and zeros.
    pub(super) field: V::I,
}

impl<V: Halves> Significand<V> {
    #[inline(always)]
    pub(super) unsafe fn of(value: V::F, rules: &FoldRules) -> Self {
        // SAFETY: upheld by the caller.
        unsafe {
            let magnitude = V::and(V::bits(value), V::splat_i(i32::MAX));
            let field = V::max(V::field(magnitude), V::splat_i(1));
            // Without the field, but with the leading one of a normal number.
            let above = V::bits(V::biased_power(field));
            let significand = V::sub(V::add(magnitude, V::splat_i(1 << 23)), above);
            let shifted = V::shift_up(significand, V::splat_i(rules.value_bits - 23));
            Self { magnitude, shifted, field }
        }
    }

    /// The whole units of the value, of which this is the significand. One below a unit is one unit less, or 0.
    #[inline(always)]
    pub(super) unsafe fn rounded_down(&self, value: V::F, rules: &FoldRules, unit: V::I) -> V::I {
        // SAFETY: upheld by the caller.
        unsafe {
            let sign = V::sign(V::bits(value));
            let down = V::sub(unit, self.field);
            let whole = V::shift_down(V::sub(V::xor(self.shifted, sign), sign), down);
            if rules.ignored_below == i32::MAX {
                return whole;
            }
            let small = V::greater(down, V::splat_i(rules.value_bits + rules.ignored_below));
            let counts = V::greater(unit, V::splat_i(rules.ignored_above + 127 + rules.value_bits));
            V::select(V::and(small, counts), V::splat_i(0), whole)
        }
    }
}

/// The powers of two that bring products to whole units.
pub(super) struct Powers<V: Halves, const PLAIN: bool> {
    /// If products are f32, the power for all of them.
    power: V::F,
    /// Otherwise, what to add to the exponent of a product, and the sign of the power.
    bias: V::I,
    sign: V::I,
}

impl<V: Halves, const PLAIN: bool> Powers<V, PLAIN> {
    #[inline(always)]
    pub(super) unsafe fn of(rules: &FoldRules, unit: V::I, sign: V::I) -> Self {
        // SAFETY: upheld by the caller.
        unsafe {
            let bias = V::sub(V::splat_i(254 + rules.value_bits), unit);
            // Below 2^−126, the unit is that of a value, and all products are 0.
            let power = V::bits(V::biased_power(V::min(bias, V::splat_i(253))));
            Self { power: V::from_bits(V::or(power, sign)), bias, sign }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn of_product(&self, exponent: V::I) -> V::F {
        // SAFETY: upheld by the caller.
        unsafe {
            if PLAIN {
                return self.power;
            }
            // Below 2^−100 units, a product is less than one unit, and must not become 0.
            let field = V::max(V::add(exponent, self.bias), V::splat_i(27));
            V::from_bits(V::or(V::bits(V::biased_power(field)), self.sign))
        }
    }
}

impl<V: Halves> Group<V> {
    /// Rounds a total, whose sign is to be changed by `sign`. `before` is the magnitude of the value.
    #[inline(always)]
    pub(super) unsafe fn round<const PLAIN: bool>(
        &mut self,
        rules: &FoldRules,
        (total, sign): (V::I, V::I),
        unit: V::I,
        before: V::I,
    ) {
        // SAFETY: upheld by the caller.
        unsafe {
            let unit = V::sub(unit, V::splat_i(127 + rules.value_bits));
            let special = V::greater(before, V::splat_i(0x7f7f_ffff));
            let bits = match rules.output {
                FoldOutput::F16 => {
                    let sign = V::sign(sign);
                    let (value, infinite, beyond) = V::round_to_f16(V::sub(V::xor(total, sign), sign), unit);
                    self.unknown = V::or(self.unknown, V::select(special, V::splat_i(0), beyond));
                    V::select(V::sign(infinite), V::infinity_like(value), V::bits(value))
                }
                FoldOutput::Flushed => {
                    // Rounding to 24 bits, and a subnormal result again, is right: it is flushed in either case, unless it
                    // becomes 2^−126.
                    let bits = V::xor(V::bits(V::scaled(V::to_float(total), unit)), sign);
                    let magnitude = V::and(bits, V::splat_i(i32::MAX));
                    let above = V::sub(magnitude, V::splat_i(0x0080_0000));
                    self.near = V::min_unsigned(self.near, above);
                    V::select(V::sign(above), V::splat_i(0), bits)
                }
                FoldOutput::F32 => {
                    let value = V::add_f(V::scaled(V::to_float(total), unit), V::splat_f(0.0));
                    V::xor(V::bits(value), sign)
                }
            };
            self.finish::<PLAIN>(rules, bits, before);
        }
    }

    /// Takes a result as the next value, unless the value is a NaN or an infinity, which stays.
    #[inline(always)]
    pub(super) unsafe fn finish<const PLAIN: bool>(&mut self, rules: &FoldRules, bits: V::I, before: V::I) {
        // SAFETY: upheld by the caller.
        unsafe {
            // With plain products, a sum with a product is 0 or 2^−60 at least, and that of a value alone is exact.
            if !PLAIN && rules.output == FoldOutput::F32 {
                let magnitude = V::and(bits, V::splat_i(i32::MAX));
                self.near = V::min_unsigned(self.near, V::sub(magnitude, V::splat_i(1)));
            }
            let special = V::greater(before, V::splat_i(0x7f7f_ffff));
            let mut bits = V::select(special, V::bits(V::add_f(self.value, V::splat_f(0.0))), bits);
            if rules.mask != -1 {
                bits = V::and(bits, V::splat_i(rules.mask));
            }
            self.value = V::from_bits(bits);
        }
    }
}

/// Flushes subnormal values.
#[inline(always)]
pub(super) unsafe fn flush<V: Halves, const NG: usize>(groups: &mut [Group<V>; NG], flush: Flush, least: i32) {
    // SAFETY: upheld by the caller.
    unsafe {
        let zero = [V::splat_i(0); NG];
        let mut values = Outcome::<V, NG> {
            value: groups.map(|group| group.value),
            total: zero,
            unit: zero,
            exponent: zero,
            met: zero,
            nan: zero,
            has_met: false,
        };
        read_value::<V, NG>(&mut values, flush, least);
        for (group, value) in groups.iter_mut().zip(values.value) {
            group.value = value;
        }
    }
}
