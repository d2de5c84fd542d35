//! The worst error of a product, proved from the unit's model and the sizes of A and B; docs/gemm.md has the
//! derivation.

mod sizes;
mod step;

use mxprobe_api::Format;
use mxprobe_models::Evaluator;

use super::{Accumulation, Products};
pub(super) use sizes::Magnitudes;
use sizes::{Sizes, Weighted};
use step::{Linear, Step, power_of_two, smallest_normal};

/// The error of a way to multiply, for any matrices.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bound {
    step: Step,
    a: Words,
    b: Words,
    words: usize,
    products: Products,
    accumulation: Accumulation,
}

/// Upper limits of max |Ĉ − C| / (|A|·|B|).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// For these A and B: each product is weighted by the operations that come after it.
    pub(super) of_these: f64,
    /// For any A and B of the same length and sums of magnitudes: every product is weighted by every operation. Grows
    /// as n·u.
    pub(super) of_any: f64,
    /// With [`PROBABILITY`], if the errors of operations were random variables of mean zero. Grows as √n·u.
    pub(super) probable: f64,
}

/// The probability with which [`Limits::probable`] holds for all elements of C simultaneously, under its assumption.
pub(super) const PROBABILITY: f64 = 0.99;

/// The words of one format, each rounded to nearest from the remainder of those before it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Words {
    /// Significand bits.
    bits: i32,
    /// The largest remainder below the range of the format.
    rest: f64,
    /// The least value that the exponent of a nonzero operand counts for.
    smallest_normal: f64,
    /// The largest finite value.
    largest: f64,
}

/// Significand bits of A and B.
const INPUT_BITS: i32 = 24;

impl Words {
    fn of(format: Format, is_flushed: bool) -> Self {
        let bits = format.fraction_bits().cast_signed() + 1;
        let smallest_normal = smallest_normal(format);
        let holds_all = format == Format::F32 || format == Format::F64;
        let rest = match (is_flushed, holds_all) {
            (true, _) => smallest_normal,
            (false, true) => 0.0,
            (false, false) => smallest_normal * power_of_two(-bits),
        };
        Self { bits, rest, smallest_normal, largest: format.to_f64(format.largest(false)) }
    }

    /// Returns f: the remainder of x after `count` words is at most f·|x| or at most [`Words::rest`], whichever is
    /// larger.
    fn left(self, count: usize) -> f64 {
        let bits = self.bits * i32::try_from(count).expect("a few words");
        if bits >= INPUT_BITS { 0.0 } else { power_of_two(-bits) }
    }

    /// Returns (f, g): the word after `before` others is at most f·|x| + g.
    fn word(self, before: usize) -> (f64, f64) {
        let rest = if before == 0 { self.rest } else { 2.0 * self.rest };
        (self.left(before) + self.left(before + 1), rest)
    }
}

impl Bound {
    /// The bound for words multiplied by an operation of a model; `None` if nothing can be proved: the sums may wrap,
    /// or are sums of integers.
    pub(super) fn of(
        evaluator: &Evaluator,
        words: usize,
        products: Products,
        accumulation: Accumulation,
    ) -> Option<Self> {
        let (id, flush) = (evaluator.id(), evaluator.flush());
        // The remainders of words with scales are different.
        if id.block_scale().is_some() {
            return None;
        }
        let step = Step::of(evaluator)?;
        let (a, b) = (Words::of(id.a, flush.a), Words::of(id.b, flush.b));
        Some(Self { step, a, b, words, products, accumulation })
    }

    /// The bound of a loop in f32 that rounds every product and every sum.
    pub(super) fn single(accumulation: Accumulation) -> Self {
        let of_f32 = Words::of(Format::F32, false);
        let products = Products::Significant;
        Self { step: Step::single(), a: of_f32, b: of_f32, words: 1, products, accumulation }
    }

