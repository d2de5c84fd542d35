//! A search for the worst input: how close an error comes to its bound.

use mxprobe_api::{Elements, FloatEncoding, Format, GemmOperands, Random};
use mxprobe_models::Dot;

use super::{Order, Tolerance, interval::Interval, terms::Terms};

/// The dot whose error came closest to the bound of all dots of its length.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// How many dots were tried.
    pub tried: usize,
    /// |d − exact| over the bound γ·S + η of the dot, from 0 to 1.
    pub nearest: f64,
    /// A, as bits.
    pub a: Vec<u64>,
    /// B, as bits.
    pub b: Vec<u64>,
    /// C, as bits.
    pub c: u64,
    /// The products that each operation took; fewer than its k if any order is allowed.
    pub at_once: usize,
    /// The result, as bits.
    pub d: u64,
    /// The nearest f64 to the exact sum.
    pub exact: f64,
    /// γ·S + η.
    pub bound: f64,
}

/// A dot to be tried.
#[derive(Clone)]
struct Candidate {
    a: Vec<u64>,
    b: Vec<u64>,
    c: u64,
    at_once: usize,
}

/// The number of ways to fill a fraction.
const FRACTIONS: usize = 5;

impl Tolerance {
    /// Searches for the dot whose error comes closest to the bound. It starts from a large term and many just below
    /// what is kept next to it, with equal or mixed signs and positions, then changes it step by step while that helps.
    /// The same seed gives the same dot.
    ///
    /// `None` if the operation adds integers or has block scales, or if no dot has an error or a bound.
    #[must_use]
    pub fn worst(&self, count: usize, seed: u64) -> Option<Found> {
        self.bound(true)?;
        if self.id().block_scale().is_some() || self.k() == 0 {
            return None;
        }
        let mut random = Random(seed);
        let mut best: Option<Found> = None;
        let mut held: Option<(f64, Candidate)> = None;
        for tried in 1..=count {
            // A third of the candidates are new; the others modify the best of their round.
            let candidate = match &held {
                Some((_, candidate)) if tried % ROUND > ROUND / 3 => self.changed(candidate, &mut random),
                _ => self.made(&mut random),
            };
            if tried % ROUND == 0 {
                held = None;
            }
            let Some(found) = self.judge(&candidate) else { continue };
            if held.as_ref().is_none_or(|(nearest, _)| found.nearest >= *nearest) {
                held = Some((found.nearest, candidate));
            }
            if best.as_ref().is_none_or(|best| found.nearest > best.nearest) {
                best = Some(found);
            }
        }
        best.filter(|best| best.nearest > 0.0).map(|best| Found { tried: count, ..best })
    }

