//! Compares sums of one and two terms, dots side by side, with the exact evaluator: adders of any format, rounding,
//! overflow, grid and sign of zeros.

use std::sync::Arc;

use mxprobe_api::{Decoded, Format, OperationId, Overflow, Random, Rounding, Subnormals};
use mxprobe_models::{
    Adder, Below, Class, Dot, Evaluator, Exponent, GridRule, Model, NanCause, NanRules, Output, Path, Sample, ZeroSign,
    plan_of,
};

use super::{
    agree::{Operands, agree},
    made_up::{Unit, made_up},
};

const F32: &str = "output = \"f32\"\nrounding = \"nearest-even\"\nnan = \"0x7fc00000\"";

/// Products that are rounded alone and in pairs; and, in the second unit, with another term.
const UNITS: [Unit<'_>; 2] = [
    (
        "last(inner(product(0..1), product(1..2)), inner(product(2..3), c))",
        "dot.m1n1k3.f32.{f32.f32,f16.f16,bf16.bf16,e5m2.e4m3}.f32",
        "",
    ),
    (
        "last(inner(0..1, product(1..2)), product(inner(2..3, c), 3..4))",
        "dot.m1n1k4.f32.{f32.f32,f16.f16,bf16.bf16}.f32",
        "",
    ),
];

fn model() -> Model {
    made_up("pairs", &[("product", F32), ("inner", F32), ("last", F32)], &UNITS)
}

/// Numbers of dots and of sets of adders for each operation.
const DOTS: usize = 61;
const SETS: usize = 300;

/// How operands are drawn.
#[derive(Clone, Copy)]
pub(super) enum Values {
    /// All finite bits.
    Any,
    /// Values near one, that cancel.
    Near,
    /// Exponents within some sixty of each other.
    Spread,
    /// Products and other terms at the ends of the range; many products are zero, beside which the others are subnormal.
    Ends,
    /// Factors at the ends of the range, so that products lie far beyond it, or near one.
    Beyond,
}

/// A number at one of the ends of a format's range, or one whose square is.
fn at_an_end(format: Format, is_factor: bool, random: &mut Random) -> u64 {
    let float = format.as_float().unwrap();
    let roots = 1 + i32::from(is_factor);
    // Subnormal products are the squares of roots below that of the least normal number.
    let least = (float.min_exponent() - float.fraction_bits.cast_signed() * i32::from(is_factor)) / roots;
    let most = float.max_exponent() / roots;
    let exponent = if random.below(3) > 0 { random.between(least, least + 40) } else { random.between(most - 3, most) };
    let field = u64::from((exponent + float.bias).max(0).unsigned_abs()).min((1 << float.exponent_bits) - 2);
    let fraction = random.bits() & ((1 << float.fraction_bits) - 1);
    let sign = random.bits() & format.negative_zero().unwrap_or(0);
    (field << float.fraction_bits) | fraction | sign
}

/// Finite bits of a format.
pub(super) fn drawn(format: Format, (values, is_factor): (Values, bool), random: &mut Random) -> u64 {
    let float = format.as_float().unwrap();
    loop {
        let bits = random.bits() & format.mask();
        let one = [format.one(), format.one() | format.negative_zero().unwrap_or(0)][random.below(2)];
        let most = float.max_exponent().min(-float.min_exponent()).min(30);
        let exponent = u64::from(random.between(-most, most).unsigned_abs()) << float.fraction_bits;
        let fraction = bits & ((1 << float.fraction_bits) - 1);
        let bits = match values {
            Values::Any => bits,
            Values::Near => one ^ (bits & 7 << random.below(9)),
            Values::Spread if random.below(2) == 0 => (one + exponent) | fraction,
            Values::Spread => (one - exponent) | fraction,
            Values::Ends if is_factor && random.below(3) == 0 => 0,
            Values::Ends => at_an_end(format, is_factor, random),
            Values::Beyond => at_an_end(format, false, random),
        };
        if !matches!(format.decode(bits), Decoded::Nan { .. } | Decoded::Infinity { .. }) {
            return bits;
        }
    }
}

/// Rules that return one NaN of a format, or two.
fn nan_rules(format: Format, random: &mut Random) -> NanRules {
    let mut nan = || format.nan().map_or(0, |nan| nan | [0, format.negative_zero().unwrap_or(0)][random.below(2)]);
    let (one, other) = (nan(), nan());
    let value = [None, Some(one), Some(other)][random.below(3)];
    let order = [NanCause::Operand, NanCause::Value, NanCause::Invalid];
    let order = order.into_iter().cycle().skip(random.below(3)).take(3).collect();
    NanRules { order, operand: None, value, invalid: one }
}

