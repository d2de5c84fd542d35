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
    group::{DIRECT, Group, Largest, Powers, Significand, Sums, WORDS, flush, unit_of},
    row_of,
};
use crate::fast::{
    grids::{FoldOutput, FoldRules, Folds},
    simd::halves::Halves,
    tree::Flush,
};

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
        const KIND: u8,
        const S: usize,
        const P: usize,
        const PLAIN: bool,
    >(
        &self,
        folds: &Folds,
        largest: &Largest<'_>,
    ) -> u64 {
        let mut left = 0;
        let mut bit = 0;
        for from in (0..self.panel).step_by(NG / R * V::WIDTH) {
            for row in (0..self.rows).step_by(R) {
                let rows = row..(row + R).min(self.rows);
                let is_special = largest.rows[rows].iter().any(|of_row| of_row + largest.panel > folds.rules.largest);
                // SAFETY: upheld by the caller.
                if is_special || !unsafe { self.fold_rows::<V, NG, R, KIND, S, P, PLAIN>(row, from, folds) } {
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
        const KIND: u8,
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
                if let Some(nan) = folds.rules.nan {
                    for group in &mut groups {
                        let bits = V::bits(group.value);
                        let is = V::greater(V::and(bits, V::splat_i(i32::MAX)), V::splat_i(0x7f80_0000));
                        group.value = V::from_bits(V::select(is, V::splat_i(nan), bits));
                    }
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
                        let (rules, group) = (&folds.rules, &mut groups[g]);
                        match KIND {
                            DIRECT => self.direct::<V, NG, R, P, PLAIN>(rules, terms, at, g, group),
                            WORDS => self.in_words_of_sums::<V, NG, R, S, P, PLAIN>(rules, terms, at, g, group),
                            _ => self.in_doubles_of_sums::<V, NG, R, S, P, PLAIN>(rules, terms, at, g, group),
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

    /// Adds products, each sum on its own grid.
    #[inline(always)]
    unsafe fn sums<
        V: Halves,
        const NG: usize,
        const R: usize,
        const S: usize,
        const P: usize,
        const PLAIN: bool,
        const FLOOR: bool,
    >(
        &self,
        rules: &FoldRules,
        terms: &[usize],
        at: At<R>,
        g: usize,
    ) -> Sums<V, S> {
        // SAFETY: as in `fold_rows`.
        unsafe {
            let zero = V::splat_i(0);
            let mut sums = Sums { totals: [zero; S], units: [zero; S], most: V::splat_i(i32::MIN / 2) };
            let bias = V::splat_i(127 + rules.value_bits - rules.sum_bits);
            for index in 0..S {
                let terms = &terms[index * P..][..P];
                let (products, exponents, most) = self.factors::<V, NG, R, P>(terms, at, g);
                let unit = V::add(most, bias);
                let powers = Powers::<V, PLAIN>::of(rules, unit, zero);
                let mut total = zero;
                for slot in 0..P {
                    let units = V::mul(products[slot], powers.of_product(exponents[slot]));
                    total = V::add(total, if FLOOR { V::floor_to_int(units) } else { V::truncate(units) });
                }
                (sums.totals[index], sums.units[index]) = (total, unit);
                sums.most = V::max(sums.most, most);
            }
            sums
        }
    }

    /// Adds sums of products and the value, all rounded down.
    #[inline(always)]
    unsafe fn in_words_of_sums<
        V: Halves,
        const NG: usize,
        const R: usize,
        const S: usize,
        const P: usize,
        const PLAIN: bool,
    >(
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
            let sums = self.sums::<V, NG, R, S, P, PLAIN, true>(rules, terms, at, g);
            let unit = unit_of::<V>(rules, sums.most, value.field);
            let total = sums.on_grid(value.rounded_down(group.value, rules, unit), unit);
            group.round::<PLAIN>(rules, (total, V::splat_i(0)), unit, value.magnitude);
        }
    }

    /// Adds one sum of products, or that of several sums, and the value, rounded down, and rounds the total down again
    /// before it is rounded to nearest.
    #[inline(always)]
    unsafe fn in_doubles_of_sums<
        V: Halves,
        const NG: usize,
        const R: usize,
        const S: usize,
        const P: usize,
        const PLAIN: bool,
    >(
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
            let sums = self.sums::<V, NG, R, S, P, PLAIN, false>(rules, terms, at, g);
            let zero = V::splat_i(0);
            let own = V::add(sums.most, V::splat_i(127 + rules.value_bits - rules.product_bits));
            let total = if S > 1 { sums.on_grid(zero, own) } else { sums.totals[0] };
            let unit = V::max(own, value.field);
            let down = V::sub(unit, own);
            // Whole units, and the low bits of the sum, which the value does not have.
            let whole = V::add(value.rounded_down(group.value, rules, unit), V::shift_down(total, down));
            let beyond = V::sub(down, V::splat_i(rules.low_bits));
            let up = V::max(V::sub(zero, beyond), zero);
            let low = V::shift_down(V::shift_up(total, up), V::max(beyond, zero));
            let kept = V::splat_i((1 << rules.low_bits) - 1);
            let (whole, low) = (V::widen_int(whole), V::widen_int(V::and(low, kept)));
            let place = V::splat_d(f64::from(1 << rules.low_bits));
            let mut sum = whole;
            for half in 0..2 {
                let exact = V::add_d(V::mul_d(whole[half], place), low[half]);
                sum[half] = V::floor_bits(exact, rules.normalised);
            }
            let unit = V::sub(unit, V::splat_i(127 + rules.value_bits + rules.low_bits));
            let bits = V::bits(V::scaled(V::narrow(sum), unit));
            group.finish::<PLAIN>(rules, bits, value.magnitude);
        }
    }
}
