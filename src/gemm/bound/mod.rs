//! The worst error of a product, proved from the unit's model and the sizes of A and B; docs/gemm.md has the derivation.

mod sizes;
mod step;

use mxprobe_api::Format;
use mxprobe_models::Evaluator;

use super::{Accumulation, Products};
pub(super) use sizes::Magnitudes;
use sizes::{Sizes, Weighted};
use step::{Linear, Step, power_of_two, smallest_normal};

/// What is lost by a way to multiply, whatever the matrices are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bound {
    step: Step,
    a: Words,
    b: Words,
    words: usize,
    products: Products,
    accumulation: Accumulation,
}

/// What max |Ĉ − C| / (|A|·|B|) is at the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// For these A and B: each product counts with the operations that come after it.
    pub(super) of_these: f64,
    /// For any A and B of the same length and sums of magnitudes: every product counts with every operation. It grows as n·u.
    pub(super) of_any: f64,
    /// With [`PROBABILITY`], if the errors of operations were random variables of mean zero. It grows as √n·u.
    pub(super) probable: f64,
}

/// The probability with which [`Limits::probable`] holds for every element of C at once, under its assumption.
pub(super) const PROBABILITY: f64 = 0.99;

/// What words of a format hold, each rounded to nearest from what those before it left.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Words {
    /// Bits of a significand.
    bits: i32,
    /// What is left below the range of the format, at the most.
    rest: f64,
    /// What the exponent of an operand that is not zero counts for, at the least.
    smallest_normal: f64,
    /// The largest finite value.
    largest: f64,
}

/// Bits of the significands of A and B.
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

    /// What `count` words leave of x is no more than this times |x|, or than [`Words::rest`].
    fn left(self, count: usize) -> f64 {
        let bits = self.bits * i32::try_from(count).expect("a few words");
        if bits >= INPUT_BITS { 0.0 } else { power_of_two(-bits) }
    }

    /// The word after `before` others is no more than the first times |x|, and the second.
    fn word(self, before: usize) -> (f64, f64) {
        let rest = if before == 0 { self.rest } else { 2.0 * self.rest };
        (self.left(before) + self.left(before + 1), rest)
    }
}

impl Bound {
    /// Of words on an operation of a model; `None` where nothing can be said: sums that may wrap, sums of integers.
    pub(super) fn of(
        evaluator: &Evaluator,
        words: usize,
        products: Products,
        accumulation: Accumulation,
    ) -> Option<Self> {
        let (id, flush) = (evaluator.id(), evaluator.flush());
        // Words that have scales leave other rests.
        if id.block_scale().is_some() {
            return None;
        }
        let step = Step::of(evaluator)?;
        let (a, b) = (Words::of(id.a, flush.a), Words::of(id.b, flush.b));
        Some(Self { step, a, b, words, products, accumulation })
    }

    /// Of a loop in f32 that rounds every product and every sum.
    pub(super) fn single(accumulation: Accumulation) -> Self {
        let of_f32 = Words::of(Format::F32, false);
        let products = Products::Significant;
        Self { step: Step::single(), a: of_f32, b: of_f32, words: 1, products, accumulation }
    }

