//! Unsigned integers as words of bits, lowest bit first.

use super::logic::Logic;

/// An unsigned integer, lowest bit first.
pub type Word<B> = Vec<B>;

/// Arithmetic on words, over any logic.
pub trait Words: Logic {
    /// A number in `bits` bits; higher bits of it are dropped.
    fn number(&mut self, value: u128, bits: usize) -> Word<Self::Bit> {
        (0..bits).map(|bit| self.constant(bit < 128 && value >> bit & 1 == 1)).collect()
    }

    /// The word in `bits` bits: zeros are added above, or bits above are dropped.
    fn resized(&mut self, word: &[Self::Bit], bits: usize) -> Word<Self::Bit> {
        let zero = self.constant(false);
        (0..bits).map(|bit| word.get(bit).copied().unwrap_or(zero)).collect()
    }

    /// The word times 2^by.
    fn raised(&mut self, word: &[Self::Bit], by: usize) -> Word<Self::Bit> {
        let zero = self.constant(false);
        std::iter::repeat_n(zero, by).chain(word.iter().copied()).collect()
    }

    /// Whether any bit is set.
    fn any(&mut self, word: &[Self::Bit]) -> Self::Bit {
        let mut level = word.to_vec();
        while level.len() > 1 {
            level = level.chunks(2).map(|pair| if let [a, b] = pair { self.or(*a, *b) } else { pair[0] }).collect();
        }
        level.first().copied().unwrap_or_else(|| self.constant(false))
    }

    /// Whether every bit is set.
    fn all(&mut self, word: &[Self::Bit]) -> Self::Bit {
        let negated: Word<Self::Bit> = word.iter().map(|bit| self.not(*bit)).collect();
        let any = self.any(&negated);
        self.not(any)
    }

    /// The word if the condition holds, otherwise zeros.
    fn where_set(&mut self, condition: Self::Bit, word: &[Self::Bit]) -> Word<Self::Bit> {
        word.iter().map(|bit| self.and(condition, *bit)).collect()
    }

    /// One of two words; the shorter one is extended with zeros.
    fn choose_word(&mut self, condition: Self::Bit, then: &[Self::Bit], otherwise: &[Self::Bit]) -> Word<Self::Bit> {
        let bits = then.len().max(otherwise.len());
        let (then, otherwise) = (self.resized(then, bits), self.resized(otherwise, bits));
        then.into_iter().zip(otherwise).map(|(then, otherwise)| self.choose(condition, then, otherwise)).collect()
    }

    /// The sum modulo 2^bits of two words of the same length and a carry, and the carry out.
    fn add(&mut self, a: &[Self::Bit], b: &[Self::Bit], carry: Self::Bit) -> (Word<Self::Bit>, Self::Bit) {
        assert_eq!(a.len(), b.len(), "words of one length are added");
        let mut carry = carry;
        let mut sum = Vec::with_capacity(a.len());
        for (a, b) in a.iter().zip(b) {
            let half = self.xor(*a, *b);
            sum.push(self.xor(half, carry));
            carry = self.majority(*a, *b, carry);
        }
        (sum, carry)
    }

    /// a + b, in `bits` bits.
    fn plus(&mut self, a: &[Self::Bit], b: &[Self::Bit], bits: usize) -> Word<Self::Bit> {
        let (a, b) = (self.resized(a, bits), self.resized(b, bits));
        let zero = self.constant(false);
        self.add(&a, &b, zero).0
    }

    /// The word plus one if the condition holds, modulo 2^bits.
    fn increased(&mut self, word: &[Self::Bit], by: Self::Bit) -> Word<Self::Bit> {
        let zeros = self.number(0, word.len());
        self.add(word, &zeros, by).0
    }

    /// a − b modulo 2^bits.
    fn minus(&mut self, a: &[Self::Bit], b: &[Self::Bit], bits: usize) -> Word<Self::Bit> {
        let (a, b) = (self.resized(a, bits), self.resized(b, bits));
        let not_b: Word<Self::Bit> = b.into_iter().map(|bit| self.not(bit)).collect();
        let one = self.constant(true);
        self.add(&a, &not_b, one).0
    }

    /// Whether a < b.
    fn less(&mut self, a: &[Self::Bit], b: &[Self::Bit]) -> Self::Bit {
        let bits = a.len().max(b.len());
        let (a, b) = (self.resized(a, bits), self.resized(b, bits));
        let not_a: Word<Self::Bit> = a.into_iter().map(|bit| self.not(bit)).collect();
        // b + ¬a carries out if b > a.
        let mut carry = self.constant(false);
        for (not_a, b) in not_a.into_iter().zip(b) {
            carry = self.majority(not_a, b, carry);
        }
        carry
    }