    /// The limits for these matrices of f32 values; `None` if a value is beyond the range of the words, or a sum may be
    /// beyond the range of the unit's results.
    pub(super) fn limits(&self, matrices: &mut Magnitudes<'_>) -> Option<Limits> {
        let [of_a, of_b] = matrices.largest();
        if of_a > self.a.largest || of_b > self.b.largest {
            return None;
        }
        let (k, step) = (matrices.k(), self.step.k);
        let whole = matrices.table(step, k.max(1)).to_vec();
        let block = match self.accumulation {
            Accumulation::Unit => None,
            Accumulation::F32 { block } => Some((block.products(k), power_of_two(-24), false)),
            Accumulation::F64 { block } => Some((block.products(k), power_of_two(-53), true)),
        };
        let blocked = block.map_or_else(Vec::new, |(block, ..)| matrices.table(step, block).to_vec());
        let deviations = deviations(matrices.dots());
        let mut worst = [0f64; 3];
        for (at, of_dot) in whole.iter().enumerate() {
            let lost = |is_any: bool| {
                let of_dot = if is_any { of_dot.at_worst(self.steps(k), 1) } else { *of_dot };
                match block {
                    None => self.chained(&of_dot, k),
                    Some((block, roundoff, is_wide)) => {
                        let steps = self.steps(block.min(k));
                        let of_blocks =
                            if is_any { blocked[at].at_worst(steps, k.div_ceil(block)) } else { blocked[at] };
                        self.blocked(&of_dot, &of_blocks, (k, block), (roundoff, is_wide))
                    }
                }
            };
            let (these, any, left_out) = (lost(false)?, lost(true)?, self.left_out(&of_dot.all));
            let products = of_dot.all.products();
            let probable = (these.certain + deviations * these.probable).min(these.lost);
            for (worst, lost) in worst.iter_mut().zip([these.lost, any.lost, probable]) {
                let total = left_out + lost;
                *worst = worst.max(if products > 0.0 { total / products } else { total });
            }
        }
        // The sums of magnitudes are themselves rounded.
        let [of_these, of_any, probable] = worst.map(|worst| worst * (1.0 + power_of_two(-20)));
        Some(Limits { of_these, of_any, probable })
    }

    /// Bounds the error of the words and of the products of words that are left out. If the products i + j ≤ p + 1 are
    /// computed: x·y − Σ xᵢ·yⱼ = r·y + Σ xᵢ·sₚ₊₁₋ᵢ, where r is the remainder of x after p words and sⱼ that of y after
    /// j words. If all products are computed: r·y + (x − r)·sₚ.
    fn left_out(&self, all: &Sizes) -> f64 {
        let (p, rest) = (self.words, (self.a.left(self.words), self.a.rest));
        let of_b = |count: usize| (self.b.left(count), self.b.rest);
        let words: f64 = match self.products {
            Products::Significant => (0..p).map(|before| all.product(self.a.word(before), of_b(p - before))).sum(),
            Products::All => all.product((1.0 + rest.0, rest.1), of_b(p)),
        };
        all.product(rest, (1.0, 0.0)) + words
    }

    /// Bounds the loss of the unit if c is chained through every product; `None` if a sum may overflow.
    fn chained(&self, of_dot: &Weighted, k: usize) -> Option<Lost> {
        let chain = self.chain(&self.pairs(), of_dot, self.steps(k), 1);
        let Chain { lost, probable, .. } = chain;
        chain.within(self.step.largest).then_some(Lost { lost, probable, certain: 0.0 })
    }

    /// Bounds the loss if A1·B1 is computed in blocks, each starting from +0, whose sums are added outside the unit to
    /// the sum of the other products.
    fn blocked(
        &self,
        whole: &Weighted,
        of_blocks: &Weighted,
        (k, block): (usize, usize),
        (roundoff, is_wide): (f64, bool),
    ) -> Option<Lost> {
        let mut pairs = self.pairs();
        pairs.pop();
        let before = self.chain(&pairs, whole, self.steps(k), 1);
        let blocks = k.div_ceil(block);
        let inner = self.chain(&[(0, 0)], of_blocks, self.steps(block.min(k)), blocks);
        // Every sum rounded outside the unit: the sum of the other products, and the blocks so far.
        let through = self.chain(
            &[(0, 0)],
            &Weighted { all: of_blocks.blocks, ..*of_blocks },
            self.steps(block.min(k)),
            blocks * blocks.div_ceil(2) + blocks,
        );
        let count = blocks as f64;
        let growth = (1.0 + roundoff).powf(count);
        let outside = roundoff * growth * (count * before.magnitude + through.magnitude);
        let largest = growth * (before.magnitude + inner.magnitude);
        let outside_probable = roundoff * count.sqrt() * largest;
        // The f64 sum is rounded to f32 once, and the result may be subnormal.
        let last = if is_wide { power_of_two(-24) * largest + power_of_two(-150) } else { 0.0 };
        let fits = largest <= self.step.largest.min(f64::from(f32::MAX)) / 2.0;
        fits.then_some(Lost {
            lost: before.lost + inner.lost + outside + last,
            probable: before.probable + inner.probable + outside_probable,
            certain: last,
        })
    }

