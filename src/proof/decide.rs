//! Deciding whether two models differ: a search, then a proof.

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

/// How two models are compared.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// What the search draws from.
    pub seed: u64,
    /// Dots that the search tries at the most.
    pub tries: u64,
    /// The inputs over which they are compared.
    pub conditions: Conditions,
    /// Carry bits that the closed form finds sufficient count as unlimited, and both models are brought into canonical
    /// form, before anything is solved.
    pub closed_form: bool,
    /// When nothing more is begun.
    pub end: Instant,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// They differ on this dot.
    Differ(Witness, FoundBy),
    /// They are equal on every input.
    Equal(Certificate),
    /// Neither was found.
    Undecided(Undecided),
}

/// How a witness was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// By drawing dots.
    Search {
        /// How many were tried.
        tried: u64,
        /// Nanoseconds it took.
        time_ns: u128,
    },
    /// By the solver.
    Solver {
        /// How many dots were tried before.
        tried: u64,
        /// Time it took.
        time: Duration,
    },
}

/// Why two models are equal.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The parts that were compared.
    pub parts: Vec<Part>,
    /// The whole dot was compared at once.
    pub whole: bool,
    /// Carry bits that were taken as unlimited.
    pub carry: Vec<SufficientCarry>,
    /// What was rewritten in either model, in words, before they were compared.
    pub rewritten: Vec<&'static str>,
    /// The formula that was refuted, if the two formulas were not the same to begin with.
    pub refuted: Option<Refuted>,
    /// Dots that were tried before.
    pub tried: u64,
}

/// Carry bits of which the closed form says that they suffice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SufficientCarry {
    /// Of the first model (0) or the second (1).
    pub model: usize,
    /// The adder's name.
    pub adder: String,
    /// How many it has.
    pub bits: u32,
    /// How many suffice.
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

/// A refuted formula.
#[derive(Clone, Debug)]
pub struct Refuted {
    /// Its variables.
    pub variables: i32,
    /// Its clauses.
    pub clauses: usize,
    /// Conflicts on the way.
    pub conflicts: u64,
    /// Time it took.
    pub time: Duration,
    /// The formula.
    pub formula: Cnf,
    /// Why.
    pub proof: Proof,
}

/// What is known where nothing was decided.
#[derive(Clone, Debug)]
pub struct Undecided {
    /// Dots on which the models agreed.
    pub tried: u64,
    /// Why there is no proof.
    pub why: String,
}

/// What was taken as equal before anything was solved.
#[derive(Clone, Debug, Default)]
struct Taken {
    carry: Vec<SufficientCarry>,
    rewritten: BTreeSet<&'static str>,
    /// Products may be anything at first: what is refuted need not be the formula that is written.
    any_products: bool,
}

/// Two models of one operation.
pub struct Comparison<'a> {
    models: [&'a Model; 2],
    id: &'a OperationId,
    units: [(&'a Unit, Plan); 2],
    rivals: Rivals,
}

/// Bits by which sums are wider than any can get, where a sum may wrap.
const SPARE_BITS: usize = 3;

/// Dots that the search tries before the solver is asked.
const TRIES_AT_FIRST: u64 = 50_000;

/// Conflicts after which the solver waits for a longer search.
const CONFLICTS_AT_FIRST: u64 = 4_000;

/// Products of the small questions that the solver is asked first, and which part of the time left each may take.
const FEW: usize = 3;
const SHARE: u32 = 10;

/// More gates than this are not handed to the solver for a whole dot.
const GATES: usize = 1_500_000;

impl<'a> Comparison<'a> {
    /// Two models of an operation.
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

    /// Both models' evaluators.
    #[must_use]
    pub fn rivals(&self) -> &Rivals {
        &self.rivals
    }

    /// The question whether they differ, as a formula.
    ///
    /// # Errors
    /// What is not covered, in words.
    pub fn query(&self, conditions: Conditions) -> Result<Query, NotCovered> {
        let (forms, _) = self.forms(true);
        Query::new(self.arithmetic(&forms), conditions)
    }

    /// Both models' arithmetic as it stands, or in canonical form with carry bits that suffice taken as unlimited, and those.
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

    /// Searches, then proves: a short search, then whether both are the same circuit, then a long search, then the
    /// solver.
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

    /// What comes after the short search; or why nothing is decided.
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
        // Most of what is equal is refuted soon, and what differs and was not found so far is seldom found by chance.
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

    /// Asks the solver about the parts, and if a part differs on a result that perhaps never reaches it, about the parts
    /// where results are as far as they are known, then with the products that are rounded on their way into them, then
    /// about the whole dot. Each question may take so many conflicts.
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

    /// Asks the solver about dots of few products, a small question; none of their answers is a proof of equality.
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

    /// The adders and the plan of a model, where additions whose carry bits suffice have an adder of unlimited ones.
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
        // Products that may be anything are a far smaller question. Equality then holds of products too.
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
    /// A part differs, and no dot is known on which that shows.
    PartsAlone,
    OutOfTime,
}
