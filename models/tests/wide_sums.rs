//! Sums without a grid whose terms are as far apart as their formats allow: words of fixed width hold them, and give
//! the bits of the exact evaluator.

use mxprobe_api::{Format, OperationId};
use mxprobe_models::{Dot, Evaluator, Flush, Model, Path, Sample};

/// Sums of four that are rounded once, and pairs that pass on their unrounded sums.
const FILE: &str = r#"
schema = "mxprobe-model/1"
name = "wide-sums"
title = "a unit that loses nothing before its last rounding"
vendor = "nobody"
fingerprint = "wide-sums"

[sources]
here = "made up"

[adder.pair]
output = "wide"
basis = "specified"
source = "here"

[adder.last]
output = "f32"
rounding = "nearest-even"
nan = "0x7fc00000"
basis = "specified"
source = "here"

[[unit]]
tree = "last(all, c)"
operations = ["dot.m1n1k4.f32.{f16.f16,bf16.bf16,f32.f32,e4m3.e5m2}.f32"]
basis = "specified"
source = "here"

[[unit]]
tree = "last(pair(0..2), pair(2..4), c)"
operations = ["dot.m1n1k4.f32.{f16.bf16,tf32.tf32}.f32"]
basis = "specified"
source = "here"
"#;

/// ±1.1…: a power of two with this exponent and all fraction bits set, clamped to the largest and smallest value of the
/// format.
fn value(format: Format, negative: bool, exponent: i32) -> u64 {
    let float = format.as_float().expect("floats alone");
    let field = (exponent + float.bias).clamp(0, float.max_exponent() + float.bias).cast_unsigned();
    let fraction = (1 << float.fraction_bits) - 1;
    let sign = u64::from(negative) << (float.exponent_bits + float.fraction_bits);
    (sign | u64::from(field) << float.fraction_bits | (fraction - u64::from(field % 2))) << float.unread_bits
}

#[test]
fn sums_of_terms_at_any_distance_fit_words_of_fixed_width() {
    let model = Model::parse("wide-sums.toml", FILE, None).unwrap_or_else(|error| panic!("{error}"));
    for id in model.units.iter().flat_map(|unit| &unit.operations) {
        let id: &OperationId = id;
        let exact = Evaluator::with_path(&model, id, Path::Exact).unwrap();
        let scalar = Evaluator::with_path(&model, id, Path::Scalar).unwrap();
        let mut sample = Sample::with_path(id, Flush::default(), Path::Scalar);
        let mut wanted = Vec::new();
        let exponents: Vec<i32> = (-7..=7).map(|step| step * 21).collect();
        for (turn, (one, other)) in
            exponents.iter().flat_map(|one| exponents.iter().map(move |other| (one, other))).enumerate()
        {
            for (third, addend) in [(-300, 0), (0, -149), (*other - 1, 127), (300, *one)] {
                let [a, b] = [id.a, id.b].map(|format| {
                    let signs = [turn & 1, turn >> 1 & 1, 0, turn >> 2 & 1];
                    let at = [*one, *other, third, third - 3];
                    [0, 1, 2, 3].map(|k| value(format, format == id.a && signs[k] == 1, at[k]))
                });
                let dot = Dot { a: &a, b: &b, c: value(id.c, turn % 3 == 0, addend), scales: None };
                sample.push(dot);
                wanted.push(exact.dot(dot).unwrap());
            }
        }
        let mut found = Vec::new();
        let left_over = scalar.visit(&sample, 0..sample.len(), |_, d| {
            found.push(d);
            true
        });
        assert_eq!(found, wanted, "{id}");
        assert_eq!(left_over, 0, "{id}: dots of {} that no word holds", sample.len());
    }
}
