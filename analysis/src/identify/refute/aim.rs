//! Dots about the places at which a hypothesis makes a decision.

use mxprobe_api::{FloatEncoding, Format, OperationId};
use mxprobe_models::{Adder, Output};

use super::{rival::Rival, thresholds::depths};
use crate::{
    dots::{Dot, Random},
    identify::{
        candidates::{hypothesis::Hypothesis, ties::carrying_at},
        dots::operands::Operands,
        tree::{expression::Node, skeleton::Role},
    },
    probes::{Leaf, Subject},
};

/// The places at which a hypothesis makes a decision, such as rounding or dropping a bit.
#[derive(Clone)]
pub(super) struct Aim {
    /// Exponents of the largest term.
    centres: Vec<i32>,
    /// How far below it, in binades, the other terms lie.
    depths: Vec<i32>,
    /// The additions whose leaves are used as terms.
    nodes: Vec<Node>,
    /// Half of the dots use leaves regardless of `nodes`.
    anywhere: bool,
    /// How far below the largest term the additions that take the sums in question decide something. If there are any, a
    /// third of the dots are ladders (see [`Aim::ladder`]).
    later: Vec<i32>,
    /// The products of each node, without those of a sum that contains c, and whether they meet c or such a sum there.
    tied: Vec<(Vec<usize>, bool)>,
    /// Fraction bits to which the unit, or the adder in question, rounds.
    fraction_bits: u32,
    /// The operands of which half hold a subnormal.
    subnormal: Operands,
}

impl Aim {
    /// Returns the aim at every place where a hypothesis decides something.
    pub(super) fn of(subject: &Subject<'_>, hypothesis: &Hypothesis) -> Self {
        let root = hypothesis.adders.iter().zip(&hypothesis.skeleton.roles).find(|(_, role)| **role == Role::Root);
        let root = root.map(|(adder, _)| adder);
        Self {
            centres: centres(subject, hypothesis),
            depths: depths(hypothesis.adders.iter()),
            tied: hypothesis
                .skeleton
                .nodes()
                .iter()
                .filter_map(|node| tied(&node.parts))
                .filter(|(_, beside_c)| *beside_c)
                .collect(),
            nodes: hypothesis.skeleton.nodes(),
            anywhere: true,
            later: Vec::new(),
            fraction_bits: root.and_then(rounded_to).unwrap_or_else(|| subject.id().d.fraction_bits()),
            subnormal: Operands::default(),
        }
    }

    /// Returns the aim at the place where a rival differs, which reads these operands' subnormals in another way.
    pub(super) fn at(&self, subject: &Subject<'_>, rival: &Rival, subnormal: Operands) -> Self {
        let mut aim = Self { subnormal, ..self.clone() };
        let id = subject.id();
        if let (Some(a), Some(b)) = (id.a.as_float(), id.b.as_float())
            && (subnormal.a || subnormal.b)
        {
            let of = |one: FloatEncoding, other: FloatEncoding| {
                let (low, least, most) = (one.min_exponent(), other.min_exponent(), other.max_exponent());
                [least, least / 2, 0, most / 2, most - 2].map(|exponent| low + exponent)
            };
            let of_a = subnormal.a.then(|| of(a, b)).into_iter().flatten();
            aim.centres = of_a.chain(subnormal.b.then(|| of(b, a)).into_iter().flatten()).collect();
            // Any sum may have such a product as its largest term.
            aim.tied = rival.hypothesis.skeleton.nodes().iter().filter_map(|node| tied(&node.parts)).collect();
        }
        if let Some(floor) = rival.floor {
            let bits = rival.hypothesis.adders.iter().flat_map(|adder| &adder.grid).map(|rule| rule.fraction_bits);
            aim.centres = bits.flat_map(|bits| [floor, floor - bits, floor - bits + 3, floor - bits / 2]).collect();
        }
        if let Some(product) = rival.product {
            let has = |node: &Node| node.parts.iter().any(|part| *part == [Leaf::Product(product)]);
            aim.nodes.retain(has);
            aim.anywhere = aim.nodes.is_empty();
        }
        if let Some(adder) = rival.adder {
            let takers = rival.hypothesis.skeleton.expression.takers(adder).into_iter();
            let takers: Vec<Adder> = takers.map(|taker| rival.hypothesis.adders[taker].clone()).collect();
            aim.later = if takers.is_empty() { Vec::new() } else { depths(&takers) };
            aim.nodes.retain(|node| node.adder == adder);
            let nodes = rival.hypothesis.skeleton.nodes_of(adder);
            aim.tied = nodes.iter().filter_map(|node| tied(&node.parts)).collect();
            let adder = &rival.hypothesis.adders[adder];
            aim.depths = depths([adder]);
            aim.depths.extend(&rival.depths);
            aim.fraction_bits = rounded_to(adder).unwrap_or(aim.fraction_bits);
        }
        aim
    }

