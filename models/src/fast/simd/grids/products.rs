//! Nodes with products: on a grid in words, or summed exactly and scaled.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use super::{
    At, Grids,
    outcome::{INVALID, NEGATIVE, OPERAND, Outcome, POSITIVE, Terms, VALUE, grid},
    settle::finish,
};
use crate::{
    adder::Below,
    fast::{
        grids::{GridNode, GridOutput, GridTerm, MOST_PRODUCTS},
        operand::{ABSENT, INFINITE},
        simd::halves::Halves,
        tree::Flush,
    },
};

/// A unit of which no total, which is less than 2^31, reaches half of the smallest subnormal f32.
const VANISHING: i32 = -200;

/// The products of a node, and their special cases.
pub(super) struct Products<V: Halves, const NG: usize> {
    pub exponents: [[V::I; NG]; MOST_PRODUCTS],
    pub values: [[V::F; NG]; MOST_PRODUCTS],
    /// Memory for the errors of additions in f64.
    pub errors: [[V::D; 2]; MOST_PRODUCTS],
    pub most: [V::I; NG],
    pub leading: [V::I; NG],
    pub met: [V::I; NG],
    /// The first NaN among the factors as a quiet f32, if the node keeps it.
    pub nan: [V::I; NG],
    pub has_met: bool,
}

