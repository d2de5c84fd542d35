//! Compares dots with an infinity and large finite numbers with the exact evaluator: whether a sum of the others overflows
//! decides between an infinity and NaN.

use std::sync::Arc;

use mxprobe_api::OperationId;
use mxprobe_models::{Adder, Below, Class, Exponent, GridRule, Model, Path};

use super::{
    agree::{Operands, agree},
    made_up::made_up,
};

const K: usize = 16;
const F32: &str = "output = \"f32\"\nrounding = \"nearest-even\"\nnan = \"0x7fc00000\"";

fn model() -> Model {
    let unit = ("last(inner(0..13), inner(13..14), inner(14..15), 15..16, c)", "dot.m1n1k16.f32.f32.f32.f32", "");
    made_up("specials", &[("inner", F32), ("last", F32)], &[unit])
}

/// Compares dots of these products and one infinity on every path.
fn check(inner: &Adder, products: &[[f32; 2]; K - 1]) {
    let model = model();
    let id: OperationId = "dot.m1n1k16.f32.f32.f32.f32".parse().unwrap();
    let (unit, plan) = model.plan(&id).unwrap();
    let adders: Vec<Adder> = [inner.clone(), model.adders[1].clone()].into();
    let dots = [f32::INFINITY, f32::NEG_INFINITY].into_iter().map(|infinity| {
        let factors = |at: usize, last: f32| -> Vec<u64> {
            let bits = |value: f32| u64::from(value.to_bits());
            products.iter().map(|factors| bits(factors[at])).chain([bits(last)]).collect()
        };
        Operands { a: factors(0, infinity), b: factors(1, 1.0), c: 0, scales: None }
    });
    let paths = Path::available();
    assert_eq!(agree((&adders, unit.flush, &Arc::new(plan)), &id, &paths, dots), 2 * paths.len());
}

#[test]
fn an_infinity_beside_a_sum_that_overflows_is_nan() {
    let adder = model().adders[0].clone();
    let largest = 2.0 - f32::EPSILON;
    for exponent in 100..=127 {
        for sign in [1.0, -1.0] {
            check(&adder, &[[sign * largest * 2f32.powi(exponent), largest]; K - 1]);
        }
    }
}

#[test]
fn an_infinity_beside_small_numbers_that_are_floored_to_large_ones_is_nan() {
    for exponent_floor in (100..=130).map(Some) {
        let rule = GridRule { terms: Class::All, exponent: Exponent::Operands, fraction_bits: 0, exponent_floor };
        let adder = Adder { grid: vec![rule], below: Below::Floor, ..model().adders[0].clone() };
        check(&adder, &[[-1.0, 1.0]; K - 1]);
    }
}

#[test]
fn an_infinity_beside_a_product_beyond_two_to_128_is_nan() {
    let adder = Adder { product_overflow: true, ..model().adders[0].clone() };
    let mut products = [[0.0, 1.0]; K - 1];
    for exponent in 120..=128 {
        // 2.25 times two to this power, beside as much of the other sign.
        let half = 1.5 * 2f32.powi(exponent - 60);
        (products[0], products[1]) = ([half, 1.5 * 2f32.powi(60)], [-half, 1.5 * 2f32.powi(60)]);
        check(&adder, &products);
        products[1] = [0.0, 1.0];
        check(&adder, &products);
    }
}
