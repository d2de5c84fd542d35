//! Compares dots of which most products are zero with the exact evaluator: their additions repeat each other.

use std::sync::Arc;

use mxprobe_api::{Format, OperationId, Random};
use mxprobe_models::{Adder, Model, Output, Path};

use super::{
    abreast::{regridded, strayed},
    agree::{Operands, agree},
    made_up::{Unit, made_up},
};

const F32: &str = "output = \"f32\"\nrounding = \"nearest-even\"\nnan = \"0x7fc00000\"";
const OPERATIONS: &str = "dot.m1n1k16.f32.{f32.f32,f16.f16,e5m2.e4m3}.f32";

/// Chains of single products, of groups and of sums that join two others, and trees of pairs.
const UNITS: [Unit<'_>; 6] = [
    ("fold(c, all/1, last(all, acc))", OPERATIONS, ""),
    ("fold(none, all/1, last(acc, product(all)))", OPERATIONS, ""),
    ("fold(c, all/4, last(acc, inner(all)))", OPERATIONS, ""),
    ("last(pairs(all/1, product(all), inner), c)", OPERATIONS, ""),
    // A sum may be the first term of one addition and the second of the next.
    (
        "last(inner(fold(inner(0, 1), 2..7/1, inner(acc, product(all))), fold(inner(7, 8), 9..16/1, inner(product(all), acc))), c)",
        OPERATIONS,
        "",
    ),
    ("fold(c, all/4, last(inner(0..2), acc, inner(2..4), +0))", OPERATIONS, ""),
];

/// The number of dots, and of sets of adders for each operation.
const DOTS: usize = 120;
const SETS: usize = 40;

/// An element that is zero, unusual or of any magnitude.
fn drawn(format: Format, random: &mut Random) -> u64 {
    let minus = format.negative_zero().unwrap_or(0);
    match random.below(40) {
        0 => format.nan().unwrap_or(0),
        1 => format.infinity(random.below(2) == 0).unwrap_or(0),
        2 => minus,
        3..8 => random.bits() & format.mask(),
        _ => (format.one() | [0, minus][random.below(2)]) ^ (random.bits() & 7 << random.below(8)),
    }
}

/// Operands of a dot with few products other than zero.
fn sparse(id: &OperationId, random: &mut Random) -> Operands {
    let k = id.shape.sizes().2;
    let (mut a, mut b) = (vec![0; k], vec![0; k]);
    for at in 0..k {
        match random.below(12) {
            0..2 => (a[at], b[at]) = (drawn(id.a, random), drawn(id.b, random)),
            2 => a[at] = drawn(id.a, random),
            3 => b[at] = drawn(id.b, random),
            _ => {}
        }
    }
    let c = if random.below(3) == 0 { 0 } else { drawn(id.c, random) };
    Operands { a, b, c, scales: None }
}

#[test]
fn dots_of_few_products_are_those_of_the_exact_evaluator() {
    let of_unit = |unit: &Unit<'_>| made_up("zeros", &[("product", F32), ("inner", F32), ("last", F32)], &[*unit]);
    let models: Vec<Model> = UNITS.iter().map(of_unit).collect();
    let mut random = Random(23);
    let mut compared = 0;
    for (model, own) in models.iter().flat_map(|model| model.operations.keys().map(move |own| (model, own))) {
        let unit = &model.units[0];
        let plan = Arc::new(model.plan(own).unwrap().1);
        let of_f64: OperationId = "dot.m1n1k16.f64.f64.f64.f64".parse().unwrap();
        for (id, set) in [own, &of_f64].into_iter().flat_map(|id| (0..SETS).map(move |set| (id, set))) {
            let in_format = |adder: &Adder| Adder { output: Output::in_format(id.d), ..adder.clone() };
            let mut adders: Vec<Adder> = model.adders.iter().map(in_format).collect();
            if set > 0 {
                adders = strayed(&adders, &mut random);
            }
            if set % 4 == 3 {
                adders = regridded(&adders, &mut random);
            }
            let dots = (0..DOTS).map(|_| sparse(id, &mut random));
            compared += agree((&adders, unit.flush, &plan), id, &Path::available(), dots);
        }
    }
    assert!(compared > 12 * SETS * DOTS, "{compared}");
}
