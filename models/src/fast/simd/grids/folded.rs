//! Sums of a few products and a value, again and again by the same rules, without nodes to interpret: everything but the
//! products stays in registers.
//!
//! The kernel takes rows and panels without NaN and infinities, so that only values can be one: such a value stays as it
//! is, quieted. Exponents of units are biased, so that that of a value is the field of its exponent: the unit `2^u` has
//! the number `u + 127 + value_bits`. Of a value, the significand is shifted up by `value_bits − 23` places, and then
//! down by the distance of its own unit from that of the sum, which is exact and needs no power of two.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use super::{
    At, Grids, column_of,
    outcome::{Outcome, read_value},
    row_of,
};
use crate::fast::{
    grids::{FoldOutput, FoldRules, Folds},
    simd::halves::Halves,
    tree::Flush,
};

/// What a kernel of folds knows about its operands: rows and panels with special numbers.
pub(super) struct Specials<'a> {
    pub rows: &'a [bool],
    pub panel: bool,
}

/// The results so far of one group of lanes.
#[derive(Clone, Copy)]
struct Group<V: Halves> {
    value: V::F,
    /// The least distance of a result's magnitude from the smallest normal number, for results that may have been less
    /// before rounding; or from the smallest subnormal number, for results that were rounded twice.
    near: V::I,
    /// −1 in lanes whose result is unknown.
    unknown: V::I,
}

