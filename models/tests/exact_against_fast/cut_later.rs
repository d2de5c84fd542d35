//! Compares exact sums of products that lie far apart, which another addition cuts, with the exact evaluator.

use std::sync::Arc;

use mxprobe_api::{Format, OperationId, Random};
use mxprobe_models::{Adder, Below, Class, Exponent, GridRule, IgnoredValues, Path};

use super::{
    agree::{Operands, agree},
    made_up::{Unit, made_up},
    pairs::{Values, any, drawn},
};

const F32: &str = "output = \"f32\"\nrounding = \"nearest-even\"\nnan = \"0x7fc00000\"";
const WIDE: &str = "output = \"wide\"";
const OPERATIONS: &str = "dot.m1n1k8.f32.{f32.f32,bf16.bf16,f16.f16,e5m2.e4m3}.f32";

/// Sums of two products and of three, in one addition, one after another, and through another exact sum.
const UNITS: [Unit<'_>; 4] = [
    ("fold(c, all/4, last(pair(0..2), pair(2..4), acc))", OPERATIONS, ""),
    ("last(pair(0..3), inner(pair(3..5), pair(5..8), c))", OPERATIONS, ""),
    ("last(sums(pair(0..2), pair(2..4)), 4..8, c)", OPERATIONS, ""),
    ("fold(c, all/2, inner(last(pair(0..2), acc)))", OPERATIONS, ""),
];

/// Numbers of dots and of sets of adders for each operation.
const DOTS: usize = 60;
const SETS: usize = 60;

/// An adder that cuts unrounded sums.
fn cutting(adder: &Adder, format: Format, random: &mut Random) -> Adder {
    let mut found = any(adder, format, random);
    let fraction_bits = [random.between(0, 30), random.between(30, 64), random.between(-3, 4)][random.below(3)];
    let terms = [Class::All, Class::Sums, Class::Sums][random.below(3)];
    let exponent = [Exponent::Operands, Exponent::Operands, Exponent::Leading][random.below(3)];
    found.grid.push(GridRule { terms, exponent, fraction_bits, exponent_floor: None });
    if random.below(4) == 0 {
        found.below = Below::OnesComplement;
    }
    if random.below(3) == 0 {
        found.ignored_values = Some(IgnoredValues { below_bits: 0, unless_grid_at_most: Some(-126) });
    }
    found
}

/// The same factors for some products, with the other sign, so that they cancel.
fn cancelling(format: Format, (a, b): (&mut [u64], &mut [u64]), random: &mut Random) {
    for at in 1..a.len() {
        if random.below(3) == 0 {
            (a[at], b[at]) = (a[at - 1] ^ format.negative_zero().unwrap_or(0), b[at - 1]);
        }
    }
}

#[test]
fn exact_sums_that_are_cut_later_have_the_bits_of_the_exact_evaluator() {
    let adders = [("pair", WIDE), ("sums", WIDE), ("inner", F32), ("last", F32)];
    let mut random = Random(31);
    let paths: Vec<Path> = Path::available().into_iter().filter(|path| *path >= Path::Avx2).collect();
    let mut compared = 0;
    for unit in &UNITS {
        let model = made_up("cut-later", &adders, &[*unit]);
        for (id, set) in model.operations.keys().flat_map(|id: &OperationId| (0..SETS).map(move |set| (id, set))) {
            let plan = Arc::new(model.plan(id).unwrap().1);
            let mut adders = model.adders.clone();
            for adder in &mut adders {
                if adder.output_format().is_some() {
                    let is_last = adder.name == "last";
                    *adder = cutting(adder, if is_last || set % 2 == 0 { id.d } else { Format::BF16 }, &mut random);
                }
            }
            let dots = (0..DOTS).map(|dot| {
                let values = [Values::Any, Values::Spread, Values::Ends][dot % 3];
                let mut operands =
                    |format: Format| (0..8).map(|_| drawn(format, (values, true), &mut random)).collect();
                let (mut a, mut b): (Vec<u64>, Vec<u64>) = (operands(id.a), operands(id.b));
                cancelling(id.a, (&mut a, &mut b), &mut random);
                Operands { a, b, c: drawn(id.c, (values, false), &mut random), scales: None }
            });
            compared += agree((&adders, model.units[0].flush, &plan), id, &paths, dots);
        }
    }
    assert!(paths.is_empty() || compared >= 10 * SETS * DOTS, "{compared}");
}