/// An adder with any rules that the sums of two terms may have.
pub(super) fn any(adder: &Adder, format: Format, random: &mut Random) -> Adder {
    let roundings = [Rounding::NearestEven, Rounding::TowardZero, Rounding::Up, Rounding::Down, Rounding::ToOdd];
    let overflows = [Overflow::Ieee, Overflow::Ieee, Overflow::Infinity, Overflow::Saturate, Overflow::Nan];
    let classes = [Class::All, Class::Products, Class::Values];
    let rules = [0, 0, 1, 2][random.below(4)];
    let rule = |random: &mut Random| GridRule {
        terms: classes[random.below(3)],
        exponent: [Exponent::Operands, Exponent::Leading][random.below(2)],
        fraction_bits: [random.between(0, 12), random.between(12, 60), random.between(60, 200)][random.below(3)],
        exponent_floor: [None, None, Some(random.between(-160, 4)), Some(random.between(-1100, -950))][random.below(4)],
    };
    let fewer = u32::from(format == Format::F32) * [0, 0, 1, 9][random.below(4)];
    Adder {
        grid: (0..rules).map(|_| rule(random)).collect(),
        below: [Below::Truncate, Below::Floor, Below::Nearest, Below::NearestAway, Below::Sticky][random.below(5)],
        nan: nan_rules(format, random),
        zero: [ZeroSign::Ieee, ZeroSign::Positive][random.below(2)],
        output: Output::Float {
            format,
            fraction_bits: format.fraction_bits() - fewer,
            rounding: roundings[random.below(5)],
            overflow: overflows[random.below(5)],
            subnormals: Subnormals::Keep,
        },
        ..adder.clone()
    }
}

#[test]
fn sums_of_two_terms_are_those_of_the_exact_evaluator() {
    let model = model();
    let mut random = Random(17);
    let paths: Vec<Path> = Path::available().into_iter().filter(|path| *path >= Path::Avx2).collect();
    let mut compared = 0;
    for (unit, own) in model.units.iter().flat_map(|unit| unit.operations.iter().map(move |own| (unit, own))) {
        let plan = Arc::new(model.plan(own).unwrap().1);
        // The plans hold for f64 as well.
        let k = own.shape.sizes().2;
        let other: OperationId = format!("dot.m1n1k{k}.f64.f64.f64.f64").parse().unwrap();
        for (id, set) in [own, &other].into_iter().flat_map(|id| (0..SETS).map(move |set| (id, set))) {
            let formats: &[Format] = &[Format::E4M3, Format::F16, Format::BF16, Format::F32, Format::F64];
            // Half of the sets are of a single format, in which f64 is computed as it is.
            let mut adders: Vec<Adder> = model.adders.clone();
            for adder in &mut adders {
                let is_last = adder.name == "last" || set % 2 == 0;
                *adder = any(adder, if is_last { id.d } else { formats[random.below(5)] }, &mut random);
                // What f64 does itself, on half of those.
                if id.a == Format::F64 && set % 4 == 0 && adder.name != "last" {
                    adder.grid.clear();
                    adder.output = Output::in_format(id.d);
                }
            }
            let dots = (0..DOTS).map(|dot| {
                let values = [Values::Any, Values::Near, Values::Spread, Values::Ends, Values::Beyond][dot % 5];
                let mut operands =
                    |format: Format| (0..k).map(|_| drawn(format, (values, true), &mut random)).collect();
                let (a, b): (Vec<u64>, Vec<u64>) = (operands(id.a), operands(id.b));
                Operands { a, b, c: drawn(id.c, (values, false), &mut random), scales: None }
            });
            compared += agree((&adders, unit.flush, &plan), id, &paths, dots);
        }
    }
    assert!(paths.is_empty() || compared >= 14 * SETS * DOTS, "{compared}");
}

#[test]
fn a_product_just_below_half_a_unit_decides_a_fused_sum_that_looks_tied() {
    let model = model();
    let plan = Arc::new(model.plan(&model.units[1].operations[0]).unwrap().1);
    let id: OperationId = "dot.m1n1k4.f64.f64.f64.f64".parse().unwrap();
    let nearest = |adder: &Adder| Adder { output: Output::in_format(id.d), ..adder.clone() };
    let rule = GridRule { terms: Class::All, exponent: Exponent::Leading, fraction_bits: 200, exponent_floor: None };
    let adders: Vec<Adder> = model.adders.iter().map(|adder| Adder { grid: vec![rule], ..nearest(adder) }).collect();
    let flush = model.units[1].flush;
    let evaluator = Evaluator::of_plan(adders.clone(), flush, &plan, &id, Path::Scalar).unwrap();
    // (1 + 2^-52) · (2^-53 − 2^-105) = 2^-53 − 2^-157.
    let bits = f64::to_bits;
    let b = bits(2f64.powi(-53) - 2f64.powi(-105));
    let (a, b) = ([0, 0, bits(1.0 + 2f64.powi(-52)), 0], [0, 0, b, 0]);
    let c = 1.0 + 2f64.powi(-52);
    let dot = Dot { a: &a, b: &b, c: bits(c), scales: None };
    for path in Path::available() {
        let mut sample = Sample::with_path(&id, flush, path);
        sample.push(dot);
        evaluator.visit(&sample, 0..1, |_, d| {
            assert_eq!(d, bits(c), "{path:?}: {d:#x}");
            true
        });
    }
}

