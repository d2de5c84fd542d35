//! Compares dots in which sums overflow on the way, to infinities of one sign or of both, with the exact evaluator.

use std::sync::Arc;

use mxprobe_api::{Format, OperationId, Random};
use mxprobe_models::{Adder, Path};

use super::{
    agree::{Operands, agree},
    made_up::{Unit, made_up},
    pairs::{Values, any, drawn},
};

const F32: &str = "output = \"f32\"\nrounding = \"nearest-even\"\nnan = \"0x7fc00000\"";
const WIDE: &str = "output = \"wide\"";
const OPERATIONS: &str = "dot.m1n1k9.f32.{f32.f32,bf16.bf16,f16.f16,e5m2.e4m3}.f32";

/// Sums of three terms and more: side by side in one level or two, in unrounded sums, and one after another.
const UNITS: [Unit<'_>; 4] = [
    ("last(inner(0..3), inner(3..6), inner(6..9, c))", OPERATIONS, ""),
    ("last(other(inner(0..3), inner(3..5)), inner(5..8), 8..9, c)", OPERATIONS, ""),
    ("last(sum(inner(0..3), inner(3..5)), sum(inner(5..7), 7..9), c)", OPERATIONS, ""),
    ("last(fold(c, all/3, inner(all, acc)))", OPERATIONS, ""),
];

/// Numbers of dots and of sets of adders for each operation.
const DOTS: usize = 61;
const SETS: usize = 80;

#[test]
fn infinities_that_arise_on_the_way_are_those_of_the_exact_evaluator() {
    let adders = [("sum", WIDE), ("other", F32), ("inner", F32), ("last", F32)];
    let mut random = Random(41);
    let paths: Vec<Path> = Path::available().into_iter().filter(|path| *path >= Path::Avx2).collect();
    let formats = [Format::E4M3, Format::F16, Format::F16, Format::BF16, Format::F32];
    let mut compared = 0;
    for unit in &UNITS {
        let model = made_up("overflowing", &adders, &[*unit]);
        for (id, set) in model.operations.keys().flat_map(|id: &OperationId| (0..SETS).map(move |set| (id, set))) {
            let plan = Arc::new(model.plan(id).unwrap().1);
            let mut adders: Vec<Adder> = model.adders.clone();
            for adder in adders.iter_mut().filter(|adder| adder.output_format().is_some()) {
                let format = if adder.name == "last" || set % 2 == 0 { id.d } else { formats[random.below(5)] };
                *adder = any(adder, format, &mut random);
                adder.product_overflow = random.below(8) == 0;
            }
            let dots = (0..DOTS).map(|dot| {
                let values = [Values::Any, Values::Ends, Values::Beyond, Values::Ends, Values::Near][dot % 5];
                let mut operands =
                    |format: Format| (0..9).map(|_| drawn(format, (values, true), &mut random)).collect();
                let (a, b): (Vec<u64>, Vec<u64>) = (operands(id.a), operands(id.b));
                Operands { a, b, c: drawn(id.c, (values, false), &mut random), scales: None }
            });
            compared += agree((&adders, model.units[0].flush, &plan), id, &paths, dots);
        }
    }
    assert!(paths.is_empty() || compared >= 12 * SETS * DOTS, "{compared}");
}
