//! Nodes without a grid: the exact sum of products and values, rounded once.
//!
//! Each addition in f64 gives a sum and its error, which is an f64 too (Knuth, The Art of Computer Programming 2,
//! 4.2.2, theorem B). In most cases all errors are 0, which sums rounded up and down show sooner. Otherwise the errors
//! are added the same way, and the errors of that once more: three f64 that together are the exact sum, unless the third
//! additions have errors as well.
//!
//! **When they have none.** Each time, there is one error fewer than terms, so that three terms need three f64 (two
//! products of bf16 and c). The at most 32 products of f16 are multiples of 2^−48, and their sums are below 2^38. If c
//! is a multiple of 2^−48 too, so are all errors; those of the first sums are at most the size of the products, and
//! those of the second, below 2^−10, need fewer than 53 bits. If c has bits below that, it is below 2^−24, and the
//! second sums are below 2^−10. They can hold every multiple of 2^−48, so that their errors are no larger than the part
//! of c that they contain: a few times c at most, in multiples of its last bit, which 53 bits hold. Lanes in which the
//! third additions have errors all the same, because a node has more terms with exponents of bf16, are left.
//!
//! **Rounding.** The first two f64 are added, to `most`, and what that lacks is added to the third, to `below`, whose
//! sign is right although it may be rounded. If `most + below` is `most`, the exact sum lies between the numbers
//! before and after `most`, so that rounding to odd depends on nothing else; other lanes are left. Rounding the odd
//! number to f32 gives the right result: 53 bits are at least 24 plus 2 (Boldo and Melquiond, "Emulation of a FMA and
//! correctly rounded sums: proved algorithms using rounding to odd", 2008).
//!
//! Lanes that met a NaN or an infinity add zeros, so that they have no errors; their results are settled afterwards.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use super::{
    At, Grids,
    outcome::{Outcome, Terms},
    products::Products,
    settle::finish,
};
use crate::fast::{
    grids::{GridNode, GridTerm},
    simd::halves::Halves,
};

/// Adds a term to a sum; returns the error, and notes in `any` whether there is one.
#[inline(always)]
unsafe fn add<V: Halves>(sum: &mut [V::D; 2], any: &mut [V::D; 2], term: [V::D; 2]) -> [V::D; 2] {
    let mut errors = term;
    for half in 0..2 {
        // SAFETY: upheld by the caller.
        unsafe {
            (sum[half], errors[half]) = V::two_sum(sum[half], term[half]);
            any[half] = V::or_d(any[half], errors[half]);
        }
    }
    errors
}

/// The lanes that met a NaN or an infinity, and whether there may be any.
#[inline(always)]
unsafe fn special<V: Halves, const NG: usize>(
    node: &GridNode,
    terms: Terms<'_, V, NG>,
    products: &Products<'_, V, NG>,
) -> ([V::I; NG], bool) {
    // SAFETY: upheld by the caller.
    unsafe {
        let mut met = [V::splat_i(0); NG];
        let mut has_met = products.has_met;
        if has_met {
            met = products.met;
        }
        for term in &node.others {
            let from = terms.get(*term);
            if from.has_met {
                has_met = true;
                for g in 0..NG {
                    met[g] = V::or(met[g], from.met[g]);
                }
            }
        }
        if has_met {
            for g in 0..NG {
                met[g] = V::greater(met[g], V::splat_i(0));
            }
        }
        (met, has_met)
    }
}

/// A value, or 0 in the lanes of a mask.
#[inline(always)]
unsafe fn cleared<V: Halves>(lanes: V::I, value: V::F) -> V::F {
    // SAFETY: upheld by the caller.
    unsafe { V::from_bits(V::select(lanes, V::splat_i(0), V::bits(value))) }
}

/// Clears the values of all groups.
#[inline(always)]
unsafe fn clear<V: Halves, const NG: usize>(lanes: [V::I; NG], values: &mut [V::F; NG]) {
    for g in 0..NG {
        // SAFETY: upheld by the caller.
        values[g] = unsafe { cleared::<V>(lanes[g], values[g]) };
    }
}

/// The values of a node in a group of lanes, 0 in those of `special` if the node `has_met` any.
struct Values<'a, V: Halves, const NG: usize> {
    others: &'a [GridTerm],
    terms: Terms<'a, V, NG>,
    special: V::I,
    has_met: bool,
    g: usize,
}

impl<V: Halves, const NG: usize> Values<'_, V, NG> {
    #[inline(always)]
    unsafe fn get(&self, index: usize) -> V::F {
        let value = self.terms.get(self.others[index]).value[self.g];
        // SAFETY: upheld by the caller.
        if self.has_met { unsafe { cleared::<V>(self.special, value) } } else { value }
    }

    /// The first value, to which others and the products are added; −0 if there is none: adding any number to −0 gives
    /// that number, and a zero keeps its sign.
    #[inline(always)]
    unsafe fn first(&self) -> [V::D; 2] {
        // SAFETY: upheld by the caller.
        unsafe { if self.others.is_empty() { [V::splat_d(-0.0); 2] } else { V::widen(self.get(0)) } }
    }
}