#[test]
fn a_number_that_is_floored_to_minus_one_unit_cancels_a_product_beyond_the_range() {
    let (model, id) = (model(), "dot.m1n1k1.f64.f64.f64.f64".parse::<OperationId>().unwrap());
    let plan = Arc::new(plan_of("last(all, inner(c))", &["last", "inner"], 1).unwrap());
    let flush = model.units[0].flush;
    let output = |overflow| Output::Float {
        format: id.d,
        fraction_bits: id.d.fraction_bits(),
        rounding: Rounding::NearestEven,
        overflow,
        subnormals: Subnormals::Keep,
    };
    let adders = |fraction_bits: i32, overflow| {
        let rule = GridRule { terms: Class::All, exponent: Exponent::Operands, fraction_bits, exponent_floor: None };
        let last = Adder { grid: vec![rule], below: Below::Floor, output: output(overflow), ..model.adders[0].clone() };
        [last, Adder { output: output(Overflow::Ieee), ..model.adders[0].clone() }]
    };
    // 2^1800 and −1: on a grid of 2^1800, −1 is −2^1800.
    let (a, b, c) = ([(900 + 1023) << 52], [(900 + 1023) << 52], (-1f64).to_bits());
    let infinity = f64::INFINITY.to_bits();
    for (fraction_bits, overflow, expected) in [
        (0, Overflow::Infinity, 0),
        (1, Overflow::Infinity, infinity),
        (1, Overflow::Saturate, f64::MAX.to_bits()),
        (60, Overflow::Ieee, infinity),
    ] {
        let evaluator = Evaluator::of_plan(adders(fraction_bits, overflow), flush, &plan, &id, Path::Scalar).unwrap();
        for path in Path::available() {
            let mut sample = Sample::with_path(&id, flush, path);
            sample.push(Dot { a: &a, b: &b, c, scales: None });
            evaluator.visit(&sample, 0..1, |_, d| {
                assert_eq!(d, expected, "{path:?}: {fraction_bits}, {overflow:?}: {d:#x}");
                true
            });
        }
    }
}

#[test]
fn a_product_far_below_one_is_cut_to_the_number_next_below_a_power_of_two() {
    let (model, id) = (model(), "dot.m1n1k1.f64.f64.f64.f64".parse::<OperationId>().unwrap());
    let plan = Arc::new(plan_of("product(all)", &["product"], 1).unwrap());
    let flush = model.units[0].flush;
    // (1 + 2^-52) · (1 − 2^-52) = 1 − 2^-104, times 2^-1000, and times 2^-1022, below which numbers lie no closer.
    let factors = |exponent: i32| {
        let last = 2f64.powi(-52);
        [(1.0 + last) * 2f64.powi(exponent / 2), (1.0 - last) * 2f64.powi(exponent / 2)].map(f64::to_bits)
    };
    let next = |exponent: i32| 2f64.powi(exponent).to_bits() - 1;
    for (rounding, exponent, expected) in [
        (Rounding::TowardZero, -1000, next(-1000)),
        (Rounding::TowardZero, -1022, next(-1022)),
        (Rounding::ToOdd, -1000, next(-1000)),
        (Rounding::NearestEven, -1022, next(-1022) + 1),
    ] {
        let (format, fraction_bits) = (id.d, id.d.fraction_bits());
        let (overflow, subnormals) = (Overflow::Saturate, Subnormals::Keep);
        let output = Output::Float { format, fraction_bits, rounding, overflow, subnormals };
        let adders = [Adder { output, ..model.adders[0].clone() }];
        let evaluator = Evaluator::of_plan(adders.clone(), flush, &plan, &id, Path::Scalar).unwrap();
        let [a, b] = factors(exponent);
        for path in Path::available() {
            let mut sample = Sample::with_path(&id, flush, path);
            sample.push(Dot { a: &[a], b: &[b], c: 0, scales: None });
            evaluator.visit(&sample, 0..1, |_, d| {
                assert_eq!(d, expected, "{path:?}: {rounding:?}, {exponent}: {d:#x}");
                true
            });
        }
    }
}

#[test]
fn a_fused_sum_that_is_rounded_to_zero_keeps_its_sign() {
    let (model, id) = (model(), "dot.m1n1k2.f64.f64.f64.f64".parse::<OperationId>().unwrap());
    let plan = Arc::new(plan_of("fold(c, all/1, product(all, acc))", &["product"], 2).unwrap());
    let adders = [Adder { output: Output::in_format(id.d), ..model.adders[0].clone() }];
    let flush = model.units[0].flush;
    let evaluator = Evaluator::of_plan(adders.clone(), flush, &plan, &id, Path::Scalar).unwrap();
    // The first product rounds to a subnormal; the second is less than half of the lowest bit away from it.
    let (a, b) = ([0x1fcf_ffff_ffff_ffff, 0x1fcf_ffff_ffff_ffff], [0x9fdf_ffff_ffff_ffff, 0x1fdf_ffff_ffff_ffff]);
    let dot = Dot { a: &a, b: &b, c: 0, scales: None };
    for path in Path::available() {
        let mut sample = Sample::with_path(&id, flush, path);
        sample.push(dot);
        evaluator.visit(&sample, 0..1, |_, d| {
            assert_eq!(d, 1 << 63, "{path:?}");
            true
        });
    }
}
