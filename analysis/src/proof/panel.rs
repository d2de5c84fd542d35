//! Compares several models of one operation: finds one dot that distinguishes as many as possible, and decides each
//! pair.

use std::{convert::Infallible, time::Instant};

use mxprobe_api::{Decoded, Error, OperationId};
use mxprobe_models::{Evaluator, Model};

use super::{
    conditions::Conditions,
    decide::{Certificate, Comparison, Effort, FoundBy, Undecided, Verdict},
    search::{as_input, in_front},
};
use crate::dots::{self, Dot, Draw, Sparse, cost, seed_of};

/// Dots that are drawn to find one that distinguishes as many models as possible.
const TRIES: u64 = 20_000;

/// Dots that are drawn after the first one that distinguishes all models, for a choice.
const MORE: u64 = 1_000;

/// Dots of the highest count that are simplified; the simplest is kept.
const KEPT: usize = 4;

/// After this many dots of every class, dots of few terms are tried too.
const FEW_FROM: u64 = 2_000;

/// The purpose of a dot that is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// As many different results as possible.
    DifferentResults,
    /// As many results as possible that differ from the first model's.
    DifferentFromFirst,
}

impl Wanted {
    /// The score of a dot's results.
    fn count(self, values: &[u64]) -> usize {
        match self {
            Self::DifferentResults => {
                let mut values = values.to_vec();
                values.sort_unstable();
                values.dedup();
                values.len() - 1
            }
            Self::DifferentFromFirst => values.iter().filter(|value| **value != values[0]).count(),
        }
    }
}

/// A dot and each model's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The dot.
    pub dot: Dot,
    /// Each model's result.
    pub values: Vec<u64>,
}

/// The evaluators of several models of one operation.
#[derive(Debug)]
pub struct Panel {
    id: OperationId,
    evaluators: Vec<Evaluator>,
    /// Whether dots count only if every result is finite.
    finite_results: bool,
}

impl Panel {
    /// Prepares the evaluators of models of an operation.
    ///
    /// # Errors
    /// If a model has no such operation.
    pub fn new(models: &[&Model], id: &OperationId) -> Result<Self, Error> {
        let evaluators = models.iter().map(|model| Evaluator::new(model, id)).collect::<Result<_, _>>()?;
        Ok(Self { id: id.clone(), evaluators, finite_results: false })
    }

    /// Restricts the panel to dots for which every result is finite.
    #[must_use]
    pub fn with_finite_results(self) -> Self {
        Self { finite_results: true, ..self }
    }

    /// The score of a dot with these results.
    fn count(&self, wanted: Wanted, values: &[u64]) -> usize {
        let special = |bits: &u64| matches!(self.id.d.decode(*bits), Decoded::Nan { .. } | Decoded::Infinity { .. });
        if self.finite_results && values.iter().any(special) { 0 } else { wanted.count(values) }
    }

    /// Each model's result of a dot.
    ///
    /// # Panics
    /// If the dot is not one of the operation.
    #[must_use]
    pub fn values(&self, dot: &Dot) -> Vec<u64> {
        self.evaluators.iter().map(|evaluator| evaluator.dot(as_input(dot)).expect("a dot of the operation")).collect()
    }

    /// The simplest dot found with the highest score, and how many dots were drawn; `None` if no dot shows anything.
    #[must_use]
    pub fn search(
        &self,
        wanted: Wanted,
        conditions: &Conditions,
        seed: u64,
        (tries, end): (u64, Instant),
    ) -> (Option<Told>, u64) {
        let most = self.evaluators.len().saturating_sub(1);
        let (mut best, mut kept, mut tried) = (0, Vec::<Dot>::new(), 0);
        let mut all_at = None;
        let mut sparse = Sparse::new(&self.id, seed_of(seed, 3));
        for drawn in Draw::new(&self.id, seed) {
            let few = (tried >= FEW_FROM && tried % 2 == 0).then(|| sparse.next()).flatten();
            let dot = conditions.moved(&self.id, few.unwrap_or(drawn));
            let enough = all_at.is_some_and(|at| tried - at >= MORE || kept.len() >= KEPT);
            if tried >= tries || enough || tried % 256 == 255 && Instant::now() >= end {
                break;
            }
            tried += 1;
            if !conditions.hold(&self.id, &dot) {
                continue;
            }
            let count = self.count(wanted, &self.values(&dot));
            if count > best {
                (best, kept) = (count, vec![dot]);
            } else if count == best && best > 0 && kept.len() < KEPT {
                kept.push(dot);
            }
            if best == most && most > 0 {
                all_at = all_at.or(Some(tried));
            }
        }
        let simple =
            kept.iter().map(|dot| self.simplest(dot, wanted, conditions)).min_by_key(|dot| cost(&self.id, dot));
        (simple.map(|dot| Told { values: self.values(&dot), dot }), tried)
    }

