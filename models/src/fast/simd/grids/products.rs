//! Products of a node: their values and exponents, in whole units of a grid, or summed exactly and scaled.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use super::{
    At, Grids, column_of,
    outcome::{INVALID, NEGATIVE, OPERAND, Outcome, POSITIVE, VALUE},
    row_of,
};
use crate::fast::{
    grids::{GridNode, GridWidth},
    operand::{ABSENT, INFINITE},
    simd::halves::Halves,
};

/// The products of a node, and their special cases.
pub(super) struct Products<'a, V: Halves, const NG: usize> {
    /// Of the factors together; not set if products are f32.
    pub exponents: &'a mut [[V::I; NG]],
    pub values: &'a mut [[V::F; NG]],
    /// Memory for the errors of additions in f64.
    pub errors: &'a mut [[V::D; 2]],
    pub most: [V::I; NG],
    pub leading: [V::I; NG],
    pub met: [V::I; NG],
    /// The first NaN among the factors as a quiet f32, if the node keeps it.
    pub nan: [V::I; NG],
    pub has_met: bool,
}

impl Grids<'_> {
    /// The factors of A of product `k`, by row.
    #[inline(always)]
    unsafe fn of_a<V: Halves, const R: usize>(&self, at: At<R>, k: usize) -> [V::F; R] {
        // SAFETY: the product is within the packed operands; the processor has the instructions.
        unsafe { at.a.map(|row| V::splat_f(self.a.0.add(row + k).read())) }
    }

    /// Their exponents.
    #[inline(always)]
    unsafe fn exponents_of_a<V: Halves, const R: usize>(&self, at: At<R>, k: usize) -> [V::I; R] {
        // SAFETY: as in `of_a`.
        unsafe { at.a.map(|row| V::splat_i(self.a.1.add(row + k).read())) }
    }

    /// The factors of B of product `k` in a group of lanes.
    #[inline(always)]
    unsafe fn of_b<V: Halves, const NG: usize, const R: usize>(&self, at: At<R>, k: usize, g: usize) -> V::F {
        // SAFETY: as in `of_a`.
        unsafe { V::load_f(self.b.0.add(at.b + k * self.panel + column_of::<V, NG, R>(g))) }
    }

    /// Their exponents.
    #[inline(always)]
    unsafe fn exponents_of_b<V: Halves, const NG: usize, const R: usize>(&self, at: At<R>, k: usize, g: usize) -> V::I {
        // SAFETY: as in `of_a`.
        unsafe { V::load_i(self.b.1.add(at.b + k * self.panel + column_of::<V, NG, R>(g))) }
    }

    /// Computes values and exponents of the products of a node.
    #[inline(always)]
    pub(super) unsafe fn products<V: Halves, const NG: usize, const R: usize>(
        &self,
        node: &GridNode,
        at: At<R>,
        into: &mut Products<'_, V, NG>,
    ) {
        // SAFETY: as in `of_a`.
        unsafe {
            // A sum without a grid needs the values or significands too.
            let leads = node.leads || node.width == GridWidth::Cascade;
            match (self.context.plain_products, leads) {
                (true, true) => self.largest_of::<V, NG, R, true, true>(node, at, into),
                (true, false) => self.largest_of::<V, NG, R, true, false>(node, at, into),
                (false, true) => self.largest_of::<V, NG, R, false, true>(node, at, into),
                (false, false) => self.largest_of::<V, NG, R, false, false>(node, at, into),
            }
            let mut highest = into.most[0];
            for g in 1..NG {
                highest = V::max(highest, into.most[g]);
            }
            into.has_met = V::any_greater(highest, V::splat_i(if node.product_overflow { 126 } else { 1000 }));
            if into.has_met {
                self.met_by_products(node, at, into);
            }
        }
    }

    /// The largest exponents of the products, and if `LEADING`, of their leading ones and their values. Those of products
    /// that are not f32 (`PLAIN`) are significands beside exponents.
    #[inline(always)]
    unsafe fn largest_of<V: Halves, const NG: usize, const R: usize, const PLAIN: bool, const LEADING: bool>(
        &self,
        node: &GridNode,
        at: At<R>,
        into: &mut Products<'_, V, NG>,
    ) {
        // SAFETY: as in `of_a`.
        unsafe {
            let mut most = [V::splat_i(2 * ABSENT); NG];
            // The largest magnitude, or the exponent of the leading one above 127.
            let mut largest = if PLAIN { [V::splat_i(0); NG] } else { most };
            for (slot, k) in node.products.iter().enumerate() {
                let (of_a, exponents) = (self.of_a::<V, R>(at, *k), self.exponents_of_a::<V, R>(at, *k));
                for g in 0..NG {
                    let row = row_of::<NG, R>(g);
                    let exponent = V::add(exponents[row], self.exponents_of_b::<V, NG, R>(at, *k, g));
                    most[g] = V::max(most[g], exponent);
                    if !PLAIN {
                        into.exponents[slot][g] = exponent;
                    }
                    if LEADING {
                        let value = V::mul(of_a[row], self.of_b::<V, NG, R>(at, *k, g));
                        let magnitude = V::and(V::bits(value), V::splat_i(i32::MAX));
                        let size = if PLAIN { magnitude } else { V::add(exponent, V::field(magnitude)) };
                        largest[g] = V::max(largest[g], size);
                        into.values[slot][g] = value;
                    }
                }
            }
            into.most = most;
            if LEADING {
                for g in 0..NG {
                    let exponent = V::sub(if PLAIN { V::field(largest[g]) } else { largest[g] }, V::splat_i(127));
                    let some = V::greater(largest[g], V::splat_i(0));
                    into.leading[g] = if PLAIN { V::select(some, exponent, V::splat_i(2 * ABSENT)) } else { exponent };
                }
            }
        }
    }

    /// The special cases that each lane met among its products: NaN, infinities, and products of 2^128 and more if that
    /// matters.
    #[inline(always)]
    unsafe fn met_by_products<V: Halves, const NG: usize, const R: usize>(
        &self,
        node: &GridNode,
        at: At<R>,
        into: &mut Products<'_, V, NG>,
    ) {
        // SAFETY: as in `of_a`.
        unsafe {
            into.met = [V::splat_i(0); NG];
            into.nan = into.met;
            for k in &node.products {
                let (of_a, exponents) = (self.of_a::<V, R>(at, *k), self.exponents_of_a::<V, R>(at, *k));
                for g in 0..NG {
                    let row = row_of::<NG, R>(g);
                    let of_b = self.of_b::<V, NG, R>(at, *k, g);
                    let bits = V::bits(V::mul(of_a[row], of_b));
                    let exponent = V::add(exponents[row], self.exponents_of_b::<V, NG, R>(at, *k, g));
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
                        let a_is = V::greater(exponents[row], V::splat_i(3 * INFINITE));
                        let fraction = V::select(a_is, V::bits(of_a[row]), V::bits(of_b));
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
    pub(super) unsafe fn aligned<V: Halves, const NG: usize, const R: usize, const FLOOR: bool, const SIGNS: bool>(
        &self,
        node: &GridNode,
        at: At<R>,
        products: &Products<'_, V, NG>,
        unit: &[V::I; NG],
    ) -> ([V::I; NG], [V::I; NG]) {
        // SAFETY: as in `of_a`.
        unsafe {
            let mut sum = Aligned::<V, NG, FLOOR, SIGNS> { total: [V::splat_i(0); NG], signs: [V::splat_i(0); NG] };
            if self.context.plain_products {
                let mut power = [V::splat_f(0.0); NG];
                for g in 0..NG {
                    // Of the factors that are not 0, the unit is 2^−100 at least. Above 2^100, a product is less than one
                    // unit already, and must not become 0.
                    let field = V::sub(V::splat_i(127), unit[g]);
                    power[g] = V::biased_power(V::min(V::max(field, V::splat_i(27)), V::splat_i(253)));
                }
                for (slot, k) in node.products.iter().enumerate() {
                    let of_a = self.of_a::<V, R>(at, *k);
                    for g in 0..NG {
                        let value = if node.leads {
                            products.values[slot][g]
                        } else {
                            V::mul(of_a[row_of::<NG, R>(g)], self.of_b::<V, NG, R>(at, *k, g))
                        };
                        sum.add(g, value, V::mul(value, power[g]));
                    }
                }
                return (sum.total, sum.signs);
            }
            let mut biased = [V::splat_i(0); NG];
            for g in 0..NG {
                biased[g] = V::sub(unit[g], V::splat_i(127));
            }
            for (k, (exponents, values)) in node.products.iter().zip(products.exponents.iter().zip(&*products.values)) {
                let of_a = self.of_a::<V, R>(at, *k);
                for g in 0..NG {
                    let value = if node.leads {
                        values[g]
                    } else {
                        V::mul(of_a[row_of::<NG, R>(g)], self.of_b::<V, NG, R>(at, *k, g))
                    };
                    let field = V::max(V::sub(exponents[g], biased[g]), V::splat_i(27));
                    sum.add(g, value, V::mul(value, V::biased_power(field)));
                }
            }
            (sum.total, sum.signs)
        }
    }

    /// Computes the exact sum of products, times its scales.
    #[inline(always)]
    pub(super) unsafe fn exact_group<V: Halves, const NG: usize, const R: usize>(
        &self,
        node: &GridNode,
        at: At<R>,
        out: &mut Outcome<V, NG>,
    ) {
        // SAFETY: as in `products`; the node's block and mask are among the operation's.
        unsafe {
            let zero = V::splat_i(0);
            let mut value = [V::splat_f(0.0); NG];
            for k in &node.products {
                let of_a = self.of_a::<V, R>(at, *k);
                for g in 0..NG {
                    value[g] = V::fma(of_a[row_of::<NG, R>(g)], self.of_b::<V, NG, R>(at, *k, g), value[g]);
                }
            }
            let block = node.scale_block;
            let of_a = at.a_blocks.map(|row| V::splat_f(self.a_scales.0.add(row + block).read()));
            let exponents_of_a = at.a_blocks.map(|row| V::splat_i(self.a_scales.1.add(row + block).read()));
            let masks_of_a = at.a_masks.map(|row| V::splat_i(self.a_masks.add(row + node.mask).read()));
            let mut unit = [zero; NG];
            let mut exponent = [zero; NG];
            let mut met = [zero; NG];
            let mut highest = V::splat_i(4 * ABSENT);
            for g in 0..NG {
                let row = row_of::<NG, R>(g);
                let of_b = at.b_block + block * self.panel + column_of::<V, NG, R>(g);
                value[g] = V::mul(value[g], V::mul(of_a[row], V::load_f(self.b_scales.0.add(of_b))));
                unit[g] = V::add(exponents_of_a[row], V::load_i(self.b_scales.1.add(of_b)));
                let mask = V::load_i(self.b_masks.add(at.b_mask + node.mask * self.panel + column_of::<V, NG, R>(g)));
                let any = V::greater(V::and(mask, masks_of_a[row]), zero);
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

/// A sum of products in whole units, and the number of negative ones as a number below 0.
struct Aligned<V: Halves, const NG: usize, const FLOOR: bool, const SIGNS: bool> {
    total: [V::I; NG],
    signs: [V::I; NG],
}

impl<V: Halves, const NG: usize, const FLOOR: bool, const SIGNS: bool> Aligned<V, NG, FLOOR, SIGNS> {
    /// Adds a product, given also in units.
    #[inline(always)]
    unsafe fn add(&mut self, g: usize, value: V::F, units: V::F) {
        // SAFETY: the processor has the instructions.
        unsafe {
            let part = if FLOOR { V::floor_to_int(units) } else { V::truncate(units) };
            self.total[g] = V::add(self.total[g], part);
            if SIGNS {
                self.signs[g] = V::add(self.signs[g], V::sign(V::bits(value)));
            }
        }
    }
}
