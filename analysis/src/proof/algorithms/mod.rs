//! Compares algorithms on a unit: finds a dot on which they differ, or on which one is worse, or a proof that there is
//! none.

mod compute;
mod formula;
mod program;

use std::{convert::Infallible, time::Instant};

use dashu_int::UBig;
use mxprobe_api::{Error, Format, OperationId};
use mxprobe_models::Model;

pub use compute::{ERROR_LSB, Machine, Outcome};
pub use formula::{Asked, query, question_id};
pub use program::{Algorithm, Scalar, Vector};

use super::{
    cnf::Encoded,
    conditions::Conditions,
    decide::{Effort, FoundBy, Undecided},
    parts::Place,
    rup,
    solver::{Answer, solve},
};
use crate::dots::{self, Dot, Draw, Random, Sparse, cost, seed_of};

/// Dots that are tried before the solver is called.
const TRIES_AT_FIRST: u64 = 20_000;

/// The most gates of a formula that is passed to the solver.
const GATES: usize = 3_000_000;

/// Differing dots that are simplified; the simplest is kept.
const KEPT: usize = 4;

/// Dots that are drawn after the first, for a choice.
const MORE: u64 = 1_000;

/// Two algorithms over one unit, and the question about them.
#[derive(Debug)]
pub struct Question<'a> {
    model: &'a Model,
    /// The operation that the inputs are a dot of.
    pub of_dots: OperationId,
    machine: Machine,
    /// The algorithms as programs.
    pub programs: [Scalar; 2],
    /// The question.
    pub asked: Asked,
    inputs: (Format, usize),
}

/// A dot and the results of both algorithms.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The dot.
    pub dot: Dot,
    /// Each algorithm's result and error.
    pub outcomes: [Outcome; 2],
}

/// The answer to a question.
#[derive(Clone, Debug)]
pub enum Found {
    /// A dot that has the property.
    Dot(Shown, FoundBy),
    /// A proof that no such dot exists, checked independently of the solver.
    None(Refusal),
    /// Neither was found.
    Undecided(Undecided),
}

/// The size of the proof that no such dot exists.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The number of gates of the circuit.
    pub gates: usize,
    /// Variables, clauses and conflicts of the formula, and steps of its proof; `None` if the circuit is constant.
    pub refuted: Option<[u64; 4]>,
}

