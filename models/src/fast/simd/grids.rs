//! The kernel of sums on grids, columns in lanes of 32 bits, with halves of f64 where a sum needs more.
//!
//! **Products.** Each factor is a significand in (−2, 2) and an exponent, so no product leaves the range of f32 and none is
//! inexact: two significands of at most 12 bits. A product on a grid is `significand · 2^(exponent − unit)`, cut to an
//! integer. Below 2^−100 units the power stops falling: less than one unit either way, and never 0 where rounding down
//! asks for the sign.
//!
//! **Sums.** The plan bounds each node. Up to 30 bits it is added in i32; up to 51 in f64, where `2^(unit − unit)` and the
//! cut are exact. A result is rounded once, from f64, into f32 with its subnormals.
//!
//! **NaN and infinities.** Their exponents tell a product's class from the sum of two. A node that meets one collects, per
//! lane, what it met, and the next rounded node makes of that what the model's rules say; other nodes pay one
//! comparison for it. Lanes that only the scalar evaluator can tell (a NaN that keeps its payload, a flushed result next to the
//! smallest normal one, an overflow that is no infinity) are left to it.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use super::{NARROW_PANEL, Piece, WIDE_PANEL, avx2::Avx2, avx512::Avx512, fastest, halves::Halves};
use crate::{
    adder::{Below, NanCause},
    fast::{
        Path,
        grids::{Context, GridNode, GridOutput, GridTerm, GridWidth, MOST_NODES, MOST_PRODUCTS},
        operand::{ABSENT, INFINITE},
        tree::Flush,
    },
};

/// The least unit of a sum, far below every number; and of one with a value, whose power of two is split in halves.
const LEAST_UNIT: i32 = -900;
pub(in crate::fast) const LEAST_UNIT_OF_VALUES: i32 = -250;

/// What a node met, a bit each.
const POSITIVE: i32 = 1;
const NEGATIVE: i32 = 2;
const INVALID: i32 = 4;
const OPERAND: i32 = 8;
const VALUE: i32 = 16;

/// Some rows through some operations, for the columns of one panel.
pub(super) struct Grids<'a> {
    pub nodes: &'a [GridNode],
    pub context: &'a Context,
    pub steps: usize,
    pub rows: usize,
    /// Significands and exponents of A, and of its scales.
    pub a: (*const f32, *const i32),
    pub a_scales: (*const f32, *const i32),
    pub a_masks: *const i32,
    pub a_stride: usize,
    pub a_blocks: usize,
    pub a_mask_stride: usize,
    pub b: (*const f32, *const i32),
    pub b_scales: (*const f32, *const i32),
    pub b_masks: *const i32,
    pub panel: usize,
    pub accumulators: *mut f32,
    pub left: *mut u64,
}

/// The result of a node: whole units of `2^unit`, or a value; what it met, where it met anything.
#[derive(Clone, Copy)]
struct Outcome<V: Halves, const NG: usize> {
    value: [V::F; NG],
    total: [V::I; NG],
    unit: [V::I; NG],
    exponent: [V::I; NG],
    met: [V::I; NG],
    has_met: bool,
}

/// Where the operands of one operation lie: rows of A at `a`, the panel of B at `b`.
#[derive(Clone, Copy)]
struct At {
    a: usize,
    b: usize,
    a_block: usize,
    b_block: usize,
    a_mask: usize,
    b_mask: usize,
}

/// The products of a node, and what is known of them.
struct Products<V: Halves, const NG: usize> {
    exponents: [[V::I; NG]; MOST_PRODUCTS],
    values: [[V::F; NG]; MOST_PRODUCTS],
    most: [V::I; NG],
    leading: [V::I; NG],
    met: [V::I; NG],
    has_met: bool,
}

