//! Dots of special forms, each made for something that drawn dots are unlikely to hold.

use mxprobe_api::{Encoding, FloatEncoding, Format};

use super::hypothesis::Hypothesis;
use crate::{
    dots::{Dot, Random, seed_of, signed},
    identify::tree::expression::Node,
    probes::{Leaf, Number, Subject},
};

/// Returns the products that each addition of a candidate takes directly.
pub(in crate::identify) fn groups(hypothesis: &Hypothesis) -> Vec<Vec<usize>> {
    let product = |leaf: &Leaf| if let Leaf::Product(k) = leaf { Some(*k) } else { None };
    let direct = |node: &Node| node.parts.iter().filter(|part| part.len() == 1).flatten().filter_map(product).collect();
    hypothesis.skeleton.nodes().iter().map(direct).collect()
}

/// Maximum number of exponents at which a large term, or a single one, is placed.
const EXPONENTS: i32 = 400;

/// Returns at most [`EXPONENTS`] of these exponents, at the same distance from each other: others for other bits.
fn exponents((low, high): (i32, i32), bits: u64) -> impl Iterator<Item = i32> {
    let step = ((high - low) / EXPONENTS + 1).unsigned_abs() as usize;
    (low..=high).skip(Random(bits).below(step)).step_by(step)
}

