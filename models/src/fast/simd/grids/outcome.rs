//! The results that nodes pass on: sums, values, and their special cases.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use crate::fast::{
    grids::{GridNode, GridOutput, GridTerm},
    operand::ABSENT,
    simd::halves::Halves,
    tree::Flush,
};

/// The lowest unit of a sum, far below every number.
const LEAST_UNIT: i32 = -900;

/// The special cases that a node met, a bit each.
pub(super) const POSITIVE: i32 = 1;
pub(super) const NEGATIVE: i32 = 2;
pub(super) const INVALID: i32 = 4;
pub(super) const OPERAND: i32 = 8;
pub(super) const VALUE: i32 = 16;

/// The result of a node: whole units of `2^unit`, or a value; and the special cases, if it met any.
#[derive(Clone, Copy)]
pub(super) struct Outcome<V: Halves, const NG: usize> {
    pub value: [V::F; NG],
    pub total: [V::I; NG],
    pub unit: [V::I; NG],
    pub exponent: [V::I; NG],
    pub met: [V::I; NG],
    pub nan: [V::I; NG],
    pub has_met: bool,
}

/// The results that terms refer to.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a, V: Halves, const NG: usize> {
    pub c: &'a Outcome<V, NG>,
    pub before: &'a [Outcome<V, NG>],
}

impl<'a, V: Halves, const NG: usize> Terms<'a, V, NG> {
    /// The result to which a term refers.
    #[inline(always)]
    pub(super) fn get(self, term: GridTerm) -> &'a Outcome<V, NG> {
        match term {
            GridTerm::C => self.c,
            GridTerm::Value(index) | GridTerm::Sum(index) | GridTerm::Group(index) => &self.before[index],
        }
    }
}

impl<V: Halves, const NG: usize> Outcome<V, NG> {
    /// The exponent of the leading one of a value, which must be a normal number if that matters.
    #[inline(always)]
    pub(super) unsafe fn leading(&self, node: &GridNode, g: usize) -> V::I {
        // SAFETY: upheld by the caller.
        unsafe {
            if node.exponents_lead {
                return self.exponent[g];
            }
            let magnitude = V::and(V::bits(self.value[g]), V::splat_i(i32::MAX));
            let some = V::greater(magnitude, V::splat_i(0));
            V::select(some, V::sub(V::field(magnitude), V::splat_i(127)), V::splat_i(ABSENT))
        }
    }
}

/// Sets the exponents of values that are terms, records the values that are not finite, and flushes subnormal ones if
/// the model does.
#[inline(always)]
pub(super) unsafe fn read_value<V: Halves, const NG: usize>(of: &mut Outcome<V, NG>, flush: Flush, least: i32) {
    // SAFETY: upheld by the caller.
    unsafe {
        let mut highest = V::splat_i(0);
        for g in 0..NG {
            let bits = V::bits(of.value[g]);
            let mut magnitude = V::and(bits, V::splat_i(i32::MAX));
            if flush != Flush::None {
                let normal = V::greater(magnitude, V::splat_i(0x007f_ffff));
                let mut sign = V::and(bits, V::splat_i(i32::MIN));
                if flush == Flush::Positive {
                    // A zero keeps its sign.
                    sign = V::select(V::greater(magnitude, V::splat_i(0)), V::and(sign, normal), sign);
                }
                magnitude = V::and(magnitude, normal);
                of.value[g] = V::from_bits(V::or(magnitude, sign));
            }
            let exponent = V::max(V::sub(V::field(magnitude), V::splat_i(127)), V::splat_i(least));
            let some = V::greater(magnitude, V::splat_i(0));
            of.exponent[g] = V::select(some, exponent, V::splat_i(ABSENT));
            highest = V::max(highest, magnitude);
        }
        of.has_met = V::any_greater(highest, V::splat_i(0x7f7f_ffff));
        if of.has_met {
            for g in 0..NG {
                let bits = V::bits(of.value[g]);
                let magnitude = V::and(bits, V::splat_i(i32::MAX));
                let signed = V::select(V::sign(bits), V::splat_i(NEGATIVE), V::splat_i(POSITIVE));
                let infinite = V::and(V::greater(magnitude, V::splat_i(0x7f7f_ffff)), signed);
                of.met[g] = V::select(V::greater(magnitude, V::splat_i(0x7f80_0000)), V::splat_i(VALUE), infinite);
            }
        }
    }
}

/// The unit of a node's grid, and its exponent if the sum stays unrounded. `products` are the largest exponents of its
/// products, and of their leading ones.
#[inline(always)]
pub(super) unsafe fn grid<V: Halves, const NG: usize>(
    node: &GridNode,
    products: ([V::I; NG], [V::I; NG]),
    terms: Terms<'_, V, NG>,
) -> ([V::I; NG], [V::I; NG]) {
    // SAFETY: upheld by the caller.
    unsafe {
        let mut unit = [V::splat_i(node.least_unit.unwrap_or(LEAST_UNIT)); NG];
        let mut exponent = [V::splat_i(2 * ABSENT); NG];
        for rule in &node.rules {
            let mut most = [V::splat_i(rule.floor); NG];
            if rule.products {
                for g in 0..NG {
                    most[g] = V::max(most[g], if rule.leading { products.1[g] } else { products.0[g] });
                }
            }
            for at in &rule.others {
                let from = terms.get(node.others[*at]);
                for g in 0..NG {
                    let of = if rule.leading { from.leading(node, g) } else { from.exponent[g] };
                    most[g] = V::max(most[g], of);
                }
            }
            for g in 0..NG {
                unit[g] = V::max(unit[g], V::sub(most[g], V::splat_i(rule.fraction_bits)));
            }
            if node.output == GridOutput::Wide {
                for g in 0..NG {
                    exponent[g] = V::max(exponent[g], most[g]);
                }
            }
        }
        // For NaN and infinities, any unit in range will do.
        for unit in &mut unit {
            *unit = V::min(*unit, V::splat_i(if node.least_unit.is_some() { 250 } else { 900 }));
        }
        (unit, exponent)
    }
}
