//! Dots that mix the extremes of formats: zeros of both signs, the smallest subnormals and the largest values, in every
//! product, in c, and block by block.

use mxprobe_api::{FloatEncoding, Format, OperationId};

use super::{Dot, Random};

/// An endless sequence of dots, the same for the same seed; empty if a format holds integers.
pub(crate) struct Edges<'a> {
    id: &'a OperationId,
    a: Side,
    b: Side,
    random: Random,
    /// The groups of products that a unit adds first: some dots fill only one group.
    groups: Vec<Vec<usize>>,
}

/// The content of one product of a dot.
#[derive(Clone, Copy)]
enum Fill {
    Zero,
    /// +0 or −0.
    SignedZero,
    /// The smallest subnormals of A and of B, or one of them and 1.
    Smallest,
    /// A subnormal and a long significand, of either: a product whose leading bit lies far below the sum of the
    /// exponents.
    Subnormal,
    /// The smallest normal values.
    SmallestNormal,
    Largest,
    /// The longest significands of this exponent.
    Ones(i32),
    /// Any significands near this exponent.
    About(i32),
}

/// What dots hold of a format, worked out once.
struct Side {
    format: Format,
    /// The exponents of the smallest subnormal and of the largest value.
    exponents: (i32, i32),
    smallest: u64,
    smallest_normal: u64,
    one: u64,
    largest: u64,
    sign: u64,
}

impl Side {
    fn of(format: Format) -> Self {
        let one_of = |what: fn(FloatEncoding) -> u64| format.as_float().map_or(0, what);
        Self {
            format,
            exponents: format.as_float().map_or((0, 0), FloatEncoding::exponents),
            smallest: one_of(|float| 1 << float.unread_bits),
            smallest_normal: one_of(|float| 1 << (float.fraction_bits + float.unread_bits)),
            one: format.one(),
            largest: format.largest(false),
            sign: sign(format),
        }
    }

    /// As [`signed`].
    fn signed(&self, random: &mut Random, bits: u64) -> u64 {
        if random.flip() { bits ^ self.sign } else { bits }
    }
}

impl<'a> Edges<'a> {
    pub(crate) fn new(id: &'a OperationId, seed: u64) -> Self {
        Self { id, a: Side::of(id.a), b: Side::of(id.b), random: Random(seed), groups: Vec::new() }
    }

    /// Adds groups of products, one of which is sometimes filled alone.
    pub(crate) fn with_groups(mut self, groups: Vec<Vec<usize>>) -> Self {
        self.groups = groups;
        self.groups.retain(|group| !group.is_empty());
        self
    }

    /// Some products: one group, a run of neighbours, every n-th, all, or random ones.
    fn some(&mut self) -> Vec<usize> {
        let k = self.id.shape.sizes().2;
        let random = &mut self.random;
        match random.below(8) {
            0..=2 if !self.groups.is_empty() => self.groups[random.below(self.groups.len())].clone(),
            0 | 3 => {
                let size = 1 + random.below(k);
                let from = random.below(k - size + 1);
                (from..from + size).collect()
            }
            1 | 4 => {
                let step = 1 + random.below(k.min(8));
                (random.below(step)..k).step_by(step).collect()
            }
            2 | 5 => (0..k).collect(),
            6 => (0..k).filter(|_| random.flip()).collect(),
            _ => (0..1 + random.below(3)).map(|_| random.below(k)).collect(),
        }
    }