/// Makes dots of the smallest product or the smallest c and a larger term at every exponent, and the same with two of
/// the smallest terms, one of which cancels half of the other. Drawn dots are unlikely to hold both ends of the range,
/// which show the lowest bits that a unit keeps.
pub(in crate::identify) fn far_apart(subject: &Subject<'_>, groups: &[Vec<usize>], seed: u64) -> Vec<Dot> {
    let mut random = Random(seed_of(seed, 7));
    // Take products of one addition, or of all k: two that meet later show what the addition of both keeps.
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
        for exponent in exponents((from, to), random.bits()).filter(|_| large != small) {
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

/// Makes dots of a single term at every exponent, of either sign, with one significand bit or all of them set, next to
/// products of +0 or of −0. A term that a unit drops below some limit may show only in the sign of a zero, and only in
/// one binade.
pub(in crate::identify) fn alone(subject: &Subject<'_>, seed: u64) -> Vec<Dot> {
    let id = subject.id();
    let mut random = Random(seed_of(seed, 8));
    let of = |format: Format| format.as_float().map_or((0, 0), FloatEncoding::exponents);
    let products = (of(id.a).0 + of(id.b).0, of(id.a).1 + of(id.b).1);
    let mut dots = Vec::new();
    for (leaf, (low, high), bits) in [
        (Leaf::C, of(id.c), id.c.fraction_bits()),
        (Leaf::Product(random.below(subject.k())), products, id.a.fraction_bits()),
    ] {
        let ones = (2i128 << bits) - 1;
        // Each exponent at which d is subnormal.
        let of_d = subject.id().d.as_float().map_or((0, 0), |d| (d.exponents().0 - 2, d.min_exponent() + 2));
        let subnormal = of_d.0.max(low)..=of_d.1.min(high);
        for exponent in exponents((low, high), random.bits()).chain(subnormal) {
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

/// Makes dots of a single product of ±1 with scales of every size, next to products of +0 or of −0; none if the operation
/// has no scales. Scales reach further than the formats of A and B: sums of so small a product may be cut to nothing.
pub(in crate::identify) fn scaled(subject: &Subject<'_>, seed: u64) -> Vec<Dot> {
    let id = subject.id();
    let Some(scale) = id.block_scale() else { return Vec::new() };
    let mut random = Random(seed_of(seed, 17));
    let (low, high) = scale.format.as_float().map_or((0, 0), FloatEncoding::exponents);
    let mut dots = Vec::new();
    for exponent in exponents((2 * low, 2 * high), random.bits()) {
        for negative in [false, true] {
            let at = random.below(subject.k());
            let mut dot = subject.zeros();
            let sign = if negative { id.a.negative_zero().unwrap_or(0) } else { 0 };
            (dot.a[at], dot.b[at]) = (id.a.one() | sign, id.b.one());
            let of_a = (exponent / 2 + random.between(-2, 2)).clamp(low.max(exponent - high), high.min(exponent - low));
            if let Some((scales_a, scales_b)) = &mut dot.scales {
                let power = |exponent: i32| scale.format.truncated(false, 1, exponent);
                (scales_a[at / scale.block], scales_b[at / scale.block]) = (power(of_a), power(exponent - of_a));
            }
            let mut beside = dot.clone();
            let minus_zero = id.a.negative_zero().unwrap_or(0);
            beside.a.iter_mut().filter(|bits| **bits == 0).for_each(|bits| *bits = minus_zero);
            dots.extend([dot, beside]);
        }
    }
    dots
}

/// Returns at most so many of these dots, spread over all of them; other seeds return others.
pub(in crate::identify) fn thinned(dots: Vec<Dot>, most: usize, seed: u64) -> Vec<Dot> {
    let step = dots.len().div_ceil(most.max(1)).max(1);
    let first = Random(seed_of(seed, 10)).below(step);
    dots.into_iter().skip(first).step_by(step).collect()
}

/// Lowest and highest distance in bits, below the largest of the terms that cancel, of the small term (`DEPTHS`) and of
/// what the cancellation leaves (`LEFT`).
const DEPTHS: (i32, i32) = (12, 64);
const LEFT: (i32, i32) = (1, 12);

/// Makes at most `count` dots of terms that cancel down to one low bit, and a small term: c or a product of one bit,
/// products of the same group that cancel nearly all of it, and a term of one or two bits far below. The bits that a
/// unit keeps below its largest term, and a sticky bit of the rest, decide the result only if that term cancels.
pub(in crate::identify) fn cancelling(
    subject: &Subject<'_>,
    groups: &[Vec<usize>],
    seed: u64,
    count: usize,
) -> Vec<Dot> {
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

/// Dots in which NaN, infinities of both signs, infinity times zero and the largest values meet: two or three products
/// of one group hold one of them each, and so does c now and then. Which NaN results depends on which cause the unit
/// considers first, and on the addition in which they meet. Next to an infinity of the other sign, an intermediate
/// result shows whether it overflows even if d has a smaller range.
pub(in crate::identify) fn specials(subject: &Subject<'_>, groups: &[Vec<usize>], seed: u64, count: usize) -> Vec<Dot> {
    let mut random = Random(seed_of(seed, 11));
    let id = subject.id();
    let special = |random: &mut Random, format: Format| {
        let nan = format.nan().map(|nan| nan ^ if random.flip() { format.negative_zero().unwrap_or(0) } else { 0 });
        let infinity = format.infinity(random.flip());
        if random.flip() { nan.or(infinity) } else { infinity.or(nan) }
    };
    let dot = |random: &mut Random| {
        let mut group = match groups.get(random.below(groups.len() + 1)) {
            Some(group) if !group.is_empty() => group.clone(),
            _ => (0..subject.k()).collect(),
        };
        let mut dot = subject.zeros();
        for _ in 0..2 + random.below(2) {
            if group.is_empty() {
                break;
            }
            let at = group.swap_remove(random.below(group.len()));
            // Times 1, or times the zero that the other operand is.
            let one = random.flip();
            match random.below(6) {
                0..3 => {
                    dot.a[at] = special(random, id.a)?;
                    dot.b[at] = if one { id.b.one() } else { 0 };
                }
                3..5 => {
                    dot.b[at] = special(random, id.b)?;
                    dot.a[at] = if one { id.a.one() } else { 0 };
                }
                _ => (dot.a[at], dot.b[at]) = (id.a.largest(random.flip()), id.b.largest(false)),
            }
        }
        match random.below(4) {
            0 => dot.c = special(random, id.c)?,
            1 => dot.c = id.c.largest(random.flip()),
            _ => {}
        }
        Some(dot)
    };
    (0..count).filter_map(|_| dot(&mut random)).collect()
}

/// Exponents of a c of moderate size.
const MODERATE: (i32, i32) = (-12, 12);

/// Makes at most `count` dots of two terms that cancel, the largest ones as often as any others, and of the smallest
/// products and zeros, of either sign, everywhere else; c is a power of two of moderate size in one of five. Sums over
/// the whole range of exponents show what an addition loses of a result that another one left far below it, and whether
/// c is added to that result or to what was lost.
pub(in crate::identify) fn whole_range(
    subject: &Subject<'_>,
    groups: &[Vec<usize>],
    seed: u64,
    count: usize,
) -> Vec<Dot> {
    let mut random = Random(seed_of(seed, 15));
    let id = subject.id();
    let all: Vec<usize> = (0..subject.k()).collect();
    let groups: Vec<&Vec<usize>> = groups.iter().filter(|group| group.len() > 1).chain([&all]).collect();
    let smallest = |format: Format| format.as_float().map_or(0, |float| 1 << float.unread_bits);
    let dot = |random: &mut Random| {
        let mut dot = subject.zeros();
        for at in 0..dot.a.len() {
            let (of_a, of_b) = match random.below(4) {
                0 => (0, id.b.largest(false)),
                1 => (smallest(id.a), 0),
                _ => (smallest(id.a), smallest(id.b)),
            };
            (dot.a[at], dot.b[at]) = (signed(random, id.a, of_a), signed(random, id.b, of_b));
        }
        dot.c = match random.below(5) {
            0 => signed(random, id.c, smallest(id.c)),
            1 => signed(random, id.c, 0),
            2 => {
                let shift = random.below(id.c.fraction_bits().max(1) as usize);
                signed(random, id.c, smallest(id.c) << shift)
            }
            3 => {
                let one = if random.flip() { 1 } else { -1 };
                let exponent = random.between(MODERATE.0, MODERATE.1);
                subject.c_bits(Number::new(one, exponent)).unwrap_or(0)
            }
            _ => 0,
        };
        let group = groups[random.below(groups.len())];
        let one = group[random.below(group.len())];
        let other = group[random.below(group.len())];
        let (of_a, of_b) =
            if random.flip() { (id.a.largest(false), id.b.largest(false)) } else { (id.a.one(), id.b.largest(false)) };
        let negative_zero = id.a.negative_zero()?;
        (dot.a[one], dot.b[one]) = (of_a, of_b);
        (dot.a[other], dot.b[other]) = (of_a ^ negative_zero, of_b);
        (one != other).then_some(dot)
    };
    (0..count).filter_map(|_| dot(&mut random)).collect()
}

/// Makes `count` dots of integers in which a few products and c are of nearly the same size, of either sign, about any
/// power of two. An intermediate sum that saturates or wraps shows only if a later term brings it back into its range,
/// which random integers hardly ever do.
pub(in crate::identify) fn near_limits(subject: &Subject<'_>, seed: u64, count: usize) -> Vec<Dot> {
    let mut random = Random(seed_of(seed, 16));
    let id = subject.id();
    // A value near this power of two, or near the largest that the format has, of either sign.
    let value = |random: &mut Random, format: Format, exponent: usize| {
        let Encoding::Integer { bits, signed } = format.encoding() else { return 0 };
        let magnitude_bits = bits - u32::from(signed);
        let about = (1i64 << exponent.min(magnitude_bits as usize - 1)) + i64::from(random.between(-2, 2));
        let limited = about.clamp(0, (1i64 << magnitude_bits) - 1);
        (if signed && random.flip() { -limited } else { limited }).cast_unsigned() & format.mask()
    };
    let of_product = id.a.bits() + id.b.bits() - 2;
    let dot = |random: &mut Random| {
        let mut dot = subject.zeros();
        let k = subject.k();
        let about = random.below(of_product as usize + 1);
        let first = random.below(k);
        for at in 0..1 + random.below(k.min(4)) {
            let place = if random.flip() { (first + at) % k } else { random.below(k) };
            let exponent = (about + random.below(3)).saturating_sub(1);
            let of_a = random.below(exponent.min(id.a.bits() as usize) + 1);
            dot.a[place] = value(random, id.a, of_a);
            dot.b[place] = value(random, id.b, exponent - of_a);
        }
        if random.flip() {
            let exponent = about + random.below(3);
            dot.c = value(random, id.c, exponent);
        }
        dot
    };
    (0..count).map(|_| dot(&mut random)).collect()
}

#[cfg(test)]
mod tests {
    use mxprobe_api::OperationId;
    use mxprobe_sim::ModelDevice;

    use super::*;

    #[test]
    fn terms_over_the_whole_range_hold_two_that_cancel_and_the_smallest() {
        let model = mxprobe_models::shipped().iter().find(|model| model.name == "h100").unwrap();
        let device = ModelDevice::new(model.clone());
        let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
        let operation = &mxprobe_api::Device::operations(&device)[&id];
        let subject = Subject::new(&device, operation);
        let dots = whole_range(&subject, &[vec![0, 1, 2, 3], vec![4]], 1, 600);
        assert!(dots.len() > 400, "{}", dots.len());
        let product = |dot: &Dot, k: usize| id.a.to_f64(dot.a[k]) * id.b.to_f64(dot.b[k]);
        for dot in &dots {
            let large: Vec<usize> = (0..16).filter(|k| product(dot, *k).abs() > 1.0).collect();
            assert!(large.len() == 2 && (product(dot, large[0]) + product(dot, large[1])).abs() < 0.5, "{dot:?}");
            let others = (0..16).filter(|k| !large.contains(k));
            assert!(others.clone().all(|k| [0.0, (-48f64).exp2()].contains(&product(dot, k).abs())), "{dot:?}");
        }
        let is_moderate = |dot: &&Dot| (0.0002..5000.0).contains(&id.c.to_f64(dot.c).abs());
        let count = dots.iter().filter(is_moderate).count();
        assert!(count > 60 && count < dots.len() / 3, "{count}");
        let of_the_largest = |dot: &&Dot| (0..16).any(|k| product(dot, k) > 65_504.0 * 65_503.0);
        let count = dots.iter().filter(of_the_largest).count();
        assert!(count > 100 && count < dots.len() - 100, "{count}");
    }

    #[test]
    fn integers_near_limits_overflow_an_intermediate_sum_and_come_back() {
        let id: OperationId = "dot.m4n4k8.s32.s16.s16.s32".parse().unwrap();
        let text = "schema = \"mxprobe-model/1\"\nname = \"made-up\"\ntitle = \"made up\"\nvendor = \"nobody\"\n\
                    fingerprint = \"1\"\n[sources]\n\"x\" = \"a test\"\n\
                    [adder.s]\noutput = \"s32\"\noverflow = \"wrap\"\nbasis = \"assumed\"\nsource = \"x\"\n\
                    [[unit]]\ntree = \"s(all, c)\"\noperations = [\"dot.m4n4k8.s32.s16.s16.s32\"]\nbasis = \"assumed\"\n\
                    source = \"x\"\n";
        let device = ModelDevice::new(mxprobe_models::Model::parse("made-up", text, None).unwrap());
        let operation = &mxprobe_api::Device::operations(&device)[&id];
        let subject = Subject::new(&device, operation);
        let value = |bits: u64| i64::from(u16::try_from(bits).unwrap().cast_signed());
        let comes_back = |dot: &&Dot| {
            let mut sums = dot.a.iter().zip(&dot.b).scan(0, |sum, (a, b)| {
                *sum += value(*a) * value(*b);
                Some(*sum)
            });
            let overflows = sums.by_ref().any(|sum| i16::try_from(sum).is_err());
            overflows && sums.last().is_some_and(|sum| i16::try_from(sum).is_ok())
        };
        let dots = near_limits(&subject, 1, 10_000);
        let (near, any) = (&dots, crate::dots::draw(&id, 1, 10_000));
        let count = |dots: &[Dot]| dots.iter().filter(comes_back).count();
        assert!(count(near) > 100 && count(near) > 20 * count(&any), "{} {}", count(near), count(&any));
    }
}
