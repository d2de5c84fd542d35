//! Dots that show one addition of a tree: their terms lie in different arguments of it, and no other addition joins any
//! of them.

use mxprobe_api::{FloatEncoding, Format};

use super::expression::Expression;
use crate::{
    dots::{Dot, Random},
    identify::dots::moderate::MODERATE,
    probes::{Leaf, Subject},
};

/// The most additions of a tree that are determined one by one.
pub(in crate::identify) const NODES: usize = 120;

/// Number of dots about all additions of a tree, and the minimum and maximum about one. There are fewer about each of
/// more than `NODES` additions, which are not determined one by one.
const TOTAL: usize = 6_000;
const LEAST: usize = 96;
const LEAST_OF_MANY: usize = 12;
const MOST: usize = 900;

/// Where the terms of a dot lie.
#[derive(Clone, Copy)]
struct Place {
    /// Whether terms are short and of moderate size, so that no format on the way changes a single one.
    short: bool,
    /// Lowest and highest exponents of products and of c.
    of_product: (i32, i32),
    of_c: (i32, i32),
    /// Significand bits of a result, and its smallest normal exponent.
    precision: i32,
    least: i32,
}

/// Makes dots for every addition of an untied tree, in the order of its adders.
pub(in crate::identify) fn dots(subject: &Subject<'_>, expression: &Expression, random: &mut Random) -> Vec<Dot> {
    let nodes = expression.arguments_by_adder();
    let least = if nodes.len() > NODES { LEAST_OF_MANY } else { LEAST };
    let each = (TOTAL / nodes.len().max(1)).clamp(least, MOST);
    let place = Place::of(subject);
    // Other additions on the way should not change the terms: some dots hold only those that they do not.
    let short = if nodes.len() > 1 { each / 2 } else { 0 };
    let short_terms = Place { short: true, ..place };
    let mut dots = Vec::new();
    for parts in nodes {
        let parts: Vec<Vec<Leaf>> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        match parts.len() {
            0 => {}
            1 => dots.extend(single(subject, &parts[0], each.min(160), random)),
            _ => {
                dots.extend((0..each).map(|turn| joined(subject, &place, &parts, turn, random)));
                dots.extend((0..short).map(|turn| joined(subject, &short_terms, &parts, turn, random)));
            }
        }
    }
    dots
}

/// Makes `count` dots of one of these leaves alone.
pub(in crate::identify) fn single(
    subject: &Subject<'_>,
    leaves: &[Leaf],
    count: usize,
    random: &mut Random,
) -> Vec<Dot> {
    let place = Place::of(subject);
    (0..count).map(|_| alone(subject, &place, leaves, random)).collect()
}

impl Place {
    fn of(subject: &Subject<'_>) -> Self {
        let id = subject.id();
        let range = |format: Format| format.as_float().map_or((0, 0), FloatEncoding::exponents);
        let (a, b) = (range(id.a), range(id.b));
        let d = id.d.as_float();
        Self {
            short: false,
            of_product: (a.0 + b.0, a.1 + b.1),
            of_c: range(id.c),
            precision: id.d.fraction_bits().cast_signed() + 1,
            least: d.map_or(0, FloatEncoding::min_exponent),
        }
    }

    fn of_leaf(&self, leaf: Leaf) -> (i32, i32) {
        if leaf == Leaf::C { self.of_c } else { self.of_product }
    }

    /// Draws the exponent of a largest term: mostly in the middle of the range, sometimes at its ends.
    fn top(&self, leaf: Leaf, random: &mut Random) -> i32 {
        let (low, high) = self.of_leaf(leaf);
        if self.short {
            return (MODERATE.end() - random.between(0, 7)).clamp(low, high);
        }
        let top = match random.below(8) {
            0 => self.least + random.between(-self.precision, 6),
            1 => high - random.between(0, 4),
            2 => random.between(low, high),
            3 => random.between(-12, 12),
            _ => random.between(0, 3),
        };
        top.clamp(low, high)
    }
}

/// Sets a leaf to ±significand·2^exponent, limited to what the leaf holds; `long` fills the bits of the significand.
pub(in crate::identify) fn put(
    subject: &Subject<'_>,
    dot: &mut Dot,
    leaf: Leaf,
    exponent: i32,
    negative: bool,
    long: bool,
    random: &mut Random,
) {
    let id = subject.id();
    match leaf {
        Leaf::C => dot.c = value(id.c, exponent, negative, long, random),
        Leaf::Product(k) => {
            let low_b = id.b.as_float().map_or(0, FloatEncoding::min_exponent);
            let low_a = id.a.as_float().map_or(0, FloatEncoding::min_exponent);
            let (high_a, high_b) = (
                id.a.as_float().map_or(0, mxprobe_api::FloatEncoding::max_exponent),
                id.b.as_float().map_or(0, mxprobe_api::FloatEncoding::max_exponent),
            );
            let of_b = (exponent / 2 + random.between(-1, 1)).clamp(low_b, high_b);
            let of_a = (exponent - of_b).clamp(low_a - id.a.fraction_bits().cast_signed(), high_a);
            let of_b = (exponent - of_a).clamp(low_b - id.b.fraction_bits().cast_signed(), high_b);
            dot.a[k] = value(id.a, of_a, negative, long, random);
            dot.b[k] = value(id.b, of_b, false, long && random.flip(), random);
        }
    }
}

