//! Dots that lose as much as can be: one large term and many just below what is kept of it, of one sign or cancelling, down to
//! subnormals and up to carries.

use std::ops::Range;

use mxprobe::tolerance::{Bound, Order, Signs, Tolerance};
use mxprobe_api::{Elements, Format, OperationId, Overflow, Random, Rounding, Subnormals};

use super::{
    draws::Product,
    units::{Unit, units},
};

/// Rows and columns of a product: so many dots squared.
const LINES: usize = 64;

/// ±1.f · 2^exponent, or what the format holds of it.
fn value(format: Format, exponent: i32, fraction: usize, random: &mut Random, negative: bool) -> u64 {
    let bits = format.fraction_bits();
    let ones = (1u64 << bits) - 1;
    let fraction = [0, ones, 1 & ones, random.bits() & ones][fraction];
    let lsb = exponent - bits.cast_signed();
    let (rounding, overflow) = (Rounding::TowardZero, Overflow::Saturate);
    format.encode(negative, (fraction | 1 << bits).into(), lsb, rounding, overflow, Subnormals::Keep).bits
}

fn exponents(format: Format) -> Range<i32> {
    let float = format.as_float().unwrap();
    float.exponents().0..float.max_exponent() + 1
}

/// A line of A or of B: a large element among smaller ones.
fn line(format: Format, k: usize, random: &mut Random) -> Vec<u64> {
    let Range { start: low, end } = exponents(format);
    let high = end - 1;
    // In the middle of the range, at its top, or at its bottom.
    let top = [random.between((low + high) / 2, high - 1), high - random.between(1, 3), random.between(low, low + 12)];
    let top = top[random.below(8).min(2) * random.below(2)].clamp(low, high);
    let gap = [0, random.between(0, 3), random.between(4, 30)][random.below(3)];
    let (at, fraction, signs, negative) = (random.below(k), random.below(4), random.below(4), random.flip());
    let mut element = |place: usize| {
        let sign = match signs {
            0 | 1 => negative,
            2 => random.flip(),
            _ => place.is_multiple_of(2),
        };
        let spread = if signs == 1 { random.between(-1, 1) } else { 0 };
        let exponent = if place == at { top } else { top - gap + spread };
        if random.below(40) == 0 { 0 } else { value(format, exponent, fraction, random, sign) }
    };
    (0..k).map(&mut element).collect()
}

/// LINES × LINES dots of k products.
fn product(id: &OperationId, k: usize, random: &mut Random) -> Product {
    let mut a = Elements::zeros(id.a, LINES * k);
    let mut b = Elements::zeros(id.b, k * LINES);
    for at in 0..LINES {
        for (place, (x, y)) in line(id.a, k, random).into_iter().zip(line(id.b, k, random)).enumerate() {
            a.set(at * k + place, x);
            b.set(place * LINES + at, y);
        }
    }
    let Range { start: low, end: high } = exponents(id.c);
    let products = exponents(id.a).start + exponents(id.b).start..exponents(id.a).end + exponents(id.b).end;
    let middle = products.start.max(low)..products.end.min(high);
    let c = (0..LINES * LINES).map(|_| {
        let exponent = random.between(middle.start, middle.end - 2);
        let fraction = random.below(4);
        let negative = random.flip();
        if random.flip() { 0 } else { value(id.c, exponent, fraction, random, negative) }
    });
    Product::new((LINES, LINES, k), a, b, Elements::from_bits(id.c, c))
}

/// Whether values are near enough to be inside beyond doubt: sums in f64, whose own errors are counted in full. All that it does not
/// know to be inside is judged exactly.
fn is_inside(bound: &Bound, products: &[f64], c: f64, d: f64) -> bool {
    let (mut positive, mut negative) = (c.max(0.0), (-c).max(0.0));
    for product in products {
        positive += product.max(0.0);
        negative -= product.min(0.0);
    }
    let magnitudes = positive + negative;
    if !(magnitudes < bound.largest() / 4.0 && magnitudes > 1e-250 && d.is_finite()) {
        return false;
    }
    let signs = match (positive > 0.0, negative > 0.0) {
        (_, false) => Signs::Positive,
        (false, _) => Signs::Negative,
        _ => Signs::Mixed,
    };
    let own = magnitudes * (products.len() + 2) as f64 * 2f64.powi(-51);
    let largest = positive.max(negative) * (1.0 - 2f64.powi(-40));
    let unit = largest.max(2f64.powi(bound.least_exponent())).log2().floor().exp2();
    let (relative, error) = (bound.relative(signs), d - (positive - negative));
    let along = bound.along() * magnitudes;
    (-error + own <= (relative.down * unit).min(along) || relative.down == 0.0 && -error + own <= 0.0)
        && (error + own <= (relative.up * unit).min(along) || relative.up == 0.0 && error + own <= 0.0)
        || error == 0.0 && own < relative.down.min(relative.up) * unit
}