/// Rounds the sum and its errors to odd, in one half of the lanes. Sets all bits of the lanes that this does not decide.
#[inline(always)]
unsafe fn with_errors<V: Halves>(sum: V::D, errors: &[[V::D; 2]], half: usize) -> (V::D, V::D) {
    // SAFETY: upheld by the caller.
    unsafe {
        let zero = V::splat_d(0.0);
        let (mut second, mut third, mut lost) = (errors[0][half], zero, zero);
        if let [_, next, rest @ ..] = errors {
            (second, third) = V::two_sum(second, next[half]);
            for error in rest {
                let (of_both, beyond) = V::two_sum(second, error[half]);
                let (of_those, last) = V::two_sum(third, beyond);
                (second, third) = (of_both, of_those);
                lost = V::or_d(lost, last);
            }
        }
        let (most, least) = V::two_sum(sum, second);
        let below = V::add_d(least, third);
        lost = V::or_d(lost, V::sub_d(V::add_d(most, below), most));
        // Without an error, the sum keeps the sign of a zero.
        let some = V::nonzero(V::or_d(second, third));
        (V::select_d(some, V::to_odd(most, below), sum), V::nonzero(lost))
    }
}

impl Grids<'_> {
    /// Computes the exact sum, rounded once to nearest even.
    #[inline(always)]
    pub(super) unsafe fn in_cascade<V: Halves, const NG: usize, const R: usize>(
        &self,
        node: &GridNode,
        at: At<R>,
        terms: Terms<'_, V, NG>,
        products: &mut Products<'_, V, NG>,
        out: &mut Outcome<V, NG>,
        flags: &mut [V::I; NG],
    ) {
        // SAFETY: products are within the packed operands; the processor has the instructions.
        unsafe {
            let none = [V::splat_i(0); NG];
            if let ([], [x, y]) = (&node.products[..], &node.others[..]) {
                // The processor's own addition.
                let (x, y) = (terms.get(*x), terms.get(*y));
                for g in 0..NG {
                    out.value[g] = V::add_f(x.value[g], y.value[g]);
                }
                out.has_met = false;
                return finish::<V, NG>(node, terms, none, out, flags);
            }
            self.products::<V, NG, R>(node, at, products);
            let count = node.products.len();
            let zero = V::splat_d(0.0);
            let (special, has_met) = special::<V, NG>(node, terms, products);
            if has_met {
                for values in &mut products.values[..count] {
                    clear::<V, NG>(special, values);
                }
            }
            let mut lost = [V::splat_i(0); NG];
            for g in 0..NG {
                let values = Values { others: &node.others, terms, special: special[g], has_met, g };
                if V::DIRECTED {
                    // If any addition were inexact, the sum rounded down would remain below the one rounded up.
                    let mut up = values.first();
                    let mut down = up;
                    for index in 1..node.others.len() {
                        let value = V::widen(values.get(index));
                        for half in 0..2 {
                            up[half] = V::add_up(up[half], value[half]);
                            down[half] = V::add_down(down[half], value[half]);
                        }
                    }
                    for slot in 0..count {
                        let product = self.product(products, slot, g);
                        for half in 0..2 {
                            up[half] = V::add_up(up[half], product[half]);
                            down[half] = V::add_down(down[half], product[half]);
                        }
                    }
                    let differences = [V::sub_d(up[0], down[0]), V::sub_d(up[1], down[1])];
                    if !V::any_nonzero(V::or_d(differences[0], differences[1])) {
                        out.value[g] = V::narrow(up);
                        continue;
                    }
                }
                let mut any = [zero; 2];
                let mut sum = values.first();
                for index in 1..node.others.len() {
                    let value = V::widen(values.get(index));
                    products.errors[count + index - 1] = add::<V>(&mut sum, &mut any, value);
                }
                let errors_of_all = count + node.others.len().saturating_sub(1);
                for slot in 0..count {
                    let product = self.product(products, slot, g);
                    products.errors[slot] = add::<V>(&mut sum, &mut any, product);
                }
                if V::any_nonzero(V::or_d(any[0], any[1])) {
                    let errors = &products.errors[..errors_of_all];
                    let mut lost_here = [zero; 2];
                    for half in 0..2 {
                        (sum[half], lost_here[half]) = with_errors::<V>(sum[half], errors, half);
                    }
                    // All bits set are a NaN with its sign, which narrowing keeps.
                    lost[g] = V::bits(V::narrow(lost_here));
                }
                out.value[g] = V::narrow(sum);
            }
            out.has_met = products.has_met;
            if products.has_met {
                (out.met, out.nan) = (products.met, products.nan);
            }
            finish::<V, NG>(node, terms, none, out, flags);
            for g in 0..NG {
                flags[g] = V::or(flags[g], lost[g]);
            }
        }
    }

    /// A product in f64.
    #[inline(always)]
    unsafe fn product<V: Halves, const NG: usize>(
        &self,
        products: &Products<'_, V, NG>,
        slot: usize,
        g: usize,
    ) -> [V::D; 2] {
        // SAFETY: upheld by the caller.
        unsafe {
            let product = V::widen(products.values[slot][g]);
            if self.context.plain_products {
                return product;
            }
            let exponent = V::min(V::max(products.exponents[slot][g], V::splat_i(-1000)), V::splat_i(1000));
            let power = V::wide_power(exponent);
            [V::mul_d(product[0], power[0]), V::mul_d(product[1], power[1])]
        }
    }
}
