//! Canonical forms: the same arithmetic written in one way.
//!
//! A model file says most arithmetic in many ways: additions in another order, exact sums within exact sums, additions that
//! change nothing, parameters that no dot can show. Each rewriting here replaces one way by another that gives the same bits
//! for **every** dot, NaN, infinities and zeros of both signs included; the reason stands at each. All are applied until none
//! applies, so that two models are left to differ in what is really different. A form is again a list of adders and a plan:
//! the exact evaluator runs it, and the tests hold it against the model it came from.

mod adders;
mod observed;
mod order;
mod ranges;
mod trees;

pub use ranges::Bounds;

use std::collections::{BTreeMap, BTreeSet};

use mxprobe_api::OperationId;
use mxprobe_models::{Adder, Basis, Origin, Plan, PlanNode, Provenance, Term, Unit};

/// A model's arithmetic of one operation, in canonical form.
#[derive(Clone, Debug)]
pub struct Canonical {
    /// The adders that the plan names.
    pub adders: Vec<Adder>,
    /// The unit, with the operands' subnormals that are flushed.
    pub unit: Unit,
    /// The additions.
    pub plan: Plan,
    /// What is known of the result of each addition, where something is.
    pub bounds: Vec<Option<Bounds>>,
    /// What was rewritten, in words, each kind once.
    pub steps: BTreeSet<&'static str>,
}

impl Canonical {
    /// A model's arithmetic as it stands.
    #[must_use]
    pub fn as_it_stands(adders: Vec<Adder>, unit: &Unit, plan: Plan) -> Self {
        let bounds = vec![None; plan.nodes.len()];
        Self { adders, unit: unit.clone(), plan, bounds, steps: BTreeSet::new() }
    }
}

/// Additions while they are rewritten; each has an adder of its own, and the last one gives d.
#[derive(Clone, Debug)]
struct Form<'a> {
    id: &'a OperationId,
    unit: Unit,
    nodes: Vec<Node>,
    steps: BTreeSet<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    adder: Adder,
    terms: Vec<Term>,
}

/// Every rewriting makes a form smaller; one that did not come to its end after so many rounds stays as it is.
const ROUNDS: usize = 10_000;

/// The canonical form of a model's arithmetic of an operation.
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
    /// Leaves out additions that nothing reads.
    fn prune(&mut self) {
        let mut read = vec![false; self.nodes.len()];
        if let Some(last) = read.last_mut() {
            *last = true;
        }
        for node in (0..self.nodes.len()).rev() {
            if read[node] {
                for term in &self.nodes[node].terms {
                    if let Term::Node(below) = term {
                        read[*below] = true;
                    }
                }
            }
        }
        if read.iter().all(|read| *read) {
            return;
        }
        let kept: Vec<usize> = (0..self.nodes.len()).filter(|node| read[*node]).collect();
        self.keep(&kept);
    }

    /// Keeps these nodes, in this order.
    fn keep(&mut self, kept: &[usize]) {
        let mut place = vec![0; self.nodes.len()];
        for (at, node) in kept.iter().enumerate() {
            place[*node] = at;
        }
        let nodes = kept.iter().map(|node| self.nodes[*node].clone());
        let mut nodes: Vec<Node> = nodes.collect();
        for term in nodes.iter_mut().flat_map(|node| &mut node.terms) {
            if let Term::Node(below) = term {
                *below = place[*below];
            }
        }
        self.nodes = nodes;
    }

    /// How many terms read each node.
    fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0; self.nodes.len()];
        for term in self.nodes.iter().flat_map(|node| &node.terms) {
            if let Term::Node(below) = term {
                uses[*below] += 1;
            }
        }
        uses
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
