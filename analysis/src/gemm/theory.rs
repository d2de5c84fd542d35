//! The published error bounds of products in words, for a unit that rounds every sum to f32.
//!
//! Fasi, Higham, Lopez, Mary and Mikaitis, *Matrix Multiplication in Multiword Arithmetic*, SISC 2023: bounds (2.5) to
//! (2.8) and Table 2.1, section 4.3 for √n, section 4.4 for blocks. They hold barring underflow. The bounds for the
//! unit's real adder are in `bound`.

use mxprobe_api::Format;
use serde::{Deserialize, Serialize};

use super::Accumulation;

/// The unit roundoff of f32, u_high.
const ROUNDOFF_F32: f64 = 5.960_464_477_539_063e-8;
/// The unit roundoff of f64.
const ROUNDOFF_F64: f64 = 1.110_223_024_625_156_5e-16;

/// The parameters of a published bound: p words of a format, n products, and where they are added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Theory {
    /// The unit roundoff of the words' format, u_low = 2^−t for significands of t bits; 0 if A and B are not rounded.
    pub low: f64,
    /// Words per element, p.
    pub words: u32,
    /// Where A1·B1 is added.
    pub accumulation: Accumulation,
}

/// Published bounds of max |Ĉ − C| / (|A|·|B|) at one n; u is 2^−24.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Published {
    /// (2.5), all p² products, with (2.6) for the words' magnitudes. Missing for blocks, and if n·u ≥ 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_products: Option<f64>,
    /// (2.7), the products i + j ≤ p + 1. Missing in the same cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub significant_products: Option<f64>,
    /// (2.8), which is (2.7) to first order. Missing in the same cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_order: Option<f64>,
    /// The dominant terms of Table 2.1: (p + 1)·u_low^p, if u_low^p is more than 4·u, and n·u; for blocks of b products
    /// added in f32 (b + n/b)·u, and in f64 b·u + n/b·2^−53.
    pub dominant: f64,
    /// The same with √n for n, or √(n/b) for n/b, as for rounding errors of mean zero.
    pub dominant_probable: f64,
}

impl Theory {
    /// The theory for words of a floating format; `None` for integers.
    #[must_use]
    pub fn of(format: Format, words: usize, accumulation: Accumulation) -> Option<Self> {
        let bits = format.as_float()?.fraction_bits + 1;
        let low = (-f64::from(bits)).exp2();
        Some(Self { low, words: u32::try_from(words).ok()?, accumulation })
    }

    /// The theory for a loop in f32 over elements that are not rounded.
    #[must_use]
    pub fn single(accumulation: Accumulation) -> Self {
        Self { low: 0.0, words: 1, accumulation }
    }

    /// All published bounds for n products.
    #[must_use]
    pub fn published(&self, n: usize) -> Published {
        let of_unit = |bound: f64| (self.accumulation == Accumulation::Unit && bound.is_finite()).then_some(bound);
        Published {
            all_products: of_unit(self.all_products(n)),
            significant_products: of_unit(self.significant_products(n)),
            first_order: of_unit(self.first_order(n)),
            dominant: self.dominant(n),
            dominant_probable: self.dominant_probable(n),
        }
    }

    /// (2.6): |Aᵢ|·|Bⱼ| is at most this times |A|·|B|; i and j count from 1.
    #[must_use]
    pub fn word_product(&self, i: u32, j: u32) -> f64 {
        self.power(i + j - 2) * (1.0 + self.low).powi(2)
    }

    /// (2.5), with (2.6) for Σ |Aᵢ|·|Bⱼ|.
    #[must_use]
    pub fn all_products(&self, n: usize) -> f64 {
        let words = || 1..=self.words;
        let magnitudes: f64 =
            words().flat_map(|i| words().map(move |j| (i, j))).map(|(i, j)| self.word_product(i, j)).sum();
        2.0 * self.power(self.words) + self.power(2 * self.words) + self.gamma(n) * magnitudes
    }

    /// (2.7), its first line.
    #[must_use]
    pub fn significant_products(&self, n: usize) -> f64 {
        let p = self.words;
        let sums = 1.0 + (1..p).map(|k| self.power(k)).sum::<f64>();
        let left_out: f64 = (1..p).map(|i| f64::from(p - i) * self.power(p + i - 1)).sum();
        2.0 * self.power(p) + self.power(2 * p) + (self.gamma(n) * sums + left_out) * (1.0 + self.low).powi(2)
    }

    /// (2.8) without its higher orders: (p + 1)·u_low^p + γ.
    #[must_use]
    pub fn first_order(&self, n: usize) -> f64 {
        f64::from(self.words + 1) * self.power(self.words) + self.gamma(n)
    }

