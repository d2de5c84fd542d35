//! Error bounds of products in words, and the lengths at which two of them cross.

use mxprobe_api::{Error, Format};
use serde::Deserialize;

use crate::gemm::{Accumulation, Block, Theory};
use crate::papers::computed::Computed;

/// A term factor·2^exponent·n^power of a sum.
#[derive(Clone, Debug, Deserialize)]
struct Term {
    #[serde(default = "one")]
    factor: f64,
    exponent: i32,
    #[serde(default)]
    power: f64,
}

fn one() -> f64 {
    1.0
}

fn sum(terms: &[Term], n: f64) -> f64 {
    terms.iter().map(|term| term.factor * f64::from(term.exponent).exp2() * n.powf(term.power)).sum()
}

/// A bound of words of a format, and the terms that it should equal.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundOf {
    format: String,
    words: usize,
    bound: Which,
    /// Products per block.
    block: Option<usize>,
    /// Whether sums of blocks are added in f64, not in f32.
    #[serde(default)]
    wide: bool,
    terms: Vec<Term>,
    /// The allowed relative difference, for lower-order terms that `terms` leaves out.
    #[serde(default)]
    within: f64,
}

/// A bound.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Which {
    /// (2.5).
    AllProducts,
    /// (2.7).
    SignificantProducts,
    /// (2.8).
    FirstOrder,
    /// The dominant terms of Table 2.1.
    Dominant,
    /// The same with the square root of the number of sums.
    DominantProbable,
}

/// The lengths at which bounds are compared.
const LENGTHS: [usize; 3] = [1 << 9, 1 << 14, 1 << 20];

impl BoundOf {
    pub(super) fn compute(&self) -> Result<Computed, Error> {
        let accumulation = match (self.block.map(Block::Products), self.wide) {
            (None, _) => Accumulation::Unit,
            (Some(block), true) => Accumulation::F64 { block },
            (Some(block), false) => Accumulation::F32 { block },
        };
        let format = Format::named(&self.format)?;
        let none = || Error::invalid(format!("{format} is not a floating-point format"));
        let theory = Theory::of(format, self.words, accumulation).ok_or_else(none)?;
        let bound = |n: usize| match self.bound {
            Which::AllProducts => theory.all_products(n),
            Which::SignificantProducts => theory.significant_products(n),
            Which::FirstOrder => theory.first_order(n),
            Which::Dominant => theory.dominant(n),
            Which::DominantProbable => theory.dominant_probable(n),
        };
        let is_same = |n: usize| (bound(n) / sum(&self.terms, n as f64) - 1.0).abs() <= self.within + 1e-12;
        let text = LENGTHS.map(|n| format!("{:.3e} at n = 2^{}", bound(n), n.ilog2())).join(", ");
        Ok(Computed { text, agrees: LENGTHS.into_iter().all(is_same) })
    }
}

/// The length at which one bound meets another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crossing {
    /// The bound that is lower for small n.
    below: Vec<Term>,
    above: Vec<Term>,
    /// The n at which they meet.
    n: f64,
}

impl Crossing {
    #[expect(clippy::unnecessary_wraps, reason = "as the other checks")]
    pub(super) fn compute(&self) -> Result<Computed, Error> {
        // Bisect, in exponents of 2.
        let (mut low, mut high) = (0f64, 40f64);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            let n = middle.exp2();
            *(if sum(&self.below, n) < sum(&self.above, n) { &mut low } else { &mut high }) = middle;
        }
        let n = low.exp2();
        Ok(Computed { text: format!("n = {n:.0}"), agrees: (n / self.n - 1.0).abs() < 1e-6 })
    }
}
