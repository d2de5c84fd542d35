//! Tolerances: no result of a model lies outside of them, whatever the order, and errors come near their bounds.
#![allow(missing_docs, clippy::print_stderr, clippy::needless_range_loop)]

mod adversarial;
mod draws;
mod grids;
mod near;
mod orders;
mod quick;
#[allow(dead_code, reason = "not every test needs all of a dot")]
#[path = "../../models/tests/reference/mod.rs"]
mod reference;
mod units;
mod vectors;

use mxprobe::tolerance::{Element, Interval, Order, Tolerance};
use mxprobe_api::GemmOperands;

use draws::Product;
use units::{Unit, units};

/// The number of products that each test draws for a unit.
const PRODUCTS: usize = 12;

/// Checks results of a unit against its tolerances in an order, and returns how many were judged.
fn hold(unit: &Unit, product: &Product, order: Order) -> usize {
    let operands = product.operands();
    let tolerance = Tolerance::new(&unit.model, &unit.id, operands.k, order)
        .unwrap_or_else(|error| panic!("{}: {error}", unit.name));
    let d = unit.evaluator.multiply(&operands, 1).unwrap();
    let checked = tolerance.check(&operands, &d, 1).unwrap();
    if let Some(outside) = checked.worst() {
        panic!("{}, {order:?}, k = {}: {outside:?}\n{}", unit.name, operands.k, product.show(&unit.id, outside));
    }
    checked.elements - checked.unbounded
}

#[test]
fn no_result_of_a_model_lies_outside_of_what_its_order_allows() {
    for unit in units() {
        let step = unit.id.shape.sizes().2;
        let mut judged = 0;
        for seed in 0..PRODUCTS {
            let operations = if unit.id.c == unit.id.d { 1 + seed % 3 } else { 1 };
            let short = if unit.id.block_scale().is_none() { seed % step } else { 0 };
            let product = Product::drawn(&unit.id, seed as u64, (4, 4, operations * step - short));
            for order in [Order::Chain, Order::Any] {
                if unit.id.c == unit.id.d || order == Order::Chain {
                    judged += hold(&unit, &product, order);
                }
            }
        }
        // Up to half of the products drawn may overflow.
        assert!(judged > 30, "{}: {judged}", unit.name);
    }
}

#[test]
fn in_the_given_order_a_result_is_the_model_s_own() {
    for unit in units().into_iter().step_by(7) {
        let product = Product::drawn(&unit.id, 9, (3, 3, unit.id.shape.sizes().2));
        let operands = product.operands();
        let tolerance = Tolerance::new(&unit.model, &unit.id, operands.k, Order::Given).unwrap();
        let d = unit.evaluator.multiply(&operands, 1).unwrap();
        for (bits, Element { interval, .. }) in d.iter().zip(tolerance.elements(&operands, 1).unwrap()) {
            let nan = unit.id.d.to_f64(bits).is_nan();
            let own = if nan { Interval::Nan } else { Interval::Within { low: bits, high: bits } };
            assert_eq!(interval, own, "{}", unit.name);
        }
    }
}

#[test]
fn one_thread_and_several_find_the_same() {
    let unit = Unit::named("h100", "mma.m16n8k16.f32.f16.f16.f32");
    let product = Product::drawn(&unit.id, 3, (7, 5, 50));
    let operands: GemmOperands<'_> = product.operands();
    let tolerance = Tolerance::new(&unit.model, &unit.id, 50, Order::Any).unwrap();
    let of = |threads: usize| {
        let elements = tolerance.elements(&operands, threads).unwrap();
        elements.iter().map(|element| element.interval).collect::<Vec<_>>()
    };
    assert_eq!(of(1), of(3));
}