    /// The simplest dot near this one with at least the same score.
    #[must_use]
    pub fn simplest(&self, dot: &Dot, wanted: Wanted, conditions: &Conditions) -> Dot {
        let least = self.count(wanted, &self.values(dot));
        let holds = |dots: &[Dot]| -> Result<Vec<bool>, Infallible> {
            let shows = |dot: &Dot| conditions.hold(&self.id, dot) && self.count(wanted, &self.values(dot)) >= least;
            Ok(dots.iter().map(shows).collect())
        };
        let Ok(dot) = dots::simplest(&self.id, dot, holds);
        let first = in_front(&dot);
        if holds(std::slice::from_ref(&first)) == Ok(vec![true]) { first } else { dot }
    }
}

/// The result for a pair of models.
#[derive(Clone, Debug)]
pub enum Pair {
    /// They differ on the dot with this index.
    Differ(usize),
    /// They are proved to be equal.
    Equal(Box<Certificate>),
    /// Each is proved to be equal to the model with this index.
    EqualThrough(usize),
    /// Neither a difference nor a proof is known.
    Undecided(Undecided),
}

/// The result of comparing several models.
#[derive(Clone, Debug)]
pub struct Several {
    /// Dots on which models differ: the first distinguishes the most models.
    pub dots: Vec<(Told, Option<FoundBy>)>,
    /// Each pair of indices, the smaller first.
    pub pairs: Vec<([usize; 2], Pair)>,
    /// The models grouped into classes that are proved to be equal; a model without an equal is a class of its own.
    pub classes: Vec<Vec<usize>>,
    /// The number of dots drawn to find the first one.
    pub drawn: u64,
}

impl Several {
    /// Whether every pair is decided.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.pairs.iter().all(|(_, pair)| !matches!(pair, Pair::Undecided(_)))
    }

    /// Whether the first dot gives models of different classes different results.
    #[must_use]
    pub fn one_dot_tells_all(&self) -> bool {
        self.dots
            .first()
            .is_some_and(|(told, _)| Wanted::DifferentResults.count(&told.values) + 1 == self.classes.len())
    }
}

/// Compares every pair of models of an operation. The remaining time is shared by the remaining pairs.
///
/// # Errors
/// If a model has no such operation.
pub fn compare(models: &[&Model], id: &OperationId, effort: &Effort) -> Result<Several, Error> {
    let numbers: Vec<[usize; 2]> =
        (0..models.len()).flat_map(|one| (one + 1..models.len()).map(move |other| [one, other])).collect();
    decide_pairs(&Panel::new(models, id)?, models, Wanted::DifferentResults, &numbers, effort)
}

