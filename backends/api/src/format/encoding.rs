//! Encoding values as bits and decoding them: rounding, overflow, subnormals, and the special codes of each format.

use super::rounding::{Decoded, Encoded, Overflow, Rounding, Subnormals};

/// The interpretation of a format's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Encoding {
    /// A sign, an exponent and a fraction.
    Float(FloatEncoding),
    /// A two's complement or unsigned integer.
    Integer {
        /// The width in bits.
        bits: u32,
        /// Whether the top bit has negative weight.
        signed: bool,
    },
}

/// A floating-point layout: sign, biased exponent and fraction, from the top bit down; then bits that are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FloatEncoding {
    /// The width of the exponent field, in bits.
    pub exponent_bits: u32,
    /// The width of the fraction field, in bits.
    pub fraction_bits: u32,
    /// The bias: the number that is subtracted from the exponent field.
    pub bias: i32,
    /// Low bits of the register that are not part of the number: 13 for tf32 and xf32.
    pub unread_bits: u32,
    /// The codes of NaN and infinity.
    pub specials: Specials,
}

/// The codes that a floating format uses for NaN and infinity, and which of them it lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Specials {
    /// The highest exponent: infinity with fraction 0, otherwise NaN (IEEE 754-2019, 3.4).
    Ieee,
    /// No infinity; NaN has every exponent and fraction bit set (OCP 8-bit Floating Point Specification 1.0, table 2).
    AllOnesNan,
    /// No infinity and no −0; the code of −0 is NaN (`FNUZ` types, LLVM `APFloat`, arXiv:2206.02915).
    NegativeZeroNan,
    /// Neither NaN nor infinity (OCP Microscaling Formats 1.0, 5.3.2 and 5.3.3).
    None,
    /// The sign bit is not read, no infinity; NaN has every other bit set: the block scale ue4m3 (PTX ISA 8.7, 5.2.3).
    UnsignedAllOnesNan,
    /// A power of two: no sign, no fraction, no zero; NaN has every bit set (OCP Microscaling Formats 1.0, 5.4.1).
    PowerOfTwo,
}

impl FloatEncoding {
    /// Whether the top bit is a sign bit. The one of ue4m3 is not read, and ue8m0 has none.
    #[must_use]
    #[inline]
    pub fn is_signed(self) -> bool {
        !matches!(self.specials, Specials::UnsignedAllOnesNan | Specials::PowerOfTwo)
    }

    /// The exponent of the smallest normal value.
    #[must_use]
    #[inline]
    pub fn min_exponent(self) -> i32 {
        if self.specials == Specials::PowerOfTwo { -self.bias } else { 1 - self.bias }
    }

    /// The exponent of the largest finite value.
    #[must_use]
    #[inline]
    pub fn max_exponent(self) -> i32 {
        i32::try_from(self.largest() >> self.fraction_bits).unwrap_or(i32::MAX) - self.bias
    }

    /// The exponents of the smallest subnormal and of the largest finite value.
    #[must_use]
    #[inline]
    pub fn exponents(self) -> (i32, i32) {
        (self.min_exponent() - self.fraction_bits.cast_signed(), self.max_exponent())
    }

    pub(super) fn bits(self) -> u32 {
        // ue4m3 is stored in a byte whose top bit is not read.
        let sign = u32::from(self.specials != Specials::PowerOfTwo);
        sign + self.exponent_bits + self.fraction_bits + self.unread_bits
    }

    #[inline]
    pub(super) fn with_sign(self, negative: bool, magnitude_field: u64) -> u64 {
        let sign = u64::from(negative && self.is_signed()) << (self.exponent_bits + self.fraction_bits);
        (sign | magnitude_field) << self.unread_bits
    }

    /// The exponent and fraction fields of the largest finite value.
    #[inline]
    pub(super) fn largest(self) -> u64 {
        let ones = (1 << (self.exponent_bits + self.fraction_bits)) - 1;
        match self.specials {
            Specials::Ieee => (((1 << self.exponent_bits) - 1) << self.fraction_bits) - 1,
            Specials::AllOnesNan | Specials::UnsignedAllOnesNan | Specials::PowerOfTwo => ones - 1,
            Specials::NegativeZeroNan | Specials::None => ones,
        }
    }

