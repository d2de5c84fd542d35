//! Sums in any order: random trees of operations and additions.

use mxprobe::tolerance::{Interval, Order, Tolerance};
use mxprobe_api::{Elements, Format, Random};
use mxprobe_models::Dot;

use super::{draws::Product, units::Unit};

/// The terms of a dot, which a tree adds in any order.
struct Terms<'a> {
    unit: &'a Unit,
    a: Vec<u64>,
    b: Vec<u64>,
    c: u64,
}

impl Terms<'_> {
    /// The result of one operation on some products.
    fn operation(&self, products: &[usize], c: u64) -> u64 {
        let step = self.unit.id.shape.sizes().2;
        let (mut a, mut b) = (vec![0; step], vec![0; step]);
        for (place, at) in products.iter().enumerate() {
            (a[place], b[place]) = (self.a[*at], self.b[*at]);
        }
        self.unit.evaluator.dot(Dot { a: &a, b: &b, c, scales: None }).unwrap()
    }

    /// The result of a random tree over all products and c.
    fn tree(&self, random: &mut Random) -> u64 {
        let step = self.unit.id.shape.sizes().2;
        let mut order: Vec<usize> = (0..self.a.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at + 1));
        }
        // Slices, each a chain of operations, which are full or filled at random.
        let most = [1, 8, 64, 512][random.below(4)];
        let (slices, full) = (1 + random.below(most), random.flip());
        let mut results: Vec<u64> = vec![0; slices];
        results[0] = self.c;
        let mut rest = &order[..];
        let mut next = 0;
        while !rest.is_empty() {
            let count = if full { step } else { 1 + random.below(step) };
            let (taken, left) = rest.split_at(count.min(rest.len()));
            results[next] = self.operation(taken, results[next]);
            (rest, next) = (left, (next + 1) % slices);
        }
        // The sum of two in f64 is rounded once more; its format has more than twice the bits of D.
        let d = self.unit.id.d;
        while results.len() > 1 {
            let one = results.swap_remove(random.below(results.len()));
            let at = random.below(results.len());
            results[at] = d.from_f64(d.to_f64(one) + d.to_f64(results[at]));
        }
        results[0]
    }
}

/// Draws the terms of a sum, of which the product at `large`, if given, is of this value squared.
fn drawn(
    unit: &Unit,
    k: usize,
    large: Option<(usize, f64)>,
    random: &mut Random,
) -> (Product, Vec<u64>, Vec<u64>, u64) {
    let mut value = |format: Format| random.moderate(format);
    let mut a: Vec<u64> = (0..k).map(|_| value(unit.id.a)).collect();
    let mut b: Vec<u64> = (0..k).map(|_| value(unit.id.b)).collect();
    if let Some((at, value)) = large {
        (a[at], b[at]) = (unit.id.a.from_f64(value), unit.id.b.from_f64(value));
    }
    let c = value(unit.id.c);
    let of = |format, bits: &[u64]| Elements::from_bits(format, bits.iter().copied());
    let product = Product::new((1, 1, k), of(unit.id.a, &a), of(unit.id.b, &b), of(unit.id.c, &[c]));
    (product, a, b, c)
}

#[test]
fn a_thousand_orders_of_a_long_sum_are_inside_and_a_dropped_product_is_outside() {
    let k = 4096;
    // Where bounds are wide, fewer products, or one that is large, show that one is dropped. Results of few bits have no
    // bound if they are rounded 4096 times.
    for (name, id, k, (dropped_of, large)) in [
        ("h100", "mma.m16n8k16.f32.f16.f16.f32", k, (k, None)),
        ("a100", "mma.m16n8k16.f32.bf16.bf16.f32", k, (k, None)),
        ("v100", "mma.m8n8k4.f32.f16.f16.f32", k, (k, None)),
        ("mi300x", "mfma.m16n16k16.f32.bf16.bf16.f32", k, (k, None)),
        ("fma-chain", "dot.m1n1k4.f32.f32.f32.f32", k, (k, None)),
        ("h100", "mma.m16n8k16.f16.f16.f16.f16", 1024, (256, Some(30.0))),
        ("h100", "wgmma.m64n8k32.f32.e4m3.e4m3.f32", k, (512, Some(448.0))),
        ("l40s", "mma.m16n8k32.f32.e5m2.e4m3.f32", 1024, (512, Some(448.0))),
        ("rdna3", "wmma.m16n16k16.f32.f16.f16.f32", k, (k, Some(30.0))),
        ("b200", "tcgen05.m64n8k32.f32.e2m1.e2m3.f32", k, (k, None)),
    ] {
        let unit = Unit::named(name, id);
        let d = unit.id.d;
        let mut random = Random(7);
        let (product, a, b, c) = drawn(&unit, k, None, &mut random);
        let tolerance = Tolerance::new(&unit.model, &unit.id, k, Order::Any).unwrap();
        let element = tolerance.elements(&product.operands(), 1).unwrap()[0];
        assert!(matches!(element.interval, Interval::Within { .. }), "{}: {element:?}", unit.name);
        let terms = Terms { unit: &unit, a, b, c };
        let mut results = Vec::new();
        for _ in 0..1000 {
            let found = terms.tree(&mut random);
            assert!(element.interval.contains(d, found), "{}: {found:#x} {element:?}", unit.name);
            results.push(d.to_f64(found));
        }
        results.sort_by(f64::total_cmp);
        results.dedup();
        // Few products of few bits are exact in every order.
        let is_exact = element.down + element.up == 0.0;
        assert!(is_exact || results.len() > 10, "{}: orders differ in {} results only", unit.name, results.len());
        // Without its largest product the sum is outside.
        let (product, a, b, c) = drawn(&unit, dropped_of, large.map(|value| (dropped_of / 3, value)), &mut random);
        let tolerance = Tolerance::new(&unit.model, &unit.id, dropped_of, Order::Any).unwrap();
        let element = tolerance.elements(&product.operands(), 1).unwrap()[0];
        let size = |at: usize| (unit.id.a.to_f64(a[at]) * unit.id.b.to_f64(b[at])).abs();
        let largest = (0..dropped_of).max_by(|one, other| size(*one).total_cmp(&size(*other))).unwrap();
        assert!(size(largest) > element.down + element.up, "{}: {} {element:?}", unit.name, size(largest));
        let whole = Terms { unit: &unit, a: a.clone(), b: b.clone(), c };
        let mut dropped = Terms { unit: &unit, a, b, c };
        dropped.a[largest] = 0;
        for _ in 0..20 {
            let (found, short) = (whole.tree(&mut random), dropped.tree(&mut random));
            assert!(element.interval.contains(d, found), "{}: {found:#x} {element:?}", unit.name);
            assert!(!element.interval.contains(d, short), "{}: {short:#x} {element:?}", unit.name);
        }
    }
}
