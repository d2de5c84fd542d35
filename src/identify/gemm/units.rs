//! Units that a product may use: the operations of the models.

use std::{collections::HashMap, sync::Arc};

use mxprobe_api::{Elements, Format, GemmOperands, OperationId, Random};
use mxprobe_models::{Evaluator, shipped};

use super::{
    candidate::Unit,
    values::{scaled, value},
};

/// Number of sums that distinguish units.
const SUMS: usize = 192;
/// Number of products in each sum: more than one operation takes, and not a multiple of its k.
const PRODUCTS: usize = 85;

/// Models of loops, which come first; those of hardware follow in the order of the shipped models.
const FIRST: [&str; 3] = ["fma-chain", "serial", "pairwise"];

/// Returns one operation for each way in which the models sum products of these formats.
pub(super) fn units(id: &OperationId) -> Vec<Unit> {
    let mut models: Vec<_> = shipped().iter().collect();
    models.sort_by_key(|model| FIRST.iter().position(|name| *name == model.name).unwrap_or(FIRST.len()));
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