    /// a·b, in as many bits as a and b have together.
    fn times(&mut self, a: &[Self::Bit], b: &[Self::Bit]) -> Word<Self::Bit> {
        let bits = a.len() + b.len();
        let mut sum = self.number(0, bits);
        for (place, bit) in b.iter().enumerate() {
            let row = self.where_set(*bit, a);
            let upper = sum.split_off(place);
            let row = self.resized(&row, upper.len());
            let zero = self.constant(false);
            let (upper, _) = self.add(&upper, &row, zero);
            sum.extend(upper);
        }
        sum
    }

    /// The word's negation in two's complement if the condition holds.
    fn negated_where(&mut self, condition: Self::Bit, word: &[Self::Bit]) -> Word<Self::Bit> {
        let flipped: Word<Self::Bit> = word.iter().map(|bit| self.xor(condition, *bit)).collect();
        self.increased(&flipped, condition)
    }

    /// The word shifted right by an amount, in the same number of bits, and whether a bit that was set is lost.
    fn shifted_right(&mut self, word: &[Self::Bit], amount: &[Self::Bit]) -> (Word<Self::Bit>, Self::Bit) {
        let mut word = word.to_vec();
        let mut lost = self.constant(false);
        for (place, bit) in amount.iter().enumerate() {
            let by =
                1_usize.checked_shl(u32::try_from(place).unwrap_or(u32::MAX)).unwrap_or(usize::MAX).min(word.len());
            let falls = self.any(&word[..by]);
            let falls = self.and(*bit, falls);
            lost = self.or(lost, falls);
            let moved = self.resized(&word[by..], word.len());
            word = self.choose_word(*bit, &moved, &word);
        }
        (word, lost)
    }

    /// The word shifted left by an amount, in the same number of bits.
    fn shifted_left(&mut self, word: &[Self::Bit], amount: &[Self::Bit]) -> Word<Self::Bit> {
        let mut word = word.to_vec();
        for (place, bit) in amount.iter().enumerate() {
            let by =
                1_usize.checked_shl(u32::try_from(place).unwrap_or(u32::MAX)).unwrap_or(usize::MAX).min(word.len());
            let moved = self.raised(&word[..word.len() - by], by);
            word = self.choose_word(*bit, &moved, &word);
        }
        word
    }

    /// The number of zeros above the highest bit set; meaningless if no bit is set.
    fn leading_zeros(&mut self, word: &[Self::Bit]) -> Word<Self::Bit> {
        let stages = usize::BITS - word.len().saturating_sub(1).leading_zeros();
        let mut word = word.to_vec();
        let mut count = Vec::new();
        for stage in (0..stages).rev() {
            let by = 1 << stage;
            if by >= word.len() {
                count.push(self.constant(false));
                continue;
            }
            let top = self.any(&word[word.len() - by..]);
            let empty = self.not(top);
            count.push(empty);
            let moved = self.raised(&word[..word.len() - by], by);
            word = self.choose_word(empty, &moved, &word);
        }
        count.reverse();
        count
    }
}

impl<L: Logic> Words for L {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::logic::Values;

    fn word(value: u64, bits: usize) -> Word<bool> {
        Values.number(u128::from(value), bits)
    }

    fn number(word: &[bool]) -> u64 {
        word.iter().enumerate().map(|(place, bit)| u64::from(*bit) << place).sum()
    }

    #[test]
    fn words_of_five_bits_compute_as_integers_do() {
        let mut logic = Values;
        for a in 0..32_u64 {
            for b in 0..32_u64 {
                let (x, y) = (word(a, 5), word(b, 5));
                assert_eq!(number(&logic.plus(&x, &y, 6)), a + b);
                assert_eq!(number(&logic.minus(&x, &y, 7)), a.wrapping_sub(b) & 127);
                assert_eq!(number(&logic.times(&x, &y)), a * b);
                assert_eq!(logic.less(&x, &y), a < b);
                let (shifted, lost) = logic.shifted_right(&x, &y);
                let kept = if b > 4 { 0 } else { a >> b };
                assert_eq!(number(&shifted), kept);
                assert_eq!(lost, if b > 4 { a != 0 } else { kept << b != a }, "{a} >> {b}");
                assert_eq!(number(&logic.shifted_left(&x, &y)), if b > 4 { 0 } else { a << b & 31 });
            }
            let x = word(a, 5);
            assert_eq!(logic.any(&x), a != 0);
            assert_eq!(logic.all(&x), a == 31);
            assert_eq!(number(&logic.negated_where(true, &x)), a.wrapping_neg() & 31);
            assert_eq!(number(&logic.negated_where(false, &x)), a);
            if a != 0 {
                assert_eq!(number(&logic.leading_zeros(&x)), u64::from(a.leading_zeros()) - 59, "{a}");
            }
        }
    }

    #[test]
    fn leading_zeros_are_counted_in_words_of_every_length() {
        let mut logic = Values;
        for bits in 1..40_usize {
            for place in 0..bits {
                let zeros = logic.leading_zeros(&word(1 << place | 1, bits));
                assert_eq!(number(&zeros), (bits - 1 - place) as u64, "bit {place} of {bits}");
            }
        }
    }
}
