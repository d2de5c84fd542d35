//! Bits, over which the arithmetic of this module is written.

/// Boolean functions of one kind of bit.
///
/// The arithmetic of this module is written once. Over [`Values`] it computes; over a
/// [`Circuit`](super::circuit::Circuit) the same code builds the formula of what it would compute, so that the two
/// cannot diverge.
pub trait Logic {
    /// A bit.
    type Bit: Copy + std::fmt::Debug;

    /// A constant bit.
    fn constant(&mut self, value: bool) -> Self::Bit;

    /// The value of a bit if it does not depend on any input.
    fn known(&self, bit: Self::Bit) -> Option<bool>;

    /// ¬a.
    fn not(&mut self, a: Self::Bit) -> Self::Bit;

    /// a ∧ b.
    fn and(&mut self, a: Self::Bit, b: Self::Bit) -> Self::Bit;

    /// a ⊕ b.
    fn xor(&mut self, a: Self::Bit, b: Self::Bit) -> Self::Bit;

    /// `then` if the condition holds, otherwise `otherwise`.
    fn choose(&mut self, condition: Self::Bit, then: Self::Bit, otherwise: Self::Bit) -> Self::Bit;

    /// Whether at least two of three hold: the carry of a full adder.
    fn majority(&mut self, a: Self::Bit, b: Self::Bit, c: Self::Bit) -> Self::Bit;

    /// Records that a word is the product of two others.
    fn note_product(&mut self, _factors: [&[Self::Bit]; 2], _product: &[Self::Bit]) {}

    /// a ∨ b.
    fn or(&mut self, a: Self::Bit, b: Self::Bit) -> Self::Bit {
        let (not_a, not_b) = (self.not(a), self.not(b));
        let neither = self.and(not_a, not_b);
        self.not(neither)
    }

    /// a ∧ ¬b.
    fn and_not(&mut self, a: Self::Bit, b: Self::Bit) -> Self::Bit {
        let not_b = self.not(b);
        self.and(a, not_b)
    }
}

/// The logic whose bits are values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values;

impl Logic for Values {
    type Bit = bool;

    fn constant(&mut self, value: bool) -> bool {
        value
    }

    fn known(&self, bit: bool) -> Option<bool> {
        Some(bit)
    }

    fn not(&mut self, a: bool) -> bool {
        !a
    }

    fn and(&mut self, a: bool, b: bool) -> bool {
        a && b
    }

    fn xor(&mut self, a: bool, b: bool) -> bool {
        a != b
    }

    fn choose(&mut self, condition: bool, then: bool, otherwise: bool) -> bool {
        if condition { then } else { otherwise }
    }

    fn majority(&mut self, a: bool, b: bool, c: bool) -> bool {
        u8::from(a) + u8::from(b) + u8::from(c) > 1
    }
}