    fn fill(&mut self, dot: &mut Dot, at: usize, fill: Fill) {
        let (a, b) = (&self.a, &self.b);
        let random = &mut self.random;
        let (of_a, of_b) = match fill {
            Fill::Zero => (0, 0),
            Fill::SignedZero => (0, if random.flip() { b.one } else { 0 }),
            Fill::Smallest => match random.below(3) {
                0 => (a.smallest, b.one),
                1 => (a.one, b.smallest),
                _ => (a.smallest, b.smallest),
            },
            Fill::Subnormal if random.flip() => (subnormal(random, a.format), long(random, b.format)),
            Fill::Subnormal => (long(random, a.format), subnormal(random, b.format)),
            Fill::SmallestNormal if random.flip() => (a.smallest_normal, b.one),
            Fill::SmallestNormal => (a.smallest_normal, b.smallest_normal),
            Fill::Largest => (a.largest, b.largest),
            Fill::Ones(exponent) | Fill::About(exponent) => {
                let ((a_low, a_high), (b_low, b_high)) = (a.exponents, b.exponents);
                let of_b = (exponent / 2 + random.between(-2, 2)).clamp(b_low, b_high);
                let of_a = (exponent - of_b).clamp(a_low, a_high);
                let of_b = (exponent - of_a).clamp(b_low, b_high);
                let ones = matches!(fill, Fill::Ones(_));
                (value(random, a.format, of_a, ones), value(random, b.format, of_b, ones))
            }
        };
        dot.a[at] = a.signed(random, of_a);
        dot.b[at] = b.signed(random, of_b);
    }

    /// Picks the content of a dot's products, near the exponent `about`.
    fn pick(&mut self, about: i32, spread: i32) -> Fill {
        let near = about + self.random.between(-spread, spread);
        match self.random.below(10) {
            0 => Fill::SignedZero,
            1 => Fill::Smallest,
            2 => Fill::SmallestNormal,
            3 => Fill::Largest,
            4 => Fill::Ones(about),
            5 => Fill::Subnormal,
            _ => Fill::About(near),
        }
    }

    fn c(&mut self, about: i32) -> u64 {
        let format = self.id.c;
        let Some(float) = format.as_float() else { return 0 };
        let (low, high) = float.exponents();
        let random = &mut self.random;
        // As large as the sum it is added to, with all bits set: the longest carry.
        let (exponent, ones) = match random.below(13) {
            0 | 1 => return 0,
            2 => return signed(random, format, 1 << float.unread_bits),
            3 => return signed(random, format, ((1 << float.fraction_bits) - 1) << float.unread_bits),
            4 => return signed(random, format, 1 << (float.fraction_bits + float.unread_bits)),
            5 => return signed(random, format, format.largest(false)),
            // Short of the overflow by a few of the units that an addition of few bits keeps.
            6 => {
                let below = random.bits() >> random.below(64) & ((1 << float.fraction_bits) - 1);
                return signed(random, format, format.largest(false) - (below << float.unread_bits));
            }
            7 => (about + random.between(-1, 6), true),
            8 => (random.between(low, high), false),
            9 => (about + 23 + random.between(-4, 4), random.flip()),
            10 => (about - random.between(0, 12), true),
            _ => (about + random.between(-6, 30), false),
        };
        let bits = value(random, format, exponent.clamp(low, high), ones);
        signed(random, format, bits)
    }
}

impl Iterator for Edges<'_> {
    type Item = Dot;

    fn next(&mut self) -> Option<Dot> {
        let [a, b, d] = [self.id.a.as_float()?, self.id.b.as_float()?, self.id.d.as_float()?];
        let mut dot = Dot::zeros(self.id);
        let (low, high) = (a.min_exponent() + b.min_exponent(), a.max_exponent() + b.max_exponent());
        let about = match self.random.below(5) {
            0 => self.random.between(low - 10, high),
            1 => high - self.random.between(0, 2),
            2 => d.min_exponent().max(low) + self.random.between(-26, 26),
            _ => self.random.between(-16, 16),
        };
        let spread = [0, 0, 2, 12][self.random.below(4)];
        let background =
            [Fill::Zero, Fill::Zero, Fill::SignedZero, Fill::SignedZero, Fill::Smallest][self.random.below(5)];
        for at in 0..dot.a.len() {
            self.fill(&mut dot, at, background);
        }
        let same_sign = self.random.below(3) > 0;
        let negative = self.random.flip();
        for _ in 0..1 + self.random.below(2) {
            let (one, other) = (self.pick(about, spread), self.pick(about, spread));
            let mixed = self.random.below(3) == 0;
            for at in self.some() {
                let fill = if mixed && self.random.flip() { other } else { one };
                self.fill(&mut dot, at, fill);
                if same_sign {
                    dot.a[at] = with_sign(self.id.a, dot.a[at], negative);
                    dot.b[at] = with_sign(self.id.b, dot.b[at], false);
                }
            }
        }
        dot.c = self.c(about);
        if same_sign && self.random.flip() {
            dot.c = with_sign(self.id.c, dot.c, negative);
        }
        if let (Some(scale), Some((a, b))) = (self.id.block_scale(), &mut dot.scales) {
            for bits in a.iter_mut().chain(b) {
                if self.random.below(4) == 0 {
                    let exponent = self.random.between(-6, 6);
                    *bits = value(&mut self.random, scale.format, exponent, false);
                }
            }
        }
        Some(dot)
    }
}

