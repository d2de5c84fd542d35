//! Dots of a form of their own, each made for something that drawn dots are unlikely to hold.

use mxprobe_api::{FloatEncoding, Format};

use super::{expression::Node, hypothesis::Hypothesis};
use crate::{
    dots::{Dot, Random, seed_of},
    probes::{Leaf, Number, Subject},
};

/// The products that a candidate adds in each of its additions.
pub(super) fn groups(hypothesis: &Hypothesis) -> Vec<Vec<usize>> {
    let product = |leaf: &Leaf| if let Leaf::Product(k) = leaf { Some(*k) } else { None };
    let direct = |node: &Node| node.parts.iter().filter(|part| part.len() == 1).flatten().filter_map(product).collect();
    hypothesis.skeleton.nodes().iter().map(direct).collect()
}

/// Exponents of the larger of two terms that are far apart, at the most.
const EXPONENTS: i32 = 400;

/// The smallest product, or c, beside a larger term at every exponent, and two of the smallest that half undo each other: no
/// drawn dot is likely to hold both ends of the range, and the lowest bits that a unit keeps show there.
pub(super) fn far_apart(subject: &Subject<'_>, groups: &[Vec<usize>], seed: u64) -> Vec<Dot> {
    let mut random = Random(seed_of(seed, 7));
    // Products that meet first, where there are any: two that meet later show what the addition of both keeps.
    let mut some = || {
        let mut group = match groups.get(random.below(2 * groups.len() + 1)) {
            Some(group) => group.clone(),
            None => (0..subject.k()).collect(),
        };
        let mut next = || {
            let one =
                if group.is_empty() { random.below(subject.k()) } else { group.swap_remove(random.below(group.len())) };
            Leaf::Product(one)
        };
        [next(), next(), next()]
    };
    let id = subject.id();
    let of = |format: Format| format.as_float().map_or((0, 0), FloatEncoding::exponents);
    let of = |leaf: Leaf| match leaf {
        Leaf::C => of(id.c),
        Leaf::Product(_) => (of(id.a).0 + of(id.b).0, of(id.a).1 + of(id.b).1),
    };
    let mut dots = Vec::new();
    let [any, beside_c, two, across] = [some(), some(), some(), some()];
    for (large, small, third) in [
        (any[0], any[1], any[2]),
        (Leaf::C, beside_c[0], beside_c[1]),
        (two[0], two[1], Leaf::C),
        (across[0], Leaf::C, across[1]),
    ] {
        let ((low, _), (from, to)) = (of(small), of(large));
        let lowest_of_both = low.max(of(third).0);
        let step = ((to - from) / EXPONENTS + 1).unsigned_abs() as usize;
        for exponent in (from..=to).step_by(step).filter(|_| large != small) {
            for (of_large, of_small) in [(1, 1), (1, -1), (-1, 1), (-1, -1)] {
                let largest = (large, Number::new(of_large, exponent));
                dots.extend(subject.dot(&[largest, (small, Number::new(of_small, low))]));
                if third != large && third != small {
                    let undone = (small, Number::new(-2 * of_small, lowest_of_both));
                    dots.extend(subject.dot(&[largest, undone, (third, Number::new(of_small, lowest_of_both))]));
                }
            }
        }
    }
    dots
}

/// One term at every exponent, of either sign, of one bit and of all, beside products of +0 or of −0: what a unit leaves out
/// below some limit may show by the sign of a zero alone, and in one binade alone.
pub(super) fn alone(subject: &Subject<'_>, seed: u64) -> Vec<Dot> {
    let id = subject.id();
    let mut random = Random(seed_of(seed, 8));
    let of = |format: Format| format.as_float().map_or((0, 0), FloatEncoding::exponents);
    let products = (of(id.a).0 + of(id.b).0, of(id.a).1 + of(id.b).1);
    let mut dots = Vec::new();
    for (leaf, (low, high), bits) in [
        (Leaf::C, of(id.c), id.c.fraction_bits()),
        (Leaf::Product(random.below(subject.k())), products, id.a.fraction_bits()),
    ] {
        let step = ((high - low) / EXPONENTS + 1).unsigned_abs() as usize;
        let ones = (2i128 << bits) - 1;
        for exponent in (low..=high).step_by(step) {
            for (significand, below) in [(1, 0), (ones, bits.cast_signed())] {
                for sign in [1, -1] {
                    let Some(dot) = subject.dot(&[(leaf, Number::new(sign * significand, exponent - below))]) else {
                        continue;
                    };
                    let mut beside = dot.clone();
                    let minus_zero = id.a.negative_zero().unwrap_or(0);
                    beside.a.iter_mut().filter(|bits| **bits == 0).for_each(|bits| *bits = minus_zero);
                    dots.extend([dot, beside]);
                }
            }
        }
    }
    dots
}

/// How far below the largest of the terms that cancel a small one lies, and bits that the others leave of it.
const DEPTHS: (i32, i32) = (12, 64);
const LEFT: (i32, i32) = (1, 12);

/// Terms that cancel but for the last of a few bits, and a small one: c or a product of one bit, products of the same group that
/// take nearly all of it away, and one of a bit or two far below. What a unit keeps below its largest term, and whether it keeps a
/// sticky bit of the rest, decides the result only where that term is gone.
pub(super) fn cancelling(subject: &Subject<'_>, groups: &[Vec<usize>], seed: u64, count: usize) -> Vec<Dot> {
    let mut random = Random(seed_of(seed, 9));
    let (of_products, of_c) = (subject.exponents(Leaf::Product(0)), subject.exponents(Leaf::C));
    let (low, high) = (of_products.0.max(of_c.0), of_products.1.min(of_c.1));
    let most = DEPTHS.1.min(high - low);
    if most < DEPTHS.0 || groups.is_empty() {
        return Vec::new();
    }
    let bits = subject.id().a.fraction_bits().cast_signed() + 1;
    let dot = |random: &mut Random| {
        let depth = random.between(DEPTHS.0, most);
        let top = random.between(low + depth, high);
        let mut group = groups[random.below(groups.len())].clone();
        let mut others: Vec<usize> = (0..subject.k()).filter(|product| !group.contains(product)).collect();
        let mut next = |random: &mut Random| {
            let from = if group.is_empty() { &mut others } else { &mut group };
            (!from.is_empty()).then(|| Leaf::Product(from.swap_remove(random.below(from.len()))))
        };
        let sign = if random.flip() { 1 } else { -1 };
        let largest = if random.below(3) > 0 { Leaf::C } else { next(random)? };
        let mut leaves = vec![(largest, Number::new(sign, top))];
        // Bits top − 1 to top − left, as many in each product as it holds.
        let mut taken = 0;
        let left = random.between(LEFT.0, LEFT.1);
        while taken < left {
            let ones = bits.min(left - taken);
            taken += ones;
            leaves.push((next(random)?, Number::new(-sign * ((1 << ones) - 1), top - taken)));
        }
        let small = if random.flip() { 1 } else { -1 } * [1, 3][random.below(2)];
        let leaf = if largest != Leaf::C && random.flip() { Leaf::C } else { next(random)? };
        leaves.push((leaf, Number::new(small, top - depth)));
        subject.dot(&leaves)
    };
    (0..count).filter_map(|_| dot(&mut random)).collect()
}