    /// The number of operations along k.
    fn steps(&self, k: usize) -> usize {
        k.div_ceil(self.step.k).max(1)
    }

    /// Pairs of words, counted from 0, in the order in which their products are computed.
    fn pairs(&self) -> Vec<(usize, usize)> {
        let words = self.words;
        let levels = match self.products {
            Products::Significant => words,
            Products::All => 2 * words - 1,
        };
        let of_level = |level: usize| (0..=level).rev().map(move |i| (i, level - i));
        (0..levels).rev().flat_map(of_level).filter(|(i, j)| *i < words && *j < words).collect()
    }

    /// Bounds the loss of operations that run one after another along k for each pair of words, with c chained through
    /// all of them, `times` over on different products.
    fn chain(&self, pairs: &[(usize, usize)], sizes: &Weighted, steps: usize, times: usize) -> Chain {
        let Step { lost, magnitude, .. } = self.step;
        let operations = (pairs.len() * steps) as f64;
        let times = times as f64;
        let (mut products, mut aligned) = (Through::default(), Through::default());
        for (index, (i, j)) in pairs.iter().enumerate() {
            let (a, b) = (self.a.word(*i), self.b.word(*j));
            let after = ((pairs.len() - 1 - index) * steps) as f64;
            products.add(sizes.all.product(a, b), sizes.later.product(a, b), after);
            let (a, b) = ((a.0, a.1 + self.a.smallest_normal), (b.0, b.1 + self.b.smallest_normal));
            aligned.add(sizes.all.product(a, b), sizes.later.product(a, b), after);
        }
        // |c| of an operation is the sum of what the operations before it added, which later ones may enlarge.
        let Linear { c, product, aligned: of_aligned, constant } = magnitude;
        let growth = c.max(1.0).powf(operations);
        let largest = growth * (product * products.total + of_aligned * aligned.total + constant * operations * times);
        let sums = growth
            * (product * products.later
                + of_aligned * aligned.later
                + constant * operations * operations / 2.0 * times);
        let of_operations = lost.c * sums
            + lost.product * products.total
            + lost.aligned * aligned.total
            + lost.constant * operations * times;
        // Errors of mean zero add as the root of the sum of squares: √(Σ (αc + α'p + β)²), with c at its largest
        // throughout.
        let probable = lost.c * operations.sqrt() * largest
            + lost.product * products.total
            + lost.aligned * aligned.total
            + lost.constant * (operations * times).sqrt();
        // The result is at most `largest`, the exact result at most the products.
        Chain { lost: of_operations.min(largest + products.total), probable, magnitude: largest }
    }
}

/// The multiple λ of [`Lost::probable`] that, with [`PROBABILITY`], no error of this many dots exceeds: a sum of
/// martingale differences that are at most εᵢ exceeds λ·√(Σ εᵢ²) with a probability of at most 2·exp(−λ²/2) (Azuma and
/// Hoeffding).
fn deviations(dots: usize) -> f64 {
    (2.0 * (2.0 * dots.max(1) as f64 / (1.0 - PROBABILITY)).ln()).sqrt()
}

/// The loss of a product.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// The upper limit.
    lost: f64,
    /// The root of the sum of the squares of the largest losses of its operations.
    probable: f64,
    /// The additional loss of a final rounding.
    certain: f64,
}

/// Sums of magnitudes over the operations: counted once each, and weighted by the number of operations after them.
#[derive(Default)]
struct Through {
    total: f64,
    later: f64,
}

impl Through {
    fn add(&mut self, all: f64, within: f64, after: f64) {
        self.total += all;
        self.later += within + after * all;
    }
}

#[derive(Default)]
struct Chain {
    lost: f64,
    probable: f64,
    /// An upper limit of |D|.
    magnitude: f64,
}

impl Chain {
    /// Whether every sum is safely below the largest value.
    fn within(&self, largest: f64) -> bool {
        self.magnitude <= largest / 2.0
    }
}

#[cfg(test)]
mod tests;