    /// Draws dots of one to four terms at these places.
    pub(super) fn dots(&self, subject: &Subject<'_>, random: &mut Random, count: usize) -> Vec<Dot> {
        let leaves: Vec<Vec<Leaf>> = subject.leaves().into_iter().map(|leaf| vec![leaf]).collect();
        let one = |random: &mut Random| {
            let is_ladder = !self.later.is_empty() && random.below(3) == 0;
            let ladder = if is_ladder { self.ladder(subject, random) } else { None };
            let special = ladder.or_else(|| self.edge(subject, random)).or_else(|| self.carrying(subject, random));
            let special = special.or_else(|| self.tie(subject, random));
            special.unwrap_or_else(|| self.dot(subject, random, &leaves))
        };
        (0..count).map(|_| one(random)).collect()
    }

    /// Draws a dot of two terms of one addition and c, of one or two bits each: what the addition loses may decide how a
    /// later one cuts or rounds. `None` if no addition has two terms.
    fn ladder(&self, subject: &Subject<'_>, random: &mut Random) -> Option<Dot> {
        let id = subject.id();
        let mut parts = self.nodes.get(random.below(self.nodes.len().max(1)))?.parts.clone();
        parts.retain(|part| !part.is_empty());
        let mut one = |random: &mut Random| {
            let part = (!parts.is_empty()).then(|| parts.swap_remove(random.below(parts.len())))?;
            Some(part[random.below(part.len())])
        };
        let mut terms = vec![(one(random)?, 0), (one(random)?, self.depths[random.below(self.depths.len())])];
        if subject.leaves().contains(&Leaf::C) && terms.iter().all(|(leaf, _)| *leaf != Leaf::C) {
            terms.push((Leaf::C, self.later[random.below(self.later.len())]));
        }
        // c lies below the sum, or above it.
        let top = self.centres[random.below(self.centres.len())] + random.between(-3, 3);
        let up = if random.below(3) == 0 { terms.last().map_or(0, |(_, depth)| *depth) } else { 0 };
        let mut dot = subject.zeros();
        for (at, (leaf, depth)) in terms.into_iter().enumerate() {
            let below = if leaf == Leaf::C && up > 0 { 0 } else { up + depth };
            let exponent = top - below - if at == 0 { 0 } else { random.between(-2, 2) };
            let significand = [1, 1, 1, 3][random.below(4)];
            match leaf {
                Leaf::C => dot.c = id.c.truncated(random.flip(), significand, exponent),
                Leaf::Product(k) => {
                    let of_b = exponent / 2 + random.between(-2, 2);
                    dot.a[k] = id.a.truncated(random.flip(), significand, exponent - of_b);
                    dot.b[k] = id.b.truncated(false, 1, of_b);
                }
            }
        }
        Some(dot)
    }