    /// The most that max |Ĉ − C| / (|A|·|B|) can be for these matrices of f32 values; `None` where a value is beyond the range
    /// of the words, or a sum may be beyond that of the unit's results.
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
        // The sums of magnitudes were rounded themselves.
        let [of_these, of_any, probable] = worst.map(|worst| worst * (1.0 + power_of_two(-20)));
        Some(Limits { of_these, of_any, probable })
    }

    /// What the words and the products of words that are left out are worth. Of the products i + j ≤ p + 1:
    /// x·y − Σ xᵢ·yⱼ = r·y + Σ xᵢ·sₚ₊₁₋ᵢ, where r is what p words leave of x and sⱼ what j words leave of y. Of all products:
    /// r·y + (x − r)·sₚ.
    fn left_out(&self, all: &Sizes) -> f64 {
        let (p, rest) = (self.words, (self.a.left(self.words), self.a.rest));
        let of_b = |count: usize| (self.b.left(count), self.b.rest);
        let words: f64 = match self.products {
            Products::Significant => (0..p).map(|before| all.product(self.a.word(before), of_b(p - before))).sum(),
            Products::All => all.product((1.0 + rest.0, rest.1), of_b(p)),
        };
        all.product(rest, (1.0, 0.0)) + words
    }

    /// What the unit loses where c is chained through every product; `None` where something may overflow.
    fn chained(&self, of_dot: &Weighted, k: usize) -> Option<Lost> {
        let chain = self.chain(&self.pairs(), of_dot, self.steps(k), 1);
        let Chain { lost, probable, .. } = chain;
        chain.within(self.step.largest).then_some(Lost { lost, probable, certain: 0.0 })
    }

    /// What is lost where A1·B1 is computed in blocks, each from +0, whose sums are added outside the unit to those of the
    /// other products.
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
        // Each sum that is rounded outside: what came before, and the blocks so far.
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
        // f64 becomes f32 once, where it may be subnormal.
        let last = if is_wide { power_of_two(-24) * largest + power_of_two(-150) } else { 0.0 };
        let fits = largest <= self.step.largest.min(f64::from(f32::MAX)) / 2.0;
        fits.then_some(Lost {
            lost: before.lost + inner.lost + outside + last,
            probable: before.probable + inner.probable + outside_probable,
            certain: last,
        })
    }

    /// Operations along k.
    fn steps(&self, k: usize) -> usize {
        k.div_ceil(self.step.k).max(1)
    }

    /// Pairs of words in the order in which their products are computed, counted from 0.
    fn pairs(&self) -> Vec<(usize, usize)> {
        let words = self.words;
        let levels = match self.products {
            Products::Significant => words,
            Products::All => 2 * words - 1,
        };
        let of_level = |level: usize| (0..=level).rev().map(move |i| (i, level - i));
        (0..levels).rev().flat_map(of_level).filter(|(i, j)| *i < words && *j < words).collect()
    }

    /// What operations lose that run one after another along k for each pair of words, c chained through all of them; and
    /// the same `times` over, each on its own products.
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
        // |c| of each operation is what the ones before it added, which later ones may make larger.
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
        // Errors of mean zero add as their squares do: the root of Σ (αc + α'p + β)², c at its largest throughout.
        let probable = lost.c * operations.sqrt() * largest
            + lost.product * products.total
            + lost.aligned * aligned.total
            + lost.constant * (operations * times).sqrt();
        // The result is no more than `largest`, the exact one no more than the products.
        Chain { lost: of_operations.min(largest + products.total), probable, magnitude: largest }
    }
}

/// How many times [`Lost::probable`] an error may be, so that with [`PROBABILITY`] none of so many is larger: a sum of
/// martingale differences that are no more than εᵢ is beyond λ·√(Σ εᵢ²) with a probability of no more than 2·exp(−λ²/2)
/// (Azuma and Hoeffding).
fn deviations(dots: usize) -> f64 {
    (2.0 * (2.0 * dots.max(1) as f64 / (1.0 - PROBABILITY)).ln()).sqrt()
}

/// What a product loses.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// At the most.
    lost: f64,
    /// The root of the sum of squares of what its operations lose at the most.
    probable: f64,
    /// What a rounding at the end loses besides.
    certain: f64,
}

/// Sums of magnitudes over the operations: once each, and times the number of operations after them.
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
    /// |D| is no more.
    magnitude: f64,
}

impl Chain {
    /// Whether every sum is far enough from the largest value.
    fn within(&self, largest: f64) -> bool {
        self.magnitude <= largest / 2.0
    }
}

#[cfg(test)]
mod tests;