impl Grids<'_> {
    /// # Safety
    /// The processor has the instructions of `V`, and the pointers are good for what the task says.
    #[inline(always)]
    pub(super) unsafe fn run<V: Halves, const NG: usize>(&self) {
        for from in (0..self.panel).step_by(NG * V::WIDTH) {
            for row in 0..self.rows {
                // SAFETY: the caller's.
                unsafe { self.one_row::<V, NG>(row, from) };
            }
        }
    }

    #[inline(always)]
    unsafe fn one_row<V: Halves, const NG: usize>(&self, row: usize, from: usize) {
        // SAFETY: rows, columns, products and nodes are within what the task says; the instructions are there.
        unsafe {
            let context = self.context;
            let accumulators = self.accumulators.add(row * self.panel + from);
            let zero = V::splat_i(0);
            let none = Outcome::<V, NG> {
                value: [V::splat_f(0.0); NG],
                total: [zero; NG],
                unit: [zero; NG],
                exponent: [zero; NG],
                met: [zero; NG],
                has_met: false,
            };
            let mut results = [none; MOST_NODES];
            let mut acc = none;
            let mut flags = [zero; NG];
            for g in 0..NG {
                acc.value[g] = V::load_f(accumulators.add(g * V::WIDTH));
            }
            for step in 0..self.steps {
                let at = At {
                    a: row * self.a_stride + step * context.len,
                    b: step * context.len * self.panel + from,
                    a_block: row * self.a_blocks + step * context.blocks,
                    b_block: step * context.blocks * self.panel + from,
                    a_mask: row * self.a_mask_stride + step * context.masks,
                    b_mask: step * context.masks * self.panel + from,
                };
                let mut c = acc;
                read_value::<V, NG>(&mut c, context.flush_c, context.least);
                for (index, node) in self.nodes.iter().enumerate() {
                    let outcome = match node.width {
                        GridWidth::Cut(mask) => cut_value::<V, NG>(node, mask, &c, &results, &mut flags),
                        GridWidth::Exact => self.exact_group::<V, NG>(node, at),
                        GridWidth::Words => self.in_words::<V, NG>(node, at, &c, &results, &mut flags),
                        GridWidth::Doubles => in_doubles::<V, NG>(node, &c, &results, &mut flags),
                    };
                    results[index] = outcome;
                    if let Some(least) = node.read_again {
                        read_value::<V, NG>(&mut results[index], Flush::None, least);
                    }
                }
                acc.value = results[self.nodes.len() - 1].value;
            }
            let mut left = 0;
            for g in 0..NG {
                left |= V::negative_lanes(flags[g]) << (from + g * V::WIDTH);
                V::store_f(accumulators.add(g * V::WIDTH), acc.value[g]);
            }
            *self.left.add(row) |= left;
        }
    }

    /// Significands and exponents of the products of a node.
    #[inline(always)]
    unsafe fn products<V: Halves, const NG: usize, const LEADING: bool>(
        &self,
        node: &GridNode,
        at: At,
        into: &mut Products<V, NG>,
    ) {
        // SAFETY: products are within the packed operands; the instructions are there.
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

    /// What each lane met among its products: NaN, infinities, and products of 2^128 and more where that matters.
    #[inline(always)]
    unsafe fn met_by_products<V: Halves, const NG: usize>(&self, node: &GridNode, at: At, into: &mut Products<V, NG>) {
        // SAFETY: as in `products`.
        unsafe {
            into.met = [V::splat_i(0); NG];
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
                    // An infinity and a zero lie between.
                    met = V::select(above(INFINITE / 4), V::splat_i(INVALID), met);
                    met = V::select(above(INFINITE - 4000), signed, met);
                    met = V::select(above(3 * INFINITE), V::splat_i(OPERAND), met);
                    into.met[g] = V::or(into.met[g], met);
                }
            }
        }
    }

    /// Products and other terms that fit 30 bits.
    #[inline(always)]
    unsafe fn in_words<V: Halves, const NG: usize>(
        &self,
        node: &GridNode,
        at: At,
        c: &Outcome<V, NG>,
        results: &[Outcome<V, NG>; MOST_NODES],
        flags: &mut [V::I; NG],
    ) -> Outcome<V, NG> {
        // SAFETY: as in `products`.
        unsafe {
            let mut products = std::mem::MaybeUninit::<Products<V, NG>>::uninit();
            // SAFETY: every lane is an integer or a float, which any bits are; what is read was written.
            let products = &mut *products.as_mut_ptr();
            if node.leads {
                self.products::<V, NG, true>(node, at, products);
            } else {
                self.products::<V, NG, false>(node, at, products);
            }
            let known = (products.most, if node.leads { products.leading } else { products.most });
            let (unit, exponent) = grid::<V, NG>(node, known, c, results);
            let complement = node.below == Below::OnesComplement;
            let floor = node.below == Below::Floor;
            let mut total = [V::splat_i(0); NG];
            let mut signs = total;
            let mut biased = total;
            for g in 0..NG {
                biased[g] = V::sub(unit[g], V::splat_i(127));
            }
            for (slot, k) in node.products.iter().enumerate() {
                let significand = V::splat_f(self.a.0.add(at.a + k).read());
                for g in 0..NG {
                    let value = if node.leads {
                        products.values[slot][g]
                    } else {
                        V::mul(significand, V::load_f(self.b.0.add(at.b + k * self.panel + g * V::WIDTH)))
                    };
                    let field = V::max(V::sub(products.exponents[slot][g], biased[g]), V::splat_i(27));
                    let scaled = V::mul(value, V::biased_power(field));
                    let part = if floor { V::floor_to_int(scaled) } else { V::truncate(scaled) };
                    total[g] = V::add(total[g], part);
                    if complement {
                        signs[g] = V::add(signs[g], V::sign(V::bits(value)));
                    }
                }
            }
            let mut some = known.0;
            for term in &node.others {
                let from = other(c, results, *term);
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
                                let mut small = V::greater(least, leading::<V>(from.value[g]));
                                if let Some(at_most) = unless {
                                    small = V::and(small, V::greater(unit[g], V::splat_i(at_most)));
                                }
                                part = V::select(small, V::splat_i(0), part);
                            }
                            total[g] = V::add(total[g], part);
                            some[g] = V::max(some[g], from.exponent[g]);
                            if complement {
                                // The signs of products that are not that of the value: one unit less, or one more.
                                let negative = V::sign(V::bits(from.value[g]));
                                signs[g] = V::add(signs[g], V::and(negative, V::splat_i(node.product_count)));
                            }
                        }
                    }
                }
            }
            if complement {
                for g in 0..NG {
                    let any = V::greater(some[g], V::splat_i(ABSENT));
                    total[g] = V::add(total[g], V::and(signs[g], any));
                }
            }
            let mut out = Outcome {
                value: [V::splat_f(0.0); NG],
                total,
                unit,
                exponent,
                met: [V::splat_i(0); NG],
                has_met: products.has_met,
            };
            if products.has_met {
                out.met = products.met;
            }
            match node.output {
                GridOutput::Wide => {}
                GridOutput::F16 => {
                    for g in 0..NG {
                        let (value, infinite) = V::round_to_f16(total[g], unit[g]);
                        let infinity = V::or(V::and(V::bits(value), V::splat_i(i32::MIN)), V::splat_i(0x7f80_0000));
                        out.value[g] = V::from_bits(V::select(V::sign(infinite), infinity, V::bits(value)));
                    }
                }
                GridOutput::F32 { toward_zero } => {
                    for g in 0..NG {
                        let (wide, power) = (V::widen_int(total[g]), V::wide_power(unit[g]));
                        let scaled = [V::mul_d(wide[0], power[0]), V::mul_d(wide[1], power[1])];
                        out.value[g] = if toward_zero { V::narrow_toward_zero(scaled) } else { V::narrow(scaled) };
                    }
                }
            }
            finish::<V, NG>(node, c, results, &mut out, flags);
            out
        }
    }

    /// The exact sum of products, times its scales.
    #[inline(always)]
    unsafe fn exact_group<V: Halves, const NG: usize>(&self, node: &GridNode, at: At) -> Outcome<V, NG> {
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
            Outcome { value, total: [zero; NG], unit, exponent, met, has_met }
        }
    }
}

