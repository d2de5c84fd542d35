//! Additions during rewriting, and their canonical form.

use std::collections::BTreeSet;

use mxprobe_api::OperationId;
use mxprobe_models::{Adder, Plan, Term, Unit};

/// A model's arithmetic of one operation, in canonical form.
#[derive(Clone, Debug)]
pub struct Canonical {
    /// The adders that the plan refers to.
    pub adders: Vec<Adder>,
    /// The unit, with the flushing of its operands' subnormals.
    pub unit: Unit,
    /// The additions.
    pub plan: Plan,
    /// The known bounds of each addition's result, if any.
    pub bounds: Vec<Option<Bounds>>,
    /// The kinds of rewriting that were applied, in words.
    pub steps: BTreeSet<&'static str>,
}

impl Canonical {
    /// A model's arithmetic, unchanged.
    #[must_use]
    pub fn as_it_stands(adders: Vec<Adder>, unit: &Unit, plan: Plan) -> Self {
        let bounds = vec![None; plan.nodes.len()];
        Self { adders, unit: unit.clone(), plan, bounds, steps: BTreeSet::new() }
    }
}

/// Additions during rewriting; each has an adder of its own, and the last one gives d.
#[derive(Clone, Debug)]
pub(super) struct Form<'a> {
    pub(super) id: &'a OperationId,
    pub(super) unit: Unit,
    pub(super) nodes: Vec<Node>,
    pub(super) steps: BTreeSet<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) adder: Adder,
    pub(super) terms: Vec<Term>,
}

/// The known bounds of a rounded result, for every dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bounds {
    /// A finite result is a multiple of 2^low.
    pub low: i32,
    /// A finite result is less than 2^top in magnitude.
    pub top: i32,
    /// Whether it may be −0.
    pub negative_zero: bool,
    /// Whether it may be an infinity.
    pub infinite: bool,
    /// Whether it may be NaN.
    pub nan: bool,
}

impl Form<'_> {
    /// Removes additions that are never read.
    pub(super) fn prune(&mut self) {
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
    pub(super) fn keep(&mut self, kept: &[usize]) {
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

    /// The number of terms that read each node.
    pub(super) fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0; self.nodes.len()];
        for term in self.nodes.iter().flat_map(|node| &node.terms) {
            if let Term::Node(below) = term {
                uses[*below] += 1;
            }
        }
        uses
    }
}
