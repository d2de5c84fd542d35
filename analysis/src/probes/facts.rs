//! Results of earlier questions that later ones build on.

use mxprobe_api::Rounding;

use super::{
    subject::{Leaf, Subject},
    tree::{Joint, Tree},
};
use crate::in_order::InOrder;

/// The facts known so far about the operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// The summation tree, as far as it is known.
    pub(super) structure: Option<Structure>,
    /// The bits kept when products are aligned with each other.
    pub(super) kept: Option<Kept>,
    /// The fraction bits of a result: its effective precision minus one.
    pub(super) result_fraction_bits: Option<i32>,
    /// The direction in which results are rounded.
    pub(super) rounding: Option<Rounding>,
    /// Whether the same dot does not always give the same bits, so that nothing more can be learnt.
    pub(super) is_unsteady: bool,
    /// Whether subnormal results are flushed.
    pub(super) flushes_results: bool,
    /// Whether a product is aligned by its leading bit, not by the sum of its operands' exponents; `None` if this
    /// cannot be observed.
    pub(super) renormalises_products: Option<bool>,
}

/// The number of bits kept at alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// This many below the largest exponent.
    Bits(i32),
    /// All that could be tested: at least this many.
    All(i32),
}

impl Kept {
    /// The number of bits that certainly survive.
    pub(super) fn at_least(self) -> i32 {
        match self {
            Self::Bits(bits) | Self::All(bits) => bits,
        }
    }
}

/// The leaves at which later questions place their terms.
#[derive(Clone, Debug)]
pub(super) struct Structure {
    /// The tree; `None` if only a block is known.
    pub(super) tree: Option<Tree>,
    /// The products that join c's sum, step by step.
    pub(super) blocks: Vec<Vec<usize>>,
    /// The largest set of leaves added at one node, with c first if it is among them.
    pub(super) site: Vec<Leaf>,
}

impl Structure {
    pub(super) fn new(tree: Tree) -> Self {
        let size = |node: &Tree| {
            let leaves = node.direct_leaves();
            let fused = !matches!(node, Tree::Node { joint: Joint::Pair, .. });
            (fused, leaves.len(), leaves.contains(&Leaf::C))
        };
        let mut site =
            tree.nodes().into_iter().max_by_key(|node| size(node)).map(Tree::direct_leaves).unwrap_or_default();
        site.order_by_key(|leaf| *leaf != Leaf::C);
        Self { blocks: tree.blocks(), site, tree: Some(tree) }
    }

    /// A structure of which only the blocks are known: c and the products of the first block are assumed to be added at
    /// once.
    pub(super) fn of_blocks(blocks: Vec<Vec<usize>>) -> Self {
        let first = blocks.iter().take(1).flatten().map(|k| Leaf::Product(*k));
        Self { tree: None, site: [Leaf::C].into_iter().chain(first).collect(), blocks }
    }

    /// Whether c is added at the site.
    pub(super) fn site_has_c(&self) -> bool {
        self.site.first() == Some(&Leaf::C)
    }

    /// The products of the site.
    pub(super) fn site_products(&self) -> Vec<Leaf> {
        self.site.iter().copied().filter(|leaf| *leaf != Leaf::C).collect()
    }

    /// Two leaves that are joined before a third: (first, second, later).
    pub(super) fn pair_then_later(&self) -> Option<(Leaf, Leaf, Leaf)> {
        let tree = self.tree.as_ref()?;
        let nodes = tree.nodes();
        let pair = nodes.iter().rev().find(|node| node.direct_leaves().len() >= 2)?.direct_leaves();
        let inside = nodes.iter().rev().find(|node| node.direct_leaves().len() >= 2)?.leaves();
        let later = tree.leaves().into_iter().filter(|leaf| !inside.contains(leaf)).min()?;
        Some((pair[0], pair[1], later))
    }
}

/// The product to pair with c when a sum of a large and a small term shows how results are rounded.
pub(super) fn product_for_c(subject: &Subject<'_>, facts: &Facts) -> Leaf {
    let first = facts.structure.as_ref().and_then(|structure| structure.blocks.iter().flatten().next().copied());
    Leaf::Product(first.unwrap_or(0).min(subject.k() - 1))
}