/// Draws a value with this exponent, as bits. Unless `long`, at most two bits of its significand are set.
fn value(format: Format, exponent: i32, negative: bool, long: bool, random: &mut Random) -> u64 {
    let bits = format.fraction_bits();
    let all = (1u64 << bits) - 1;
    let fraction = match random.below(4) {
        _ if !long => [0, 0, 1 << bits >> 1, 1 << bits >> 2][random.below(4)] & all,
        0 => all,
        1 => 1,
        _ => random.bits() & all,
    };
    format.truncated(negative, 1 << bits | fraction, exponent - bits.cast_signed())
}

/// Makes a dot of a single term.
fn alone(subject: &Subject<'_>, place: &Place, leaves: &[Leaf], random: &mut Random) -> Dot {
    let mut dot = subject.zeros();
    let leaf = leaves[random.below(leaves.len())];
    let top = place.top(leaf, random);
    put(subject, &mut dot, leaf, top, random.flip(), random.below(4) > 0, random);
    dot
}

/// Makes a dot with terms in at least two arguments of one addition; `turn` selects the pattern.
fn joined(subject: &Subject<'_>, place: &Place, parts: &[Vec<Leaf>], turn: usize, random: &mut Random) -> Dot {
    let mut dot = subject.zeros();
    let put =
        |subject: &Subject<'_>, dot: &mut Dot, leaf: Leaf, exponent: i32, negative, long: bool, random: &mut _| {
            let exponent = if place.short { exponent.max(*MODERATE.start()) } else { exponent };
            put(subject, dot, leaf, exponent, negative, long && !place.short, random);
        };
    let mut left: Vec<&Vec<Leaf>> = parts.iter().collect();
    let mut take = |random: &mut Random| {
        // c is one argument among many: a third of the draws take it.
        let with_c = left.iter().position(|part| part.contains(&Leaf::C)).filter(|_| random.below(3) == 0);
        let at = with_c.unwrap_or_else(|| random.below(left.len().max(1)));
        let part = (!left.is_empty()).then(|| left.swap_remove(at))?;
        Some(part[random.below(part.len())])
    };
    let first = take(random).unwrap_or(Leaf::C);
    let Some(second) = take(random) else { return dot };
    let top = place.top(first, random);
    let depth = match random.below(6) {
        _ if place.short => random.between(0, top - MODERATE.start()),
        0 | 1 => random.between(0, 22),
        2 | 3 => random.between(0, place.precision + 14),
        4 => random.between(0, 3 * place.precision + 16),
        _ => random.between(0, 280),
    };
    let (negative, other) = (random.flip(), random.flip());
    let long = random.flip();
    match turn % 8 {
        // Two terms at that distance.
        0..=2 => {
            put(subject, &mut dot, first, top, negative, random.flip(), random);
            put(subject, &mut dot, second, top - depth, other, long, random);
        }
        // A term, its negation, and a small term; without a third argument, two terms that nearly cancel.
        3 | 4 => match take(random) {
            Some(third) => {
                put(subject, &mut dot, first, top, negative, false, random);
                dot = negated_into(subject, &dot, first, second);
                put(subject, &mut dot, third, top - depth, other, long, random);
            }
            None => {
                put(subject, &mut dot, first, top, negative, true, random);
                put(subject, &mut dot, second, top - random.between(0, 1), !negative, true, random);
            }
        },
        // A large term and about half a unit in its last place: what lies below decides the rounding.
        5 => {
            put(subject, &mut dot, first, top, negative, random.flip(), random);
            put(subject, &mut dot, second, top - place.precision + random.between(-1, 1), other, false, random);
            if let Some(third) = take(random) {
                put(subject, &mut dot, third, top - depth, random.flip(), long, random);
            }
        }
        // Terms of one size in many arguments, of one sign or not.
        6 => {
            let same = random.flip();
            let mut next = Some(first);
            put(subject, &mut dot, second, top, negative, true, random);
            let most = 1 + random.below(parts.len());
            for _ in 0..most {
                let Some(leaf) = next else { break };
                put(
                    subject,
                    &mut dot,
                    leaf,
                    top - random.between(0, 1),
                    if same { negative } else { random.flip() },
                    true,
                    random,
                );
                next = take(random);
            }
        }
        // Terms of any size within some tens of bits.
        _ => {
            put(subject, &mut dot, first, top, negative, true, random);
            put(subject, &mut dot, second, top - random.between(0, place.precision), other, true, random);
            for _ in 0..random.below(4) {
                let Some(leaf) = take(random) else { break };
                put(subject, &mut dot, leaf, top - random.between(0, place.precision + 8), random.flip(), long, random);
            }
        }
    }
    dot
}

/// Returns the dot with the negation of one leaf's value at another leaf, if that can hold it.
pub(in crate::identify) fn negated_into(subject: &Subject<'_>, dot: &Dot, from: Leaf, to: Leaf) -> Dot {
    use crate::probes::Number;
    let id = subject.id();
    let value = match from {
        Leaf::C => Number::decode(id.c, dot.c),
        Leaf::Product(k) => Number::decode(id.a, dot.a[k]).zip(Number::decode(id.b, dot.b[k])).and_then(|(a, b)| {
            let (minus_a, of_a, at_a) = a.parts();
            let (minus_b, of_b, at_b) = b.parts();
            let magnitude = i128::try_from(of_a.checked_mul(of_b)?).ok()?;
            let product = Number::new(magnitude, at_a + at_b);
            Some(if minus_a == minus_b { product } else { product.negated() })
        }),
    };
    let mut dot = dot.clone();
    let Some(value) = value.map(Number::negated) else { return dot };
    match to {
        Leaf::C => dot.c = subject.c_bits(value).unwrap_or(dot.c),
        Leaf::Product(k) => {
            if let Some((a, b)) = subject.product_bits(value) {
                (dot.a[k], dot.b[k]) = (a, b);
            }
        }
    }
    dot
}
