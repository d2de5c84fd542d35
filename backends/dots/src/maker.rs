//! Values, products and dots near a requested exponent, within the range of the formats.

use mxprobe_api::{FloatEncoding, Format, OperationId};

use crate::{Random, dot::Dot};

/// The fraction bits of a value.
#[derive(Clone, Copy)]
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
}

impl<'a> Maker<'a> {
    /// Creates a maker for an operation.
    #[must_use]
    pub fn new(id: &'a OperationId, seed: u64) -> Self {
        Self { id, k: id.shape.sizes().2, random: Random(seed) }
    }

    /// The ranges of the formats of A, B, C and D; `None` for integers.
    pub(crate) fn ranges(&self) -> Option<[Range; 4]> {
        let of = |format: Format| format.as_float().map(Range::of);
        Some([of(self.id.a)?, of(self.id.b)?, of(self.id.c)?, of(self.id.d)?])
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

    /// Makes a value of the nearest exponent to `exponent` that the format has.
    pub(crate) fn value(&mut self, format: Format, exponent: i32, fraction: Fraction, negative: bool) -> u64 {
        let Some(float) = format.as_float() else { return self.random.any(format) };
        let width = float.fraction_bits;
        let ones = (1u64 << width) - 1;
        let field = match fraction {
            Fraction::Zero => 0,
            Fraction::Ones => ones,
            Fraction::Lowest => 1,
            Fraction::Highest => (ones + 1) >> 1,
            Fraction::Random => self.random.bits() & ones,
        };
        let exponent = exponent.clamp(Range::of(float).low, float.max_exponent());
        let bits = format.truncated(negative, ones + 1 + (field & ones), exponent - width.cast_signed());
        // Register bits that are not read.
        let unread = (1u64 << float.unread_bits) - 1;
        if self.random.flip() { bits | self.random.bits() & unread } else { bits }
    }

    /// Makes operands whose exponents add up to `exponent`, or come as near as the formats allow.
    pub(crate) fn product(&mut self, exponent: i32, fraction: Fraction, negative: bool) -> (u64, u64) {
        let (Some(a), Some(b)) = (self.id.a.as_float().map(Range::of), self.id.b.as_float().map(Range::of)) else {
            return (self.random.any(self.id.a), self.random.any(self.id.b));
        };
        // An even share of each range, plus a small random offset.
        let share = exponent * (a.high + 1) / (a.high + b.high + 2).max(1) + self.random.between(-2, 2);
        let of_b = (exponent - share.clamp(a.low, a.high)).clamp(b.low, b.high);
        let of_a = exponent - of_b;
        let minus_a = self.random.flip();
        let other = if matches!(fraction, Fraction::Ones) { Fraction::Ones } else { self.fraction() };
        (self.value(self.id.a, of_a, fraction, minus_a), self.value(self.id.b, of_b, other, minus_a != negative))
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

pub(crate) fn sign_of(format: Format) -> u64 {
    let is_signed = format.as_float().is_some_and(FloatEncoding::is_signed);
    if is_signed { 1 << (format.bits() - 1) } else { 0 }
}