/// Decides some pairs of a panel's models. `models` must have the panel's order.
///
/// # Errors
/// If a model has no such operation.
pub fn decide_pairs(
    panel: &Panel,
    models: &[&Model],
    wanted: Wanted,
    numbers: &[[usize; 2]],
    effort: &Effort,
) -> Result<Several, Error> {
    let id = &panel.id;
    let left = effort.end.saturating_duration_since(Instant::now());
    let limit = (TRIES.min(effort.tries), Instant::now() + left / 4);
    let (first, drawn) = panel.search(wanted, &effort.conditions, effort.seed, limit);
    let mut dots: Vec<(Told, Option<FoundBy>)> = first.map(|told| (told, None)).into_iter().collect();
    let mut classes: Vec<usize> = (0..models.len()).collect();
    let mut pairs = Vec::new();
    for (done, [one, other]) in numbers.iter().copied().enumerate() {
        let apart = |(told, _): &(Told, Option<FoundBy>)| told.values[one] != told.values[other];
        if let Some(dot) = dots.iter().position(apart) {
            pairs.push(([one, other], Pair::Differ(dot)));
            continue;
        }
        if classes[one] == classes[other] {
            pairs.push(([one, other], Pair::EqualThrough(classes[one])));
            continue;
        }
        let left = effort.end.saturating_duration_since(Instant::now());
        let waiting = u32::try_from(numbers.len() - done).unwrap_or(u32::MAX);
        let share = Effort { end: Instant::now() + left / waiting, ..*effort };
        let found = match Comparison::new([models[one], models[other]], id)?.decide(&share) {
            Verdict::Differ(witness, found) => {
                let told = Told { values: panel.values(&witness.dot), dot: witness.dot };
                dots.push((told, Some(found)));
                Pair::Differ(dots.len() - 1)
            }
            Verdict::Equal(certificate) => {
                let (from, to) = (classes[one].max(classes[other]), classes[one].min(classes[other]));
                classes.iter_mut().filter(|class| **class == from).for_each(|class| *class = to);
                Pair::Equal(Box::new(certificate))
            }
            Verdict::Undecided(undecided) => Pair::Undecided(undecided),
        };
        pairs.push(([one, other], found));
    }
    let members = |class: usize| (0..models.len()).filter(|model| classes[*model] == class).collect::<Vec<_>>();
    let members = (0..models.len()).map(members).filter(|members| !members.is_empty()).collect();
    Ok(Several { dots, pairs, classes: members, drawn })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::proof::conditions::Exponents;

    fn models(names: &[&str]) -> Vec<Model> {
        names.iter().map(|name| mxprobe_models::load(name).unwrap()).collect()
    }

    fn effort(conditions: Conditions) -> Effort {
        let end = Instant::now() + Duration::from_secs(3600);
        Effort { seed: 1, tries: 100_000, conditions, closed_form: true, end }
    }

    #[test]
    fn one_dot_tells_three_units_apart_and_two_equal_ones_are_one_class() {
        let models = models(&["v100", "a100", "h100", "l40s"]);
        let id = "mma.m16n8k8.f32.f16.f16.f32".parse().unwrap();
        let models: Vec<&Model> = models[1..].iter().collect();
        let found = compare(&models, &id, &effort(Conditions::FINITE)).unwrap();
        assert_eq!(found.classes, [vec![0, 2], vec![1]]);
        assert!(found.is_decided() && found.one_dot_tells_all());
        let (told, _) = &found.dots[0];
        assert_eq!(told.values[0], told.values[2]);
        assert_ne!(told.values[0], told.values[1]);
    }

    #[test]
    fn results_are_counted_as_is_wanted() {
        assert_eq!(Wanted::DifferentResults.count(&[1, 2, 2, 1]), 1);
        assert_eq!(Wanted::DifferentResults.count(&[3, 1, 2]), 2);
        assert_eq!(Wanted::DifferentFromFirst.count(&[1, 2, 2, 1]), 2);
    }

    #[test]
    fn units_that_keep_bits_below_a_range_of_exponents_are_equal_in_it() {
        // Products of at least 2^0 and at most (2 − 2^−10)² without a c: no bit is more than 23 bits below the largest.
        let models = models(&["a100", "h100"]);
        let id: OperationId = "mma.m16n8k8.f32.f16.f16.f32".parse().unwrap();
        let one = Some(Exponents { low: 0, high: 0 });
        let conditions = Conditions { a: one, b: one, c: Some(Exponents { low: 0, high: 0 }), finite: true };
        let narrow = compare(&models.iter().collect::<Vec<_>>(), &id, &effort(conditions)).unwrap();
        assert_eq!(narrow.classes, [vec![0, 1]], "{:?}", narrow.pairs);
        let wide = Conditions {
            a: Some(Exponents { low: -8, high: 0 }),
            b: Some(Exponents { low: -8, high: 0 }),
            ..conditions
        };
        let wide = compare(&models.iter().collect::<Vec<_>>(), &id, &effort(wide)).unwrap();
        assert_eq!(wide.classes.len(), 2);
        let (told, _) = &wide.dots[0];
        assert!(
            conditions.c.is_some()
                && told.dot.a.iter().all(|bits| *bits & 0x7fff == 0 || (7..=15).contains(&(bits >> 10 & 31)))
        );
    }
}
