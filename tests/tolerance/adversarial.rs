//! Dots that lose as much as possible: one large term and many just below the bits that are kept, of one sign or
//! cancelling, down to subnormals and up to carries.

use std::{collections::BTreeSet, ops::Range};

use mxprobe::tolerance::{Interval, Order, Tolerance};
use mxprobe_api::{Elements, Format, OperationId, Random};

use super::{
    draws::Product,
    quick::Judge,
    units::{Unit, units},
};

/// The number of rows, and of columns, of a product.
const LINES: usize = 256;

/// ±1.f · 2^exponent, as far as the format can represent it.
fn value(format: Format, exponent: i32, fraction: usize, random: &mut Random, negative: bool) -> u64 {
    let bits = format.fraction_bits();
    let ones = (1u64 << bits) - 1;
    let fraction = [0, ones, 1 & ones, random.bits() & ones][fraction];
    format.truncated(negative, fraction | 1 << bits, exponent - bits.cast_signed())
}

fn exponents(format: Format) -> Range<i32> {
    let float = format.as_float().unwrap();
    float.exponents().0..float.max_exponent() + 1
}

/// Draws a line of A or B: a large element among smaller ones. Returns the large element's exponent.
fn line(format: Format, k: usize, random: &mut Random, bits: &mut Vec<u64>) -> i32 {
    let Range { start: low, end } = exponents(format);
    let high = end - 1;
    // In the upper half of the range, at its top, or at its bottom.
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
    bits.extend((0..k).map(&mut element));
    top
}

/// The operands of LINES × LINES dots of k products.
struct Drawn {
    /// Row by row.
    a: Vec<u64>,
    /// Column by column.
    b: Vec<u64>,
    product: Product,
}

/// The number of values of C that are drawn for a product.
const VALUES: usize = 1 << 10;

fn draw(id: &OperationId, k: usize, random: &mut Random) -> Drawn {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let tops = [(id.a, &mut a), (id.b, &mut b)]
        .map(|(format, bits)| (0..LINES).map(|_| line(format, k, random, bits)).collect::<Vec<_>>());
    // As large as any product, or relative to the drawn ones: far above, where they overlap in the bits kept, or below.
    let Range { start: low, end } = exponents(id.c);
    let range = exponents(id.a).start + exponents(id.b).start..exponents(id.a).end + exponents(id.b).end;
    let range = range.start.max(low)..range.end.min(end).max(low + 3);
    let is_beside = random.below(3) > 0;
    let values: Vec<u64> = (0..VALUES)
        .map(|_| {
            let of_products = tops[0][random.below(LINES)] + tops[1][random.below(LINES)];
            let exponent = if is_beside {
                (of_products + random.between(-20, 34)).clamp(low, end - 2)
            } else {
                random.between(range.start, range.end - 2)
            };
            let (fraction, negative) = (random.below(4), random.flip());
            value(id.c, exponent, fraction, random, negative)
        })
        .collect();
    let mut c = Elements::zeros(id.c, LINES * LINES);
    for at in 0..LINES * LINES {
        let bits = random.bits();
        if bits >> 63 == 0 {
            c.set(at, values[usize::try_from(bits % VALUES as u64).expect("an index")]);
        }
    }
    let mut of_b = Elements::zeros(id.b, k * LINES);
    for (column, bits) in b.chunks(k).enumerate() {
        for (place, bits) in bits.iter().enumerate() {
            of_b.set(place * LINES + column, *bits);
        }
    }
    let of_a = Elements::from_bits(id.a, a.iter().copied());
    Drawn { a, b, product: Product::new((LINES, LINES, k), of_a, of_b, c) }
}

/// The numbers of a unit's dots by judgement.
#[derive(Default)]
struct Held {
    dots: usize,
    unbounded: usize,
    exactly: usize,
}