    #[inline]
    pub(super) fn decode(self, bits: u64) -> Decoded {
        let bits = bits >> self.unread_bits;
        let fraction = bits & ((1 << self.fraction_bits) - 1);
        let field = bits >> self.fraction_bits & ((1 << self.exponent_bits) - 1);
        let ones = (1u64 << self.exponent_bits) - 1;
        let negative = self.is_signed() && bits >> (self.exponent_bits + self.fraction_bits) & 1 == 1;
        let all_ones = field == ones && fraction == (1 << self.fraction_bits) - 1;
        let is_nan = match self.specials {
            Specials::Ieee => field == ones && fraction != 0,
            Specials::AllOnesNan | Specials::UnsignedAllOnesNan | Specials::PowerOfTwo => all_ones,
            Specials::NegativeZeroNan => negative && field == 0 && fraction == 0,
            Specials::None => false,
        };
        if is_nan {
            return Decoded::Nan { negative, payload: fraction };
        }
        if self.specials == Specials::Ieee && field == ones {
            return Decoded::Infinity { negative };
        }
        // Exponent fields have at most 11 bits.
        let field_i32 = i32::try_from(field).unwrap_or(i32::MAX);
        if self.specials == Specials::PowerOfTwo {
            return Decoded::Finite { negative: false, significand: 1, exponent: field_i32 - self.bias };
        }
        match (field, fraction) {
            (0, 0) => Decoded::Zero { negative },
            (0, _) => Decoded::Finite { negative, significand: fraction, exponent: 1 - self.bias },
            _ => Decoded::Finite {
                negative,
                significand: fraction | 1 << self.fraction_bits,
                exponent: field_i32 - self.bias,
            },
        }
    }

    /// Returns the exponent and fraction fields of a normal number of at most 64 bits that the format holds exactly; `None`
    /// for any other.
    fn exact_normal(self, magnitude: u128, lsb_exponent: i32, leading: i32) -> Option<u64> {
        let significand = u64::try_from(magnitude).ok()?;
        if leading < self.min_exponent() || leading > self.max_exponent() {
            return None;
        }
        let up = lsb_exponent - (leading - self.fraction_bits.cast_signed());
        let down = up.min(0).unsigned_abs();
        if significand.trailing_zeros() < down {
            return None;
        }
        let fraction = (significand >> down << up.max(0)) & ((1 << self.fraction_bits) - 1);
        let field = (u64::from((leading + self.bias).unsigned_abs()) << self.fraction_bits) | fraction;
        (field <= self.largest()).then_some(field)
    }

    /// Like [`Format::encode`](super::Format::encode), for an encoding that need not belong to one of
    /// [`Format::ALL`](super::Format::ALL).
    #[must_use]
    pub fn encode(
        self,
        negative: bool,
        magnitude: u128,
        lsb_exponent: i32,
        rounding: Rounding,
        overflow: Overflow,
        subnormals: Subnormals,
    ) -> Encoded {
        let zero = |negative: bool| {
            let keeps_sign = self.specials != Specials::NegativeZeroNan;
            self.with_sign(negative && keeps_sign, 0)
        };
        if magnitude == 0 {
            return Encoded { bits: zero(negative), inexact: false, overflow: false, underflow: false };
        }
        let fraction_bits = self.fraction_bits.cast_signed();
        let leading = lsb_exponent + (127 - magnitude.leading_zeros().cast_signed());
        if let Some(field) = self.exact_normal(magnitude, lsb_exponent, leading) {
            let bits = self.with_sign(negative, field);
            return Encoded { bits, inexact: false, overflow: false, underflow: false };
        }
        // Rounded as if the exponent had no lower bound, to tell whether the result is tiny after rounding.
        let (free, free_inexact) = round_at(magnitude, lsb_exponent, leading - fraction_bits, rounding, negative);
        let free_leading = leading + i32::from(free >> (fraction_bits + 1) != 0);
        let min_exponent = self.min_exponent();
        let flushed = match subnormals {
            Subnormals::Keep => false,
            Subnormals::FlushBeforeRounding => leading < min_exponent,
            Subnormals::FlushAfterRounding | Subnormals::FlushToPositiveZero => free_leading < min_exponent,
        };
        if flushed {
            let bits = zero(negative && subnormals != Subnormals::FlushToPositiveZero);
            return Encoded { bits, inexact: true, overflow: false, underflow: true };
        }
        let (rounded, inexact, exponent) = if leading < min_exponent {
            let (rounded, inexact) =
                round_at(magnitude, lsb_exponent, min_exponent - fraction_bits, rounding, negative);
            (rounded, inexact, min_exponent)
        } else if free >> (fraction_bits + 1) != 0 {
            (free >> 1, free_inexact, leading + 1)
        } else {
            (free, free_inexact, leading)
        };
        let underflow = inexact && free_leading < min_exponent;
        // `rounded` has at most fraction_bits + 1 bits, at most 53.
        let significand = u64::try_from(rounded).unwrap_or(u64::MAX);
        let is_normal = significand >> self.fraction_bits != 0;
        let biased = if is_normal { exponent + self.bias } else { 0 };
        let largest = self.largest();
        let field = if biased > 1 << self.exponent_bits {
            u64::MAX
        } else {
            (u64::from(biased.unsigned_abs()) << self.fraction_bits) + (significand & ((1 << self.fraction_bits) - 1))
        };
        if field > largest {
            let rounds_away = match rounding {
                Rounding::NearestEven => true,
                Rounding::TowardZero | Rounding::ToOdd => false,
                Rounding::Down => negative,
                Rounding::Up => !negative,
            };
            let to_infinity = match overflow {
                Overflow::Infinity => true,
                Overflow::Ieee => rounds_away,
                Overflow::Nan | Overflow::Saturate => false,
            };
            let infinity = (self.specials == Specials::Ieee).then(|| largest + 1);
            let nan = self.nan_field();
            let field = match (to_infinity, overflow) {
                (true, _) => infinity.or(nan),
                (false, Overflow::Nan) => nan,
                (false, _) => None,
            };
            let bits = self.with_sign(negative, field.unwrap_or(largest));
            return Encoded { bits, inexact: true, overflow: true, underflow: false };
        }
        let bits = if field == 0 { zero(negative) } else { self.with_sign(negative, field) };
        Encoded { bits, inexact, overflow: false, underflow }
    }

