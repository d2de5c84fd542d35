//! The sign of a sum whose terms are all cut to zero, on every path.

use mxprobe_api::{Elements, GemmOperands, Random};
use mxprobe_models::{Evaluator, Model, Path};

/// A negative sum keeps lower bits than the addition after it, which therefore cuts the sum to zero, next to a c of −0.
const FILE: &str = r#"
schema = "mxprobe-model/1"
name = "zero-signs"
title = "a unit that cuts what it has summed"
vendor = "nobody"
fingerprint = "zero-signs"

[sources]
here = "made up"

[adder.last]
output = "f32"
rounding = "toward-zero"
grid = [{ terms = "all", exponent = "operands", fraction_bits = 21 }]
below = "truncate"
overflow = "saturate"
nan = "0x7fffffff"
basis = "specified"
source = "here"

[adder.wide]
output = "wide"
grid = [{ terms = "all", exponent = "leading", fraction_bits = 24, exponent_floor = -35 }]
below = "floor"
basis = "specified"
source = "here"

[[unit]]
tree = "fold(c, all/6, last(wide(all), acc))"
operations = ["dot.m4n4k6.f32.f16.f16.f32"]
basis = "specified"
source = "here"
"#;

#[test]
fn an_unrounded_sum_that_is_cut_to_nothing_is_positive_on_every_path() {
    let model = Model::parse("zero-signs.toml", FILE, None).unwrap_or_else(|error| panic!("{error}"));
    let id = &model.units[0].operations[0];
    let (m, n, k) = (20, 70, 6);
    let mut random = Random(3);
    // Ones that cancel, and small values below them, so that the remaining sums are a few of their lowest units.
    let values = [0, 0x8000, 0x0400, 0x8400, 0x1000, 0x9000, 0x3c00, 0xbc00, 0x3c00, 0xbc00];
    let mut draw = |count: usize| {
        Elements::from_bits(
            id.a,
            (0..count)
                .map(|_| if random.below(2) == 0 { values[random.below(values.len())] } else { 0 })
                .collect::<Vec<u64>>(),
        )
    };
    let (a, b) = (draw(m * k), draw(k * n));
    let c = Elements::from_bits(id.c, vec![0x8000_0000; m * n]);
    let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    let of = |path: Path| Evaluator::with_path(&model, id, path).unwrap().multiply(&matrices, 1).unwrap();
    let wanted = of(Path::Exact);
    let zeros = wanted.iter().filter(|bits| bits << 33 == 0).count();
    assert!(zeros > 100 && zeros < m * n, "{zeros} of {}", m * n);
    for path in Path::available() {
        let found = of(path);
        for at in 0..m * n {
            assert_eq!(id.d.hex(found.get(at)), id.d.hex(wanted.get(at)), "{path:?}, element {at}");
        }
    }
}
