//! Compares dots with block scales, among them zeros and NaN, with the exact evaluator: scaled products, and scaled sums of
//! groups, rounded and unrounded.

use std::sync::Arc;

use mxprobe_api::{Format, OperationId, Random};
use mxprobe_models::{Adder, Model, Path};

use super::{
    abreast::{regridded, strayed},
    agree::{Operands, agree},
    made_up::{Unit, made_up},
};

const VALUE: &str = "output = \"f32\"\nrounding = \"nearest-even\"\nnan = \"0x7fc00000\"\nzero = \"positive\"";
const SUM: &str = "scale = \"sum\"\noutput = \"wide\"";
const STEP: &str = "scale = \"sum\"\noutput = \"f32\"\nrounding = \"nearest-even\"\nnan = \"0x7fc00000\"";
const GRID: &str = "grid = [{ terms = \"all\", exponent = \"operands\", fraction_bits = 9 }]\nbelow = \"truncate\"";

const OPERATIONS: &str = "dot.m1n1k32.f32.{e2m1.e2m1,e4m3.e5m2}.f32.{block16.ue4m3,block16.ue8m0,block32.ue8m0}";

const UNITS: [Unit<'_>; 3] = [
    ("last(0..32, c)", OPERATIONS, ""),
    ("last(group(0..8), group(8..16), group(16..24), group(24..32), c)", OPERATIONS, ""),
    ("fold(c, all/16, last(step(all), acc))", OPERATIONS, ""),
];

const DOTS: usize = 61;
const SETS: usize = 40;

/// A scale: often zero, NaN or one.
fn scale(format: Format, random: &mut Random) -> u64 {
    match random.below(9) {
        0..2 => 0,
        2 => format.mask() >> u32::from(format != Format::UE8M0),
        3..5 => format.one(),
        _ => random.bits() & format.mask(),
    }
}

fn drawn(id: &OperationId, random: &mut Random) -> Operands {
    let k = id.shape.sizes().2;
    let of_scales = id.block_scale().unwrap();
    let is_sparse = random.below(2) == 0;
    let mut factors = |format: Format| {
        let mut factor = || if is_sparse && random.below(3) > 0 { 0 } else { random.bits() & format.mask() };
        (0..k).map(|_| factor()).collect::<Vec<u64>>()
    };
    let (a, b) = (factors(id.a), factors(id.b));
    let c = if random.below(2) == 0 { 0 } else { id.c.one() ^ (random.bits() & 0x87ff_ffff) };
    let mut scales = || (0..k.div_ceil(of_scales.block)).map(|_| scale(of_scales.format, random)).collect();
    Operands { a, b, c, scales: Some((scales(), scales())) }
}

#[test]
fn scaled_dots_are_those_of_the_exact_evaluator() {
    let last = format!("{GRID}\n{VALUE}");
    let adders = [("last", last.as_str()), ("group", SUM), ("step", STEP)];
    let models: Vec<Model> = UNITS.iter().map(|unit| made_up("scaled", &adders, &[*unit])).collect();
    let mut random = Random(31);
    let mut compared = 0;
    for (model, id) in models.iter().flat_map(|model| model.operations.keys().map(move |id| (model, id))) {
        let (unit, plan) = (&model.units[0], Arc::new(model.plan(id).unwrap().1));
        for set in 0..SETS {
            let mut adders: Vec<Adder> = model.adders.clone();
            if set > SETS / 4 {
                adders = strayed(&adders, &mut random);
            }
            if set % 4 == 3 {
                adders = regridded(&adders, &mut random);
            }
            let dots = (0..DOTS).map(|_| drawn(id, &mut random));
            compared += agree((&adders, unit.flush, &plan), id, &Path::available(), dots);
        }
    }
    assert!(compared > 9 * SETS * DOTS, "{compared}");
}
