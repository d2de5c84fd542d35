//! Values, products and dots near a requested exponent, within the range of the formats.

use mxprobe_api::{FloatEncoding, Format, OperationId};

use crate::{Random, dot::Dot};

/// The fraction bits of a value, in the order in which [`Maker::value`] lists them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fraction {
    Zero,
    Ones,
    Lowest,
    Highest,
    Random,
}

const FRACTIONS: [Fraction; 5] =
    [Fraction::Zero, Fraction::Ones, Fraction::Lowest, Fraction::Highest, Fraction::Random];

/// The exponents of a format's values, from that of the smallest subnormal up.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) low: i32,
    pub(crate) high: i32,
}

impl Range {
    pub(crate) fn of(float: FloatEncoding) -> Self {
        let (low, high) = float.exponents();
        Self { low, high }
    }
}

/// A generator of dots for an operation, class by class; the same seed gives the same dots.
pub struct Maker<'a> {
    pub(crate) id: &'a OperationId,
    pub(crate) k: usize,
    pub(crate) random: Random,
    /// Of A, B, C and D; `None` for integers.
    numbers: [Option<Numbers>; 4],
}

/// An operand.
#[derive(Clone, Copy)]
pub(crate) enum Operand {
    A,
    B,
    C,
}

impl<'a> Maker<'a> {
    /// Creates a maker for an operation.
    #[must_use]
    pub fn new(id: &'a OperationId, seed: u64) -> Self {
        let numbers = [id.a, id.b, id.c, id.d].map(Numbers::of);
        Self { id, k: id.shape.sizes().2, random: Random(seed), numbers }
    }

    /// The ranges of the formats of A, B, C and D; `None` for integers.
    pub(crate) fn ranges(&self) -> Option<[Range; 4]> {
        let [a, b, c, d] = self.numbers;
        Some([a?.range, b?.range, c?.range, d?.range])
    }

    /// The exponents that both products and c can have and that leave room in d for the sum of all terms.
    pub(crate) fn span(&self) -> Option<Range> {
        let [a, b, c, d] = self.ranges()?;
        let low = (a.low + b.low).max(c.low).max(d.low);
        let high = (a.high + b.high).min(c.high).min(d.high - 8);
        Some(Range { low: low.min(high), high })
    }

    /// Makes a dot of zeros whose scales are 1, about 1, or far apart.
    pub(crate) fn dot(&mut self) -> Dot {
        let mut dot = Dot::zeros(self.id);
        let Some(scale) = self.id.block_scale() else { return dot };
        let spread = [0, 1, 3, 12, 40][self.random.below(5)];
        if let Some((a, b)) = &mut dot.scales {
            for bits in a.iter_mut().chain(b) {
                let exponent = self.random.between(-spread, spread);
                let significand = 8 + (self.random.bits() & 7);
                // A power of two for odd spreads, since some scale formats hold only those.
                let significand = if spread % 2 == 0 { significand } else { 8 };
                *bits = scale.format.truncated(false, significand, exponent - 3);
            }
        }
        dot
    }

    /// Makes the scales of every block but that of product `at` smaller, by `depth` places in all, within the range of
    /// the scales' format.
    pub(crate) fn lower_other_blocks(&mut self, dot: &mut Dot, at: usize, depth: i32) {
        let (Some(scale), Some((a, b))) = (self.id.block_scale(), &mut dot.scales) else { return };
        let high = scale.format.as_float().map_or(0, FloatEncoding::max_exponent).min(depth.max(8) / 2);
        for (block, (of_a, of_b)) in a.iter_mut().zip(b).enumerate() {
            let down = if block == at / scale.block { 0 } else { depth };
            *of_a = scale.format.truncated(false, 1, high - down / 2);
            *of_b = scale.format.truncated(false, 1, high - (down - down / 2));
        }
    }

    pub(crate) fn fraction(&mut self) -> Fraction {
        FRACTIONS[self.random.below(FRACTIONS.len())]
    }

    /// The next random bits, which the next draw gives again unless `are_drawn`: a branch would be guessed wrongly.
    fn bits_if(&mut self, are_drawn: bool) -> u64 {
        let mut next = self.random.clone();
        let bits = next.bits();
        self.random.0 = if are_drawn { next.0 } else { self.random.0 };
        bits
    }

    /// Makes a value of the nearest exponent to `exponent` that the operand's format has.
    pub(crate) fn value(&mut self, operand: Operand, exponent: i32, fraction: Fraction, negative: bool) -> u64 {
        let Some(numbers) = self.numbers[operand as usize] else {
            return self.random.any([self.id.a, self.id.b, self.id.c][operand as usize]);
        };
        let ones = numbers.ones;
        let random = self.bits_if(fraction == Fraction::Random);
        let field = [0, ones, 1, (ones + 1) >> 1, random][fraction as usize];
        let bits = numbers.value(exponent, field & ones, negative);
        // Register bits that are not read.
        let are_random = self.random.flip();
        bits | (self.bits_if(are_random) & (numbers.unread * u64::from(are_random)))
    }

