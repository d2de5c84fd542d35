//! The bound beside what models compute: random matrices, and matrices made to lose as much as can be.

use mxprobe_api::{Elements, Format, OperationId};
use mxprobe_models::{Model, load, shipped};

use super::*;
use crate::gemm::{
    Algorithm, Matrix, Method, Products, Scaling, Split, Uniform, Unit, multiply::join, reference::Reference,
    unit::Lengths, words,
};

/// How elements are made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Uniform on (0, 1].
    Positive,
    /// Uniform on (−0.5, 0.5].
    Centred,
    /// Any sign and any exponent from far below the format's range to its middle.
    Anywhere,
    /// One product of about 1, and then products so many places below it, with every bit set.
    Below(i32),
    /// Each word's remainder is as large as it can be, and all have one sign.
    Remainders,
    /// Values about the smallest ones of the format.
    Subnormal,
    /// Large products that cancel, and small ones between.
    Cancelling,
}

const KINDS: [Kind; 10] = [
    Kind::Positive,
    Kind::Centred,
    Kind::Anywhere,
    Kind::Below(9),
    Kind::Below(13),
    Kind::Below(22),
    Kind::Below(25),
    Kind::Remainders,
    Kind::Subnormal,
    Kind::Cancelling,
];

#[expect(clippy::cast_possible_truncation, reason = "elements are values of f32")]
fn narrow(value: f64) -> f64 {
    f64::from(value as f32)
}

/// An element of A or B; `at` is its k.
fn element(kind: Kind, format: Format, at: usize, stream: &mut Uniform) -> f64 {
    let float = format.as_float().expect("a floating format");
    let unit = power_of_two(-(float.fraction_bits.cast_signed() + 1));
    let mut between = |low: f64, high: f64| low + (high - low) * stream.next_value();
    let value = match kind {
        Kind::Positive => 1.0 - between(0.0, 1.0),
        Kind::Centred => 0.5 - between(0.0, 1.0),
        Kind::Anywhere => {
            let lowest = (float.exponents().0 - 3).max(-40);
            let exponent = between(f64::from(lowest), f64::from(float.max_exponent().min(4))).floor();
            between(1.0, 2.0) * exponent.exp2() * between(-1.0, 1.0).signum()
        }
        Kind::Below(_) if at == 0 => 1.0,
        // Half of the depth from either operand.
        Kind::Below(depth) => (2.0 - unit) * (f64::from(-depth) / 2.0 - 1.0).floor().exp2(),
        Kind::Remainders => 1.0 + (1..5).map(|word| unit.powi(word)).sum::<f64>() * (1.0 - power_of_two(-20)),
        Kind::Subnormal => {
            let least = power_of_two(float.exponents().0.max(-60));
            least * between(0.4, 3.0)
        }
        Kind::Cancelling => match at % 4 {
            0 => between(1.0, 2.0),
            2 => -between(1.0, 2.0),
            _ => between(0.0, 1.0) * power_of_two(-10),
        },
    };
    narrow(value)
}

fn matrices(kind: Kind, (a, b): (Format, Format), m: usize, n: usize, seed: u32) -> (Matrix, Matrix) {
    let mut stream = Uniform::new(seed);
    let of_a = (0..m * n).map(|at| element(kind, a, at % n, &mut stream)).collect();
    let of_b = (0..m * n).map(|at| element(kind, b, at / m, &mut stream)).collect();
    (Matrix::new(m, n, of_a).unwrap(), Matrix::new(n, m, of_b).unwrap())
}

/// Every way to compute of every model: operations from f32 to f32 of floating formats, one of each tree and pair of
/// formats.
fn units() -> Vec<(String, Model, OperationId)> {
    let variants = |model: &'static Model| {
        let named = model.variants.keys().map(|name| load(&format!("{}@{name}", model.name)).unwrap());
        std::iter::once(model.clone()).chain(named).collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    for model in shipped().iter().flat_map(variants) {
        let mut seen = Vec::new();
        for unit in &model.units {
            for id in &unit.operations {
                let key = (unit.tree.clone(), id.a, id.b);
                let fits = (id.c, id.d) == (Format::F32, Format::F32) && id.block_scale().is_none();
                if fits && id.a.as_float().is_some() && !seen.contains(&key) {
                    let variant = model.variant.as_deref().map_or(String::new(), |variant| format!("@{variant}"));
                    found.push((format!("{}{variant} {id}", model.name), model.clone(), id.clone()));
                    seen.push(key);
                }
            }
        }
    }
    found
}

fn algorithm(words: usize, accumulation: Accumulation) -> Algorithm {
    let split = Split { words, rounding: mxprobe_api::Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };
    Algorithm { method: Method::Multiword, split, products: Products::Significant, accumulation }
}

/// A unit, and the evaluator of its model.
struct Modelled {
    unit: Unit,
    evaluator: Evaluator,
}

impl Modelled {
    fn new(model: &Model, id: &OperationId) -> Self {
        Self { unit: Unit::of_model(model, id).unwrap(), evaluator: Evaluator::new(model, id).unwrap() }
    }
}

