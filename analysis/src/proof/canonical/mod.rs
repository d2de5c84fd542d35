//! Canonical forms: equivalent arithmetic rewritten into one form.
//!
//! A model file can express the same arithmetic in many ways: additions in another order, exact sums within exact sums,
//! additions that change nothing, parameters that no dot can show. Each rewriting here replaces one of these ways by
//! another that gives the same bits for **every** dot, NaN, infinities and zeros of both signs included; a comment at
//! each states the reason. All are applied until none applies, so that two models then differ only in what really
//! differs. A form is again a list of adders and a plan: the exact evaluator runs it, and the tests compare it with its
//! original model.

mod adders;
mod facts;
mod form;
mod observed;
mod order;
mod ranges;
mod trees;

pub use form::{Bounds, Canonical};

use std::collections::{BTreeMap, BTreeSet};

use mxprobe_api::OperationId;
use mxprobe_models::{Adder, Basis, Origin, Output, Plan, PlanNode, Provenance, Unit};

use facts::Facts;
use form::{Form, Node};

/// A limit on the rounds of rewriting. Every rewriting makes a form smaller; after this many rounds a form stays as it
/// is.
const ROUNDS: usize = 10_000;

/// The canonical form of a model's arithmetic for an operation.
#[must_use]
pub fn canonical(adders: &[Adder], unit: &Unit, plan: &Plan, id: &OperationId) -> Canonical {
    let nodes = plan.nodes.iter().map(|node| Node { adder: bare(&adders[node.adder]), terms: node.terms.clone() });
    let mut form = Form { id, unit: unit.clone(), nodes: nodes.collect(), steps: BTreeSet::new() };
    for _ in 0..ROUNDS {
        form.prune();
        let changed = form.simplify_adders() || form.rewrite_tree();
        if !changed {
            break;
        }
    }
    form.sort();
    form.finish()
}

/// An adder without its name and its sources.
fn bare(adder: &Adder) -> Adder {
    let origin = Origin { basis: Basis::Assumed, source: String::new() };
    let provenance = Provenance { origin, exceptions: BTreeMap::new() };
    Adder { name: String::new(), provenance, ..adder.clone() }
}

impl Form<'_> {
    /// The known bounds of each addition's result; `None` for unrounded sums and integers.
    fn bounds(&self) -> Vec<Option<Bounds>> {
        let known = |(node, facts): (&Node, Facts)| match node.adder.output {
            Output::Float { .. } => Some(Bounds {
                low: facts.low,
                top: facts.top,
                negative_zero: facts.negative_zero,
                infinite: facts.infinite,
                nan: facts.nan.any(),
            }),
            Output::Wide | Output::Integer { .. } => None,
        };
        self.nodes.iter().zip(self.facts()).map(known).collect()
    }

    fn finish(self) -> Canonical {
        let bounds = self.bounds();
        let mut adders: Vec<Adder> = Vec::new();
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for Node { adder, terms } in self.nodes {
            let number = adders.iter().position(|known| *known == adder).unwrap_or(adders.len());
            if number == adders.len() {
                adders.push(adder);
            }
            nodes.push(PlanNode { adder: number, terms });
        }
        Canonical { adders, unit: self.unit, plan: Plan { nodes }, bounds, steps: self.steps }
    }
}
