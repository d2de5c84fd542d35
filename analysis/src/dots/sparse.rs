//! Dots of few short terms at every distance from each other, for ties and near misses.

use mxprobe_api::{FloatEncoding, Format, OperationId, Overflow, Rounding, Subnormals};

use super::{Dot, Random};

/// The most terms that are products.
const PRODUCTS: usize = 3;

/// An endless sequence of dots, the same for the same seed; empty if a format holds integers.
pub(crate) struct Sparse<'a> {
    id: &'a OperationId,
    floats: Option<[FloatEncoding; 3]>,
    random: Random,
}

impl<'a> Sparse<'a> {
    pub(crate) fn new(id: &'a OperationId, seed: u64) -> Self {
        let floats = id.a.as_float().zip(id.b.as_float()).zip(id.d.as_float()).map(|((a, b), d)| [a, b, d]);
        Self { id, floats, random: Random(seed) }
    }

    /// Operands with the product ±significand·2^exponent: the significand in A, a power of two in B; `None` if no such
    /// pair fits the formats.
    fn product(&mut self, significand: u64, exponent: i32) -> Option<(u64, u64)> {
        let [a, b, _] = self.floats?;
        let ((a_low, a_high), (b_low, b_high)) = (a.exponents(), b.exponents());
        // The exponents in B that leave A one it holds.
        let (low, high) = (b_low.max(exponent - a_high), b_high.min(exponent - a_low));
        if low > high {
            return None;
        }
        let in_b = self.random.between(low, high);
        let negative = self.random.flip();
        Some((exactly(self.id.a, negative, significand, exponent - in_b)?, exactly(self.id.b, false, 1, in_b)?))
    }
}

impl Iterator for Sparse<'_> {
    type Item = Dot;

    fn next(&mut self) -> Option<Dot> {
        let [a, b, d] = self.floats?;
        let mut dot = Dot::zeros(self.id);
        let products = 1 + self.random.below(PRODUCTS.min(dot.a.len()));
        let ((a_low, a_high), (b_low, b_high)) = (a.exponents(), b.exponents());
        let (least, most) = (a_low + b_low, a_high + b_high);
        // Half of the first terms are near the smallest results, which have few bits, if products reach that range.
        let (from, to) = ((d.exponents().0 - 3).max(least), (d.min_exponent() + 2).min(most));
        let first = if from <= to && self.random.flip() {
            self.random.between(from, to)
        } else {
            self.random.between(least, most)
        };
        for at in 0..products {
            let exponent = if at == 0 { first } else { self.random.between((first - 60).max(least), first) };
            let bits = self.random.below(4) + if at == 0 { self.random.below(8) } else { 0 };
            let significand = self.random.bits() & ((1 << bits) - 1) | 1;
            if let Some((in_a, in_b)) = self.product(significand, exponent) {
                (dot.a[at], dot.b[at]) = (in_a, in_b);
            }
        }
        if self.random.below(3) == 0 {
            let exponent = first + self.random.between(-4, 30);
            let (negative, significand) = (self.random.flip(), self.random.bits() & 0xff | 1);
            dot.c = exactly(self.id.c, negative, significand, exponent).unwrap_or(0);
        }
        Some(dot)
    }
}

/// The bits of ±significand·2^exponent, if the format holds it exactly.
fn exactly(format: Format, negative: bool, significand: u64, exponent: i32) -> Option<u64> {
    let (rounding, overflow) = (Rounding::TowardZero, Overflow::Saturate);
    let encoded = format.encode(negative, u128::from(significand), exponent, rounding, overflow, Subnormals::Keep);
    (!encoded.inexact && !encoded.overflow).then_some(encoded.bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dots::cost;

    #[test]
    fn terms_are_few_and_differ_in_size() {
        for text in ["mma.m16n8k16.f16.f16.f16.f16", "mma.m16n8k32.f32.e4m3.e5m2.f32", "mma.m16n8k4.f32.tf32.tf32.f32"]
        {
            let id: OperationId = text.parse().unwrap();
            let dots: Vec<Dot> = Sparse::new(&id, 1).take(500).collect();
            assert!(dots.iter().all(|dot| cost(&id, dot)[0] <= 4), "{text}");
            assert!(dots.iter().filter(|dot| dot.a[0] != 0 && dot.a[1] != 0).count() > 100, "{text}");
        }
        let id: OperationId = "mma.m16n8k32.s32.s8.s8.s32".parse().unwrap();
        assert_eq!(Sparse::new(&id, 1).next(), None);
    }
}
