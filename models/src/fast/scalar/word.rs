//! The words that hold sums, and terms and results in them.

use crate::{adder::Class, fast::unpack::NAN};

/// The exponent of a zero: none.
pub(super) const NONE: i32 = i32::MIN;

/// A signed word that holds sums.
pub(super) trait Word:
    Copy
    + Ord
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Neg<Output = Self>
    + std::ops::Shl<u32, Output = Self>
    + std::ops::Shr<u32, Output = Self>
{
    const BITS: u32;
    const ZERO: Self;
    const ONE: Self;
    fn from_u64(value: u64) -> Self;
    fn times(self, factor: u64) -> Self;
    fn length(self) -> u32;
    fn low_u128(self) -> u128;
    fn low_u64(self) -> u64;
    fn is_odd(self) -> bool;
    /// The word with its lowest bit set.
    fn or_one(self) -> Self;
}

macro_rules! word {
    ($name:ty) => {
        impl Word for $name {
            const BITS: u32 = <$name>::BITS;
            const ZERO: Self = 0;
            const ONE: Self = 1;

            #[inline(always)]
            #[allow(clippy::cast_possible_wrap, clippy::cast_lossless)]
            fn from_u64(value: u64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn times(self, factor: u64) -> Self {
                self * Self::from_u64(factor)
            }

            /// The number of bits in a magnitude.
            #[inline(always)]
            fn length(self) -> u32 {
                Self::BITS - self.leading_zeros()
            }

            #[inline(always)]
            #[allow(clippy::cast_sign_loss, clippy::cast_lossless)]
            fn low_u128(self) -> u128 {
                self as u128
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            fn low_u64(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn is_odd(self) -> bool {
                self & 1 == 1
            }

            #[inline(always)]
            fn or_one(self) -> Self {
                self | 1
            }
        }
    };
}

word!(i64);
word!(i128);

#[derive(Clone, Copy)]
pub(super) struct Aligned<W> {
    pub(super) class: Class,
    pub(super) negative: bool,
    pub(super) magnitude: W,
    pub(super) lsb: i32,
    pub(super) exponent: i32,
}

impl<W: Word> Aligned<W> {
    /// Whether it is negative, its magnitude, and the place of its lowest bit.
    #[inline(always)]
    pub(super) fn part(&self) -> (bool, W, i32) {
        (self.negative, self.magnitude, self.lsb)
    }
}

/// The result of a node.
#[derive(Clone, Copy)]
pub(super) struct Number<W> {
    pub(super) kind: u32,
    pub(super) wide: bool,
    pub(super) magnitude: W,
    pub(super) lsb: i32,
    pub(super) exponent: i32,
    pub(super) bits: u64,
}

impl<W: Word> Number<W> {
    /// Whether it is a rounded result that is NaN.
    #[inline]
    pub(super) fn is_nan(&self) -> bool {
        self.kind & NAN != 0 && !self.wide
    }

    /// Whether it is the same as another number. The lowest bit of a zero may be anywhere.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.kind, self.wide, self.magnitude, self.exponent, self.bits)
            == (other.kind, other.wide, other.magnitude, other.exponent, other.bits)
            && (self.lsb == other.lsb || self.magnitude == W::ZERO)
    }
}

#[inline(always)]
pub(super) fn leading<W: Word>(term: &Aligned<W>) -> Option<i32> {
    let length = term.magnitude.length().cast_signed();
    (length > 0).then(|| term.lsb + length - 1)
}