/// The result that a term is.
#[inline(always)]
fn other<'a, V: Halves, const NG: usize>(
    c: &'a Outcome<V, NG>,
    results: &'a [Outcome<V, NG>; MOST_NODES],
    term: GridTerm,
) -> &'a Outcome<V, NG> {
    match term {
        GridTerm::C => c,
        GridTerm::Value(index) | GridTerm::Sum(index) | GridTerm::Group(index) => &results[index],
    }
}

/// The exponent of the leading one of a normal value.
#[inline(always)]
unsafe fn leading<V: Halves>(value: V::F) -> V::I {
    // SAFETY: the caller's.
    unsafe {
        let magnitude = V::and(V::bits(value), V::splat_i(i32::MAX));
        let some = V::greater(magnitude, V::splat_i(0));
        V::select(some, V::sub(V::field(magnitude), V::splat_i(127)), V::splat_i(ABSENT))
    }
}

/// Exponents of values that are terms, and which are not finite; subnormal ones flushed where they are.
#[inline(always)]
unsafe fn read_value<V: Halves, const NG: usize>(of: &mut Outcome<V, NG>, flush: Flush, least: i32) {
    // SAFETY: the caller's.
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

/// The unit and the exponent of a node's grid; `products` are the largest exponents of its products, and of their
/// leading ones.
#[inline(always)]
unsafe fn grid<V: Halves, const NG: usize>(
    node: &GridNode,
    products: ([V::I; NG], [V::I; NG]),
    c: &Outcome<V, NG>,
    results: &[Outcome<V, NG>; MOST_NODES],
) -> ([V::I; NG], [V::I; NG]) {
    // SAFETY: the caller's.
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
                let from = other(c, results, node.others[*at]);
                for g in 0..NG {
                    let of = if rule.leading { leading::<V>(from.value[g]) } else { from.exponent[g] };
                    most[g] = V::max(most[g], of);
                }
            }
            for g in 0..NG {
                unit[g] = V::max(unit[g], V::sub(most[g], V::splat_i(rule.fraction_bits)));
                exponent[g] = V::max(exponent[g], most[g]);
            }
        }
        // Of NaN and infinities, anything within reach.
        for unit in &mut unit {
            *unit = V::min(*unit, V::splat_i(if node.least_unit.is_some() { 250 } else { 900 }));
        }
        (unit, exponent)
    }
}