impl Grids<'_> {
    /// Computes all rows; returns a bit for each block that is left, in the order in which [`Grids::run`] takes them.
    ///
    /// # Safety
    /// The processor has the instructions of `V`, the pointers are valid for the extents that the task states, and the
    /// k of all terms are below the length of an operation.
    #[inline(always)]
    pub(super) unsafe fn fold<
        V: Halves,
        const NG: usize,
        const R: usize,
        const S: usize,
        const P: usize,
        const PLAIN: bool,
    >(
        &self,
        folds: &Folds,
        specials: &Specials<'_>,
    ) -> u64 {
        let mut left = 0;
        let mut bit = 0;
        for from in (0..self.panel).step_by(NG / R * V::WIDTH) {
            for row in (0..self.rows).step_by(R) {
                let rows = row..(row + R).min(self.rows);
                let is_special = specials.panel || specials.rows[rows].iter().any(|special| *special);
                // SAFETY: upheld by the caller.
                if is_special || !unsafe { self.fold_rows::<V, NG, R, S, P, PLAIN>(row, from, folds) } {
                    left |= 1 << bit;
                }
                bit += 1;
            }
        }
        left
    }

    /// Computes `R` rows from `first` on; the last row takes the place of those beyond it. Returns whether it could.
    #[inline(always)]
    unsafe fn fold_rows<
        V: Halves,
        const NG: usize,
        const R: usize,
        const S: usize,
        const P: usize,
        const PLAIN: bool,
    >(
        &self,
        first: usize,
        from: usize,
        folds: &Folds,
    ) -> bool {
        // SAFETY: rows, columns and products are within the bounds of the task; the processor has the instructions.
        unsafe {
            let context = self.context;
            let rows: [usize; R] = std::array::from_fn(|at| (first + at).min(self.rows - 1));
            let accumulators = |g: usize| {
                let row = rows[row_of::<NG, R>(g)];
                self.accumulators.add(row * self.panel + from + column_of::<V, NG, R>(g))
            };
            let zero = V::splat_i(0);
            let none = Group::<V> { value: V::splat_f(0.0), near: V::splat_i(-1), unknown: zero };
            let mut groups = [none; NG];
            for g in 0..NG {
                groups[g].value = V::load_f(accumulators(g));
            }
            for step in 0..self.steps {
                if context.flush_c != Flush::None {
                    flush::<V, NG>(&mut groups, context.flush_c, context.least);
                }
                let at = At {
                    a: rows.map(|row| row * self.a_stride + step * context.len),
                    a_blocks: [0; R],
                    a_masks: [0; R],
                    b: step * context.len * self.panel + from,
                    b_block: 0,
                    b_mask: 0,
                };
                for terms in folds.terms.chunks_exact(P * S.max(1)) {
                    for g in 0..NG {
                        if S == 0 {
                            self.direct::<V, NG, R, P, PLAIN>(&folds.rules, terms, at, g, &mut groups[g]);
                        } else {
                            self.of_sums::<V, NG, R, S, P, PLAIN>(&folds.rules, terms, at, g, &mut groups[g]);
                        }
                    }
                }
            }
            if folds.rules.output == FoldOutput::F32 && !PLAIN {
                let mut nearest = groups[0].near;
                for group in &groups[1..] {
                    nearest = V::min_unsigned(nearest, group.near);
                }
                if V::any_greater(V::splat_i(1), V::field(nearest)) {
                    return false;
                }
            }
            for g in 0..NG {
                let mut unknown = groups[g].unknown;
                if folds.rules.output == FoldOutput::Flushed {
                    unknown = V::or(unknown, V::equal(groups[g].near, zero));
                }
                let lanes = V::negative_lanes(unknown) << (from + column_of::<V, NG, R>(g));
                *self.left.add(rows[row_of::<NG, R>(g)]) |= lanes;
                V::store_f(accumulators(g), groups[g].value);
            }
            true
        }
    }

    /// Products of a node, and the exponents of their factors together.
    #[inline(always)]
    unsafe fn factors<V: Halves, const NG: usize, const R: usize, const P: usize>(
        &self,
        terms: &[usize],
        at: At<R>,
        g: usize,
    ) -> ([V::F; P], [V::I; P], V::I) {
        // SAFETY: as in `fold_rows`.
        unsafe {
            let (row, column) = (at.a[row_of::<NG, R>(g)], at.b + column_of::<V, NG, R>(g));
            let mut values = [V::splat_f(0.0); P];
            let mut exponents = [V::splat_i(0); P];
            for slot in 0..P {
                let (of_a, of_b) = (row + terms[slot], column + terms[slot] * self.panel);
                values[slot] = V::mul(V::splat_f(self.a.0.add(of_a).read()), V::load_f(self.b.0.add(of_b)));
                exponents[slot] = V::add(V::splat_i(self.a.1.add(of_a).read()), V::load_i(self.b.1.add(of_b)));
            }
            let mut most = exponents[0];
            for exponent in &exponents[1..] {
                most = V::max(most, *exponent);
            }
            (values, exponents, most)
        }
    }

    /// Adds products and the value, terms whose sign differs from the value's as their one's complement.
    #[inline(always)]
    unsafe fn direct<V: Halves, const NG: usize, const R: usize, const P: usize, const PLAIN: bool>(
        &self,
        rules: &FoldRules,
        terms: &[usize],
        at: At<R>,
        g: usize,
        group: &mut Group<V>,
    ) {
        // SAFETY: as in `fold_rows`.
        unsafe {
            let (products, exponents, most) = self.factors::<V, NG, R, P>(terms, at, g);
            let value = Significand::<V>::of(group.value, rules);
            let unit = unit_of::<V>(rules, most, value.field);
            let sign = V::and(V::bits(group.value), V::splat_i(i32::MIN));
            // The sum of magnitudes as seen from the value. The complement of a term is one less than its negative.
            let mut total = V::shift_down(value.shifted, V::sub(unit, value.field));
            let powers = Powers::<V, PLAIN>::of(rules, unit, sign);
            for slot in 0..P {
                let units = V::mul(products[slot], powers.of_product(exponents[slot]));
                let part = V::add(V::truncate(units), V::sign(V::bits(units)));
                total = V::add(total, part);
            }
            group.round::<PLAIN>(rules, (total, sign), unit, value.magnitude);
        }
    }

    /// Adds sums of products, each on its own grid, and the value, all rounded down.
    #[inline(always)]
    unsafe fn of_sums<V: Halves, const NG: usize, const R: usize, const S: usize, const P: usize, const PLAIN: bool>(
        &self,
        rules: &FoldRules,
        terms: &[usize],
        at: At<R>,
        g: usize,
        group: &mut Group<V>,
    ) {
        // SAFETY: as in `fold_rows`.
        unsafe {
            let value = Significand::<V>::of(group.value, rules);
            let zero = V::splat_i(0);
            let mut sums = [(zero, zero); S];
            let bias = V::splat_i(127 + rules.value_bits - rules.sum_bits);
            let mut most_of_all = V::splat_i(i32::MIN / 2);
            for (index, sum) in sums.iter_mut().enumerate() {
                let terms = &terms[index * P..][..P];
                let (products, exponents, most) = self.factors::<V, NG, R, P>(terms, at, g);
                let unit = V::add(most, bias);
                let powers = Powers::<V, PLAIN>::of(rules, unit, zero);
                let mut total = zero;
                for slot in 0..P {
                    let units = V::mul(products[slot], powers.of_product(exponents[slot]));
                    total = V::add(total, V::floor_to_int(units));
                }
                *sum = (total, unit);
                most_of_all = V::max(most_of_all, most);
            }
            let unit = unit_of::<V>(rules, most_of_all, value.field);
            let sign = V::sign(V::bits(group.value));
            let signed = V::sub(V::xor(value.shifted, sign), sign);
            let down = V::sub(unit, value.field);
            let mut total = V::shift_down(signed, down);
            // A value below one unit is one unit less, or 0.
            let small = V::greater(down, V::splat_i(rules.value_bits));
            let counts = V::greater(unit, V::splat_i(rules.ignored_above + 127 + rules.value_bits));
            total = V::select(V::and(small, counts), zero, total);
            for (sum, of_sum) in sums {
                total = V::add(total, V::shift_down(sum, V::sub(unit, of_sum)));
            }
            group.round::<PLAIN>(rules, (total, zero), unit, value.magnitude);
        }
    }
}