    /// Makes operands whose exponents add up to `exponent`, or come as near as the formats allow.
    pub(crate) fn product(&mut self, exponent: i32, fraction: Fraction, negative: bool) -> (u64, u64) {
        let [Some(Numbers { range: a, .. }), Some(Numbers { range: b, .. }), ..] = self.numbers else {
            return (self.random.any(self.id.a), self.random.any(self.id.b));
        };
        // An even share of each range, plus a small random offset.
        let share = exponent * (a.high + 1) / (a.high + b.high + 2).max(1) + self.random.between(-2, 2);
        let of_b = (exponent - share.clamp(a.low, a.high)).clamp(b.low, b.high);
        let of_a = exponent - of_b;
        let minus_a = self.random.flip();
        let other = if fraction == Fraction::Ones { Fraction::Ones } else { self.fraction() };
        (self.value(Operand::A, of_a, fraction, minus_a), self.value(Operand::B, of_b, other, minus_a != negative))
    }

    pub(crate) fn put(&mut self, dot: &mut Dot, at: usize, exponent: i32, fraction: Fraction, negative: bool) {
        (dot.a[at], dot.b[at]) = self.product(exponent, fraction, negative);
    }

    /// Draws an exponent in the upper half of the span, so that others lie below it.
    pub(crate) fn top(&mut self, span: Range) -> i32 {
        self.random.between(i32::midpoint(span.low, span.high), span.high)
    }

    /// How far below the top the terms of dot `index` lie; the index steps through every depth.
    pub(crate) fn depth(index: usize, top: i32, span: Range) -> i32 {
        let deepest = (top - span.low).clamp(0, 72).unsigned_abs() as usize;
        i32::try_from(index % (deepest + 1)).unwrap_or(0)
    }
}

/// The numbers of a format, by exponent.
#[derive(Clone, Copy)]
struct Numbers {
    range: Range,
    /// The exponent of the smallest normal number.
    least: i32,
    bias: i32,
    fraction_bits: u32,
    /// All bits of a fraction, those of the largest number, and those that are not read.
    ones: u64,
    largest: u64,
    unread: u64,
    unread_bits: u32,
    /// The sign bit; 0 if there is none.
    sign: u64,
}

impl Numbers {
    /// `None` for integers.
    fn of(format: Format) -> Option<Self> {
        let float = format.as_float()?;
        Some(Self {
            range: Range::of(float),
            least: float.min_exponent(),
            bias: float.bias,
            fraction_bits: float.fraction_bits,
            ones: (1 << float.fraction_bits) - 1,
            largest: format.largest(false) >> float.unread_bits,
            unread: (1 << float.unread_bits) - 1,
            unread_bits: float.unread_bits,
            sign: format.largest(true) ^ format.largest(false),
        })
    }

    /// The number with this fraction at the nearest exponent that the format has, as [`Format::truncated`] gives it, but
    /// without branches.
    fn value(&self, exponent: i32, fraction: u64, negative: bool) -> u64 {
        let exponent = exponent.clamp(self.range.low, self.range.high);
        let below = (self.least - exponent).max(0).unsigned_abs();
        let biased = if below > 0 { 0 } else { u64::from((exponent + self.bias).unsigned_abs()) };
        // The leading one of a normal number is not stored; one of a subnormal number is, so that none is 0.
        let kept = (self.ones + 1 + fraction) >> below & self.ones;
        let field = ((biased << self.fraction_bits) + kept).min(self.largest);
        (field << self.unread_bits) | (self.sign * u64::from(negative))
    }
}

pub(crate) fn sign_of(format: Format) -> u64 {
    let is_signed = format.as_float().is_some_and(FloatEncoding::is_signed);
    if is_signed { 1 << (format.bits() - 1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CLASSES;

    /// Dots of a seed are those of reports and of other versions.
    #[test]
    fn a_seed_gives_the_same_dots_as_ever() {
        for (id, wanted) in [
            ("mma.m16n8k16.f32.f16.f16.f32", 0xa8c2_8e51_44d6_d6b2),
            ("mma.m16n8k8.f64.f64.f64.f64", 0x2683_d7c5_521c_4d90),
            ("mma.m16n8k8.f32.tf32.tf32.f32", 0xbcd5_092f_0e6b_d450),
            ("dot.m1n1k5.f64.f32.f32.f64", 0x9296_9503_cf41_bbf5),
            ("dot.m1n1k4.bf16.bf16.f16.bf16", 0x3745_1db4_b7ac_d386),
            ("mma.m16n8k32.f16.e4m3.e5m2.f16", 0x3e6f_45e1_d38f_4611),
            ("mfma.m16n16k32.f32.e4m3fnuz.e5m2fnuz.f32", 0x9bfe_a6de_96da_be5e),
            ("mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3", 0xf096_aa8d_9a72_22ee),
            ("mma.m16n8k32.f32.e3m2.e2m3.f32.block32.ue8m0", 0x0bed_8404_8588_edbc),
            ("mma.m16n8k32.s32.s8.u8.s32", 0x5fa9_d5ee_2921_8510),
        ] {
            let parsed: OperationId = id.parse().unwrap();
            let mut maker = Maker::new(&parsed, 7);
            // FNV-1a, in words.
            let mut digest = 0xcbf2_9ce4_8422_2325_u64;
            for (class, index) in (0..CLASSES.len()).flat_map(|class| (0..300).map(move |index| (class, index))) {
                let Some(dot) = maker.make(class, index) else { continue };
                let scales = dot.scales.iter().flat_map(|(a, b)| a.iter().chain(b));
                for word in dot.a.iter().chain(&dot.b).chain(scales).chain([&dot.c]) {
                    digest = (digest ^ word).wrapping_mul(0x100_0000_01b3);
                }
            }
            assert_eq!(digest, wanted, "{id}: {digest:#018x}");
        }
    }
}
