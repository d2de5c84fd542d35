//! A signed word of any number of 64-bit digits: 320 bits hold every sum of f16 and fp8 products with an f32, 640 bits
//! every sum of bf16, tf32 and f32 products.

use std::{
    cmp::Ordering,
    ops::{Add, Neg, Shl, Shr, Sub},
};

use super::word::Word;

/// Two's complement, least significant digit first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wide<const DIGITS: usize>([u64; DIGITS]);

impl<const DIGITS: usize> Wide<DIGITS> {
    #[inline(always)]
    fn sign(self) -> u64 {
        (self.0[DIGITS - 1].cast_signed() >> 63).cast_unsigned()
    }

    /// The sum with `other`, or with its complement, and a carry.
    #[inline(always)]
    fn plus(self, other: Self, complement: u64, mut carry: bool) -> Self {
        let mut sum = self;
        for (digit, other) in sum.0.iter_mut().zip(other.0) {
            let (partial, first) = digit.overflowing_add(other ^ complement);
            let (whole, second) = partial.overflowing_add(u64::from(carry));
            (*digit, carry) = (whole, first | second);
        }
        sum
    }
}

impl<const DIGITS: usize> Add for Wide<DIGITS> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.plus(other, 0, false)
    }
}

impl<const DIGITS: usize> Sub for Wide<DIGITS> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.plus(other, u64::MAX, true)
    }
}

impl<const DIGITS: usize> Neg for Wide<DIGITS> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

impl<const DIGITS: usize> Shl<u32> for Wide<DIGITS> {
    type Output = Self;

    #[inline(always)]
    fn shl(self, by: u32) -> Self {
        let (digits, bits) = ((by / 64) as usize, by % 64);
        let mut shifted = [0; DIGITS];
        let mut lower = 0;
        for (slot, digit) in shifted.iter_mut().skip(digits).zip(self.0) {
            // Two shifts, because a shift by 64 is not allowed.
            *slot = digit << bits | lower >> 1 >> (63 - bits);
            lower = digit;
        }
        Self(shifted)
    }
}

impl<const DIGITS: usize> Shr<u32> for Wide<DIGITS> {
    type Output = Self;

    #[inline(always)]
    fn shr(self, by: u32) -> Self {
        let (digits, bits) = ((by / 64) as usize, by % 64);
        let sign = self.sign();
        let digit = |at: usize| self.0.get(at).copied().unwrap_or(sign);
        let mut shifted = [0; DIGITS];
        for (at, slot) in shifted.iter_mut().enumerate() {
            *slot = digit(at + digits) >> bits | digit(at + digits + 1) << 1 << (63 - bits);
        }
        Self(shifted)
    }
}

impl<const DIGITS: usize> Ord for Wide<DIGITS> {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        let top = |of: &Self| of.0[DIGITS - 1].cast_signed();
        top(self).cmp(&top(other)).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl<const DIGITS: usize> PartialOrd for Wide<DIGITS> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "lengths of some hundred bits, and digits")]
impl<const DIGITS: usize> Word for Wide<DIGITS> {
    const BITS: u32 = 64 * DIGITS as u32;
    const ZERO: Self = Self([0; DIGITS]);
    const ONE: Self = {
        let mut one = [0; DIGITS];
        one[0] = 1;
        Self(one)
    };

    #[inline(always)]
    fn from_u64(value: u64) -> Self {
        let mut digits = [0; DIGITS];
        digits[0] = value;
        Self(digits)
    }

    #[inline(always)]
    fn times(self, factor: u64) -> Self {
        let mut product = self;
        let mut carry = 0;
        for digit in &mut product.0 {
            let whole = u128::from(*digit) * u128::from(factor) + u128::from(carry);
            (*digit, carry) = (whole as u64, (whole >> 64) as u64);
        }
        product
    }

    #[inline(always)]
    fn length(self) -> u32 {
        let top = self.0.iter().rposition(|digit| *digit != 0);
        top.map_or(0, |at| 64 * at as u32 + u64::BITS - self.0[at].leading_zeros())
    }

    #[inline(always)]
    fn low_u128(self) -> u128 {
        u128::from(self.0[1]) << 64 | u128::from(self.0[0])
    }

    #[inline(always)]
    fn low_u64(self) -> u64 {
        self.0[0]
    }

    #[inline(always)]
    fn is_odd(self) -> bool {
        self.0[0] & 1 == 1
    }

    #[inline(always)]
    fn or_one(mut self) -> Self {
        self.0[0] |= 1;
        self
    }
}

#[cfg(test)]
mod tests {
    use dashu_int::IBig;

    use super::*;

    type Short = Wide<3>;

    fn of(value: Short) -> IBig {
        let digits = value.0.iter().rev().fold(IBig::ZERO, |sum, digit| (sum << 64) + *digit);
        if value < Short::ZERO { digits - (IBig::ONE << 192) } else { digits }
    }

    /// Some digits of each kind: no bits, one, few, all of them.
    fn values() -> Vec<Short> {
        let digits = [0, 1, 0x8000_0000_0000_0000, 0x0123_4567_89ab_cdef, u64::MAX];
        let mut found = Vec::new();
        for low in digits {
            for middle in digits {
                // Leave room for a sum.
                found.extend(digits.map(|high| Short::from_digits([low, middle, high]) >> 2));
            }
        }
        found
    }

    impl Short {
        fn from_digits(digits: [u64; 3]) -> Self {
            Self(digits)
        }
    }

    #[test]
    fn sums_differences_and_order_are_those_of_whole_numbers() {
        for x in values() {
            assert_eq!(of(-x), -of(x));
            for y in values() {
                assert_eq!(of(x + y), of(x) + of(y), "{x:?} + {y:?}");
                assert_eq!(of(x - y), of(x) - of(y), "{x:?} - {y:?}");
                assert_eq!(x.cmp(&y), of(x).cmp(&of(y)), "{x:?} and {y:?}");
            }
        }
    }

    #[test]
    fn shifts_products_and_lengths_are_those_of_whole_numbers() {
        for x in values() {
            for by in [0, 1, 2, 63, 64, 65, 127, 128, 190, 191] {
                assert_eq!(of(x >> by), of(x) >> by as usize, "{x:?} >> {by}");
                // Bits shifted out at the top are lost.
                let kept = x << by >> by;
                assert_eq!(kept == x, of(x << by) == of(x) << by as usize, "{x:?} << {by}");
            }
            if x >= Short::ZERO {
                assert_eq!(x.length() as usize, dashu_int::ops::BitTest::bit_len(&of(x)), "{x:?}");
                let small = x >> 70;
                assert_eq!(of(small.times(u64::MAX)), of(small) * u64::MAX, "{small:?}");
            }
        }
    }
}