/// Sums and values that fit 51 bits.
#[inline(always)]
unsafe fn in_doubles<V: Halves, const NG: usize>(
    node: &GridNode,
    c: &Outcome<V, NG>,
    results: &[Outcome<V, NG>; MOST_NODES],
    flags: &mut [V::I; NG],
) -> Outcome<V, NG> {
    // SAFETY: the caller's.
    unsafe {
        let zero = V::splat_i(0);
        let none = [V::splat_i(2 * ABSENT); NG];
        let (unit, exponent) = grid::<V, NG>(node, (none, none), c, results);
        let cut_to = |x: V::D| if node.below == Below::Floor { V::floor_d(x) } else { V::truncate_d(x) };
        let mut total = [[V::splat_d(0.0); 2]; NG];
        for (index, term) in node.others.iter().enumerate() {
            let from = other(c, results, *term);
            for g in 0..NG {
                let (of, power) = match term {
                    GridTerm::Sum(_) => {
                        let up = V::max(V::sub(from.unit[g], unit[g]), V::splat_i(-1000));
                        (V::widen_int(from.total[g]), V::wide_power(up))
                    }
                    GridTerm::Group(_) => {
                        let up = V::max(V::sub(from.unit[g], unit[g]), V::splat_i(-1000));
                        (V::widen(from.value[g]), V::wide_power(up))
                    }
                    GridTerm::C | GridTerm::Value(_) => {
                        let up = V::sub(V::splat_i(-node.value_cut_bits), unit[g]);
                        let mut value = from.value[g];
                        if let Some((below, unless)) = node.ignored {
                            let least = V::add(unit[g], V::splat_i(node.value_cut_bits - below));
                            let mut small = V::greater(least, leading::<V>(value));
                            if let Some(at_most) = unless {
                                small = V::and(small, V::greater(unit[g], V::splat_i(at_most)));
                            }
                            value = V::from_bits(V::select(small, zero, V::bits(value)));
                        }
                        (V::widen(value), V::wide_power(up))
                    }
                };
                for half in 0..2 {
                    let mut part = cut_to(V::mul_d(of[half], power[half]));
                    if node.value_cut_bits != 0 && matches!(term, GridTerm::C | GridTerm::Value(_)) {
                        part = V::mul_d(part, V::splat_d(node.value_cut_unit));
                    }
                    total[g][half] = if index == 0 { part } else { V::add_d(total[g][half], part) };
                }
            }
        }
        let mut out = Outcome {
            value: [V::splat_f(0.0); NG],
            total: [zero; NG],
            unit,
            exponent,
            met: [zero; NG],
            has_met: false,
        };
        for g in 0..NG {
            let mut sum = total[g];
            if let Some(cut) = node.normalised {
                let least = V::max(V::sub(V::splat_i(cut.least_unit), unit[g]), zero);
                let least = V::wide_power(least);
                for half in 0..2 {
                    let place = V::mul_d(V::leading_power(sum[half]), V::splat_d(cut.last_place));
                    let place = V::max_d(place, least[half]);
                    let units = V::mul_d(sum[half], V::reciprocal(place));
                    let whole = if cut.floors { V::floor_d(units) } else { V::truncate_d(units) };
                    sum[half] = V::mul_d(whole, place);
                }
            }
            let power = V::wide_power(unit[g]);
            let scaled = [V::mul_d(sum[0], power[0]), V::mul_d(sum[1], power[1])];
            out.value[g] = match node.output {
                GridOutput::F32 { toward_zero: true } => V::narrow_toward_zero(scaled),
                _ => V::narrow(scaled),
            };
        }
        finish::<V, NG>(node, c, results, &mut out, flags);
        out
    }
}

