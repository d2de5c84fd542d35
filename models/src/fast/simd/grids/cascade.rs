//! Nodes without a grid: the exact sum of products and values, rounded once.
//!
//! Each addition in f64 gives a sum and its error, which is an f64 too (Knuth, The Art of Computer Programming 2,
//! 4.2.2, theorem B). In most cases all errors are 0. Otherwise the errors are added the same way. If that is exact,
//! the result is the first sum plus the sum of errors, rounded to odd, and rounding it from f64 gives the right f32: 53
//! bits are at least 24 plus 2 (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms
//! using rounding to odd", 2008). Other lanes are left.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use super::{
    At, Grids,
    outcome::{Outcome, Terms},
    products::Products,
    settle::finish,
};
use crate::fast::{grids::GridNode, simd::halves::Halves};

/// A sum and its error.
#[inline(always)]
unsafe fn two_sum<V: Halves>(x: V::D, y: V::D) -> (V::D, V::D) {
    // SAFETY: upheld by the caller.
    unsafe {
        let sum = V::add_d(x, y);
        let of_y = V::sub_d(sum, x);
        (sum, V::add_d(V::sub_d(x, V::sub_d(sum, of_y)), V::sub_d(y, of_y)))
    }
}

/// Adds a term to a sum; returns the error, and notes in `any` whether there is one.
#[inline(always)]
unsafe fn add<V: Halves>(sum: &mut [V::D; 2], any: &mut [V::D; 2], term: [V::D; 2]) -> [V::D; 2] {
    let mut errors = term;
    for half in 0..2 {
        // SAFETY: upheld by the caller.
        unsafe {
            (sum[half], errors[half]) = two_sum::<V>(sum[half], term[half]);
            any[half] = V::or_d(any[half], errors[half]);
        }
    }
    errors
}

impl Grids<'_> {
    /// Computes the exact sum, rounded once to nearest even.
    #[inline(always)]
    pub(super) unsafe fn in_cascade<V: Halves, const NG: usize, const R: usize>(
        &self,
        node: &GridNode,
        at: At<R>,
        terms: Terms<'_, V, NG>,
        products: &mut Products<V, NG>,
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
            let mut lost = [V::splat_i(0); NG];
            for g in 0..NG {
                let mut any = [zero; 2];
                // Adding any number to −0 gives that number, and a zero keeps its sign.
                let mut sum = [V::splat_d(-0.0); 2];
                let mut values = node.others.iter().map(|term| V::widen(terms.get(*term).value[g]));
                sum = values.next().unwrap_or(sum);
                let mut errors_of_all = count;
                for value in values {
                    products.errors[errors_of_all] = add::<V>(&mut sum, &mut any, value);
                    errors_of_all += 1;
                }
                let of_products = products.exponents.iter().zip(&products.values).zip(&mut products.errors);
                for ((exponents, values), errors) in of_products.take(count) {
                    let mut product = V::widen(values[g]);
                    if !self.context.plain_products {
                        let exponent = V::min(V::max(exponents[g], V::splat_i(-1000)), V::splat_i(1000));
                        let power = V::wide_power(exponent);
                        product = [V::mul_d(product[0], power[0]), V::mul_d(product[1], power[1])];
                    }
                    *errors = add::<V>(&mut sum, &mut any, product);
                }
                if V::any_nonzero(V::or_d(any[0], any[1])) {
                    let mut lost_here = [zero; 2];
                    for half in 0..2 {
                        let mut rest = products.errors[0][half];
                        for error in &products.errors[1..errors_of_all] {
                            let (of_both, beyond) = two_sum::<V>(rest, error[half]);
                            rest = of_both;
                            lost_here[half] = V::or_d(lost_here[half], beyond);
                        }
                        let (most, least) = two_sum::<V>(sum[half], rest);
                        // Without an error, the sum keeps the sign of a zero.
                        sum[half] = V::select_d(V::nonzero(rest), V::to_odd(most, least), sum[half]);
                        lost_here[half] = V::nonzero(lost_here[half]);
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
                let told = if out.has_met { V::greater(out.met[g], V::splat_i(0)) } else { V::splat_i(0) };
                flags[g] = V::or(flags[g], V::select(told, V::splat_i(0), lost[g]));
            }
        }
    }
}
