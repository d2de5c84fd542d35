//! Rounding half up at alignment: known answers, every path compared with the exact evaluator, the file and its words.

mod common;

use common::{dot, times};
use mxprobe_api::{Elements, Format, GemmOperands, Random};
use mxprobe_models::{Evaluator, Model, Path};

fn model() -> Model {
    Model::parse("ties_away.toml", include_str!("ties_away.toml"), None).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_tie_at_alignment_goes_away_from_zero_on_either_side() {
    for (products, c, expected) in [
        // 1 and 2^-11: half of the unit 2^-10 rounds to a whole one.
        ("3c00*3c00 0400*4800", "00000000", "3f802000"),
        ("bc00*3c00 8400*4800", "00000000", "bf802000"),
        // Less than half is lost.
        ("3c00*3c00 03ff*4800", "00000000", "3f800000"),
        // Two times 2^-11 give two units.
        ("3c00*3c00 0400*4800 0400*4800", "00000000", "3f804000"),
        // In a group without the 1, the sum 1 + 2^-11 keeps its bits within twelve.
        ("3c00*3c00 k4:0400*4800", "00000000", "3f801000"),
        // Once normalised, 1 + 2^-13 is a tie of twelve bits.
        ("3c00*3c00 k4:0400*4000", "00000000", "3f800800"),
        ("bc00*3c00 k4:8400*4000", "00000000", "bf800800"),
        // With a sum of 8, nothing is lost.
        (&times(8, "3c00*3c00"), "00000000", "41000000"),
        // c loses two bits more: the 2^-23 in 1 + 2^-23 is half of its unit 2^-22, and rounding to twelve bits then
        // drops it.
        ("", "3f800001", "3f800000"),
    ] {
        assert_eq!(dot(&model(), "dot.m1n1k8.f32.f16.f16.f32", products, c), expected, "{products} + {c}");
    }
}

/// Arbitrary bits; values around 1; subnormals and values near them; powers of two, whose sums tie.
fn elements(format: Format, len: usize, class: u64, random: &mut Random) -> Elements {
    let float = format.as_float().expect("floats alone");
    let draw = |random: &mut Random| {
        let bits = random.bits() & format.mask();
        let sign = bits & 1 << (format.bits() - 1);
        let fraction = bits & ((1 << float.fraction_bits) - 1);
        let field = |low: i32, width: u64, random: &mut Random| {
            (u64::from(low.cast_unsigned()) + random.bits() % width) << float.fraction_bits
        };
        match class {
            0 => bits,
            1 => sign | field(float.bias - 3, 6, random) | fraction,
            2 => sign | field(0, 3, random) | fraction,
            _ => sign | field((float.bias - 7).max(1), 14, random),
        }
    };
    Elements::from_bits(format, (0..len).map(|_| draw(random)).collect::<Vec<_>>())
}

#[test]
fn every_path_rounds_half_up_at_alignment_as_the_exact_evaluator_does() {
    let (model, mut random) = (model(), Random(1));
    for id in model.operations.keys() {
        for turn in 0..16 {
            let (m, n, k) = (9, 17, 16);
            let a = elements(id.a, m * k, turn % 4, &mut random);
            let b = elements(id.b, k * n, turn / 4, &mut random);
            let c = elements(id.c, m * n, turn % 4, &mut random);
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