/// Holds so many dots of a unit against the tolerance of any order, and of a chain; how many were judged exactly.
fn hold(unit: &Unit, k: usize, dots: usize, seed: u64) -> usize {
    let id = &unit.id;
    let order = if id.c == id.d { Order::Chain } else { Order::Given };
    let tolerance = Tolerance::new(&unit.model, id, k, order).unwrap();
    let of_any = (id.c == id.d).then(|| Tolerance::new(&unit.model, id, k, Order::Any).unwrap());
    let mut random = Random(seed);
    let mut exactly = 0;
    for _ in 0..dots.div_ceil(LINES * LINES) {
        let product = product(id, k, &mut random);
        let operands = product.operands();
        let d = unit.evaluator.multiply(&operands, 1).unwrap();
        let values =
            |elements: &Elements| elements.iter().map(|bits| elements.format().to_f64(bits)).collect::<Vec<_>>();
        let (a, b, c) = (values(operands.a), values(operands.b), values(operands.c));
        // Exponents of subnormal operands count for more than their values.
        let least = [id.a, id.b].map(|format| 2f64.powi(format.as_float().unwrap().min_exponent()));
        let small = |value: f64, least: f64| value != 0.0 && value.abs() < least;
        let rows: Vec<bool> = a.chunks(k).map(|row| row.iter().any(|x| small(*x, least[0]))).collect();
        let columns: Vec<bool> =
            (0..LINES).map(|column| (0..k).any(|place| small(b[place * LINES + column], least[1]))).collect();
        let mut doubtful = Vec::new();
        let mut products = vec![0.0; k];
        for at in 0..LINES * LINES {
            let (row, column) = (at / LINES, at % LINES);
            for (place, product) in products.iter_mut().enumerate() {
                *product = a[row * k + place] * b[place * LINES + column];
            }
            let bound = tolerance.bound(c[at] != 0.0).unwrap();
            let value = id.d.to_f64(d.get(at));
            if rows[row] || columns[column] || !is_inside(bound, &products, c[at], value) {
                doubtful.push(at);
            }
        }
        exactly += doubtful.len();
        for at in doubtful {
            let dot = product.dot(at / LINES, at % LINES);
            let one = dot.operands();
            let of_d = Elements::from_bits(id.d, [d.get(at)]);
            for tolerance in [Some(&tolerance), of_any.as_ref()].into_iter().flatten() {
                let checked = tolerance.check(&one, &of_d, 1).unwrap();
                if let Some(outside) = checked.worst() {
                    let order = tolerance.order();
                    panic!("{}, {order:?}, k = {k}: {outside:?}\n{}", unit.name, dot.show(id, outside));
                }
            }
        }
    }
    exactly
}

/// The operations that are asked of the models: floating, without block scales, of a few products.
fn asked() -> Vec<Unit> {
    let fits = |unit: &Unit| {
        let id = &unit.id;
        let known = ["f16", "bf16", "e4m3", "e4m3fnuz", "f32"].contains(&id.a.name()) && id.a == id.b;
        known && id.block_scale().is_none() && id.shape.sizes().2 <= 64 && unit.model.variant.is_none()
    };
    units().into_iter().filter(fits).collect()
}

#[test]
fn no_adversarial_dot_lies_outside() {
    for (seed, unit) in asked().iter().enumerate() {
        hold(unit, unit.id.shape.sizes().2, LINES * LINES, seed as u64);
    }
}

/// `MXPROBE_DOTS=N` of each operation, or 10 million; `MXPROBE_ONLY=NAME` asks the operations whose names begin so.
#[test]
#[ignore = "takes long: cargo test --release --test tolerance -- --ignored --nocapture adversarial"]
fn no_adversarial_dot_of_many_lies_outside() {
    let dots = std::env::var("MXPROBE_DOTS").map_or(10_000_000, |dots| dots.parse().unwrap());
    let only = std::env::var("MXPROBE_ONLY").unwrap_or_default();
    let asked = asked();
    assert!(asked.iter().any(|unit| unit.name.starts_with(&only)), "no operation begins with `{only}`");
    for (seed, unit) in asked.iter().enumerate().filter(|(_, unit)| unit.name.starts_with(&only)) {
        let step = unit.id.shape.sizes().2;
        let long = if unit.id.c == unit.id.d { 3 * step } else { step };
        let exactly: usize = [step, long].into_iter().map(|k| hold(unit, k, dots / 2, 1000 + seed as u64)).sum();
        eprintln!("{}: {dots} dots, {exactly} judged exactly, none outside", unit.name);
    }
}
