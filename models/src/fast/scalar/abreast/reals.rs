//! Eight numbers of the processor's own f64 arithmetic side by side.

use std::ops::{Add, Mul, Neg, Sub};

use super::lanes::{DOTS, Lanes, each};

/// The fraction bits of f64.
const FRACTION_BITS: i64 = 52;

/// The sign of a number.
pub(super) const SIGN: Lanes = Lanes::all(i64::MIN);

/// A number for each dot.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Reals(pub(super) [f64; DOTS]);

impl Reals {
    pub(super) const ZERO: Self = Self([0.0; DOTS]);
    /// The bias of f64.
    pub(super) const BIAS: i64 = 1023;

    #[inline(always)]
    pub(super) fn all(value: f64) -> Self {
        Self([value; DOTS])
    }

    #[inline(always)]
    fn map(self, one: impl Fn(f64) -> f64) -> Self {
        Self(each(|lane| one(self.0[lane])))
    }

    #[inline(always)]
    fn zip(self, other: Self, two: impl Fn(f64, f64) -> f64) -> Self {
        Self(each(|lane| two(self.0[lane], other.0[lane])))
    }

    #[inline(always)]
    fn compare(self, other: Self, holds: impl Fn(f64, f64) -> bool) -> Lanes {
        Lanes(each(|lane| -i64::from(holds(self.0[lane], other.0[lane]))))
    }

    #[inline(always)]
    pub(super) fn bits(self) -> Lanes {
        Lanes(each(|lane| self.0[lane].to_bits().cast_signed()))
    }

    #[inline(always)]
    pub(super) fn of_bits(bits: Lanes) -> Self {
        Self(each(|lane| f64::from_bits(bits.0[lane].cast_unsigned())))
    }

    /// Whole numbers of at most 53 bits.
    #[inline(always)]
    #[allow(clippy::cast_precision_loss, reason = "at most 53 bits")]
    pub(super) fn of_whole(numbers: Lanes) -> Self {
        Self(each(|lane| numbers.0[lane] as f64))
    }

    /// Two to the power of numbers from −1022 to 1023.
    #[inline(always)]
    pub(super) fn power_of_two(exponent: Lanes) -> Self {
        Self::of_bits((exponent + Lanes::all(Self::BIAS)) << Lanes::all(FRACTION_BITS))
    }

    /// The product with two to the power of numbers from −2040 to 2040, which must be exact or infinite.
    #[inline(always)]
    pub(super) fn scaled(self, exponent: Lanes) -> Self {
        let half = exponent >> Lanes::all(1);
        self * Self::power_of_two(half) * Self::power_of_two(exponent - half)
    }

    /// The exponents of normal numbers; of a zero, one below all of them.
    #[inline(always)]
    pub(super) fn exponent(self) -> Lanes {
        (self.bits() >> Lanes::all(FRACTION_BITS) & Lanes::all(0x7ff)) - Lanes::all(Self::BIAS)
    }

    /// The exponents of the leading bits of numbers that are not zero.
    #[inline(always)]
    pub(super) fn leading(self) -> Lanes {
        let exponent = self.exponent();
        // 2^60 times a subnormal number is a normal one.
        let of_subnormal = (self * Self::all(1_152_921_504_606_846_976.0)).exponent() - Lanes::all(60);
        exponent.select(exponent.is_above(Lanes::all(-Self::BIAS)), of_subnormal)
    }

    #[inline(always)]
    #[allow(clippy::float_cmp, reason = "numbers are exact")]
    pub(super) fn is_zero(self) -> Lanes {
        self.compare(Self::ZERO, |value, zero| value == zero)
    }

    #[inline(always)]
    #[allow(clippy::float_cmp, reason = "numbers are exact")]
    pub(super) fn is(self, other: Self) -> Lanes {
        self.compare(other, |x, y| x == y)
    }

    #[inline(always)]
    pub(super) fn is_nan(self) -> Lanes {
        self.compare(self, |value, _| value.is_nan())
    }

    #[inline(always)]
    pub(super) fn is_infinite(self) -> Lanes {
        self.compare(self, |value, _| value.is_infinite())
    }

    #[inline(always)]
    pub(super) fn is_below(self, other: Self) -> Lanes {
        self.compare(other, |x, y| x < y)
    }

    /// Whether the sign is negative, that of a zero included.
    #[inline(always)]
    pub(super) fn is_negative(self) -> Lanes {
        self.bits().is_negative()
    }

    /// `self` where the mask holds, `other` elsewhere.
    #[inline(always)]
    pub(super) fn select(self, mask: Lanes, other: Self) -> Self {
        Self::of_bits(self.bits().select(mask, other.bits()))
    }

    #[inline(always)]
    pub(super) fn abs(self) -> Self {
        self.map(f64::abs)
    }

    #[inline(always)]
    pub(super) fn trunc(self) -> Self {
        self.map(f64::trunc)
    }

    #[inline(always)]
    pub(super) fn floor(self) -> Self {
        self.map(f64::floor)
    }

    #[inline(always)]
    pub(super) fn ceil(self) -> Self {
        self.map(f64::ceil)
    }

    #[inline(always)]
    pub(super) fn nearest_even(self) -> Self {
        self.map(f64::round_ties_even)
    }

    /// The product and another term, rounded once.
    #[inline(always)]
    pub(super) fn times_and(self, factor: Self, term: Self) -> Self {
        Self(each(|lane| self.0[lane].mul_add(factor.0[lane], term.0[lane])))
    }

    /// The rounded sum, and its error, which is exact without overflow.
    #[inline(always)]
    pub(super) fn plus(self, other: Self) -> (Self, Self) {
        let sum = self + other;
        let of_other = sum - self;
        let of_self = sum - of_other;
        (sum, (self - of_self) + (other - of_other))
    }
}

impl Add for Reals {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }
}

impl Sub for Reals {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |x, y| x - y)
    }
}

impl Mul for Reals {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |x, y| x * y)
    }
}

impl Neg for Reals {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        self.map(|value| -value)
    }
}