    /// Draws a dot of a short term, a single bit at the edge of what an addition of both keeps, and perhaps what cancels the
    /// former later. `None` in seven of eight cases, and if no addition has two terms.
    fn edge(&self, subject: &Subject<'_>, random: &mut Random) -> Option<Dot> {
        if random.below(8) > 0 {
            return None;
        }
        let id = subject.id();
        let mut parts: Vec<&Vec<Leaf>> = self.nodes.get(random.below(self.nodes.len().max(1)))?.parts.iter().collect();
        parts.retain(|part| !part.is_empty());
        if parts.len() < 2 {
            return None;
        }
        let mut one = |random: &mut Random| {
            let part = parts.swap_remove(random.below(parts.len()));
            part[random.below(part.len())]
        };
        let (large, small) = (one(random), one(random));
        let top = self.centres[random.below(self.centres.len())] + random.between(-3, 3);
        let edge = top - self.depths[random.below(self.depths.len())] + random.between(-1, 2);
        // The product of two of these is at least 2 in more than half of the cases.
        let (of_a, of_b) = (4 + random.bits() % 4, 4 + random.bits() % 4);
        let (negative, other_sign) = (random.flip(), random.flip());
        let mut dot = subject.zeros();
        let put =
            |dot: &mut Dot, random: &mut Random, leaf: Leaf, negative: bool, (a, b): (u64, u64), at: i32| match leaf {
                Leaf::C => dot.c = id.c.truncated(negative, a * b, at),
                Leaf::Product(k) => {
                    let at_b = at / 2 + random.between(-2, 2);
                    (dot.a[k], dot.b[k]) = (id.a.truncated(negative, a, at - at_b), id.b.truncated(false, b, at_b));
                }
            };
        put(&mut dot, random, large, negative, (of_a, of_b), top - 4);
        put(&mut dot, random, small, other_sign, (1, 1), edge);
        if random.flip() {
            let mut others = subject.leaves();
            others.retain(|leaf| *leaf != large && *leaf != small);
            if !others.is_empty() {
                let other = others[random.below(others.len())];
                put(&mut dot, random, other, !negative, (of_a, of_b), top - 4);
            }
        }
        Some(dot)
    }

    /// Draws a dot of terms of one sign that carry far (see [`carrying_at`]). `None` in seven of eight cases, and if an
    /// addition has too few terms.
    fn carrying(&self, subject: &Subject<'_>, random: &mut Random) -> Option<Dot> {
        if random.below(8) > 0 {
            return None;
        }
        let node = self.nodes.get(random.below(self.nodes.len().max(1))).filter(|node| node.parts.len() > 1)?;
        let top = self.centres[random.below(self.centres.len())] + random.between(-3, 3);
        Some(carrying_at(subject, &node.parts, top, self.fraction_bits, random))
    }