    /// As [`Format::truncated`](super::Format::truncated).
    #[inline]
    pub(super) fn truncated(self, negative: bool, significand: u64, lsb_exponent: i32) -> u64 {
        let keeps_sign = self.specials != Specials::NegativeZeroNan;
        let Some(top) = significand.checked_ilog2() else { return self.with_sign(negative && keeps_sign, 0) };
        let leading = lsb_exponent + top.cast_signed();
        if leading > self.max_exponent() {
            return self.with_sign(negative, self.largest());
        }
        let min_exponent = self.min_exponent();
        let up = lsb_exponent - (leading.max(min_exponent) - self.fraction_bits.cast_signed());
        let kept = if up >= 0 { significand << up } else { significand.checked_shr(up.unsigned_abs()).unwrap_or(0) };
        // The leading one of a normal number is not stored.
        let biased = if leading < min_exponent { 0 } else { u64::from((leading + self.bias).unsigned_abs()) };
        let field = (biased << self.fraction_bits) + (kept & ((1 << self.fraction_bits) - 1));
        self.with_sign(negative && (keeps_sign || field != 0), field.min(self.largest()))
    }

    /// The code of a quiet NaN without payload, not including the unread bits.
    pub(super) fn nan_field(self) -> Option<u64> {
        let ones = (1 << (self.exponent_bits + self.fraction_bits)) - 1;
        match self.specials {
            Specials::Ieee => {
                let exponent = ((1 << self.exponent_bits) - 1) << self.fraction_bits;
                Some(exponent | 1 << (self.fraction_bits - 1))
            }
            Specials::AllOnesNan | Specials::UnsignedAllOnesNan | Specials::PowerOfTwo => Some(ones),
            Specials::NegativeZeroNan => Some(ones + 1),
            Specials::None => None,
        }
    }
}

/// Rounds `magnitude · 2^lsb_exponent` to a multiple of `2^to`; returns that multiple and whether anything was lost.
fn round_at(magnitude: u128, lsb_exponent: i32, to: i32, rounding: Rounding, negative: bool) -> (u128, bool) {
    let drop = to - lsb_exponent;
    if drop <= 0 {
        return (magnitude << drop.unsigned_abs(), false);
    }
    let (kept, lost, half) = if drop > 127 {
        (0, magnitude, if drop == 128 { 1u128 << 127 } else { u128::MAX })
    } else {
        (magnitude >> drop, magnitude & ((1u128 << drop) - 1), 1u128 << (drop - 1))
    };
    let up = match rounding {
        Rounding::NearestEven => lost > half || (lost == half && kept & 1 == 1),
        Rounding::TowardZero => false,
        Rounding::Down => negative && lost != 0,
        Rounding::Up => !negative && lost != 0,
        Rounding::ToOdd => lost != 0 && kept & 1 == 0,
    };
    (kept + u128::from(up), lost != 0)
}

pub(super) fn encode_integer(
    bits: u32,
    signed: bool,
    negative: bool,
    magnitude: u128,
    lsb_exponent: i32,
    rounding: Rounding,
) -> Encoded {
    let limit: u128 = match (signed, negative) {
        (true, true) => 1 << (bits - 1),
        (true, false) => (1 << (bits - 1)) - 1,
        (false, true) => 0,
        (false, false) => (1 << bits) - 1,
    };
    if magnitude == 0 {
        return Encoded { bits: 0, inexact: false, overflow: false, underflow: false };
    }
    let leading = 127 - magnitude.leading_zeros().cast_signed();
    let (rounded, inexact) = if lsb_exponent > 0 && leading + lsb_exponent > 126 {
        (u128::MAX, false)
    } else {
        round_at(magnitude, lsb_exponent, 0, rounding, negative)
    };
    let overflow = rounded > limit;
    let kept = rounded.min(limit);
    // `kept` has at most 32 bits.
    let kept = u64::try_from(kept).unwrap_or(u64::MAX);
    let mask = u64::MAX >> (64 - bits);
    let value = if negative { kept.wrapping_neg() & mask } else { kept };
    Encoded { bits: value, inexact: inexact || overflow, overflow, underflow: false }
}