/// A value whose last bits are cut.
#[inline(always)]
unsafe fn cut_value<V: Halves, const NG: usize>(
    node: &GridNode,
    mask: i32,
    c: &Outcome<V, NG>,
    results: &[Outcome<V, NG>; MOST_NODES],
    flags: &mut [V::I; NG],
) -> Outcome<V, NG> {
    // SAFETY: the caller's.
    unsafe {
        let mut out = *other(c, results, node.others[0]);
        out.has_met = false;
        for g in 0..NG {
            out.met[g] = V::splat_i(0);
            out.value[g] = V::from_bits(V::and(V::bits(out.value[g]), V::splat_i(mask)));
        }
        finish::<V, NG>(node, c, results, &mut out, flags);
        out
    }
}

/// Collects what the terms met; and of a rounded result, settles small ones, zeros, and what is no number.
#[inline(always)]
unsafe fn finish<V: Halves, const NG: usize>(
    node: &GridNode,
    c: &Outcome<V, NG>,
    results: &[Outcome<V, NG>; MOST_NODES],
    out: &mut Outcome<V, NG>,
    flags: &mut [V::I; NG],
) {
    // SAFETY: the caller's.
    unsafe {
        for term in &node.others {
            let from = other(c, results, *term);
            if from.has_met {
                out.has_met = true;
                for g in 0..NG {
                    out.met[g] = V::or(out.met[g], from.met[g]);
                }
            }
        }
        let GridOutput::F32 { toward_zero } = node.output else {
            if out.has_met && node.output == GridOutput::F16 {
                let mut unknown = [V::splat_i(0); NG];
                settle::<V, NG>(node, c, results, out, &mut unknown);
                for g in 0..NG {
                    flags[g] = V::or(flags[g], unknown[g]);
                }
            }
            return;
        };
        let mut unknown = [V::splat_i(0); NG];
        for g in 0..NG {
            let bits = V::bits(out.value[g]);
            let magnitude = V::and(bits, V::splat_i(i32::MAX));
            if node.flush != Flush::None {
                let tiny = V::greater(V::splat_i(0x0080_0000), magnitude);
                let mut zero = V::and(bits, V::splat_i(i32::MIN));
                if node.flush == Flush::Positive {
                    // A zero keeps its sign.
                    zero = V::and(zero, V::greater(V::splat_i(1), magnitude));
                }
                out.value[g] = V::from_bits(V::select(tiny, zero, bits));
                // 2^−126 may have been less before it was rounded.
                let edge = V::greater(V::splat_i(1), V::xor(magnitude, V::splat_i(0x0080_0000)));
                unknown[g] = V::and(edge, V::greater(magnitude, V::splat_i(0)));
            }
            if toward_zero {
                unknown[g] = V::or(unknown[g], V::greater(magnitude, V::splat_i(0x7f7f_fffe)));
            }
            if node.positive_zero {
                out.value[g] = V::add_f(out.value[g], V::splat_f(0.0));
            }
        }
        if out.has_met {
            settle::<V, NG>(node, c, results, out, &mut unknown);
        }
        if node.flush != Flush::None || toward_zero || out.has_met {
            for g in 0..NG {
                flags[g] = V::or(flags[g], unknown[g]);
            }
        }
    }
}