    /// Draws a tie, or a value that becomes one if a bit is lost, and a small term at a depth where something is
    /// decided. The tie is c or a product alone if it has enough bits; otherwise it is c, or another product, and a product
    /// of one or three units or half units in the last place of a result near that. `None` in two of three cases, and if a
    /// node has too few products.
    fn tie(&self, subject: &Subject<'_>, random: &mut Random) -> Option<Dot> {
        if random.below(3) > 0 || self.tied.is_empty() {
            return None;
        }
        let id = subject.id();
        let (mut products, beside_c) = self.tied[random.below(self.tied.len())].clone();
        let mut next = |random: &mut Random| {
            let left = products.len();
            (left > 0).then(|| products.swap_remove(random.below(left)))
        };
        let top = self.centres[random.below(self.centres.len())] + random.between(-3, 3);
        let half = top - self.fraction_bits.cast_signed() - 1;
        let below = top - self.depths[random.below(self.depths.len())] - random.between(-2, 2);
        let small = 4 + random.bits() % 4;
        let mut dot = subject.zeros();
        let put = |dot: &mut Dot, random: &mut Random, at: usize, (of_a, of_b): (u64, u64), exponent: i32| {
            let exponent_b = exponent / 2 + random.between(-2, 2);
            dot.a[at] = id.a.truncated(random.flip(), of_a, exponent - exponent_b);
            dot.b[at] = id.b.truncated(false, of_b, exponent_b);
        };
        if random.below(4) == 0
            && let Some((factors, below)) = half_and_a_bit(id.a, id.b, self.fraction_bits, random)
        {
            let tied = next(random)?;
            put(&mut dot, random, tied, factors, top - below);
            return Some(dot);
        }
        let factors = random.flip().then(|| factors(id.a, id.b, self.fraction_bits + 2, random)).flatten();
        if let Some(factors) = factors {
            let tied = next(random)?;
            put(&mut dot, random, tied, factors, half);
            match next(random).filter(|_| !beside_c || random.flip()) {
                Some(deep) => put(&mut dot, random, deep, (small, 1), below - 2),
                None if !beside_c => return None,
                None => dot.c = id.c.truncated(random.flip(), small, below - 2),
            }
            return Some(dot);
        }
        let deep = next(random)?;
        let (halves, lower) = ([1, 3][random.below(2)], i32::from(random.flip()));
        if !beside_c || random.flip() {
            let second = next(random)?;
            (dot.a[deep], dot.b[deep]) = self.power(id, top, random);
            put(&mut dot, random, second, (halves, 1), half + 1 - lower);
            if beside_c {
                dot.c = id.c.truncated(random.flip(), small, below - 2);
            } else {
                let third = next(random)?;
                put(&mut dot, random, third, (small, 1), below - 2);
            }
            return Some(dot);
        }
        if id.c.fraction_bits() > self.fraction_bits {
            let significand = 2 << self.fraction_bits | random.bits() & ((2 << self.fraction_bits) - 1) | 1;
            dot.c = id.c.truncated(random.flip(), significand, half);
        } else {
            let second = next(random)?;
            dot.c = id.c.truncated(random.flip(), 1, top);
            put(&mut dot, random, second, (halves, 1), half + 1 - lower);
        }
        put(&mut dot, random, deep, (small, 1), below - 2);
        Some(dot)
    }

    /// Draws the operands of a product of this exponent; those that are to be subnormal are in half of the cases.
    fn operands(&self, id: &OperationId, exponent: i32, random: &mut Random) -> (u64, u64) {
        if self.subnormal.a && random.flip() {
            let (a, of_a) = subnormal(random, id.a);
            return (a, value(random, id.b, exponent - of_a));
        }
        if self.subnormal.b && random.flip() {
            let (b, of_b) = subnormal(random, id.b);
            return (value(random, id.a, exponent - of_b), b);
        }
        let of_b = exponent / 2 + random.between(-2, 2);
        (value(random, id.a, exponent - of_b), value(random, id.b, of_b))
    }

    /// Draws the operands of a product of ±2^exponent; one is subnormal if those of its kind are to be.
    fn power(&self, id: &OperationId, exponent: i32, random: &mut Random) -> (u64, u64) {
        let Operands { a, b, .. } = self.subnormal;
        let of_a = if b && (!a || random.flip()) {
            exponent - subnormal_exponent(random, id.b)
        } else if a {
            subnormal_exponent(random, id.a)
        } else {
            exponent - exponent / 2 - random.between(-2, 2)
        };
        (id.a.truncated(random.flip(), 1, of_a), id.b.truncated(false, 1, exponent - of_a))
    }