fn sign(format: Format) -> u64 {
    format.negative_zero().unwrap_or(0)
}

/// Returns these bits with the sign that was drawn, if the format has a sign.
pub(crate) fn signed(random: &mut Random, format: Format, bits: u64) -> u64 {
    if random.flip() { bits ^ sign(format) } else { bits }
}

fn with_sign(format: Format, bits: u64, negative: bool) -> u64 {
    if negative { bits | sign(format) } else { bits & !sign(format) }
}

/// A value of this exponent, or of the nearest that the format has: with all fraction bits set, or with none, all or
/// random ones.
fn value(random: &mut Random, format: Format, exponent: i32, ones: bool) -> u64 {
    let bits = format.fraction_bits();
    let all = (1u64 << bits) - 1;
    let fraction = match random.below(4) {
        _ if ones => all,
        0 => 0,
        1 => all,
        _ => random.bits() & all,
    };
    format.truncated(false, 1 << bits | fraction, exponent - bits.cast_signed())
}

/// The smallest subnormal, or any.
fn subnormal(random: &mut Random, format: Format) -> u64 {
    let Some(float) = format.as_float() else { return 0 };
    let any = random.bits() & ((1 << float.fraction_bits) - 1);
    (if random.flip() { 1 } else { any.max(1) }) << float.unread_bits
}

/// A normal value of any exponent whose significand has all its bits.
fn long(random: &mut Random, format: Format) -> u64 {
    let Some(float) = format.as_float() else { return 0 };
    let exponent = random.between(float.min_exponent(), float.max_exponent());
    let ones = random.flip();
    value(random, format, exponent, ones)
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Decoded;

    use super::*;

    #[test]
    fn every_mixture_of_zeros_small_and_large_values_comes_up() {
        let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
        let dots: Vec<Dot> = Edges::new(&id, 1).take(20_000).collect();
        let zero = |bits: u64| bits & 0x7fff == 0;
        let all_zero = |dot: &Dot| dot.a.iter().zip(&dot.b).all(|(a, b)| zero(*a) || zero(*b));
        let smallest = |dot: &Dot| dot.a.iter().any(|a| a & 0x7fff == 1);
        let largest = |dot: &Dot| dot.a.iter().filter(|a| **a & 0x7fff == 0x7bff).count();
        let count = |holds: &dyn Fn(&Dot) -> bool| dots.iter().filter(|dot| holds(dot)).count();
        assert!(count(&|dot| all_zero(dot) && dot.c & 0x7fff_ffff == 1) > 20);
        assert!(count(&|dot| smallest(dot) && dot.c & 0x7fff_ffff == 1) > 20);
        assert!(count(&|dot| dot.a.contains(&0x8000) && dot.c == 0x8000_0000) > 20);
        let is_subnormal = |bits: u64| bits & 0x7c00 == 0 && bits & 0x3ff != 0;
        let by_long = |dot: &Dot| dot.a.iter().zip(&dot.b).any(|(a, b)| is_subnormal(*a) && b & 0x3ff == 0x3ff);
        assert!(count(&by_long) > 100);
        assert!(count(&|dot| largest(dot) == 4) > 20 && count(&|dot| largest(dot) == 16) > 20);
        let finite =
            |format: Format, bits: u64| !matches!(format.decode(bits), Decoded::Nan { .. } | Decoded::Infinity { .. });
        assert!(dots.iter().all(|dot| dot.a.iter().all(|a| finite(id.a, *a)) && finite(id.c, dot.c)));
    }

    #[test]
    fn integers_have_no_edges_here() {
        let id: OperationId = "mma.m16n8k32.s32.s8.s8.s32".parse().unwrap();
        assert_eq!(Edges::new(&id, 1).next(), None);
    }
}