/// The result where something was met: the NaN that the rules say, or an infinity.
#[inline(always)]
unsafe fn settle<V: Halves, const NG: usize>(
    node: &GridNode,
    c: &Outcome<V, NG>,
    results: &[Outcome<V, NG>; MOST_NODES],
    out: &mut Outcome<V, NG>,
    unknown: &mut [V::I; NG],
) {
    // SAFETY: the caller's.
    unsafe {
        let value = node.others.iter().find(|term| matches!(term, GridTerm::C | GridTerm::Value(_)));
        for g in 0..NG {
            let met = out.met[g];
            let has = |bits: i32| V::greater(V::and(met, V::splat_i(bits)), V::splat_i(0));
            let both = V::and(has(POSITIVE), has(NEGATIVE));
            let invalid = V::or(both, has(INVALID));
            let mut bits = V::select(has(NEGATIVE), V::splat_i(0xff80_0000_u32.cast_signed()), V::splat_i(0x7f80_0000));
            let mut left = V::splat_i(0);
            for (cause, nan) in node.nan.iter().rev() {
                let is = match cause {
                    NanCause::Operand => has(OPERAND),
                    NanCause::Value => has(VALUE),
                    NanCause::Invalid => invalid,
                };
                match (nan, cause, value) {
                    (Some(nan), ..) => {
                        bits = V::select(is, V::splat_i(*nan), bits);
                        left = V::and(left, V::xor(is, V::splat_i(-1)));
                    }
                    (None, NanCause::Value, Some(term)) if node.quiet_values => {
                        let quiet = V::or(V::bits(other(c, results, *term).value[g]), V::splat_i(0x0040_0000));
                        let quiet =
                            if let GridWidth::Cut(mask) = node.width { V::and(quiet, V::splat_i(mask)) } else { quiet };
                        bits = V::select(is, quiet, bits);
                        left = V::and(left, V::xor(is, V::splat_i(-1)));
                    }
                    _ => left = V::or(left, is),
                }
            }
            let any = V::greater(met, V::splat_i(0));
            out.value[g] = V::from_bits(V::select(any, bits, V::bits(out.value[g])));
            unknown[g] = V::select(any, left, unknown[g]);
        }
    }
}

/// Rows of A, or a panel of B, as significands and exponents, and their scales likewise.
#[derive(Debug, Default)]
pub(in crate::fast) struct Factors {
    pub significands: Vec<f32>,
    pub exponents: Vec<i32>,
    pub scales: (Vec<f32>, Vec<i32>),
    /// Which factors of each scaled sum are not zero, a bit each.
    pub masks: Vec<i32>,
    /// Elements of a row or a column, its scales, and its masks.
    pub k: usize,
    pub blocks: usize,
    pub masks_each: usize,
    pub panel: usize,
}

impl Factors {
    pub(in crate::fast) fn push_scale(&mut self, (significand, exponent): (f32, i32)) {
        self.scales.0.push(significand);
        self.scales.1.push(exponent);
    }

    pub(in crate::fast) fn clear(&mut self) {
        (self.significands.clear(), self.exponents.clear(), self.masks.clear());
        (self.scales.0.clear(), self.scales.1.clear());
    }
}