impl<'a> Question<'a> {
    /// The question about two algorithms over a model's operation, for a number of products of a format, and blocks of
    /// `block` products.
    ///
    /// # Errors
    /// If the model has no such operation, or algorithms cannot call it, or f32 does not hold the inputs.
    pub fn new(
        (model, id): (&'a Model, &OperationId),
        algorithms: [Algorithm; 2],
        inputs: (Format, usize),
        block: usize,
        asked: Asked,
    ) -> Result<Self, Error> {
        let (format, terms) = inputs;
        let machine = Machine::new(model, id, format)?;
        let programs = algorithms.map(|algorithm| algorithm.program(terms, block));
        Ok(Self { model, of_dots: question_id(format, terms)?, machine, programs, asked, inputs })
    }

    /// The results of both algorithms for a dot; `None` if a result or an input is not finite.
    #[must_use]
    pub fn shown(&self, dot: &Dot) -> Option<Shown> {
        let [one, other] = &self.programs;
        let outcomes = [self.machine.outcome(one, dot)?, self.machine.outcome(other, dot)?];
        Some(Shown { dot: dot.clone(), outcomes })
    }

    /// The exact result of a dot in units of 2^[`ERROR_LSB`], if its inputs are finite.
    #[must_use]
    pub fn exact(&self, dot: &Dot) -> Option<dashu_int::IBig> {
        self.machine.exact(dot)
    }

    /// Whether a dot has the property.
    #[must_use]
    pub fn holds(&self, dot: &Dot) -> bool {
        self.shown(dot).is_some_and(|shown| {
            let [one, other] = &shown.outcomes;
            match self.asked {
                Asked::Different => one.bits != other.bits,
                Asked::Worse(0) => one.error > other.error,
                Asked::Worse(_) => other.error > one.error,
            }
        })
    }

    /// The question as a circuit.
    ///
    /// # Errors
    /// The part of the model that is not covered, in words.
    pub fn query(&self, conditions: &Conditions) -> Result<super::parts::Query, String> {
        query((self.model, &self.machine.id), &self.programs, self.inputs, self.asked, conditions)
    }

    /// Searches for a short time, runs the solver for half of the remaining time, and searches again.
    #[must_use]
    pub fn decide(&self, effort: &Effort) -> Found {
        let conditions = Conditions { finite: true, ..effort.conditions };
        let first = Effort { tries: effort.tries.min(TRIES_AT_FIRST), ..*effort };
        let (shown, tried, time_ns) = self.search(&first, &conditions);
        if let Some(shown) = shown {
            return Found::Dot(shown, FoundBy::Search { tried, time_ns });
        }
        let left = effort.end.saturating_duration_since(Instant::now());
        let asked = self.ask(&Effort { end: Instant::now() + left / 2, ..*effort }, &conditions, tried);
        let Found::Undecided(undecided) = asked else { return asked };
        let seed = effort.seed.wrapping_add(1);
        let more = Effort { seed, tries: effort.tries.saturating_sub(tried), ..*effort };
        let (shown, more, time_ns) = self.search(&more, &conditions);
        let tried = tried + more;
        match shown {
            Some(shown) => Found::Dot(shown, FoundBy::Search { tried, time_ns }),
            None => Found::Undecided(Undecided { tried, ..undecided }),
        }
    }

    /// Runs the solver.
    fn ask(&self, effort: &Effort, conditions: &Conditions, tried: u64) -> Found {
        let undecided = |why: String| Found::Undecided(Undecided { tried, why });
        let query = match self.query(conditions) {
            Ok(query) => query,
            Err(why) => return undecided(format!("proofs do not cover {why}")),
        };
        let gates = query.circuit.gates().len();
        if query.differs == super::circuit::Signal::FALSE {
            return Found::None(Refusal { gates, refuted: None });
        }
        if gates > GATES {
            return undecided(format!(
                "the formula has {gates} gates, more than the {GATES} that are handed to the solver"
            ));
        }
        let start = Instant::now();
        let encoded = Encoded::of(&query.circuit, query.differs);
        match solve(&encoded.cnf, effort.end, u64::MAX) {
            Answer::Unknown => {
                undecided(format!("time was up before the solver came to an end with a formula of {gates} gates"))
            }
            Answer::Refuted(refutation) => {
                if let Err(error) = rup::check(&encoded.cnf, &refutation.proof) {
                    return undecided(format!("the solver's proof is refused: {error}"));
                }
                let variables = u64::from(encoded.cnf.variables.unsigned_abs());
                let steps = refutation.proof.len() as u64;
                let refuted = [variables, encoded.cnf.len() as u64, refutation.conflicts, steps];
                Found::None(Refusal { gates, refuted: Some(refuted) })
            }
            Answer::Satisfied(values) => {
                let mut dot = Dot::zeros(&self.of_dots);
                for variable in &query.variables {
                    let bit = |signal: &super::circuit::Signal| {
                        let literal = encoded.literal(*signal);
                        literal != 0 && values[literal.unsigned_abs() as usize - 1] == (literal > 0)
                    };
                    let bits = variable.bits.iter().enumerate().map(|(place, signal)| u64::from(bit(signal)) << place);
                    match variable.place {
                        Place::A(k) => dot.a[k] = bits.sum(),
                        Place::B(k) => dot.b[k] = bits.sum(),
                        _ => dot.c = bits.sum(),
                    }
                }
                let time = start.elapsed();
                let dot = if self.meets(&dot, conditions) { self.simplest(&dot, conditions) } else { dot };
                match self.shown(&dot).filter(|_| self.meets(&dot, conditions)) {
                    Some(shown) => Found::Dot(shown, FoundBy::Solver { tried, time }),
                    None => undecided("what the solver found does not hold when it is computed".into()),
                }
            }
        }
    }

    fn meets(&self, dot: &Dot, conditions: &Conditions) -> bool {
        conditions.hold(&self.of_dots, dot) && self.holds(dot)
    }

    /// The simplest dot near this one that still has the property.
    #[must_use]
    pub fn simplest(&self, dot: &Dot, conditions: &Conditions) -> Dot {
        let holds = |dots: &[Dot]| -> Result<Vec<bool>, Infallible> {
            Ok(dots.iter().map(|dot| self.meets(dot, conditions)).collect())
        };
        let Ok(dot) = dots::simplest(&self.of_dots, dot, holds);
        dot
    }

    /// The simplest dot found that has the property, how many dots were tried until the first, and the nanoseconds
    /// until then.
    fn search(&self, effort: &Effort, conditions: &Conditions) -> (Option<Shown>, u64, u128) {
        let start = Instant::now();
        let id = &self.of_dots;
        let mut sparse = Sparse::new(id, seed_of(effort.seed, 3));
        let mut random = Random(seed_of(effort.seed, 4));
        let mut drawn = Draw::new(id, effort.seed);
        let (mut kept, mut tried, mut first) = (Vec::new(), 0, None);
        while tried < effort.tries && kept.len() < KEPT && first.is_none_or(|(at, _)| tried - at < MORE) {
            if tried % 256 == 255 && Instant::now() >= effort.end {
                break;
            }
            let dot = match tried % 4 {
                0 => drawn.next(),
                1 => sparse.next(),
                _ => Some(self.near_one(&mut random)),
            };
            let Some(dot) = dot else { break };
            tried += 1;
            let dot = conditions.moved(id, dot);
            if self.meets(&dot, conditions) {
                first = first.or_else(|| Some((tried, start.elapsed().as_nanos())));
                kept.push(dot);
            }
        }
        let (until, time_ns) = first.unwrap_or_else(|| (tried, start.elapsed().as_nanos()));
        let simple = kept.iter().map(|dot| self.simplest(dot, conditions)).min_by_key(|dot| cost(id, dot));
        (simple.and_then(|dot| self.shown(&dot)), until, time_ns)
    }

    /// Draws a first product near 1 and the others of its size, of the size of its last bits, or absent; and c of the
    /// size of 1 or of its last bits.
    fn near_one(&self, random: &mut Random) -> Dot {
        let (format, terms) = self.inputs;
        let number = |random: &mut Random, format: Format, low: i32, high: i32| {
            let kept = random.below(format.fraction_bits() as usize + 1);
            let significand = 1 << kept | random.bits() & ((1 << kept) - 1);
            let lsb = random.between(low, high) - i32::try_from(kept).unwrap_or(0);
            let negative = random.flip();
            format.truncated(negative, significand, lsb)
        };
        let mut dot = Dot::zeros(&self.of_dots);
        for at in 0..terms {
            let [low, high] = match random.below(3) {
                _ if at == 0 => [-1, 0],
                0 => continue,
                1 => [-13, -11],
                _ => [-1, 1],
            };
            dot.a[at] = number(random, format, low, high);
            dot.b[at] = number(random, format, low, high);
        }
        let [low, high] = if random.flip() { [-26, -22] } else { [-2, 2] };
        dot.c = number(random, Format::F32, low, high);
        dot
    }
}

/// An error as a number for people to read.
#[must_use]
pub fn error_words(error: &UBig) -> String {
    let Some(zeros) = error.trailing_zeros() else { return "0".to_owned() };
    let magnitude = error >> zeros;
    let lsb = ERROR_LSB + i32::try_from(zeros).unwrap_or(i32::MAX);
    format!("{magnitude}·2^{lsb}")
}

#[cfg(test)]
mod tests;
