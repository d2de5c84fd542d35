//! Decides whether two models differ: a search, then a proof.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use mxprobe_api::{Error, OperationId};
use mxprobe_models::{Adder, Model, Plan, Unit};

use super::{
    adder::NotCovered,
    canonical::{Canonical, canonical},
    carry::sufficient_carry_bits,
    circuit::Signal,
    cnf::{Cnf, Encoded},
    conditions::Conditions,
    dot::Arithmetic,
    lift::lifted,
    parts::{Cut, Part, Query},
    rup::Proof,
    search::{Rivals, Witness},
    solver::{Answer, Refutation, solve},
};
use crate::dots::Dot;

/// The limits and conditions of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The seed of the search.
    pub seed: u64,
    /// The most dots that the search tries.
    pub tries: u64,
    /// The inputs to compare the models on.
    pub conditions: Conditions,
    /// Whether, before anything is solved, carry bits that the closed form finds sufficient count as unlimited, and
    /// both models are brought into canonical form.
    pub closed_form: bool,
    /// The time after which no further step is started.
    pub end: Instant,
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// They differ on this dot.
    Differ(Witness, FoundBy),
    /// They are equal on every input.
    Equal(Certificate),
    /// Neither a witness nor a proof was found.
    Undecided(Undecided),
}

/// How a witness was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// By drawing dots.
    Search {
        /// The number of dots that were tried.
        tried: u64,
        /// The time of the search, in nanoseconds.
        time_ns: u128,
    },
    /// By the solver.
    Solver {
        /// The number of dots that were tried before.
        tried: u64,
        /// The time of the solver.
        time: Duration,
    },
}

/// The proof that two models are equal.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The parts that were compared.
    pub parts: Vec<Part>,
    /// Whether the whole dot was compared as one part.
    pub whole: bool,
    /// The carry bits that were treated as unlimited.
    pub carry: Vec<SufficientCarry>,
    /// The rewrites that were applied to either model before they were compared, in words.
    pub rewritten: Vec<&'static str>,
    /// The refuted formula; `None` if the two formulas were identical to begin with.
    pub refuted: Option<Refuted>,
    /// The number of dots that were tried before.
    pub tried: u64,
}

/// Carry bits that suffice according to the closed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SufficientCarry {
    /// The index of the model: 0 or 1.
    pub model: usize,
    /// The adder's name.
    pub adder: String,
    /// The number of carry bits that it has.
    pub bits: u32,
    /// The number of carry bits that suffice.
    pub sufficient: u32,
}

impl Certificate {
    fn of(query: &Query, taken: &Taken, refuted: Option<Refuted>, tried: u64) -> Self {
        Self {
            parts: query.parts.clone(),
            whole: query.whole,
            carry: taken.carry.clone(),
            rewritten: taken.rewritten.iter().copied().collect(),
            refuted,
            tried,
        }
    }
}

/// A formula that the solver refuted, with its proof.
#[derive(Clone, Debug)]
pub struct Refuted {
    /// The number of variables.
    pub variables: i32,
    /// The number of clauses.
    pub clauses: usize,
    /// The number of conflicts that the solver met.
    pub conflicts: u64,
    /// The time of the solver.
    pub time: Duration,
    /// The formula.
    pub formula: Cnf,
    /// The proof of its refutation.
    pub proof: Proof,
}

/// The state of a comparison that was not decided.
#[derive(Clone, Debug)]
pub struct Undecided {
    /// The number of dots on which the models agreed.
    pub tried: u64,
    /// The reason why the question was not decided.
    pub why: String,
}

/// The simplifications made before anything is solved.
#[derive(Clone, Debug, Default)]
struct Taken {
    carry: Vec<SufficientCarry>,
    rewritten: BTreeSet<&'static str>,
    /// Whether products are first allowed to have any value: the refuted formula may then differ from the query's own.
    any_products: bool,
}