    /// The error of a dot; `None` if it has no bound.
    fn judge(&self, candidate: &Candidate) -> Option<Found> {
        let id = self.id();
        let bits = |format: Format, bits: &[u64]| Elements::from_bits(format, bits.iter().copied());
        let (a, b) = (bits(id.a, &candidate.a), bits(id.b, &candidate.b));
        let c = bits(id.c, &[candidate.c]);
        let operands = GemmOperands { m: 1, n: 1, k: self.k(), a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
        let terms = self.terms(&operands);
        let Terms::Sums(sums) = &terms else { return None };
        // γ·S + η does not cover the exponents of subnormal operands.
        if sums.small > 0 || self.element(&terms).interval == Interval::Unbounded || sums.infinite.is_some() {
            return None;
        }
        let (relative, absolute) = self.bound(sums.has_c)?.of_magnitudes();
        let bound = relative * sums.positive.plus(&sums.negative).to_f64() + absolute;
        let d = self.chained(candidate);
        let exact = sums.exact();
        let result = super::exact::Exact::of_bits(id.d, d)?;
        let error = result.minus(&exact).to_f64().abs();
        let nearest = error / bound;
        let Candidate { a, b, c, at_once } = candidate.clone();
        nearest.is_finite().then_some(Found { tried: 0, nearest, a, b, c, at_once, d, exact: exact.to_f64(), bound })
    }

    /// Computes the dot by consecutive operations.
    fn chained(&self, candidate: &Candidate) -> u64 {
        let step = self.id().shape.sizes().2;
        let mut d = candidate.c;
        let (mut x, mut y) = (vec![0; step], vec![0; step]);
        for (a, b) in candidate.a.chunks(candidate.at_once).zip(candidate.b.chunks(candidate.at_once)) {
            x.fill(0);
            y.fill(0);
            x[..a.len()].copy_from_slice(a);
            y[..b.len()].copy_from_slice(b);
            let dot = Dot { a: &x, b: &y, c: d, scales: None };
            d = self.evaluator.dot(dot).expect("as many elements as the operation takes");
        }
        d
    }

    /// Creates a dot with a large term and others that are small compared with it.
    fn made(&self, random: &mut Random) -> Candidate {
        let (id, k) = (self.id(), self.k());
        let range =
            |format: Format| format.as_float().map_or((0, 0), |float| (float.min_exponent(), float.max_exponent()));
        let ((low_a, high_a), (low_b, high_b), (low_c, high_c)) = (range(id.a), range(id.b), range(id.c));
        let (low, high) = (low_a + low_b, high_a + high_b);
        let top = high.min(range(id.d).1 - 8);
        // Leaves room for others below it if the range of products has it; a leading c lies above every product, too.
        let lowest = if low + 40 <= high { low + 40 } else { low };
        let of_c = (low.max(low_c), (high + 40).min(high_c).min(range(id.d).1 - 2));
        let lead = if of_c.0 <= of_c.1 && random.flip() { k } else { random.below(k) };
        let leading = if lead == k {
            random.between(lowest.clamp(of_c.0, of_c.1), of_c.1)
        } else {
            random.between((low + 40).min(top), top)
        };
        let gap = random.between(0, 40);
        let (fraction, of_lead) = (random.below(FRACTIONS), random.below(FRACTIONS));
        let (negative, signs) = (random.flip(), random.below(4));
        let others = 1 + random.below(4) * random.below(2);
        let pair = |exponent: i32, fraction: usize, negative: bool, random: &mut Random| {
            let exponent = exponent.clamp(low, high);
            let of_a = random.between(low_a.max(exponent - high_b), high_a.min(exponent - low_b));
            let a = value(id.a, of_a, fraction, negative, random);
            (a, value(id.b, exponent - of_a, fraction, false, random))
        };
        let (mut a, mut b) = (vec![0; k], vec![0; k]);
        let uneven = random.below(3) == 0;
        for at in 0..k {
            let sign = match signs {
                0 => negative,
                1 => !negative,
                2 => at % 2 == 0,
                _ => random.flip(),
            };
            let lower = if uneven { random.between(-2, 2) } else { 0 };
            (a[at], b[at]) = if at == lead {
                pair(leading, of_lead, negative, random)
            } else if random.below(k) < others && others > 1 {
                pair(leading - random.between(0, gap), random.below(FRACTIONS), random.flip(), random)
            } else {
                pair(leading - gap + lower, fraction, sign, random)
            };
        }
        let c = match (lead == k, random.below(3)) {
            (true, _) => value(id.c, leading, of_lead, negative, random),
            (false, 0) => {
                value(id.c, (leading - random.between(0, gap)).clamp(low_c, high_c), fraction, negative, random)
            }
            (false, _) => 0,
        };
        let step = id.shape.sizes().2;
        let at_once = if self.order() == Order::Any && random.flip() { 1 } else { step };
        Candidate { a, b, c, at_once }
    }

    /// Changes one term of a candidate.
    fn changed(&self, candidate: &Candidate, random: &mut Random) -> Candidate {
        let id = self.id();
        let mut found = candidate.clone();
        let (at, other) = (random.below(self.k()), random.below(self.k()));
        for _ in 0..=random.below(3) {
            match random.below(8) {
                0 => (found.a[at], found.b[at]) = (found.a[other], found.b[other]),
                1 => found.a.swap(at, other),
                2 => found.c = nudged(id.c, found.c, random),
                3 => found.a[at] = negated(id.a, found.a[at]),
                4 => (found.a[at], found.b[at]) = (0, 0),
                5 => {
                    // Changes every element that has this value in the same way.
                    let (before, after) = (found.a[at], nudged(id.a, found.a[at], random));
                    found.a.iter_mut().filter(|a| **a == before).for_each(|a| *a = after);
                }
                6 => found.b[at] = nudged(id.b, found.b[at], random),
                _ => found.a[at] = nudged(id.a, found.a[at], random),
            }
        }
        found
    }
}

/// The number of dots between two restarts.
const ROUND: usize = 600;

/// A value with this exponent.
fn value(format: Format, exponent: i32, fraction: usize, negative: bool, random: &mut Random) -> u64 {
    let bits = format.fraction_bits();
    let ones = (1u64 << bits) - 1;
    let fraction = match fraction {
        0 => 0,
        1 => ones,
        2 => 1 & ones,
        3 => ones << 1 & ones,
        _ => random.bits() & ones,
    };
    format.truncated(negative, fraction | 1 << bits, exponent - bits.cast_signed())
}

/// Returns a neighbour of a value, or twice or half of it; the sign is kept and the result is finite.
fn nudged(format: Format, bits: u64, random: &mut Random) -> u64 {
    let Some(FloatEncoding { fraction_bits, unread_bits, .. }) = format.as_float() else { return bits };
    let fraction_bits = fraction_bits as usize;
    let place = [0, 0, fraction_bits, random.below(fraction_bits + 1)][random.below(4)];
    let by = 1u64 << unread_bits << place;
    let moved = if random.flip() { bits.wrapping_add(by) } else { bits.wrapping_sub(by) } & format.mask();
    let keeps_sign = (moved ^ bits) >> (format.bits() - 1) == 0;
    if keeps_sign && format.to_f64(moved).is_finite() { moved } else { bits }
}

fn negated(format: Format, bits: u64) -> u64 {
    let other = bits ^ 1 << (format.bits() - 1);
    let is_nan = format.to_f64(other).is_nan();
    if is_nan || !format.as_float().is_some_and(FloatEncoding::is_signed) { bits } else { other }
}
