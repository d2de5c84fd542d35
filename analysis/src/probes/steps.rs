//! Question 5 in words: describes the blocks, steps and single additions of a summation tree.

use super::{
    Ask, Leaf, Probe, Subject,
    facts::{Facts, Structure},
    tree::{Tree, list},
};
use crate::findings::{AppliesTo, Comparable, Evidence, Finding, Shown, source};

/// The name of the probe that asks for the tree.
pub(super) const TREE: &str = "order.tree";

pub(super) const FPREV: &str = "FPRev, arXiv:2411.00442";

pub(crate) const BLOCKS: Probe = Probe {
    name: "order.blocks",
    question: "Which products join c's running sum together, step by step?",
    how: "Read off the tree, from c to the root; where there is none, two products of half c's last place, which raise c \
         only if they are added to each other before c's sum is rounded.",
    answers: &[
        (
            "lists of k",
            "in this order, the products of each list join the running sum in one step, which may come after other \
                 additions: those of a list may have been added to each other before (order.tree, \
                 order.products_at_once)",
        ),
        (
            "one list",
            "c is added once, to all k products or to their sum: in the same addition if order.products_at_once is k",
        ),
    ],
    source: FPREV,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN.compared(Comparable::WithinK),
    ask: Ask::Along,
};

pub(crate) const PRODUCTS_AT_ONCE: Probe = Probe {
    name: "order.products_at_once",
    question: "How many products does the widest single addition take?",
    how: "Read off the tree: of the additions of three terms or more, that with the most products; an inner list of \
         order.tree is an addition of its own.",
    answers: &[
        ("1", "every addition joins two terms: each is rounded on its own, as in a loop of FMAs or a tree of pairs"),
        (
            "a larger number",
            "so many products share one alignment and one rounding: fewer roundings, more bits cut together; a step of \
                 order.blocks has more products if it takes several additions",
        ),
        ("inconclusive", "no tree shows; a list of order.blocks has as many products as one addition could at most"),
    ],
    source: source::FASI,
    applies_to: AppliesTo::Floating,
    shown: Shown::at_a_glance(1, "products at once"),
    ask: Ask::Along,
};

/// Describes the order that a tree shows, and records the tree for later questions.
pub(super) fn findings(subject: &Subject<'_>, facts: &mut Facts, tree: Tree, evidence: Vec<Evidence>) -> Vec<Finding> {
    let blocks = tree.blocks();
    let k = subject.k();
    let width = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let consecutive = blocks.concat().iter().copied().eq(0..k);
    let at_once = tree.products_at_once();
    let steps = match blocks.len() {
        1 if k == 1 => "c and the product are added".to_owned(),
        1 if at_once >= k => format!("all {k} products and c are added at once"),
        1 if matches!(&tree, Tree::Node { children, .. } if children.len() == 2) => {
            let Tree::Node { children, .. } = &tree else { unreachable!("just matched") };
            let chains: Vec<String> = children.iter().flat_map(Tree::chains).map(|chain| list(&chain)).collect();
            if chains.is_empty() {
                format!("c is added last, to the sum of the {k} products")
            } else {
                format!("{} chains of additions ({}) are joined, and c is added last", chains.len(), chains.join("; "))
            }
        }
        1 => format!("c meets all {k} products in one step"),
        steps if width == 1 => format!(
            "c first, then {steps} products one after another{}",
            if consecutive { ", k ascending" } else { "" }
        ),
        steps => format!(
            "c first, then {steps} blocks of {width} products one after another{}",
            if consecutive { ", consecutive k ascending" } else { "" }
        ),
    };
    let statement = format!("{steps}: {}", tree.describe());
    let found = vec![
        Finding::measured(TREE, tree.value(), statement).with(evidence),
        Finding::measured(BLOCKS.name, blocks.clone(), in_steps(&blocks, at_once)),
        Finding::measured(
            PRODUCTS_AT_ONCE.name,
            at_once,
            match at_once {
                1 => "every addition joins two terms".to_owned(),
                count => format!("the widest addition takes {count} products"),
            },
        ),
    ];
    facts.structure = Some(Structure::new(tree));
    found
}

/// Describes the steps in which products join c's sum.
pub(super) fn in_steps(blocks: &[Vec<usize>], at_once: usize) -> String {
    let products = |count: usize| if count == 1 { "one product".to_owned() } else { format!("{count} products") };
    let width = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let inside = match (width > at_once, at_once) {
        (false, _) => String::new(),
        (true, 1) => ", which were added before, two terms at a time".to_owned(),
        (true, _) => format!(", which were added before, at most {at_once} at once"),
    };
    let sizes = match (blocks.len(), blocks.iter().all(|block| block.len() == width)) {
        (1, _) => return format!("one step of {}: {}{inside}", products(width), show_blocks(blocks)),
        (_, true) => format!("{} each", products(width)),
        (_, false) => format!("up to {}", products(width)),
    };
    format!("{} steps of {sizes}: {}{inside}", blocks.len(), show_blocks(blocks))
}

/// Formats blocks as `p0…p7, then p8…p15`.
pub(super) fn show_blocks(blocks: &[Vec<usize>]) -> String {
    let show = |block: &Vec<usize>| {
        let leaves: Vec<Leaf> = block.iter().copied().map(Leaf::Product).collect();
        if leaves.is_empty() { "nothing".into() } else { list(&leaves) }
    };
    let shown: Vec<String> = blocks.iter().take(8).map(show).collect();
    let more = if blocks.len() > 8 { format!(", … {} more", blocks.len() - 8) } else { String::new() };
    format!("{}{more}", shown.join(", then "))
}

#[cfg(test)]
mod tests {
    use super::in_steps;

    #[test]
    fn steps_are_told_from_what_is_added_at_once() {
        assert_eq!(in_steps(&[vec![1], vec![0]], 1), "2 steps of one product each: p1, then p0");
        assert_eq!(
            in_steps(&[(0..8).collect(), (8..16).collect()], 8),
            "2 steps of 8 products each: p0…p7, then p8…p15"
        );
        assert_eq!(in_steps(&[(0..16).collect()], 16), "one step of 16 products: p0…p15");
        let of_two_additions = "one step of 16 products: p0…p15, which were added before, at most 8 at once";
        assert_eq!(in_steps(&[(0..16).collect()], 8), of_two_additions);
        assert_eq!(
            in_steps(&[(0..4).collect(), (4..6).collect()], 1),
            "2 steps of up to 4 products: p0…p3, then p4 p5, which were added before, two terms at a time"
        );
        let chain: Vec<Vec<usize>> = (0..10).map(|k| vec![k]).collect();
        assert!(in_steps(&chain, 1).ends_with("then p7, … 2 more"));
    }
}
