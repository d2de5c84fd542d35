//! Rounding half up at alignment: known answers, every path against the exact evaluator, the file and its words.

mod common;

use common::{dot, times};
use mxprobe_api::{Elements, Format, GemmOperands};
use mxprobe_models::{Evaluator, Model, Path};

/// Groups of four products on a grid of ten bits, and a chain of them that keeps twelve bits once it is normalised.
const FILE: &str = r#"
schema = "mxprobe-model/1"
name = "ties-away"
title = "a unit that rounds half up at alignment"
vendor = "nobody"
fingerprint = "ties-away"

[sources]
here = "made up"

[adder.group]
fraction_bits = 10
below = "nearest-away"
output = "wide"
basis = "specified"
source = "here"

[adder.chain]
fraction_bits = 24
below = "nearest-away"
value_cut_bits = 2
normalised_fraction_bits = 12
normalised_below = "nearest-away"
output = "f32"
rounding = "toward-zero"
nan = "0x7fc00000"
basis = "specified"
source = "here"

[[unit]]
tree = "fold(c, all/4, chain(group(all), acc))"
operations = ["dot.m1n1k8.f32.{f16.f16,bf16.bf16,e4m3.e5m2,f32.f32}.f32"]
basis = "specified"
source = "here"
"#;

fn model() -> Model {
    Model::parse("ties-away.toml", FILE, None).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_tie_at_alignment_goes_away_from_zero_on_either_side() {
    for (products, c, expected) in [
        // 1 and 2^-11: half of the unit 2^-10 is a whole one.
        ("3c00*3c00 0400*4800", "00000000", "3f802000"),
        ("bc00*3c00 8400*4800", "00000000", "bf802000"),
        // Less than half is lost.
        ("3c00*3c00 03ff*4800", "00000000", "3f800000"),
        // 2^-11 twice is twice a unit.
        ("3c00*3c00 0400*4800 0400*4800", "00000000", "3f804000"),
        // In another group it meets no 1: the sum 1 + 2^-11 has its bits within twelve.
        ("3c00*3c00 k4:0400*4800", "00000000", "3f801000"),
        // Once normalised, 1 + 2^-13 is a tie of twelve bits.
        ("3c00*3c00 k4:0400*4000", "00000000", "3f800800"),
        ("bc00*3c00 k4:8400*4000", "00000000", "bf800800"),
        // Nothing of 8 is lost.
        (&times(8, "3c00*3c00"), "00000000", "41000000"),
        // c loses two bits more: 2^-23 of 1 + 2^-23 is half of its unit 2^-22, and twelve bits then take it.
        ("", "3f800001", "3f800000"),
    ] {
        assert_eq!(dot(&model(), "dot.m1n1k8.f32.f16.f16.f32", products, c), expected, "{products} + {c}");
    }
}

/// SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Any bits; values about 1; subnormals and what is near them; powers of two, whose sums tie.
fn elements(format: Format, len: usize, class: u64, state: &mut u64) -> Elements {
    let float = format.as_float().expect("floats alone");
    let draw = |state: &mut u64| {
        let bits = next(state) & format.mask();
        let sign = bits & 1 << (format.bits() - 1);
        let fraction = bits & ((1 << float.fraction_bits) - 1);
        let field = |low: i32, width: u64, state: &mut u64| {
            (u64::from(low.cast_unsigned()) + next(state) % width) << float.fraction_bits
        };
        match class {
            0 => bits,
            1 => sign | field(float.bias - 3, 6, state) | fraction,
            2 => sign | field(0, 3, state) | fraction,
            _ => sign | field((float.bias - 7).max(1), 14, state),
        }
    };
    Elements::from_bits(format, (0..len).map(|_| draw(state)).collect::<Vec<_>>())
}

#[test]
fn every_path_rounds_half_up_at_alignment_as_the_exact_evaluator_does() {
    let (model, mut state) = (model(), 1);
    for id in model.operations.keys() {
        for turn in 0..16 {
            let (m, n, k) = (9, 17, 16);
            let a = elements(id.a, m * k, turn % 4, &mut state);
            let b = elements(id.b, k * n, turn / 4, &mut state);
            let c = elements(id.c, m * n, turn % 4, &mut state);
            let operands = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
            let of = |path| Evaluator::with_path(&model, id, path).unwrap().multiply(&operands, 1).unwrap();
            let exact = of(Path::Exact);
            for path in Path::available() {
                let found = of(path);
                for at in 0..m * n {
                    assert_eq!(found.get(at), exact.get(at), "{id} {path:?}, class {turn}, element {at}");
                }
            }
        }
    }
}

#[test]
fn the_file_is_written_as_it_was_read_and_its_words_say_so() {
    let model = model();
    let again = Model::parse("again.toml", &model.to_toml(), None).unwrap();
    assert_eq!(model.adders, again.adders);
    let words = model.explain();
    assert!(words.contains("lower bits are rounded to nearest, ties away from zero [specified: here]"), "{words}");
    assert!(model.adders[0].summary().contains("rounded to nearest, ties away"), "{}", model.adders[0].summary());
}