    /// Draws a dot of one to four terms of one addition, or of any leaves.
    fn dot(&self, subject: &Subject<'_>, random: &mut Random, leaves: &[Vec<Leaf>]) -> Dot {
        let id = subject.id();
        let top = self.centres[random.below(self.centres.len())] + random.between(-3, 3);
        let any = self.nodes.is_empty() || self.anywhere && random.flip();
        let parts = if any { leaves } else { &self.nodes[random.below(self.nodes.len())].parts };
        let mut parts: Vec<&[Leaf]> = parts.iter().map(Vec::as_slice).collect();
        let mut dot = subject.zeros();
        for term in 0..1 + random.below(4) {
            if parts.is_empty() {
                break;
            }
            // c is only one leaf of many, but the one with the most bits: half of the dots that may hold it begin with
            // it.
            let c = parts.iter().position(|part| *part == [Leaf::C]).filter(|_| term == 0 && random.flip());
            let part = parts.swap_remove(c.unwrap_or_else(|| random.below(parts.len())));
            let down = match (term, random.below(2)) {
                (0, _) => 0,
                (_, 0) => [0, 0, 0, 1][random.below(4)],
                _ => self.depths[random.below(self.depths.len())] + random.between(-2, 2),
            };
            let exponent = top - down;
            match part.get(random.below(part.len().max(1))) {
                Some(Leaf::C) if self.subnormal.c && random.flip() => dot.c = subnormal(random, id.c).0,
                Some(Leaf::C) => dot.c = value(random, id.c, exponent),
                Some(Leaf::Product(k)) => (dot.a[*k], dot.b[*k]) = self.operands(id, exponent, random),
                None => {}
            }
        }
        dot
    }
}

/// Returns a node's products, without those of a sum that contains c, and whether they meet c or such a sum; `None` if
/// there are no such products.
fn tied(node: &[Vec<Leaf>]) -> Option<(Vec<usize>, bool)> {
    let (with_c, others): (Vec<&Vec<Leaf>>, Vec<&Vec<Leaf>>) = node.iter().partition(|part| part.contains(&Leaf::C));
    let product = |leaf: &Leaf| if let Leaf::Product(k) = leaf { Some(*k) } else { None };
    let products: Vec<usize> = others.into_iter().flatten().filter_map(product).collect();
    (!products.is_empty()).then_some((products, !with_c.is_empty()))
}

/// Returns the fraction bits to which an adder rounds, if it rounds.
fn rounded_to(adder: &Adder) -> Option<u32> {
    if let Output::Float { fraction_bits, .. } = adder.output { Some(fraction_bits) } else { None }
}

/// Draws two significands whose product begins with a one, a few more bits, half a unit in the last of so many fraction
/// bits, and a bit far below. Returns the place of the leading bit, too. `None` if the formats have too few bits.
fn half_and_a_bit(a: Format, b: Format, bits: u32, random: &mut Random) -> Option<((u64, u64), i32)> {
    // (1 + 2^-p + 2^-r)·(1 + 2^-q), with p + q = bits + 1 and r > p.
    let (most_a, most_b) = (a.fraction_bits(), b.fraction_bits());
    let least = (bits + 2).saturating_sub(most_a).max(1);
    let q = least + u32::try_from(random.below((most_b.min(bits) + 1).checked_sub(least)?.max(1) as usize)).ok()?;
    let p = (bits + 1).checked_sub(q).filter(|p| *p >= 1 && q <= most_b)?;
    let r = p + 1 + u32::try_from(random.below(most_a.checked_sub(p).filter(|room| *room > 0)? as usize)).ok()?;
    let significands = ((1 << most_a) | 1 << (most_a - p) | 1 << (most_a - r), (1 << most_b) | 1 << (most_b - q));
    Some((significands, (most_a + most_b).cast_signed()))
}

/// Draws two odd significands whose product has this many bits; `None` if 16 attempts find none.
fn factors(a: Format, b: Format, bits: u32, random: &mut Random) -> Option<(u64, u64)> {
    let (most_a, most_b) = (a.fraction_bits() + 1, b.fraction_bits() + 1);
    let least = bits.saturating_sub(most_b).max(1);
    // The product of two numbers of x and y bits has x + y bits, or one less.
    (0..16).find_map(|_| {
        let of_a = least + u32::try_from(random.below((most_a + 1).checked_sub(least)? as usize)).ok()?;
        let of_b = (bits + u32::from(random.flip())).checked_sub(of_a).filter(|of_b| (1..=most_b).contains(of_b))?;
        let mut odd = |bits: u32| 1 << (bits - 1) | random.bits() & ((1 << (bits - 1)) - 1) | 1;
        let (of_a, of_b): (u64, u64) = (odd(of_a), odd(of_b));
        (u128::from(of_a) * u128::from(of_b)).checked_ilog2().filter(|top| top + 1 == bits).map(|_| (of_a, of_b))
    })
}