/// Two models of one operation.
pub struct Comparison<'a> {
    models: [&'a Model; 2],
    id: &'a OperationId,
    units: [(&'a Unit, Plan); 2],
    rivals: Rivals,
}

/// Extra bits of sums beyond the widest that can occur, if a sum may wrap.
const SPARE_BITS: usize = 3;

/// Dots that the search tries before the solver is called.
const TRIES_AT_FIRST: u64 = 50_000;

/// Conflicts after which the solver pauses for a longer search.
const CONFLICTS_AT_FIRST: u64 = 4_000;

/// The most products of the small questions that the solver is asked first, and the divisor of the remaining time that
/// each may take.
const FEW: usize = 3;
const SHARE: u32 = 10;

/// The most gates of a whole dot that are passed to the solver.
const GATES: usize = 1_500_000;

impl<'a> Comparison<'a> {
    /// Prepares the comparison of two models of an operation.
    ///
    /// # Errors
    /// If a model has no such operation.
    pub fn new(models: [&'a Model; 2], id: &'a OperationId) -> Result<Self, Error> {
        let rivals = Rivals::new(models, id)?;
        let missing = |model: &Model| Error::invalid(format!("the model {} has no operation {id}", model.name));
        let [one, other] = models;
        let units = [one.plan(id).ok_or_else(|| missing(one))?, other.plan(id).ok_or_else(|| missing(other))?];
        Ok(Self { models, id, units, rivals })
    }

    /// The evaluators of both models.
    #[must_use]
    pub fn rivals(&self) -> &Rivals {
        &self.rivals
    }

    /// The question of whether they differ, as a formula.
    ///
    /// # Errors
    /// The part of the models that is not covered, in words.
    pub fn query(&self, conditions: Conditions) -> Result<Query, NotCovered> {
        let (forms, _) = self.forms(true);
        Query::new(self.arithmetic(&forms), conditions)
    }

    /// The arithmetic of both models, unchanged or in canonical form with sufficient carry bits counted as unlimited,
    /// and those carry bits.
    fn forms(&self, as_it_stands: bool) -> ([Canonical; 2], Vec<SufficientCarry>) {
        let mut carry = Vec::new();
        let forms = std::array::from_fn(|which| {
            let (unit, plan) = &self.units[which];
            let adders = self.models[which].adders.clone();
            if as_it_stands {
                return Canonical::as_it_stands(adders, unit, plan.clone());
            }
            let (adders, plan) = self.with_closed_form(which, adders, &mut carry);
            canonical(&adders, unit, &plan, self.id)
        });
        (forms, carry)
    }

    fn arithmetic<'b>(&'b self, forms: &'b [Canonical; 2]) -> [Arithmetic<'b>; 2] {
        let wraps = forms.iter().flat_map(|form| &form.adders).any(|adder| adder.carry_bits.is_some());
        forms.each_ref().map(|form| Arithmetic {
            adders: &form.adders,
            unit: &form.unit,
            plan: &form.plan,
            id: self.id,
            bounds: &form.bounds,
            spare_bits: if wraps { SPARE_BITS } else { 0 },
        })
    }

    /// Searches, then proves: a short search, then a check whether both are the same circuit, then a long search, then
    /// the solver.
    #[must_use]
    pub fn decide(&self, effort: &Effort) -> Verdict {
        let mut tried = 0;
        match self.search(effort.seed, effort.tries.min(TRIES_AT_FIRST), effort, &mut tried) {
            Some(verdict) => verdict,
            None => self
                .prove_or_search(effort, &mut tried)
                .unwrap_or_else(|why| Verdict::Undecided(Undecided { tried, why })),
        }
    }

    fn search(&self, seed: u64, tries: u64, effort: &Effort, tried: &mut u64) -> Option<Verdict> {
        let searched = self.rivals.search(seed, tries, &effort.conditions, effort.end);
        *tried += searched.tried;
        let witness = searched.witness?;
        Some(Verdict::Differ(witness, FoundBy::Search { tried: *tried, time_ns: searched.search_ns }))
    }

    /// Runs the steps after the short search; the error is the reason why nothing was decided.
    fn prove_or_search(&self, effort: &Effort, tried: &mut u64) -> Result<Verdict, String> {
        let (forms, carry) = self.forms(!effort.closed_form);
        let rewritten = forms.iter().flat_map(|form| form.steps.iter().copied()).collect();
        let taken = Taken { carry, rewritten, any_products: effort.closed_form };
        let arithmetic = self.arithmetic(&forms);
        let query = Query::new(arithmetic, effort.conditions);
        if let Ok(query) = &query
            && query.differs == Signal::FALSE
        {
            return Ok(Verdict::Equal(Certificate::of(query, &taken, None, *tried)));
        }
        // Most equal models are refuted quickly, and a difference that was not found so far is seldom found by chance.
        if let Ok(query) = &query
            && query.circuit.gates().len() < GATES
            && let Ok(verdict) = self.ask(query, arithmetic, effort, *tried, &taken, CONFLICTS_AT_FIRST)
        {
            return Ok(verdict);
        }
        let left = effort.tries.saturating_sub(*tried);
        if let Some(verdict) = self.search(effort.seed.wrapping_add(1), left, effort, tried) {
            return Ok(verdict);
        }
        let query = query.map_err(|why| format!("proofs do not cover {why}"))?;
        if let Some(verdict) = self.differ_in_few(arithmetic, effort, *tried) {
            return Ok(verdict);
        }
        self.ask(&query, arithmetic, effort, *tried, &taken, u64::MAX)
    }

    /// Asks the solver about the parts. If a part differs on a result that may never reach it, asks about the parts
    /// with results restricted to the values they are known to have, then also with the products that are rounded on
    /// their way into the parts, then about the whole dot. Each question may take `conflicts` conflicts.
    fn ask(
        &self,
        query: &Query,
        arithmetic: [Arithmetic<'_>; 2],
        effort: &Effort,
        tried: u64,
        taken: &Taken,
        conflicts: u64,
    ) -> Result<Verdict, String> {
        let too_late = "time was up before the solver came to an end";
        let plan = arithmetic[0].plan;
        match self.prove(query, plan, effort, tried, taken, conflicts) {
            Attempt::Decided(verdict) => return Ok(*verdict),
            Attempt::OutOfTime => return Err(too_late.into()),
            Attempt::PartsAlone if query.whole => {
                return Err("what the solver found does not hold of whole dots".into());
            }
            Attempt::PartsAlone => {}
        }
        let parts = "a part of the dot differs, on a result that may never reach it";
        for with_products in [false, true] {
            let cut = Cut { conditions: effort.conditions, bounded: true, with_products };
            let Some(query) = Query::cut(arithmetic, cut) else { break };
            match self.prove(&query?, plan, effort, tried, taken, conflicts) {
                Attempt::Decided(verdict) => return Ok(*verdict),
                Attempt::OutOfTime => return Err(format!("{parts}, and {too_late}")),
                Attempt::PartsAlone => {}
            }
        }
        let query = Query::whole(arithmetic, effort.conditions)?;
        if query.circuit.gates().len() > GATES {
            return Err(format!("{parts}; of the whole dot, the formula is too large"));
        }
        match self.prove(&query, plan, effort, tried, taken, conflicts) {
            Attempt::Decided(verdict) => Ok(*verdict),
            Attempt::OutOfTime | Attempt::PartsAlone => Err(format!("{parts}; of the whole dot, {too_late}")),
        }
    }

    /// Asks the solver about dots of few products, a small question. No answer proves equality.
    fn differ_in_few(&self, arithmetic: [Arithmetic<'_>; 2], effort: &Effort, tried: u64) -> Option<Verdict> {
        for products in 1..=FEW {
            let left = effort.end.saturating_duration_since(Instant::now());
            let effort = Effort { end: Instant::now() + left / SHARE, ..*effort };
            let query = Query::of_few(arithmetic, effort.conditions, products).ok()?;
            if let Attempt::Decided(verdict) =
                self.prove(&query, arithmetic[0].plan, &effort, tried, &Taken::default(), u64::MAX)
                && matches!(*verdict, Verdict::Differ(..))
            {
                return Some(*verdict);
            }
        }
        None
    }

    /// The adders and the plan of a model, in which additions with sufficient carry bits use an adder with unlimited
    /// ones.
    fn with_closed_form(
        &self,
        which: usize,
        mut adders: Vec<Adder>,
        taken: &mut Vec<SufficientCarry>,
    ) -> (Vec<Adder>, Plan) {
        let plan = &self.units[which].1;
        let mut freed = plan.clone();
        for number in 0..adders.len() {
            let Some(bits) = adders[number].carry_bits else { continue };
            let mut most = None;
            for (node, new) in plan.nodes.iter().zip(&mut freed.nodes).filter(|(node, _)| node.adder == number) {
                let needed = sufficient_carry_bits(&adders[number], node, self.id, &adders, &plan.nodes);
                if let Some(needed) = needed.filter(|needed| *needed <= bits) {
                    most = most.max(Some(needed));
                    new.adder = adders.len();
                }
            }
            if let Some(sufficient) = most {
                let adder = adders[number].clone();
                taken.push(SufficientCarry { model: which, adder: adder.name.clone(), bits, sufficient });
                adders.push(Adder { carry_bits: None, ..adder });
            }
        }
        (adders, freed)
    }

    fn prove(&self, query: &Query, plan: &Plan, effort: &Effort, tried: u64, taken: &Taken, conflicts: u64) -> Attempt {
        let certificate = |refuted: Option<Refuted>| {
            Attempt::Decided(Box::new(Verdict::Equal(Certificate::of(query, taken, refuted, tried))))
        };
        if query.differs == Signal::FALSE {
            return certificate(None);
        }
        let start = Instant::now();
        let refuted = |formula: Cnf, refutation: Refutation| {
            certificate(Some(Refuted {
                variables: formula.variables,
                clauses: formula.len(),
                conflicts: refutation.conflicts,
                time: start.elapsed(),
                proof: refutation.proof,
                formula,
            }))
        };
        // A formula in which products may have any value is far smaller. If it is refuted, the models are equal for
        // real products too.
        if let Some(Encoded { cnf, .. }) =
            Encoded::with_any_products(&query.circuit, query.differs).filter(|_| taken.any_products)
        {
            let left = effort.end.saturating_duration_since(start);
            if let Answer::Refuted(refutation) = solve(&cnf, start + left / 3, conflicts) {
                return refuted(cnf, refutation);
            }
        }
        let encoded = Encoded::of(&query.circuit, query.differs);
        match solve(&encoded.cnf, effort.end, conflicts) {
            Answer::Unknown => Attempt::OutOfTime,
            Answer::Refuted(refutation) => refuted(encoded.cnf, refutation),
            Answer::Satisfied(values) => {
                let time = start.elapsed();
                for part in 0..query.parts.len() {
                    let dots = lifted(query, &encoded, &values, part, plan);
                    let shows = |dot: &Dot| self.rivals.differ(dot) && effort.conditions.hold(self.id, dot);
                    if let Some(dot) = dots.into_iter().find(shows) {
                        let dot = self.rivals.simplest(&dot, &effort.conditions);
                        let witness = Witness { values: self.rivals.values(&dot), dot };
                        return Attempt::Decided(Box::new(Verdict::Differ(witness, FoundBy::Solver { tried, time })));
                    }
                }
                Attempt::PartsAlone
            }
        }
    }
}

enum Attempt {
    Decided(Box<Verdict>),
    /// A part differs, but no dot is known that shows it.
    PartsAlone,
    OutOfTime,
}
