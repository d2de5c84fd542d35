//! Guessed trees, chains of blocks of every size, that are read with groups of products in their additions once they
//! explain clearly more than the observed tree.

use std::{cmp::Reverse, sync::Arc};

use mxprobe_api::OperationId;

use super::skeleton::{Role, Skeleton, guesses, readings};
use crate::{in_order::InOrder, probes::Tree};

/// The most guessed trees that are read with groups.
const MOST: usize = 2;

/// Per cent of the dots that the observed tree explains above which a guessed one explains clearly more.
const CLEARLY: usize = 110;

/// The guessed trees, each with its simplest reading.
pub(in crate::identify) struct Guessed {
    plain: Vec<(Arc<Skeleton>, Tree)>,
    /// Dots that the readings tried so far explain, each with the number of its tree.
    came: Vec<(usize, usize)>,
    /// Dots that the first reading of all explains: that of the observed tree.
    observed: Option<usize>,
}

impl Guessed {
    /// Makes the trees for an operation.
    pub(in crate::identify) fn new(id: &OperationId) -> Self {
        let plain = guesses(id.shape.sizes().2, &[]).into_iter().filter_map(|tree| {
            let skeleton = readings(&tree, id).into_iter().next()?;
            Some((Arc::new(skeleton), tree))
        });
        Self { plain: plain.collect(), came: Vec::new(), observed: None }
    }

    /// Returns the simplest reading of each tree.
    pub(in crate::identify) fn skeletons(&self) -> impl Iterator<Item = Arc<Skeleton>> {
        self.plain.iter().map(|(skeleton, _)| Arc::clone(skeleton))
    }

    fn number(&self, skeleton: &Arc<Skeleton>) -> Option<usize> {
        self.plain.iter().position(|(known, _)| Arc::ptr_eq(known, skeleton))
    }

    /// Notes how many dots a reading explains. The first one is taken for that of the observed tree.
    pub(in crate::identify) fn note(&mut self, skeleton: &Arc<Skeleton>, explained: usize) {
        self.observed.get_or_insert(explained);
        if let Some(number) = self.number(skeleton) {
            self.came.push((explained, number));
        }
    }

    /// Returns the readings with groups of the trees of even blocks that explain clearly more than the observed one, the
    /// best tree first, if `next` is the first reading after those of the guessed trees; otherwise nothing.
    pub(in crate::identify) fn grouped(&mut self, next: &Arc<Skeleton>, id: &OperationId) -> Vec<Arc<Skeleton>> {
        if self.came.is_empty() || self.number(next).is_some() {
            return Vec::new();
        }
        let observed = self.observed.unwrap_or_default();
        let mut better = std::mem::take(&mut self.came);
        better.retain(|(explained, number)| *explained * 100 > observed * CLEARLY && is_even(&self.plain[*number].0));
        better.order_by_key(|(explained, _)| Reverse(*explained));
        let trees = better.into_iter().take(MOST).map(|(_, number)| &self.plain[number].1);
        let found = trees.flat_map(|tree| readings(tree, id));
        found.filter(|skeleton| skeleton.roles.contains(&Role::Group)).map(Arc::new).collect()
    }
}

/// Returns whether a tree has several additions, which take equally many terms.
fn is_even(skeleton: &Skeleton) -> bool {
    let mut terms = skeleton.plan.nodes.iter().map(|node| node.terms.len());
    let first = terms.next();
    skeleton.plan.nodes.len() > 1 && terms.all(|terms| Some(terms) == first)
}
