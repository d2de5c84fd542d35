//! A subnormal c counts as the smallest normal number where a sum is aligned, on every path.

use mxprobe_api::{Elements, GemmOperands, Random};
use mxprobe_models::{Evaluator, Model, Path};

fn text(exponent_floor: &str, fraction_bits: i32) -> String {
    format!(
        r#"
schema = "mxprobe-model/1"
name = "subnormal-c"
title = "a unit that cuts low bits of a subnormal c"
vendor = "nobody"
fingerprint = "subnormal-c"

[sources]
here = "made up"

[adder.s]
output = "f32"
rounding = "toward-zero"
fraction_bits = {fraction_bits}
{exponent_floor}
below = "truncate"
overflow = "infinity"
nan = "0x7fffffff"
basis = "specified"
source = "here"

[[unit]]
tree = "fold(c, all/2, s(all, acc))"
operations = ["dot.m4n4k4.f32.{{e5m2.e5m2,f16.f16}}.f32"]
basis = "specified"
source = "here"
"#
    )
}

#[test]
fn a_subnormal_c_is_cut_at_the_same_bit_on_every_path() {
    let mut random = Random(5);
    let mut cut = 0;
    for (floor, bits) in [("", 22), ("exponent_floor = -130", 22), ("exponent_floor = -133", 20), ("", 24)] {
        let model =
            Model::parse("subnormal-c.toml", &text(floor, bits), None).unwrap_or_else(|error| panic!("{error}"));
        for id in &model.units[0].operations {
            let (m, n, k) = (16, 64, 4);
            let zeros = |count: usize| Elements::from_bits(id.a, vec![0; count]);
            let (a, b) = (zeros(m * k), zeros(k * n));
            let values: Vec<u64> = (0..m * n).map(|_| random.bits() & 0x80ff_ffff).collect();
            let c = Elements::from_bits(id.c, values.clone());
            let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
            let of = |path: Path| Evaluator::with_path(&model, id, path).unwrap().multiply(&matrices, 1).unwrap();
            let exact = of(Path::Exact);
            cut += (0..m * n).filter(|at| exact.get(*at) != values[*at]).count();
            for path in Path::available() {
                let found = of(path);
                let differs = (0..m * n).find(|at| found.get(*at) != exact.get(*at));
                assert_eq!(differs.map(|at| (values[at], found.get(at), exact.get(at))), None, "{id} {floor} {path:?}");
            }
        }
    }
    assert!(cut > 1_000, "{cut}");
}
