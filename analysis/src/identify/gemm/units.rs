//! Units that a product may use: the operations of the models.

use std::{collections::HashMap, sync::Arc};

use mxprobe_api::{Elements, Format, GemmOperands, OperationId, Random};
use mxprobe_models::{Evaluator, Model, cards, is_called, shipped};

use super::{
    candidate::Unit,
    values::{scaled, value},
};
use crate::in_order::InOrder;

/// Number of sums that distinguish units.
const SUMS: usize = 192;
/// Number of products in each sum: more than one operation takes, and not a multiple of its k.
const PRODUCTS: usize = 85;

/// Models of loops, which come first; those of hardware follow in the order of the shipped models.
const FIRST: [&str; 3] = ["fma-chain", "serial", "pairwise"];

/// Returns one operation for each way in which the models sum products of these formats. Of models that sum alike, the
/// one that the device's name mentions is taken, if any does.
pub(super) fn units(id: &OperationId, device: &str) -> Vec<Unit> {
    let mut models: Vec<_> = shipped().iter().collect();
    let place = |model: &Model| FIRST.iter().position(|name| *name == model.name).unwrap_or(FIRST.len());
    models.order_by_key(|model| (place(model), !is_mentioned(device, model)));
    let mut known: HashMap<Vec<u64>, ()> = HashMap::new();
    let mut found = Vec::new();
    for model in models {
        let fits = |one: &&OperationId| {
            one.a == id.a
                && one.b == id.b
                && one.c == one.d
                && one.is_integer() == id.is_integer()
                && one.block_scale().is_none()
        };
        for operation in model.operations.keys().filter(fits) {
            let Ok(evaluator) = Evaluator::new(model, operation) else { continue };
            let Some(signature) = signature(&evaluator) else { continue };
            if known.insert(signature, ()).is_none() {
                let evaluator = Arc::new(evaluator);
                found.push(Unit { model: model.name.clone(), own: None, id: operation.clone(), evaluator });
            }
        }
    }
    found
}

/// Whether a device's name mentions a model, by its name or that of a card.
fn is_mentioned(device: &str, model: &Model) -> bool {
    let mut names = std::iter::once(&model.name).chain(&model.aliases).map(String::as_str);
    let mut of_cards = cards().filter(|card| card.model == model.name);
    names.any(|name| is_called(device, name)) || of_cards.any(|card| is_called(device, card.name))
}

/// Returns a unit's results for some sums that start at +0 or at another c. Units with equal results are taken to be
/// the same.
fn signature(evaluator: &Evaluator) -> Option<Vec<u64>> {
    let id = evaluator.id();
    let mut random = Random(0x756e_6974);
    let mut draw = |format: Format, spread: i32| {
        let value = value(format, &mut random);
        scaled(format, value, random.between(-spread, spread))
    };
    let mut a = Elements::zeros(id.a, SUMS * PRODUCTS);
    let mut c = Elements::zeros(id.c, SUMS);
    for sum in 0..SUMS {
        let spread = [0, 3, 10, 30][sum % 4];
        let count = [1, 2, 3, 5, 8, PRODUCTS][sum % 6];
        (0..count).for_each(|at| a.set(sum * PRODUCTS + at, draw(id.a, spread)));
        if sum % 5 == 0 {
            c.set(sum, draw(id.c, 2 * spread));
        }
    }
    let b = Elements::from_bits(id.b, (0..PRODUCTS).map(|_| draw(id.b, 0)));
    let operands = GemmOperands { m: SUMS, n: 1, k: PRODUCTS, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    let d = evaluator.multiply(&operands, 1).ok()?;
    Some(std::iter::once(u64::from(id.d.bits())).chain(d.iter()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_units_that_sum_alike_the_one_on_the_device_is_named() {
        let id: OperationId = "gemm.m64n64k64.f32.f16.f16.f32".parse().expect("an id");
        for (device, expected) in [
            ("cuBLASLt 13.1.0 on NVIDIA H200", "h100"),
            ("cuBLASLt 12.8.3 on NVIDIA GeForce RTX 4060 Ti", "l40s"),
            ("cuBLASLt 13.1.0 on NVIDIA B200", "b200"),
        ] {
            let found = units(&id, device);
            let is_there = |model: &str| found.iter().any(|unit| unit.model == model);
            assert!(is_there(expected), "{device}");
            assert!(!(is_there("b200") && is_there("h100")), "{device}: their sums of f16 are the same");
        }
    }
}
