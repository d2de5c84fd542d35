//! Sums on a grid that every addition keeps are exact in every order; with one more bit they are not.

use mxprobe::tolerance::{Interval, Order, Signs, Tolerance};
use mxprobe_api::{Elements, Format, GemmOperands, Random};

use super::units::Unit;

/// The interval of the sum of c and the products `a`·1, as f64.
fn interval(unit: &Unit, a: &[f64], c: f64) -> (f64, f64) {
    let id = &unit.id;
    let of = |format: Format, values: &[f64]| Elements::from_bits(format, values.iter().map(|x| format.from_f64(*x)));
    let (a, b, c) = (of(id.a, a), of(id.b, &vec![1.0; a.len()]), of(id.c, &[c]));
    let operands = GemmOperands { m: 1, n: 1, k: b.len(), a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    let tolerance = Tolerance::new(&unit.model, id, b.len(), Order::Any).unwrap();
    match tolerance.elements(&operands, 1).unwrap()[0].interval {
        Interval::Within { low, high } => (id.d.to_f64(low), id.d.to_f64(high)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn whole_numbers_have_one_sum_until_they_have_more_bits_than_are_kept() {
    let mut random = Random(1);
    for (model, id, kept) in [
        ("h100", "mma.m16n8k16.f32.f16.f16.f32", 23),
        ("h100", "wgmma.m64n8k32.f32.e4m3.e4m3.f32", 13),
        ("v100", "mma.m8n8k4.f32.f16.f16.f32", 23),
        ("fma-chain", "dot.m1n1k4.f32.f32.f32.f32", 23),
    ] {
        let unit = Unit::named(model, id);
        let a: Vec<f64> = (0..100).map(|_| f64::from(random.between(-8, 8))).collect();
        let sum: f64 = a.iter().sum();
        assert_eq!(interval(&unit, &a, 0.0), (sum, sum), "{id}");
        // c has the largest exponent.
        let (below, above) = (2f64.powi(kept), 2f64.powi(kept + 1));
        let positive: Vec<f64> = a.iter().map(|x| x.abs().max(1.0)).collect();
        let sum: f64 = positive.iter().sum();
        assert_eq!(interval(&unit, &positive, below), (below + sum, below + sum), "{id}");
        let (low, high) = interval(&unit, &positive, above);
        assert!(low < above + sum && low < high, "{id}: {low} {high}");
    }
}

#[test]
fn formats_of_few_bits_lose_nothing_without_a_c() {
    let unit = Unit::named("b200", "tcgen05.m64n8k32.f32.e2m1.e2m3.f32");
    let bound = |k: usize, has_c: bool| {
        let tolerance = Tolerance::new(&unit.model, &unit.id, k, Order::Any).unwrap();
        tolerance.bound(has_c).unwrap().relative(Signs::Mixed).most()
    };
    // 6 · 7.5 · k stays below 2^24 · 2^-4, the lowest bit of a product, up to k = 23301.
    assert!(bound(64, false) == 0.0 && bound(23_301, false) == 0.0);
    assert!(bound(23_302, false) > 0.0 && bound(64, true) > 0.0);
}
