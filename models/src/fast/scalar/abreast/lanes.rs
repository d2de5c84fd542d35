//! Eight numbers side by side, which the compiler keeps in vectors.

use std::ops::{Add, BitAnd, BitOr, BitXor, Neg, Not, Shl, Shr, Sub};

/// The number of dots computed together.
pub(in crate::fast) const DOTS: usize = 8;

/// A number for each dot. A mask is −1 where a condition holds and 0 elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(super) struct Lanes(pub(super) [i64; DOTS]);

/// Computes what stands in each lane, without a loop: the arithmetic of a node is thousands of calls inlined into one
/// function, and the compiler takes fifty times as long to unroll as many loops there.
#[inline(always)]
pub(super) fn each<T>(of: impl Fn(usize) -> T) -> [T; DOTS] {
    [of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)]
}

impl Lanes {
    pub(super) const ZERO: Self = Self([0; DOTS]);

    #[inline(always)]
    pub(super) const fn all(value: i64) -> Self {
        Self([value; DOTS])
    }

    #[inline(always)]
    fn map(self, one: impl Fn(i64) -> i64) -> Self {
        Self(each(|lane| one(self.0[lane])))
    }

    #[inline(always)]
    fn zip(self, other: Self, two: impl Fn(i64, i64) -> i64) -> Self {
        Self(each(|lane| two(self.0[lane], other.0[lane])))
    }

    #[inline(always)]
    pub(super) fn max(self, other: Self) -> Self {
        self.zip(other, |x, y| if x > y { x } else { y })
    }

    #[inline(always)]
    pub(super) fn min(self, other: Self) -> Self {
        self.zip(other, |x, y| if x < y { x } else { y })
    }

    #[inline(always)]
    pub(super) fn is_above(self, other: Self) -> Self {
        self.zip(other, |x, y| -i64::from(x > y))
    }

    #[inline(always)]
    pub(super) fn is(self, other: Self) -> Self {
        self.zip(other, |x, y| -i64::from(x == y))
    }

    #[inline(always)]
    pub(super) fn is_zero(self) -> Self {
        self.is(Self::ZERO)
    }

    #[inline(always)]
    pub(super) fn is_negative(self) -> Self {
        Self::ZERO.is_above(self)
    }

    /// `self` where the mask holds, `other` elsewhere.
    #[inline(always)]
    pub(super) fn select(self, mask: Self, other: Self) -> Self {
        self & mask | other & !mask
    }

    /// `self`, with its sign flipped where the mask holds.
    #[inline(always)]
    pub(super) fn negated(self, mask: Self) -> Self {
        (self ^ mask) - mask
    }

    #[inline(always)]
    pub(super) fn times(self, other: Self) -> Self {
        self.zip(other, i64::wrapping_mul)
    }

    /// The number of bits in a magnitude.
    #[inline(always)]
    pub(super) fn length(self) -> Self {
        self.map(|x| 64 - i64::from(x.leading_zeros()))
    }

    #[inline(always)]
    pub(super) fn any(self) -> bool {
        // Without a loop, dots take up to a third longer.
        self.0.iter().fold(0, |any, lane| any | lane) != 0
    }
}

impl Add for Lanes {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, i64::wrapping_add)
    }
}

impl Sub for Lanes {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, i64::wrapping_sub)
    }
}

impl Neg for Lanes {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        self.map(i64::wrapping_neg)
    }
}

impl Not for Lanes {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        self.map(|x| !x)
    }
}

impl BitAnd for Lanes {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        self.zip(other, |x, y| x & y)
    }
}

impl BitOr for Lanes {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        self.zip(other, |x, y| x | y)
    }
}

impl BitXor for Lanes {
    type Output = Self;

    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        self.zip(other, |x, y| x ^ y)
    }
}

/// Shifts by 0 to 63 bits.
impl Shl for Lanes {
    type Output = Self;

    #[inline(always)]
    fn shl(self, by: Self) -> Self {
        self.zip(by, |x, by| x << (by & 63))
    }
}

/// Shifts by 0 to 63 bits; the sign is kept.
impl Shr for Lanes {
    type Output = Self;

    #[inline(always)]
    fn shr(self, by: Self) -> Self {
        self.zip(by, |x, by| x >> (by & 63))
    }
}