    /// The dominant terms, as in Table 2.1: see [`Published::dominant`].
    #[must_use]
    pub fn dominant(&self, n: usize) -> f64 {
        self.dominant_with(n, |n| n)
    }

    /// [`Self::dominant`] with the square root of the number of sums: see [`Published::dominant_probable`].
    #[must_use]
    pub fn dominant_probable(&self, n: usize) -> f64 {
        self.dominant_with(n, f64::sqrt)
    }

    fn dominant_with(&self, n: usize, sums: fn(f64) -> f64) -> f64 {
        let of_words = self.power(self.words);
        let words = if of_words > 4.0 * ROUNDOFF_F32 { f64::from(self.words + 1) * of_words } else { 0.0 };
        let block = |block: super::Block| block.products(n).min(n.max(1)) as f64;
        let n_sums = n as f64;
        words
            + match self.accumulation {
                Accumulation::Unit => sums(n_sums) * ROUNDOFF_F32,
                Accumulation::F32 { block: of } => (block(of) + sums(n_sums / block(of))) * ROUNDOFF_F32,
                Accumulation::F64 { block: of } => block(of) * ROUNDOFF_F32 + sums(n_sums / block(of)) * ROUNDOFF_F64,
            }
    }

    /// u_low^exponent; 0 to the power of 0 is 1, for elements that are not rounded, whose first word is exact.
    fn power(&self, exponent: u32) -> f64 {
        self.low.powi(exponent.cast_signed())
    }

    /// γ of n + p² − 1 sums; infinite if n·u ≥ 1.
    fn gamma(&self, n: usize) -> f64 {
        let sums = n as f64 + f64::from(self.words * self.words) - 1.0;
        let nu = sums * ROUNDOFF_F32;
        if nu < 1.0 { nu / (1.0 - nu) } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::Block;

    fn theory(format: Format, words: usize) -> Theory {
        Theory::of(format, words, Accumulation::Unit).unwrap()
    }

    fn two(exponent: i32) -> f64 {
        f64::from(exponent).exp2()
    }

    /// Asserts that two values are equal up to rounding.
    fn same(found: f64, wanted: f64) {
        assert!((found - wanted).abs() <= 1e-12 * wanted, "{found:e} is not {wanted:e}");
    }

    #[test]
    fn the_rows_of_table_2_1_are_those_of_the_paper() {
        for n in [1, 512, 1 << 20] {
            let sums = n as f64 * two(-24);
            for (format, words, wanted) in [
                (Format::F16, 1, 2.0 * two(-11) + sums),
                (Format::F16, 2, sums),
                (Format::BF16, 1, 2.0 * two(-8) + sums),
                (Format::BF16, 2, 3.0 * two(-16) + sums),
                (Format::BF16, 3, sums),
            ] {
                same(theory(format, words).dominant(n), wanted);
            }
        }
    }

    #[test]
    fn bounds_2_5_2_7_and_2_8_of_two_words_of_f16_are_their_formulas() {
        let (u, n) = (two(-11), 4096);
        let gamma = (4096.0 + 3.0) * two(-24) / (1.0 - (4096.0 + 3.0) * two(-24));
        let bounds = theory(Format::F16, 2).published(n);
        let square = (1.0 + u) * (1.0 + u);
        same(bounds.all_products.unwrap(), 2.0 * u * u + u.powi(4) + gamma * square * (1.0 + 2.0 * u + u * u));
        let wanted = 2.0 * u * u + u.powi(4) + (gamma * (1.0 + u) + u * u) * square;
        same(bounds.significant_products.unwrap(), wanted);
        same(bounds.first_order.unwrap(), 3.0 * u * u + gamma);
        // (2.8) is (2.7) except for higher orders: u_high·u_low and u_low^(p + 1).
        assert!((bounds.first_order.unwrap() - wanted).abs() < 4.0 * (gamma * u + u.powi(3)));
        same(theory(Format::F16, 2).word_product(2, 1), u * square);
        assert_eq!(theory(Format::F16, 1).published(1 << 24).all_products, None, "n·u is 1");
    }

    #[test]
    fn blocks_have_the_bounds_of_section_4_4() {
        let n = 1 << 20;
        let of = |accumulation| Theory::of(Format::F16, 2, accumulation).unwrap();
        let v1 = of(Accumulation::F32 { block: Block::Products(128) });
        same(v1.dominant(n), (128.0 + 8192.0) * two(-24));
        same(v1.dominant_probable(n), (128.0 + 8192f64.sqrt()) * two(-24));
        let v2 = of(Accumulation::F64 { block: Block::Count(16) });
        same(v2.dominant(n), 65536.0 * two(-24) + 16.0 * two(-53));
        assert_eq!(v2.published(n).first_order, None);
    }
}
