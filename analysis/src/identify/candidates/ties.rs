//! Dots whose sums end in a tie, or carry far before they do.

use mxprobe_api::Format;

use crate::{
    dots::{Dot, Random, seed_of},
    identify::tree::expression::Node,
    probes::{Leaf, Number, Subject},
};

/// Makes at most `count` dots in which one addition yields half a unit in the last place of the addition that takes its
/// sum, and a bit far below that. Whether such a bit is lost before the later sum is rounded shows in no other dot.
pub(in crate::identify) fn halves(subject: &Subject<'_>, nodes: &[Node], seed: u64, count: usize) -> Vec<Dot> {
    let mut random = Random(seed_of(seed, 14));
    let id = subject.id();
    let (bits, bits_of_c) = (id.d.fraction_bits().cast_signed(), id.c.fraction_bits().cast_signed());
    let mut steps: Vec<(&[Leaf], &[Leaf])> = Vec::new();
    for node in nodes {
        for (at, inner) in node.parts.iter().enumerate().filter(|(_, part)| part.len() > 1) {
            let others = node.parts.iter().enumerate().filter(|(other, part)| *other != at && !part.is_empty());
            steps.extend(others.map(|(_, outer)| (&inner[..], &outer[..])));
        }
    }
    if steps.is_empty() || bits == 0 {
        return Vec::new();
    }
    let dot = |random: &mut Random| {
        let (inner, outer) = steps[random.below(steps.len())];
        let outer = outer[random.below(outer.len())];
        let (low, high) = subject.exponents(outer);
        let top = if random.flip() { high - random.between(0, 12) } else { random.between(low, high) };
        let half = top - bits - 1 - i32::from(random.flip());
        let mut signed = |significand: i128| if random.flip() { significand } else { -significand };
        let largest = (outer, Number::new(signed(1), top));
        let (one, other) = (signed(1), signed(1));
        if bits_of_c > 2 && inner.contains(&Leaf::C) && random.below(4) == 0 {
            // c holds both bits.
            let depth = random.between(bits_of_c / 2, bits_of_c);
            return subject.dot(&[largest, (Leaf::C, Number::new(one * ((1 << depth) + 1), half - depth))]);
        }
        let (tied, deep) = (inner[random.below(inner.len())], inner[random.below(inner.len())]);
        if tied == deep {
            return None;
        }
        let depth = if random.flip() { random.between(bits - 3, bits + 9) } else { random.between(1, 2 * bits + 16) };
        let of_tied = one * [1, 3, 5, 7][random.below(4)];
        let of_deep = other * [1, 3][random.below(2)];
        subject.dot(&[largest, (tied, Number::new(of_tied, half)), (deep, Number::new(of_deep, half - depth))])
    };
    (0..count).filter_map(|_| dot(&mut random)).collect()
}

/// Makes at most `count` dots in which terms of one addition carry far (see [`carrying_at`]), about any exponent or the
/// highest.
pub(in crate::identify) fn carrying(subject: &Subject<'_>, nodes: &[Node], seed: u64, count: usize) -> Vec<Dot> {
    let mut random = Random(seed_of(seed, 18));
    let nodes: Vec<&Node> = nodes.iter().filter(|node| node.parts.len() > 1).collect();
    if nodes.is_empty() {
        return Vec::new();
    }
    let (low, high) = subject.exponents(Leaf::Product(0));
    let bits = subject.id().d.fraction_bits();
    let dot = |random: &mut Random| {
        let node = nodes[random.below(nodes.len())];
        // The sum stays within d's range.
        let high = high - node.parts.len().ilog2().cast_signed() - 2;
        let top = if random.below(3) == 0 { high - random.between(0, 2) } else { random.between(low.min(high), high) };
        carrying_at(subject, &node.parts, top, bits, random)
    };
    (0..count).map(|_| dot(&mut random)).collect()
}

/// Makes a dot in which two or more terms of one addition have the same sign, nearly the same exponent and random, full or
/// short significands; in half of these dots another term is half a unit in the last place of the sum, rounded to `bits`,
/// and perhaps a bit far below. What a unit cuts from a sum once it is normalised shows in no other dot if it keeps more
/// bits then than at alignment.
pub(in crate::identify) fn carrying_at(
    subject: &Subject<'_>,
    parts: &[Vec<Leaf>],
    top: i32,
    bits: u32,
    random: &mut Random,
) -> Dot {
    let id = subject.id();
    let negative = random.flip();
    let kind = random.below(3);
    let mut dot = subject.zeros();
    let value = |random: &mut Random, format: Format, exponent: i32, negative: bool| {
        let bits = format.fraction_bits();
        let ones = (1 << bits) - 1;
        let fraction = match kind {
            0 if random.below(4) > 0 => ones,
            1 => ones & !(ones >> random.below(3)),
            _ => random.bits() & ones,
        };
        format.truncated(negative, 1 << bits | fraction, exponent - bits.cast_signed())
    };
    let mut rest: Vec<&Vec<Leaf>> = parts.iter().filter(|part| !part.is_empty()).collect();
    if rest.len() < 2 {
        return dot;
    }
    let tied = random.flip().then(|| {
        // c has the most bits.
        let c = rest.iter().position(|part| part.contains(&Leaf::C)).filter(|_| random.below(4) > 0);
        rest.swap_remove(c.unwrap_or_else(|| random.below(rest.len())))
    });
    let most = rest.len();
    let large = if random.flip() { most } else { most.min(2 + random.below(most)) };
    for _ in 0..large {
        let part = rest.swap_remove(random.below(rest.len()));
        let exponent = top - [0, 0, 0, 0, 0, 1, 1, 2][random.below(8)];
        match part[random.below(part.len())] {
            Leaf::C => dot.c = value(random, id.c, exponent, negative),
            Leaf::Product(k) => {
                let of_b = exponent / 2 + random.between(-2, 2);
                dot.a[k] = value(random, id.a, exponent - of_b, negative);
                dot.b[k] = value(random, id.b, of_b, false);
            }
        }
    }
    let Some(part) = tied else { return dot };
    let carried = random.between(1, large.ilog2().cast_signed() + 2);
    let half = top + carried - bits.cast_signed() - 1;
    let deep = random.between(1, 16);
    let (significand, exponent) = if random.below(3) == 0 { (1, half) } else { ((1 << deep) + 1, half - deep) };
    let negative = random.flip();
    if part.contains(&Leaf::C) {
        dot.c = id.c.truncated(negative, significand, exponent);
    } else if let Leaf::Product(k) = part[random.below(part.len())] {
        let of_b = half / 2 + random.between(-2, 2);
        dot.a[k] = id.a.truncated(negative, significand, exponent - of_b);
        dot.b[k] = id.b.truncated(false, 1, of_b);
    }
    dot
}