/// Draws a subnormal of either sign, and returns its exponent; a normal number if the format has no subnormals.
fn subnormal(random: &mut Random, format: Format) -> (u64, i32) {
    let least = format.as_float().map_or(0, FloatEncoding::min_exponent);
    let bits = format.fraction_bits();
    let significand = (random.bits() & ((1 << bits) - 1)) >> random.below(bits.max(1) as usize) | 1;
    let lowest = least - bits.cast_signed();
    (format.truncated(random.flip(), significand, lowest), lowest + significand.ilog2().cast_signed())
}

/// Draws the exponent of a subnormal that is a power of two.
fn subnormal_exponent(random: &mut Random, format: Format) -> i32 {
    let least = format.as_float().map_or(0, FloatEncoding::min_exponent);
    least - 1 - i32::try_from(random.below(format.fraction_bits().max(1) as usize)).unwrap_or(0)
}

/// Draws a value with this exponent and with few or many significand bits, rounded toward zero and saturated.
fn value(random: &mut Random, format: Format, exponent: i32) -> u64 {
    let bits = format.fraction_bits();
    let ones = (1 << bits) - 1;
    let fraction = match random.below(5) {
        0 => 0,
        1 => ones,
        2 => 1,
        // The product of two of these is short, and often at least 2.
        3 => ones & !(ones >> (1 + random.below(2))),
        _ => random.bits() & ones,
    };
    format.truncated(random.flip(), 1 << bits | fraction, exponent - bits.cast_signed())
}

/// Returns the exponents about which something is decided, as far as products reach: the middle, the ends of the
/// ranges, and the floors.
fn centres(subject: &Subject<'_>, hypothesis: &Hypothesis) -> Vec<i32> {
    let (low, high) = subject.exponents(Leaf::Product(0));
    let mut found = vec![0, i32::midpoint(low, 0), i32::midpoint(high, 0), high - 4];
    if let Some(d) = subject.id().d.as_float() {
        let (least, bits) = (d.min_exponent(), d.fraction_bits.cast_signed());
        found.extend([least, least - bits / 2, least - bits, least - bits - 8, d.max_exponent()]);
    }
    for rule in hypothesis.adders.iter().flat_map(|adder| &adder.grid) {
        if let Some(floor) = rule.exponent_floor {
            let lowest = floor - rule.fraction_bits;
            found.extend([floor, lowest, lowest + 2, i32::midpoint(floor, lowest)]);
        }
    }
    found.retain(|centre| (low - 3..=high + 3).contains(centre));
    // If products do not reach that far, only c can show how a sum overflows.
    let most = subject.id().c.as_float().map_or(high, FloatEncoding::max_exponent);
    found.extend((most > high + 3).then_some(most));
    found
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_product_of_half_a_unit_and_a_bit_is_a_tie_but_for_that_bit() {
        for (format, bits) in [(Format::F16, 10), (Format::F32, 23), (Format::F64, 52), (Format::F64, 49)] {
            let mut random = Random(1);
            let mut depths = HashSet::new();
            for _ in 0..400 {
                let Some(((a, b), below)) = half_and_a_bit(format, format, bits, &mut random) else { panic!("{bits}") };
                let product = u128::from(a) * u128::from(b);
                assert_eq!(product.ilog2().cast_signed(), below);
                let unit = 1u128 << (below.unsigned_abs() - bits);
                let rest = (product % unit).abs_diff(unit / 2);
                assert!(rest.is_power_of_two() || bits < format.fraction_bits(), "{a:x} {b:x}: {rest:x}");
                depths.insert(rest);
            }
            assert!(depths.len() > 5, "{depths:?}");
        }
        assert!(half_and_a_bit(Format::BF16, Format::BF16, 23, &mut Random(1)).is_none());
    }
}
