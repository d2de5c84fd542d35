//! The order of terms and of additions.

use std::hash::{DefaultHasher, Hash, Hasher};

use mxprobe_models::{Below, Class, Term};

use super::{facts::Facts, form::Form};

/// The sort key of a subtree: its first product, its depth and number of terms, and a hash of its content.
type Key = (usize, usize, usize, u64);

impl Form<'_> {
    /// Sorts the terms of each addition and numbers the additions along them.
    ///
    /// Integers can be added in any order. The order of an addition's terms shows in which of several NaNs comes first,
    /// if it passes on their bits, and a one's complement depends on the sign of the last value; in these cases the
    /// order stays.
    pub(super) fn sort(&mut self) {
        let facts = self.facts();
        let observed = self.observed(&facts);
        let mut keys: Vec<Key> = Vec::with_capacity(self.nodes.len());
        let mut sorted: Vec<Vec<Term>> = Vec::with_capacity(self.nodes.len());
        for (node, &observed) in observed.iter().enumerate() {
            let mut order = self.nodes[node].terms.clone();
            order.sort_by_key(|term| rank(*term, &keys));
            keys.push(key(&order, &keys));
            let terms = self.terms(node, &facts);
            let adder = &self.nodes[node].adder;
            let (operand, value, _) = self.nan_shown(node, observed);
            let count = |is: &dyn Fn(&Facts) -> bool| terms.iter().filter(|term| is(term)).count();
            let operands = operand && count(&|term| term.nan.operand) > 1;
            let values = value && count(&|term| term.nan.value) > 1;
            let complements = adder.below == Below::OnesComplement && count(&|term| term.class == Class::Values) > 1;
            if !operands && !values && !complements {
                self.nodes[node].terms.clone_from(&order);
            }
            sorted.push(order);
        }
        let mut kept = Vec::with_capacity(self.nodes.len());
        let mut seen = vec![false; self.nodes.len()];
        let mut waiting = vec![(self.nodes.len() - 1, 0)];
        seen[self.nodes.len() - 1] = true;
        while let Some((node, at)) = waiting.pop() {
            let Some(term) = sorted[node].get(at) else {
                kept.push(node);
                continue;
            };
            waiting.push((node, at + 1));
            if let Term::Node(below) = *term
                && !std::mem::replace(&mut seen[below], true)
            {
                waiting.push((below, 0));
            }
        }
        self.keep(&kept);
    }
}

/// Ranks products by number, then c, then +0, then the results of other additions.
fn rank(term: Term, keys: &[Key]) -> (usize, Key) {
    match term {
        Term::Product(k) => (0, (k, 0, 0, 0)),
        Term::C => (1, (0, 0, 0, 0)),
        Term::PositiveZero => (2, (0, 0, 0, 0)),
        Term::Node(node) => (3, keys[node]),
    }
}

fn key(terms: &[Term], keys: &[Key]) -> Key {
    let ranks: Vec<(usize, Key)> = terms.iter().map(|term| rank(*term, keys)).collect();
    let first = |rank: &(usize, Key)| if matches!(rank.0, 0 | 3) { rank.1.0 } else { usize::MAX };
    let mut hasher = DefaultHasher::new();
    ranks.hash(&mut hasher);
    let below = ranks.iter().filter(|rank| rank.0 == 3).map(|rank| rank.1.1).max().unwrap_or(0);
    (ranks.iter().map(first).min().unwrap_or(usize::MAX), below + 1, terms.len(), hasher.finish())
}
