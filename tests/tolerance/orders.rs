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
        let value = |bits: u64| f32::from_bits(u32::try_from(bits).unwrap());
        while results.len() > 1 {
            let one = results.swap_remove(random.below(results.len()));
            let at = random.below(results.len());
            let sum = value(one) + value(results[at]);
            results[at] = sum.to_bits().into();
        }
        results[0]
    }
}

#[test]
fn a_thousand_orders_of_a_long_sum_are_inside_and_a_dropped_product_is_outside() {
    let k = 4096;
    for (name, id) in [
        ("h100", "mma.m16n8k16.f32.f16.f16.f32"),
        ("v100", "mma.m8n8k4.f32.f16.f16.f32"),
        ("mi300x", "mfma.m16n16k16.f32.bf16.bf16.f32"),
        ("fma-chain", "dot.m1n1k4.f32.f32.f32.f32"),
    ] {
        let unit = Unit::named(name, id);
        let mut random = Random(7);
        let mut value = |format: Format| random.moderate(format);
        let a: Vec<u64> = (0..k).map(|_| value(unit.id.a)).collect();
        let b: Vec<u64> = (0..k).map(|_| value(unit.id.b)).collect();
        let c = value(unit.id.c);
        let of = |format, bits: &[u64]| Elements::from_bits(format, bits.iter().copied());
        let product = Product::new((1, 1, k), of(unit.id.a, &a), of(unit.id.b, &b), of(unit.id.c, &[c]));
        let tolerance = Tolerance::new(&unit.model, &unit.id, k, Order::Any).unwrap();
        let element = tolerance.elements(&product.operands(), 1).unwrap()[0];
        let terms = Terms { unit: &unit, a, b, c };
        let mut results = Vec::new();
        for _ in 0..1000 {
            let d = terms.tree(&mut random);
            assert!(element.interval.contains(unit.id.d, d), "{}: {d:#x} {element:?}", unit.name);
            results.push(unit.id.d.to_f64(d));
        }
        results.sort_by(f64::total_cmp);
        results.dedup();
        assert!(results.len() > 20, "{}: orders differ in {} results only", unit.name, results.len());
        // Without its largest product the sum is outside.
        let size = |at: usize| (unit.id.a.to_f64(terms.a[at]) * unit.id.b.to_f64(terms.b[at])).abs();
        let largest = (0..k).max_by(|one, other| size(*one).total_cmp(&size(*other))).unwrap();
        assert!(size(largest) > element.down + element.up, "{}: {element:?}", unit.name);
        let mut dropped = Terms { a: terms.a.clone(), b: terms.b.clone(), ..terms };
        dropped.a[largest] = 0;
        for _ in 0..20 {
            let d = dropped.tree(&mut random);
            assert!(!element.interval.contains(unit.id.d, d), "{}: {d:#x} {element:?}", unit.name);
        }
        assert!(matches!(element.interval, Interval::Within { .. }));
    }
}