/// The error and its bound.
fn measured(unit: &Modelled, a: &Matrix, b: &Matrix, count: usize, accumulation: Accumulation) -> (f64, Option<f64>) {
    let Modelled { unit, evaluator } = unit;
    let algorithm = algorithm(count, accumulation);
    let (of_a, of_b) = (words(a, unit.id().a, &algorithm.split, true), words(b, unit.id().b, &algorithm.split, false));
    let lengths = Lengths { m: a.rows, n: b.columns, k: a.columns };
    let start = Elements::zeros(Format::F32, a.rows * b.columns);
    let product = join(unit, lengths, (&of_a, &of_b), start, &algorithm).unwrap();
    let error = Reference::new(a, b).errors(&product.d).componentwise;
    let bound = Bound::of(evaluator, count, accumulation);
    (error, bound.and_then(|bound| bound.componentwise(&mut Magnitudes::new(a, b))))
}

const BLOCKED: [Accumulation; 2] = [Accumulation::F32 { block: 48 }, Accumulation::F64 { block: 100 }];

/// Holds every unit against its bound; gives, for each kind of elements, the nearest that an error came to it.
fn hold(lengths: &[usize], counts: &[usize], kinds: &[Kind], accumulations: &[Accumulation]) -> Vec<f64> {
    let mut nearest = vec![0f64; kinds.len()];
    for (name, model, id) in units() {
        let unit = Modelled::new(&model, &id);
        for (nearest, kind) in nearest.iter_mut().zip(kinds) {
            for (seed, n) in lengths.iter().enumerate() {
                let (a, b) = matrices(*kind, (id.a, id.b), 2, *n, u32::try_from(seed).unwrap());
                for count in counts {
                    for accumulation in accumulations {
                        let (error, bound) = measured(&unit, &a, &b, *count, *accumulation);
                        let said = format!("{name}, {count} words, {kind:?}, n = {n}, {accumulation:?}");
                        let Some(bound) = bound else {
                            // Only where the product itself may leave the range of the unit's results.
                            assert!(name.contains("f16") || error.is_infinite(), "no bound: {said}");
                            continue;
                        };
                        assert!(error <= bound, "{said}: {error:e} is more than {bound:e}");
                        *nearest = nearest.max(error / bound);
                    }
                }
            }
        }
    }
    nearest
}

#[test]
fn no_error_of_a_model_is_larger_than_its_bound() {
    let found = hold(&[1, 33, 257], &[1, 2, 3], &KINDS, &[Accumulation::Unit]);
    let near = |kind: Kind| found[KINDS.iter().position(|other| *other == kind).unwrap()];
    // The bound is one that errors come near to.
    assert!(near(Kind::Remainders) > 0.5 && near(Kind::Below(25)) > 0.5, "{found:?}");
}

#[test]
fn no_error_of_blocks_is_larger_than_its_bound() {
    hold(&[49, 333], &[1, 3], &[Kind::Positive, Kind::Anywhere, Kind::Below(22), Kind::Remainders], &BLOCKED);
}

#[test]
#[ignore = "takes minutes: every model, format and number of words, sums of up to 2^13 products"]
fn no_error_of_a_long_sum_is_larger_than_its_bound() {
    let found = hold(&[2, 9, 2049, 1 << 13], &[1, 2, 3, 4], &KINDS, &[Accumulation::Unit]);
    // Errors of every kind come near their bounds in some unit.
    let kinds: Vec<_> = KINDS.iter().zip(&found).collect();
    assert!(found.iter().all(|nearest| *nearest > 0.1), "{kinds:?}");
    hold(&[1, 1 << 13], &[1, 2, 3], &KINDS, &BLOCKED);
}

#[test]
fn the_bound_of_three_words_of_e5m2_on_the_h100_and_of_e4m3_on_the_l40s_holds() {
    for (model, id) in [("h100", "wgmma.m64n8k32.f32.e5m2.e5m2.f32"), ("l40s", "mma.m16n8k32.f32.e4m3.e4m3.f32")] {
        let unit = Modelled::new(&load(model).unwrap(), &id.parse().unwrap());
        for kind in [Kind::Positive, Kind::Centred] {
            for n in [512, 4096] {
                let (a, b) = matrices(kind, (unit.unit.id().a, unit.unit.id().b), 4, n, 1);
                let (error, bound) = measured(&unit, &a, &b, 3, Accumulation::Unit);
                let bound = bound.unwrap();
                assert!(error <= bound && bound < 1.0, "{model}, {kind:?}, n = {n}: {error:e}, {bound:e}");
            }
        }
    }
}

#[test]
fn the_loop_in_f32_has_the_bound_of_its_roundings() {
    for kind in KINDS {
        for n in [1, 2, 100, 1000] {
            let (a, b) = matrices(kind, (Format::F16, Format::F16), 3, n, 5);
            let error = Reference::new(&a, &b).errors(&crate::gemm::growth::single(&a, &b)).componentwise;
            let bound = Bound::single().componentwise(&mut Magnitudes::new(&a, &b)).unwrap();
            let known = (n as f64 + 1.0) * power_of_two(-24);
            assert!(error <= bound && bound <= known * 1.01, "{kind:?}, n = {n}: {error:e}, {bound:e}, {known:e}");
        }
    }
}

#[test]
fn values_beyond_the_range_of_the_words_have_no_bound() {
    let unit = Modelled::new(&load("l40s").unwrap(), &"mma.m16n8k32.f32.e4m3.e4m3.f32".parse().unwrap());
    let (a, b) = (Matrix::new(1, 1, vec![449.0]).unwrap(), Matrix::new(1, 1, vec![1.0]).unwrap());
    assert_eq!(measured(&unit, &a, &b, 1, Accumulation::Unit).1, None);
}
