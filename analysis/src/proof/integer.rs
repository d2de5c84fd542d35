//! Signed integers with known bounds, for exponents and places of bits.

use super::{
    logic::Logic,
    words::{Word, Words},
};

/// `low + bits`, known to be at most `high`.
///
/// If an integer has no meaning (the exponent of a zero or a NaN), its bits may be anything.
#[derive(Clone, Debug)]
pub(super) struct Integer<B> {
    /// Its smallest value.
    pub low: i32,
    /// Its largest value.
    pub high: i32,
    bits: Word<B>,
}

/// The number of bits that hold the numbers from 0 to `most`.
fn width(most: i32) -> usize {
    (i32::BITS - most.leading_zeros()) as usize
}

impl<B: Copy + std::fmt::Debug> Integer<B> {
    /// A known integer.
    pub(super) fn constant(value: i32) -> Self {
        Self { low: value, high: value, bits: Vec::new() }
    }

    /// `low` plus a word, at most `high`.
    pub(super) fn new(logic: &mut impl Logic<Bit = B>, low: i32, high: i32, bits: &[B]) -> Self {
        let bits = logic.resized(bits, width(high - low));
        Self { low, high, bits }
    }

    /// The integer plus `by`.
    pub(super) fn raised(&self, by: i32) -> Self {
        Self { low: self.low + by, high: self.high + by, bits: self.bits.clone() }
    }

    /// The word `self − low`, if `self` is known not to be below `low`, which need not be its smallest value.
    pub(super) fn above(&self, logic: &mut impl Logic<Bit = B>, low: i32) -> Word<B> {
        let bits = width((self.high - low).max(0));
        if self.low == low {
            return logic.resized(&self.bits, bits);
        }
        let own = logic.resized(&self.bits, bits);
        // Modulo 2^bits.
        let shift = logic.number(i128::from(self.low - low).cast_unsigned(), bits);
        logic.plus(&own, &shift, bits)
    }

    /// The integer with other bounds, which must be known to hold.
    pub(super) fn within(&self, logic: &mut impl Logic<Bit = B>, low: i32, high: i32) -> Self {
        let bits = self.above(logic, low);
        Self::new(logic, low, high, &bits)
    }

    /// self + other.
    pub(super) fn plus(&self, logic: &mut impl Logic<Bit = B>, other: &Self) -> Self {
        let (low, high) = (self.low + other.low, self.high + other.high);
        let bits = logic.plus(&self.bits, &other.bits, width(high - low));
        Self { low, high, bits }
    }

    /// self − other.
    pub(super) fn minus(&self, logic: &mut impl Logic<Bit = B>, other: &Self) -> Self {
        let (low, high) = (self.low - other.high, self.high - other.low);
        let bits = width(high - low);
        // self.bits + (other.high − other.low − other.bits)
        let range = logic.number(u128::from((other.high - other.low).unsigned_abs()), bits);
        let rest = logic.minus(&range, &other.bits, bits);
        let bits = logic.plus(&self.bits, &rest, bits);
        Self { low, high, bits }
    }

    /// Whether self < other.
    pub(super) fn less(&self, logic: &mut impl Logic<Bit = B>, other: &Self) -> B {
        let low = self.low.min(other.low);
        let (a, b) = (self.above(logic, low), other.above(logic, low));
        logic.less(&a, &b)
    }

    /// `then` if the condition holds, otherwise `otherwise`.
    pub(super) fn choose(logic: &mut impl Logic<Bit = B>, condition: B, then: &Self, otherwise: &Self) -> Self {
        let (low, high) = (then.low.min(otherwise.low), then.high.max(otherwise.high));
        let (then, otherwise) = (then.above(logic, low), otherwise.above(logic, low));
        let bits = logic.choose_word(condition, &then, &otherwise);
        Self::new(logic, low, high, &bits)
    }

    /// The greater of two integers.
    pub(super) fn max(&self, logic: &mut impl Logic<Bit = B>, other: &Self) -> Self {
        if self.low >= other.high {
            return self.clone();
        }
        if other.low >= self.high {
            return other.clone();
        }
        let less = self.less(logic, other);
        let greater = Self::choose(logic, less, other, self);
        let (low, high) = (self.low.max(other.low), greater.high);
        greater.within(logic, low, high)
    }

    /// The smaller of two integers.
    pub(super) fn min(&self, logic: &mut impl Logic<Bit = B>, other: &Self) -> Self {
        if self.high <= other.low {
            return self.clone();
        }
        if other.high <= self.low {
            return other.clone();
        }
        let less = self.less(logic, other);
        let smaller = Self::choose(logic, less, self, other);
        let (low, high) = (smaller.low, self.high.min(other.high));
        smaller.within(logic, low, high)
    }

    /// The value if every bit is known.
    #[cfg(test)]
    pub(super) fn value(&self, logic: &impl Logic<Bit = B>) -> Option<i32> {
        let mut value = self.low;
        for (place, bit) in self.bits.iter().enumerate() {
            value += i32::from(logic.known(*bit)?) << place;
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::logic::Values;

    #[test]
    fn integers_of_every_bound_compute_as_integers_do() {
        let mut logic = Values;
        for (low_a, high_a) in [(-3_i32, 4), (0, 5), (-9, -2), (2, 2)] {
            for (low_b, high_b) in [(-6_i32, 1), (3, 9), (-2, -2)] {
                for a in low_a..=high_a {
                    for b in low_b..=high_b {
                        let bits = logic.number(u128::from((a - low_a).unsigned_abs()), 4);
                        let x = Integer::new(&mut logic, low_a, high_a, &bits);
                        let bits = logic.number(u128::from((b - low_b).unsigned_abs()), 4);
                        let y = Integer::new(&mut logic, low_b, high_b, &bits);
                        let results = [
                            (x.plus(&mut logic, &y), a + b),
                            (x.minus(&mut logic, &y), a - b),
                            (x.max(&mut logic, &y), a.max(b)),
                            (x.min(&mut logic, &y), a.min(b)),
                            (x.raised(7), a + 7),
                            (x.within(&mut logic, low_a - 2, high_a + 3), a),
                        ];
                        for (at, (result, wanted)) in results.into_iter().enumerate() {
                            assert_eq!(result.value(&logic), Some(wanted), "{at}: {a} {b}");
                            assert!(result.low <= wanted && wanted <= result.high);
                        }
                        assert_eq!(x.less(&mut logic, &y), a < b);
                    }
                }
            }
        }
    }
}
