//! Searches for a dot on which two models differ.

use std::{convert::Infallible, time::Instant};

use mxprobe_api::{Error, OperationId};
use mxprobe_models::{Evaluator, Model};

use super::conditions::{Conditions, is_finite};
use crate::dots::{self, Dot, Draw, Sparse, cost, seed_of};

/// Differing dots that are simplified; the simplest is kept.
const KEPT: usize = 8;

/// Dots that are drawn after the first that differs, for a choice.
const MORE: u64 = 2_000;

/// After this many dots of every class, dots of few terms are tried too.
const FEW_FROM: u64 = 5_000;

/// Two models of one operation, prepared for evaluation.
#[derive(Debug)]
pub struct Rivals {
    id: OperationId,
    evaluators: [Evaluator; 2],
}

/// A dot on which two models differ, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The dot.
    pub dot: Dot,
    /// Each model's result.
    pub values: [u64; 2],
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Searched {
    /// The simplest dot found that differs.
    pub witness: Option<Witness>,
    /// Dots tried until the first one differed, or until the search ended.
    pub tried: u64,
    /// Nanoseconds until then.
    pub search_ns: u128,
}

impl Rivals {
    /// Prepares both models' evaluators of an operation.
    ///
    /// # Errors
    /// If a model has no such operation.
    pub fn new(models: [&Model; 2], id: &OperationId) -> Result<Self, Error> {
        let [one, other] = models;
        Ok(Self { id: id.clone(), evaluators: [Evaluator::new(one, id)?, Evaluator::new(other, id)?] })
    }

    /// Each model's result for a dot.
    ///
    /// # Panics
    /// If the dot is not one of the operation.
    #[must_use]
    pub fn values(&self, dot: &Dot) -> [u64; 2] {
        self.evaluators.each_ref().map(|evaluator| evaluator.dot(as_input(dot)).expect("a dot of the operation"))
    }

    /// Whether the models differ on a dot of the operation.
    #[must_use]
    pub fn differ(&self, dot: &Dot) -> bool {
        let [one, other] = self.values(dot);
        one != other
    }

    /// The dot as a witness, if the models differ on it.
    #[must_use]
    pub fn witness(&self, dot: &Dot) -> Option<Witness> {
        self.differ(dot).then(|| Witness { dot: dot.clone(), values: self.values(dot) })
    }

    /// The simplest dot near this one on which the models still differ. A dot of finite numbers stays finite, and the
    /// result meets the conditions.
    #[must_use]
    pub fn simplest(&self, dot: &Dot, conditions: &Conditions) -> Dot {
        let finite = is_finite(&self.id, dot);
        let holds = |dots: &[Dot]| -> Result<Vec<bool>, Infallible> {
            let holds =
                |dot: &Dot| (!finite || is_finite(&self.id, dot)) && conditions.hold(&self.id, dot) && self.differ(dot);
            Ok(dots.iter().map(holds).collect())
        };
        let Ok(dot) = dots::simplest(&self.id, dot, holds);
        let first = in_front(&dot);
        if self.differ(&first) { first } else { dot }
    }

    /// Draws dots until the models differ on one, at most `tries` and until `end`, and then a few more; returns the
    /// simplest. A dot without NaN and infinities is preferred to one with them, which counts only if the conditions
    /// allow it.
    #[must_use]
    pub fn search(&self, seed: u64, tries: u64, conditions: &Conditions, end: Instant) -> Searched {
        let start = Instant::now();
        let mut found: Vec<Dot> = Vec::new();
        let mut special: Option<Dot> = None;
        let (mut tried, mut first) = (0, None);
        let specials = !conditions.finite;
        let mut sparse = Sparse::new(&self.id, seed_of(seed, 3));
        for drawn in Draw::new(&self.id, seed) {
            // After the first dots, every second one has few terms.
            let few = (tried >= FEW_FROM && tried % 2 == 0).then(|| sparse.next()).flatten();
            let dot = conditions.moved(&self.id, few.unwrap_or(drawn));
            if found.len() >= KEPT || tried >= tries || first.is_some_and(|(first, _)| tried - first >= MORE) {
                break;
            }
            if tried % 1024 == 1023 && Instant::now() >= end {
                break;
            }
            tried += 1;
            if !self.differ(&dot) {
                continue;
            }
            let finite = is_finite(&self.id, &dot);
            if finite || specials {
                first = first.or_else(|| Some((tried, start.elapsed().as_nanos())));
            }
            if finite {
                found.push(dot);
            } else if specials && special.is_none() {
                special = Some(dot);
            }
        }
        let (tried, search_ns) = first.unwrap_or_else(|| (tried, start.elapsed().as_nanos()));
        let candidates = if found.is_empty() { special.into_iter().collect() } else { found };
        let simple = candidates.iter().map(|dot| self.simplest(dot, conditions)).min_by_key(|dot| cost(&self.id, dot));
        let witness = simple.and_then(|dot| self.witness(&dot));
        Searched { witness, tried, search_ns }
    }
}

/// The dot with the products other than +0·+0 moved to the front; unchanged if it has scales, which belong to
/// positions.
pub(super) fn in_front(dot: &Dot) -> Dot {
    if dot.scales.is_some() {
        return dot.clone();
    }
    let mut products: Vec<(u64, u64)> = dot.a.iter().copied().zip(dot.b.iter().copied()).collect();
    products.sort_by_key(|product| *product == (0, 0));
    let (a, b) = products.into_iter().unzip();
    Dot { a, b, ..dot.clone() }
}

/// The dot in the type that the evaluators take.
#[must_use]
pub fn as_input(dot: &Dot) -> mxprobe_models::Dot<'_> {
    let scales = dot.scales.as_ref().map(|(a, b)| (a.as_slice(), b.as_slice()));
    mxprobe_models::Dot { a: &dot.a, b: &dot.b, c: dot.c, scales }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn rivals(one: &str, other: &str, id: &str) -> Rivals {
        let [one, other] = [one, other].map(|name| mxprobe_models::load(name).unwrap());
        Rivals::new([&one, &other], &id.parse().unwrap()).unwrap()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn models_that_keep_other_bits_are_told_apart_by_few_finite_terms() {
        let rivals = rivals("a100", "h100", "mma.m16n8k16.f32.f16.f16.f32");
        let witness = rivals.search(1, 100_000, &Conditions::ANY, soon()).witness.unwrap();
        assert_eq!(rivals.values(&witness.dot), witness.values);
        assert_ne!(witness.values[0], witness.values[1]);
        assert!(is_finite(&rivals.id, &witness.dot));
        assert!(cost(&rivals.id, &witness.dot)[0] <= 3, "{:?}", witness.dot);
    }

    #[test]
    fn a_difference_in_nan_alone_is_found_unless_inputs_must_be_finite() {
        let rivals = rivals("mi300x", "mi300x@nan-all-ones", "mfma.m16n16k16.f32.f16.f16.f32");
        let witness = rivals.search(1, 20_000, &Conditions::ANY, soon()).witness.unwrap();
        assert!(!is_finite(&rivals.id, &witness.dot));
        // No finite f16 input gives a NaN here: an overflow is an infinity with its sign, and there is only one such
        // sum.
        assert!(rivals.search(1, 20_000, &Conditions::FINITE, soon()).witness.is_none());
    }
}