/// Runs rows of A through operations of a panel of B, by sums on grids.
pub(in crate::fast) fn run_grids(nodes: &[GridNode], context: &Context, piece: Piece<'_, Factors, Factors, f32>) {
    let Piece { path, a, row, b, steps, accumulators, left } = piece;
    let (rows, panel) = (left.len(), b.panel);
    assert!(accumulators.len() >= rows * panel && !nodes.is_empty() && nodes.len() <= MOST_NODES);
    assert!(panel == WIDE_PANEL || panel == NARROW_PANEL);
    let from = |each: usize| steps.start * each;
    let holds = |a_each: usize, b_each: usize, each: usize| steps.end * each <= a_each && steps.end * each <= b_each;
    assert!(steps.start <= steps.end && holds(a.k, b.k, context.len));
    assert!(holds(a.blocks, b.blocks, context.blocks) && holds(a.masks_each, b.masks_each, context.masks));
    let last = row + rows;
    assert!(a.significands.len() >= last * a.k && a.exponents.len() >= last * a.k);
    assert!(b.significands.len() >= b.k * panel && b.exponents.len() >= b.k * panel);
    assert!(a.scales.0.len() >= last * a.blocks && a.scales.1.len() >= last * a.blocks);
    assert!(b.scales.0.len() >= b.blocks * panel && b.scales.1.len() >= b.blocks * panel);
    assert!(a.masks.len() >= last * a.masks_each && b.masks.len() >= b.masks_each * panel);
    for (index, node) in nodes.iter().enumerate() {
        assert!(node.products.len() <= MOST_PRODUCTS && node.products.iter().all(|k| *k < context.len));
        assert!(node.rules.iter().flat_map(|rule| &rule.others).all(|at| *at < node.others.len()));
        assert!(node.others.iter().all(|term| match *term {
            GridTerm::C => true,
            GridTerm::Value(at) | GridTerm::Sum(at) | GridTerm::Group(at) => at < index,
        }));
        let scaled = node.width == GridWidth::Exact;
        assert!(!scaled || (node.scale_block < context.blocks && node.mask < context.masks));
    }
    let task = Grids {
        nodes,
        context,
        steps: steps.len(),
        rows,
        a: (
            a.significands[row * a.k + from(context.len)..].as_ptr(),
            a.exponents[row * a.k + from(context.len)..].as_ptr(),
        ),
        a_scales: (
            a.scales.0[row * a.blocks + from(context.blocks)..].as_ptr(),
            a.scales.1[row * a.blocks + from(context.blocks)..].as_ptr(),
        ),
        a_masks: a.masks[row * a.masks_each + from(context.masks)..].as_ptr(),
        a_stride: a.k,
        a_blocks: a.blocks,
        a_mask_stride: a.masks_each,
        b: (b.significands[from(context.len) * panel..].as_ptr(), b.exponents[from(context.len) * panel..].as_ptr()),
        b_scales: (
            b.scales.0[from(context.blocks) * panel..].as_ptr(),
            b.scales.1[from(context.blocks) * panel..].as_ptr(),
        ),
        b_masks: b.masks[from(context.masks) * panel..].as_ptr(),
        panel,
        accumulators: accumulators.as_mut_ptr(),
        left: left.as_mut_ptr(),
    };
    assert!(path <= fastest());
    // SAFETY: the lengths were asserted above, and that the processor has the instructions.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        match path {
            Path::Avx512 if panel == WIDE_PANEL => in_avx512::<2>(&task),
            Path::Avx512 => in_avx512::<1>(&task),
            Path::Avx2 => in_avx2(&task),
            _ => unreachable!("the plan was made for AVX2 or AVX-512"),
        }
    }
}

/// # Safety
/// The processor has these instructions, and the task's pointers are good.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn in_avx512<const NG: usize>(task: &Grids<'_>) {
    // SAFETY: this function's features, and its caller's.
    unsafe { task.run::<Avx512, NG>() }
}

/// # Safety
/// The processor has these instructions, and the task's pointers are good.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn in_avx2(task: &Grids<'_>) {
    // SAFETY: as above.
    unsafe { task.run::<Avx2, 2>() }
}
