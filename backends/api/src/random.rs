//! Pseudorandom inputs.

use crate::{Elements, FloatEncoding, Format};

/// A SplitMix64 generator (Steele, Lea, Flood, OOPSLA 2014): the same numbers on every machine and in every run.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Draws 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number below `limit`; returns 0 if `limit` is 0.
    #[inline]
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.bits() >> 8).unwrap_or(0) % limit.max(1)
    }

    /// Draws a number from `low` to `high`, both inclusive; returns `low` if `high` is less.
    #[inline]
    pub fn between(&mut self, low: i32, high: i32) -> i32 {
        let span = high.saturating_sub(low).max(0).unsigned_abs() as usize;
        low + i32::try_from(self.below(span + 1)).unwrap_or(0)
    }

    /// Draws one bit.
    #[inline]
    pub fn flip(&mut self) -> bool {
        self.bits() >> 40 & 1 == 1
    }

    /// Draws any bits of a format, including NaN and infinities.
    pub fn any(&mut self, format: Format) -> u64 {
        self.bits() & format.mask()
    }

    /// Draws a value from 1/4 to 4 in magnitude, of either sign if the format is signed, with at most 8 fraction bits,
    /// so that products are exact in f32; for an integer format, any integer.
    pub fn moderate(&mut self, format: Format) -> u64 {
        if format.is_integer() {
            return self.any(format);
        }
        let value = f64::from(256 + self.between(0, 255)) * f64::from(self.between(-2, 1)).exp2() / 256.0;
        self.signed(format, value)
    }

    /// Draws a value from 1/4 to 4 in magnitude with every fraction bit random; for an integer format, any integer.
    pub fn dense(&mut self, format: Format) -> u64 {
        if format.is_integer() {
            return self.any(format);
        }
        // All bits of an f64 between 1 and 2.
        let value = f64::from_bits(1.0_f64.to_bits() | self.bits() >> 12) * f64::from(self.between(-2, 1)).exp2();
        self.signed(format, value)
    }

    /// Rounds a value to a format, with a random sign if the format is signed.
    fn signed(&mut self, format: Format, value: f64) -> u64 {
        let signed = format.as_float().is_some_and(FloatEncoding::is_signed);
        format.from_f64(if signed && self.flip() { -value } else { value })
    }

    /// Fills `elements` with values from `draw`.
    pub fn fill(&mut self, elements: &mut Elements, draw: fn(&mut Self, Format) -> u64) {
        let format = elements.format();
        (0..elements.len()).for_each(|at| elements.set(at, draw(self, format)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_values_have_products_that_their_format_does_not_hold() {
        let mut random = Random(3);
        let inexact = |random: &mut Random, draw: fn(&mut Random, Format) -> u64| {
            let mut value = || Format::F32.to_f64(draw(random, Format::F32));
            (0..1000).filter(|_| (value() * value()).to_bits() << 35 != 0).count()
        };
        assert_eq!(inexact(&mut random, Random::moderate), 0);
        assert!(inexact(&mut random, Random::dense) > 990);
        let all: Vec<f64> = (0..1000).map(|_| Format::F16.to_f64(random.dense(Format::F16)).abs()).collect();
        assert!(all.iter().all(|value| (0.25..=4.0).contains(value)));
    }
}
