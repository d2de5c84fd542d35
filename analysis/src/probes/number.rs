//! Exact numbers for the inputs and outputs of probes: an integer times a power of two.

use mxprobe_api::{Decoded, Format, Overflow, Rounding, Subnormals};

/// `mantissa · 2^exponent`, the mantissa odd or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    mantissa: i128,
    exponent: i32,
}

impl Number {
    /// The number 0, which has no sign here.
    pub const ZERO: Self = Self { mantissa: 0, exponent: 0 };

    /// Creates `mantissa · 2^exponent`; the mantissa may be even.
    #[must_use]
    pub fn new(mantissa: i128, exponent: i32) -> Self {
        if mantissa == 0 {
            return Self::ZERO;
        }
        let zeros = mantissa.trailing_zeros();
        Self { mantissa: mantissa >> zeros, exponent: exponent + zeros.cast_signed() }
    }

    /// Creates `2^exponent`.
    #[must_use]
    pub fn power(exponent: i32) -> Self {
        Self { mantissa: 1, exponent }
    }

    /// The value of bits; `None` for NaN and infinities.
    #[must_use]
    pub fn decode(format: Format, bits: u64) -> Option<Self> {
        match format.decode(bits) {
            Decoded::Nan { .. } | Decoded::Infinity { .. } => None,
            Decoded::Zero { .. } => Some(Self::ZERO),
            Decoded::Finite { negative, significand, exponent } => {
                let mantissa = i128::from(significand);
                let mantissa = if negative { -mantissa } else { mantissa };
                Some(Self::new(mantissa, exponent - format.fraction_bits().cast_signed()))
            }
        }
    }

    /// Whether it is zero.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// A place for it among this many, a power of two: nearly the same numbers have different ones.
    pub(super) fn slot(self, count: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "only some bits are wanted")]
        let (low, high) = (self.mantissa as u64, (self.mantissa >> 64) as u64);
        let mixed = (low ^ high.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        usize::try_from(mixed).unwrap_or(0).wrapping_add((self.exponent as usize).wrapping_mul(0x2d)) % count
    }

    /// Sign, magnitude and the exponent of the magnitude's lowest bit.
    #[must_use]
    pub fn parts(self) -> (bool, u128, i32) {
        (self.mantissa < 0, self.mantissa.unsigned_abs(), self.exponent)
    }

    /// The exponent of the leading bit; `None` for zero.
    #[must_use]
    pub fn leading(self) -> Option<i32> {
        let length = 128 - self.mantissa.unsigned_abs().leading_zeros().cast_signed();
        (self.mantissa != 0).then_some(self.exponent + length - 1)
    }

    /// Multiplies by `2^by`, exactly.
    #[must_use]
    pub fn scaled(self, by: i32) -> Self {
        Self::new(self.mantissa, self.exponent + by)
    }

    /// Multiplies by a small integer, exactly.
    #[must_use]
    pub fn times(self, factor: i32) -> Self {
        Self::new(self.mantissa * i128::from(factor), self.exponent)
    }

    /// The negation.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { mantissa: -self.mantissa, ..self }
    }

    /// The sum; `None` if it takes more than 120 bits.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        if self.is_zero() {
            return Some(other);
        }
        if other.is_zero() {
            return Some(self);
        }
        let low = self.exponent.min(other.exponent);
        let high = self.leading()?.max(other.leading()?);
        if high - low > 120 {
            return None;
        }
        Some(Self::new((self.mantissa << (self.exponent - low)) + (other.mantissa << (other.exponent - low)), low))
    }

    /// Rounds to an integer multiple of `2^unit`.
    #[must_use]
    pub fn rounded(self, unit: i32, rounding: Rounding) -> Self {
        if self.exponent >= unit {
            return self;
        }
        let shift = unit - self.exponent;
        if shift > 126 {
            let up = match rounding {
                Rounding::Down => self.mantissa < 0,
                Rounding::Up | Rounding::ToOdd => self.mantissa > 0,
                Rounding::NearestEven | Rounding::TowardZero => false,
            };
            let away = up || (rounding == Rounding::ToOdd && self.mantissa != 0);
            return if away { Self::new(self.mantissa.signum(), unit) } else { Self::ZERO };
        }
        let magnitude = self.mantissa.unsigned_abs();
        let (kept, lost) = (magnitude >> shift, magnitude & ((1 << shift) - 1));
        let half = 1u128 << (shift - 1);
        let up = match rounding {
            Rounding::NearestEven => lost > half || (lost == half && kept & 1 == 1),
            Rounding::TowardZero => false,
            Rounding::Down => lost != 0 && self.mantissa < 0,
            Rounding::Up => lost != 0 && self.mantissa > 0,
            Rounding::ToOdd => lost != 0 && kept & 1 == 0,
        };
        let kept = (kept + u128::from(up)).cast_signed();
        Self::new(if self.mantissa < 0 { -kept } else { kept }, unit)
    }

    /// Rounds the value into a format and returns its bits (subnormals kept, overflow as in IEEE 754).
    #[must_use]
    pub fn encode(self, format: Format, rounding: Rounding) -> u64 {
        let (negative, magnitude, exponent) = self.parts();
        format.encode(negative, magnitude, exponent, rounding, Overflow::Ieee, Subnormals::Keep).bits
    }
}

impl std::ops::Sub for Number {
    type Output = Option<Self>;

    fn sub(self, other: Self) -> Option<Self> {
        self.plus(other.negated())
    }
}