/// Checks `dots` dots of a unit against the tolerance of any order, and of a chain.
fn hold(unit: &Unit, k: usize, dots: usize, seed: u64) -> Held {
    let id = &unit.id;
    let order = if id.c == id.d { Order::Chain } else { Order::Given };
    let tolerance = Tolerance::new(&unit.model, id, k, order).unwrap();
    let of_any = (id.c == id.d).then(|| Tolerance::new(&unit.model, id, k, Order::Any).unwrap());
    let judge = Judge::new(&tolerance, &unit.evaluator);
    let mut random = Random(seed);
    let mut held = Held::default();
    while held.dots < dots {
        let Drawn { a, b, product } = draw(id, k, &mut random);
        let operands = product.operands();
        let d = unit.evaluator.multiply(&operands, 1).unwrap();
        let judged = judge.judge(k, &a, &b, operands.c, &d);
        held.dots += LINES * LINES;
        held.unbounded += judged.unbounded;
        held.exactly += judged.doubtful.len();
        for at in judged.doubtful {
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
    held
}

/// The operations tested: on floats of at most 32 bits, without block scales, with at most 64 products.
fn asked() -> Vec<Unit> {
    let fits = |unit: &Unit| {
        let id = &unit.id;
        let is_known = |format: Format| format.as_float().is_some_and(|float| float.is_signed()) && format.bits() <= 32;
        let formats = [id.a, id.b, id.c, id.d].into_iter().all(is_known);
        formats && id.block_scale().is_none() && id.shape.sizes().2 <= 64 && unit.model.variant.is_none()
    };
    units().into_iter().filter(fits).collect()
}

#[test]
fn no_adversarial_dot_lies_outside() {
    for (seed, unit) in asked().iter().enumerate() {
        hold(unit, unit.id.shape.sizes().2, 1, seed as u64);
    }
}

/// The next f32 above.
fn above(bits: u64) -> u64 {
    match bits {
        0x8000_0000 => 1,
        _ if bits >> 31 == 0 => bits + 1,
        _ => bits - 1,
    }
}

#[test]
fn what_lies_just_outside_is_never_taken_for_inside_by_sums_of_f64() {
    let sign = 1 << 31;
    for (model, id) in [
        ("h100", "mma.m16n8k16.f32.f16.f16.f32"),
        ("h100", "wgmma.m64n8k32.f32.e4m3.e4m3.f32"),
        ("mi300x", "mfma.m16n16k16.f32.bf16.bf16.f32"),
        ("fma-chain", "dot.m1n1k4.f32.f32.f32.f32"),
    ] {
        let unit = Unit::named(model, id);
        let k = unit.id.shape.sizes().2;
        let tolerance = Tolerance::new(&unit.model, &unit.id, k, Order::Chain).unwrap();
        let judge = Judge::new(&tolerance, &unit.evaluator);
        let Drawn { a, b, product } = draw(&unit.id, k, &mut Random(5));
        let operands = product.operands();
        let elements = tolerance.elements(&operands, 2).unwrap();
        for upward in [true, false] {
            let outside = elements.iter().map(|element| match element.interval {
                Interval::Within { low, .. } if !upward => above(low ^ sign) ^ sign,
                Interval::Within { high, .. } => above(high),
                Interval::Nan | Interval::Unbounded => 0,
            });
            let d = Elements::from_bits(unit.id.d, outside);
            let judged = judge.judge(k, &a, &b, operands.c, &d);
            let wrong: BTreeSet<usize> = judged.doubtful.into_iter().collect();
            let mut held = 0;
            for (at, element) in elements.iter().enumerate() {
                if matches!(element.interval, Interval::Within { .. }) {
                    assert!(wrong.contains(&at), "{}: {element:?}, {:#x}", unit.name, d.get(at));
                    held += 1;
                }
            }
            assert!(held > elements.len() / 2, "{}: {held}", unit.name);
        }
    }
}

/// Checks `MXPROBE_DOTS=N` dots of each model, by default 100 million, divided among its operations;
/// `MXPROBE_ONLY=NAME` selects models whose names begin with NAME.
#[test]
#[ignore = "takes long: cargo test --release --test tolerance -- --ignored --nocapture adversarial"]
fn no_adversarial_dot_of_many_lies_outside() {
    let dots = std::env::var("MXPROBE_DOTS").map_or(100_000_000, |dots| dots.parse().unwrap());
    let only = std::env::var("MXPROBE_ONLY").unwrap_or_default();
    let asked = asked();
    assert!(asked.iter().any(|unit| unit.name.starts_with(&only)), "no operation begins with `{only}`");
    for of_model in asked.chunk_by(|one, other| one.model.name == other.model.name) {
        let of_model: Vec<&Unit> = of_model.iter().filter(|unit| unit.name.starts_with(&only)).collect();
        let mut all = Held::default();
        let start = std::time::Instant::now();
        for (seed, unit) in of_model.iter().enumerate() {
            let step = unit.id.shape.sizes().2;
            let long = if unit.id.c == unit.id.d { 3 * step } else { step };
            for k in [step, long] {
                let held = hold(unit, k, dots / 2 / of_model.len(), 1000 + seed as u64);
                all.dots += held.dots;
                all.unbounded += held.unbounded;
                all.exactly += held.exactly;
                if std::env::var_os("MXPROBE_VERBOSE").is_some() {
                    let Held { dots, unbounded, exactly } = held;
                    eprintln!("  {}, k = {k}: {dots} dots, {unbounded} unbounded, {exactly} exactly", unit.name);
                }
            }
        }
        if let Some(unit) = of_model.first() {
            let Held { dots, unbounded, exactly } = all;
            let (name, operations, seconds) = (&unit.model.name, of_model.len(), start.elapsed().as_secs_f64());
            eprintln!(
                "{name}: {operations} operations, {dots} dots, none outside; {unbounded} of them unbounded, {exactly} judged exactly; {seconds:.0} s"
            );
        }
    }
}