/// The biased exponent of the unit of a fold.
#[inline(always)]
unsafe fn unit_of<V: Halves>(rules: &FoldRules, most: V::I, field: V::I) -> V::I {
    // SAFETY: upheld by the caller.
    unsafe {
        let bias = 127 + rules.value_bits;
        let unit = V::max(V::add(most, V::splat_i(bias - rules.product_bits)), field);
        // The field is 1 at least.
        if rules.least_unit + bias > 1 { V::max(unit, V::splat_i(rules.least_unit + bias)) } else { unit }
    }
}

/// A value as an integer, shifted up, times a power of two.
struct Significand<V: Halves> {
    magnitude: V::I,
    shifted: V::I,
    /// The field of its exponent, 1 for subnormal numbers and zeros.
    field: V::I,
}

impl<V: Halves> Significand<V> {
    #[inline(always)]
    unsafe fn of(value: V::F, rules: &FoldRules) -> Self {
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
}

/// The powers of two that bring products to whole units.
struct Powers<V: Halves, const PLAIN: bool> {
    /// If products are f32, the power for all of them.
    power: V::F,
    /// Otherwise, what to add to the exponent of a product, and the sign of the power.
    bias: V::I,
    sign: V::I,
}

impl<V: Halves, const PLAIN: bool> Powers<V, PLAIN> {
    #[inline(always)]
    unsafe fn of(rules: &FoldRules, unit: V::I, sign: V::I) -> Self {
        // SAFETY: upheld by the caller.
        unsafe {
            let bias = V::sub(V::splat_i(254 + rules.value_bits), unit);
            // Below 2^−126, the unit is that of a value, and all products are 0.
            let power = V::bits(V::biased_power(V::min(bias, V::splat_i(253))));
            Self { power: V::from_bits(V::or(power, sign)), bias, sign }
        }
    }

    #[inline(always)]
    unsafe fn of_product(&self, exponent: V::I) -> V::F {
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
    unsafe fn round<const PLAIN: bool>(
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
            let mut bits = match rules.output {
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
                    let bits = V::xor(V::bits(value), sign);
                    // With plain products, a sum with a product is 0 or 2^−52 at least, and that of a value alone is exact.
                    if !PLAIN {
                        let magnitude = V::and(bits, V::splat_i(i32::MAX));
                        self.near = V::min_unsigned(self.near, V::sub(magnitude, V::splat_i(1)));
                    }
                    bits
                }
            };
            bits = V::select(special, V::bits(V::add_f(self.value, V::splat_f(0.0))), bits);
            if rules.mask != -1 {
                bits = V::and(bits, V::splat_i(rules.mask));
            }
            self.value = V::from_bits(bits);
        }
    }
}

/// Flushes subnormal values.
#[inline(always)]
unsafe fn flush<V: Halves, const NG: usize>(groups: &mut [Group<V>; NG], flush: Flush, least: i32) {
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