impl Grids<'_> {
    /// Computes significands and exponents of the products of a node.
    #[inline(always)]
    pub(super) unsafe fn products<V: Halves, const NG: usize, const LEADING: bool>(
        &self,
        node: &GridNode,
        at: At,
        into: &mut Products<V, NG>,
    ) {
        // SAFETY: products are within the packed operands; the processor has the instructions.
        unsafe {
            let mut most = [V::splat_i(2 * ABSENT); NG];
            let mut leading = most;
            for (slot, k) in node.products.iter().enumerate() {
                let exponent = V::splat_i(self.a.1.add(at.a + k).read());
                let significand = V::splat_f(self.a.0.add(at.a + k).read());
                for g in 0..NG {
                    let of_b = at.b + k * self.panel + g * V::WIDTH;
                    let sum = V::add(exponent, V::load_i(self.b.1.add(of_b)));
                    most[g] = V::max(most[g], sum);
                    into.exponents[slot][g] = sum;
                    if LEADING {
                        let value = V::mul(significand, V::load_f(self.b.0.add(of_b)));
                        let magnitude = V::and(V::bits(value), V::splat_i(i32::MAX));
                        leading[g] = V::max(leading[g], V::add(sum, V::field(magnitude)));
                        into.values[slot][g] = value;
                    }
                }
            }
            into.most = most;
            if LEADING {
                for g in 0..NG {
                    into.leading[g] = V::sub(leading[g], V::splat_i(127));
                }
            }
            let mut highest = most[0];
            for g in 1..NG {
                highest = V::max(highest, most[g]);
            }
            into.has_met = V::any_greater(highest, V::splat_i(if node.product_overflow { 126 } else { 1000 }));
            if into.has_met {
                self.met_by_products(node, at, into);
            }
        }
    }

    /// The special cases that each lane met among its products: NaN, infinities, and products of 2^128 and more if that
    /// matters.
    #[inline(always)]
    unsafe fn met_by_products<V: Halves, const NG: usize>(&self, node: &GridNode, at: At, into: &mut Products<V, NG>) {
        // SAFETY: as in `products`.
        unsafe {
            into.met = [V::splat_i(0); NG];
            into.nan = into.met;
            for (slot, k) in node.products.iter().enumerate() {
                let significand = V::splat_f(self.a.0.add(at.a + k).read());
                for g in 0..NG {
                    let value = V::mul(significand, V::load_f(self.b.0.add(at.b + k * self.panel + g * V::WIDTH)));
                    let bits = V::bits(value);
                    let exponent = into.exponents[slot][g];
                    let above = |limit: i32| V::greater(exponent, V::splat_i(limit));
                    let number = if node.product_overflow {
                        let magnitude = V::and(bits, V::splat_i(i32::MAX));
                        let two = V::greater(magnitude, V::splat_i(0x3fff_ffff));
                        V::or(above(127), V::and(above(126), two))
                    } else {
                        above(1000)
                    };
                    let signed = V::select(V::sign(bits), V::splat_i(NEGATIVE), V::splat_i(POSITIVE));
                    let mut met = V::and(number, signed);
                    // An infinity times a zero lies in between.
                    met = V::select(above(INFINITE / 4), V::splat_i(INVALID), met);
                    met = V::select(above(INFINITE - 4000), signed, met);
                    met = V::select(above(3 * INFINITE), V::splat_i(OPERAND), met);
                    if node.quiet_operands {
                        let of_b = at.b + k * self.panel + g * V::WIDTH;
                        let a_is = V::greater(V::splat_i(self.a.1.add(at.a + k).read()), V::splat_i(3 * INFINITE));
                        let fraction = V::select(a_is, V::bits(significand), V::bits(V::load_f(self.b.0.add(of_b))));
                        let quiet = V::or(fraction, V::splat_i(0x7fc0_0000));
                        let first = V::greater(V::splat_i(OPERAND), V::and(into.met[g], V::splat_i(OPERAND)));
                        let first = V::and(first, V::greater(V::and(met, V::splat_i(OPERAND)), V::splat_i(0)));
                        into.nan[g] = V::select(first, quiet, into.nan[g]);
                    }
                    into.met[g] = V::or(into.met[g], met);
                }
            }
        }
    }

    /// The products of a node in whole units, and the number of negative ones as a number below 0.
    #[inline(always)]
    unsafe fn aligned<V: Halves, const NG: usize, const LEADING: bool, const FLOOR: bool, const SIGNS: bool>(
        &self,
        node: &GridNode,
        at: At,
        products: &Products<V, NG>,
        unit: &[V::I; NG],
    ) -> ([V::I; NG], [V::I; NG]) {
        // SAFETY: as in `products`.
        unsafe {
            let mut total = [V::splat_i(0); NG];
            let mut signs = total;
            let mut biased = total;
            for g in 0..NG {
                biased[g] = V::sub(unit[g], V::splat_i(127));
            }
            for (k, (exponents, values)) in node.products.iter().zip(products.exponents.iter().zip(&products.values)) {
                let significand = V::splat_f(self.a.0.add(at.a + k).read());
                for g in 0..NG {
                    let value = if LEADING {
                        values[g]
                    } else {
                        V::mul(significand, V::load_f(self.b.0.add(at.b + k * self.panel + g * V::WIDTH)))
                    };
                    let field = V::max(V::sub(exponents[g], biased[g]), V::splat_i(27));
                    let scaled = V::mul(value, V::biased_power(field));
                    let part = if FLOOR { V::floor_to_int(scaled) } else { V::truncate(scaled) };
                    total[g] = V::add(total[g], part);
                    if SIGNS {
                        signs[g] = V::add(signs[g], V::sign(V::bits(value)));
                    }
                }
            }
            (total, signs)
        }
    }

    /// Adds products and other terms that fit 31 bits.
    #[inline(always)]
    pub(super) unsafe fn in_words<V: Halves, const NG: usize>(
        &self,
        node: &GridNode,
        at: At,
        terms: Terms<'_, V, NG>,
        products: &mut Products<V, NG>,
        out: &mut Outcome<V, NG>,
        flags: &mut [V::I; NG],
    ) {
        // SAFETY: as in `products`.
        unsafe {
            if node.leads {
                self.products::<V, NG, true>(node, at, products);
            } else {
                self.products::<V, NG, false>(node, at, products);
            }
            let known = (products.most, if node.leads { products.leading } else { products.most });
            let (unit, exponent) = grid::<V, NG>(node, known, terms);
            let complement = node.below == Below::OnesComplement;
            let floor = node.below == Below::Floor;
            let (mut total, mut signs) = match (node.leads, node.below) {
                (true, Below::Floor) => self.aligned::<V, NG, true, true, false>(node, at, products, &unit),
                (false, Below::Floor) => self.aligned::<V, NG, false, true, false>(node, at, products, &unit),
                (true, Below::OnesComplement) => self.aligned::<V, NG, true, false, true>(node, at, products, &unit),
                (false, Below::OnesComplement) => self.aligned::<V, NG, false, false, true>(node, at, products, &unit),
                (true, _) => self.aligned::<V, NG, true, false, false>(node, at, products, &unit),
                (false, _) => self.aligned::<V, NG, false, false, false>(node, at, products, &unit),
            };
            let mut some = known.0;
            for term in &node.others {
                let from = terms.get(*term);
                for g in 0..NG {
                    match term {
                        GridTerm::Sum(_) => {
                            let part = V::shift_down(from.total[g], V::sub(unit[g], from.unit[g]));
                            total[g] = V::add(total[g], part);
                        }
                        GridTerm::C | GridTerm::Value(_) | GridTerm::Group(_) => {
                            let scaled = V::scaled(from.value[g], V::sub(V::splat_i(0), unit[g]));
                            let mut part = if floor { V::floor_to_int(scaled) } else { V::truncate(scaled) };
                            if let Some((below, unless)) = node.ignored {
                                let least = V::sub(unit[g], V::splat_i(below));
                                let mut small = V::greater(least, from.leading(node, g));
                                if let Some(at_most) = unless {
                                    small = V::and(small, V::greater(unit[g], V::splat_i(at_most)));
                                }
                                part = V::select(small, V::splat_i(0), part);
                            }
                            total[g] = V::add(total[g], part);
                            some[g] = V::max(some[g], from.exponent[g]);
                            if complement {
                                // For products whose sign differs from the value's: one unit less, or one more.
                                let negative = V::sign(V::bits(from.value[g]));
                                signs[g] = V::add(signs[g], V::and(negative, V::splat_i(node.product_count)));
                            }
                        }
                    }
                }
            }
            if complement {
                for g in 0..NG {
                    // A product of a zero has the exponent of its other factor above `ABSENT`.
                    let any = V::greater(some[g], V::splat_i(ABSENT / 2));
                    total[g] = V::add(total[g], V::and(signs[g], any));
                }
            }
            out.has_met = products.has_met;
            if products.has_met {
                (out.met, out.nan) = (products.met, products.nan);
            }
            let mut unknown = [V::splat_i(0); NG];
            match node.output {
                GridOutput::Wide => (out.total, out.unit, out.exponent) = (total, unit, exponent),
                GridOutput::F16 => {
                    for g in 0..NG {
                        let (value, infinite, beyond) = V::round_to_f16(total[g], unit[g]);
                        unknown[g] = beyond;
                        let infinity = V::infinity_like(value);
                        out.value[g] = V::from_bits(V::select(V::sign(infinite), infinity, V::bits(value)));
                    }
                }
                GridOutput::F32 { toward_zero } => {
                    let mut least = unit[0];
                    for g in 1..NG {
                        least = V::min(least, unit[g]);
                    }
                    // Rounding first to 24 bits and then to fewer may be wrong for a subnormal sum of 25 bits or more;
                    // if it is flushed, it is below 2^−126 either way.
                    let twice = node.flush == Flush::None && V::any_greater(V::splat_i(-150), least);
                    if toward_zero || twice {
                        for g in 0..NG {
                            let (wide, power) = (V::widen_int(total[g]), V::wide_power(unit[g]));
                            let scaled = [V::mul_d(wide[0], power[0]), V::mul_d(wide[1], power[1])];
                            out.value[g] = if toward_zero { V::narrow_toward_zero(scaled) } else { V::narrow(scaled) };
                        }
                    } else {
                        for g in 0..NG {
                            // Below this, every total vanishes.
                            let unit = V::max(unit[g], V::splat_i(VANISHING));
                            out.value[g] = V::scaled(V::to_float(total[g]), unit);
                        }
                    }
                }
            }
            finish::<V, NG>(node, terms, unknown, out, flags);
        }
    }

    /// Computes the exact sum of products, times its scales.
    #[inline(always)]
    pub(super) unsafe fn exact_group<V: Halves, const NG: usize>(
        &self,
        node: &GridNode,
        at: At,
        out: &mut Outcome<V, NG>,
    ) {
        // SAFETY: as in `products`; the node's block and mask are among the operation's.
        unsafe {
            let zero = V::splat_i(0);
            let mut value = [V::splat_f(0.0); NG];
            for k in &node.products {
                let of_a = V::splat_f(self.a.0.add(at.a + k).read());
                for g in 0..NG {
                    value[g] = V::fma(of_a, V::load_f(self.b.0.add(at.b + k * self.panel + g * V::WIDTH)), value[g]);
                }
            }
            let block = node.scale_block;
            let of_a = V::splat_f(self.a_scales.0.add(at.a_block + block).read());
            let exponent_of_a = V::splat_i(self.a_scales.1.add(at.a_block + block).read());
            let mask_of_a = V::splat_i(self.a_masks.add(at.a_mask + node.mask).read());
            let mut unit = [zero; NG];
            let mut exponent = [zero; NG];
            let mut met = [zero; NG];
            let mut highest = V::splat_i(4 * ABSENT);
            for g in 0..NG {
                let of_b = at.b_block + block * self.panel + g * V::WIDTH;
                value[g] = V::mul(value[g], V::mul(of_a, V::load_f(self.b_scales.0.add(of_b))));
                unit[g] = V::add(exponent_of_a, V::load_i(self.b_scales.1.add(of_b)));
                let mask = V::load_i(self.b_masks.add(at.b_mask + node.mask * self.panel + g * V::WIDTH));
                let any = V::greater(V::and(mask, mask_of_a), zero);
                exponent[g] = V::select(any, unit[g], V::splat_i(2 * ABSENT));
                highest = V::max(highest, unit[g]);
            }
            let has_met = V::any_greater(highest, V::splat_i(1000));
            if has_met {
                for g in 0..NG {
                    met[g] = V::and(V::greater(unit[g], V::splat_i(1000)), V::splat_i(VALUE));
                }
            }
            if has_met {
                out.met = met;
            }
            (out.value, out.unit, out.exponent, out.has_met) = (value, unit, exponent, has_met);
        }
    }
}
