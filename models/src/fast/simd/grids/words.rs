//! Sums on a grid of 31 bits or fewer, in i32.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use super::{
    At, Grids,
    outcome::{Outcome, Terms, grid},
    products::Products,
    settle::finish,
};
use crate::{
    adder::Below,
    fast::{
        grids::{GridNode, GridOutput, GridTerm},
        operand::ABSENT,
        simd::halves::Halves,
        tree::Flush,
    },
};

/// A unit of which no total, which is less than 2^31, reaches half of the smallest subnormal f32.
const VANISHING: i32 = -200;

impl Grids<'_> {
    /// Adds products and other terms that fit 31 bits.
    #[inline(always)]
    pub(super) unsafe fn in_words<V: Halves, const NG: usize, const R: usize>(
        &self,
        node: &GridNode,
        at: At<R>,
        terms: Terms<'_, V, NG>,
        products: &mut Products<'_, V, NG>,
        out: &mut Outcome<V, NG>,
        flags: &mut [V::I; NG],
    ) {
        // SAFETY: as in `products`.
        unsafe {
            self.products::<V, NG, R>(node, at, products);
            let known = (products.most, if node.leads { products.leading } else { products.most });
            let (unit, exponent) = grid::<V, NG>(node, known, terms);
            let (mut total, signs) = match node.below {
                Below::Floor => self.aligned::<V, NG, R, true, false>(node, at, products, &unit),
                Below::OnesComplement => self.aligned::<V, NG, R, false, true>(node, at, products, &unit),
                _ => self.aligned::<V, NG, R, false, false>(node, at, products, &unit),
            };
            match node.below {
                Below::Floor => add_others::<V, NG, true>(node, terms, &unit, &mut total),
                _ => add_others::<V, NG, false>(node, terms, &unit, &mut total),
            }
            if node.below == Below::OnesComplement {
                complement(node, terms, (&products.most, &signs), &mut total);
            }
            out.has_met = products.has_met;
            if products.has_met {
                (out.met, out.nan) = (products.met, products.nan);
            }
            let unknown = match node.output {
                GridOutput::Wide => {
                    (out.total, out.unit, out.exponent) = (total, unit, exponent);
                    [V::splat_i(0); NG]
                }
                GridOutput::F16 => round_to_f16(&total, &unit, out),
                GridOutput::F32 { toward_zero } => {
                    round_to_f32(node, toward_zero, &total, &unit, out);
                    [V::splat_i(0); NG]
                }
            };
            finish::<V, NG>(node, terms, unknown, out, flags);
        }
    }
}

/// Adds the terms of a node that are not products.
#[inline(always)]
unsafe fn add_others<V: Halves, const NG: usize, const FLOOR: bool>(
    node: &GridNode,
    terms: Terms<'_, V, NG>,
    unit: &[V::I; NG],
    total: &mut [V::I; NG],
) {
    // SAFETY: the processor has the instructions.
    unsafe {
        for term in &node.others {
            let from = terms.get(*term);
            if matches!(term, GridTerm::Sum(_)) {
                for g in 0..NG {
                    let part = V::shift_down(from.total[g], V::sub(unit[g], from.unit[g]));
                    total[g] = V::add(total[g], part);
                }
                continue;
            }
            for g in 0..NG {
                let scaled = V::scaled(from.value[g], V::sub(V::splat_i(0), unit[g]));
                let mut part = if FLOOR { V::floor_to_int(scaled) } else { V::truncate(scaled) };
                if let Some((below, unless)) = node.ignored {
                    let least = V::sub(unit[g], V::splat_i(below));
                    let mut small = V::greater(least, from.leading(node, g));
                    if let Some(at_most) = unless {
                        small = V::and(small, V::greater(unit[g], V::splat_i(at_most)));
                    }
                    part = V::select(small, V::splat_i(0), part);
                }
                total[g] = V::add(total[g], part);
            }
        }
    }
}

/// Makes terms whose sign differs from that of the node's value their one's complement: one unit less, or one more, unless
/// all terms are zeros. `products` are the largest exponents, and the number of negative ones as a number below 0.
#[inline(always)]
unsafe fn complement<V: Halves, const NG: usize>(
    node: &GridNode,
    terms: Terms<'_, V, NG>,
    (most, signs): (&[V::I; NG], &[V::I; NG]),
    total: &mut [V::I; NG],
) {
    // SAFETY: the processor has the instructions.
    unsafe {
        for g in 0..NG {
            let (mut some, mut differing) = (most[g], signs[g]);
            for term in &node.others {
                let from = terms.get(*term);
                some = V::max(some, from.exponent[g]);
                let negative = V::sign(V::bits(from.value[g]));
                differing = V::add(differing, V::and(negative, V::splat_i(node.product_count)));
            }
            // A product of a zero has the exponent of its other factor above `ABSENT`.
            let any = V::greater(some, V::splat_i(ABSENT / 2));
            total[g] = V::add(total[g], V::and(differing, any));
        }
    }
}

/// Rounds a sum to nearest even; returns the lanes whose result is unknown.
#[inline(always)]
unsafe fn round_to_f16<V: Halves, const NG: usize>(
    total: &[V::I; NG],
    unit: &[V::I; NG],
    out: &mut Outcome<V, NG>,
) -> [V::I; NG] {
    // SAFETY: the processor has the instructions.
    unsafe {
        let mut unknown = *total;
        for g in 0..NG {
            let (value, infinite, beyond) = V::round_to_f16(total[g], unit[g]);
            let infinity = V::infinity_like(value);
            out.value[g] = V::from_bits(V::select(V::sign(infinite), infinity, V::bits(value)));
            unknown[g] = beyond;
        }
        unknown
    }
}

/// Rounds a sum to nearest even or toward zero.
#[inline(always)]
unsafe fn round_to_f32<V: Halves, const NG: usize>(
    node: &GridNode,
    toward_zero: bool,
    total: &[V::I; NG],
    unit: &[V::I; NG],
    out: &mut Outcome<V, NG>,
) {
    // SAFETY: the processor has the instructions.
    unsafe {
        let mut least = unit[0];
        for g in 1..NG {
            least = V::min(least, unit[g]);
        }
        // Rounding first to 24 bits and then to fewer may be wrong for a subnormal sum of 25 bits or more; if it is flushed,
        // it is below 2^−126 either way.
        let twice = node.flush == Flush::None && V::any_greater(V::splat_i(-150), least);
        for g in 0..NG {
            if toward_zero || twice {
                let (wide, power) = (V::widen_int(total[g]), V::wide_power(unit[g]));
                let scaled = [V::mul_d(wide[0], power[0]), V::mul_d(wide[1], power[1])];
                out.value[g] = if toward_zero { V::narrow_toward_zero(scaled) } else { V::narrow(scaled) };
            } else {
                // Below this, every total vanishes.
                let unit = V::max(unit[g], V::splat_i(VANISHING));
                out.value[g] = V::scaled(V::to_float(total[g]), unit);
            }
        }
    }
}
