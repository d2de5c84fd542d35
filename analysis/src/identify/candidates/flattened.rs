//! Trees in which unrounded sums no longer pass through each other.

use mxprobe_models::{Adder, Output};

use super::hypothesis::Hypothesis;
use crate::identify::tree::expression::Expression;

/// Returns variants of a hypothesis with fewer levels of unrounded sums: each sum joined into the addition that takes
/// it, or only each sum of sums, or all leaves of nested unrounded sums added at once by any of the adders that do not
/// round; or without additions of a single term that do nothing. Empty if there is none of these.
pub(in crate::identify) fn flattened(hypothesis: &Hypothesis) -> Vec<Hypothesis> {
    let tree = &hypothesis.skeleton.expression;
    let wide: Vec<bool> = hypothesis.adders.iter().map(|adder| adder.output == Output::Wide).collect();
    let at_once = (0..wide.len()).filter(|own| wide[*own]).map(|own| at_once(tree, &wide, own));
    let nothing: Vec<bool> = (0..wide.len()).map(|at| wide[at] && hypothesis.adders[at].grid.is_empty()).collect();
    let every = |_: &[Expression]| true;
    let joined = [joined(tree, &wide, &takes_sums), joined(tree, &wide, &every)];
    let mut found: Vec<Expression> = std::iter::once(bare(tree, &nothing)).chain(joined).chain(at_once).collect();
    found.retain(|changed| changed != tree);
    found.dedup();
    found.into_iter().map(|expression| hypothesis.in_tree(expression)).collect()
}

/// Returns the hypothesis without additions of a single term that do nothing, and without their adders; `None` if it has
/// none.
pub(in crate::identify) fn without_nothing(hypothesis: &Hypothesis) -> Option<Hypothesis> {
    let tree = &hypothesis.skeleton.expression;
    let nothing = |adder: &Adder| adder.output == Output::Wide && adder.grid.is_empty();
    let changed = bare(tree, &hypothesis.adders.iter().map(nothing).collect::<Vec<_>>());
    (changed != *tree).then(|| hypothesis.in_tree(changed).merged())
}

/// Whether one of the arguments is a sum.
fn takes_sums(arguments: &[Expression]) -> bool {
    arguments.iter().any(|argument| matches!(argument, Expression::Add(..)))
}

/// Removes additions of a single term by the adders that do nothing then.
fn bare(tree: &Expression, nothing: &[bool]) -> Expression {
    let Expression::Add(own, arguments) = tree else { return tree.clone() };
    match &arguments[..] {
        [one] if nothing[*own] => bare(one, nothing),
        all => Expression::Add(*own, all.iter().map(|argument| bare(argument, nothing)).collect()),
    }
}

/// Replaces the unrounded sums of which `which` is true by their arguments in the additions that take them.
fn joined(tree: &Expression, wide: &[bool], which: &dyn Fn(&[Expression]) -> bool) -> Expression {
    let Expression::Add(own, arguments) = tree else { return tree.clone() };
    let arguments = arguments.iter().flat_map(|argument| match joined(argument, wide, which) {
        Expression::Add(adder, inner) if wide[adder] && which(&inner) => inner,
        other => vec![other],
    });
    Expression::Add(*own, arguments.collect())
}

/// Replaces unrounded sums of unrounded sums by one addition of all their leaves, by the adder `own`.
fn at_once(tree: &Expression, wide: &[bool], own: usize) -> Expression {
    let Expression::Add(adder, arguments) = tree else { return tree.clone() };
    if wide[*adder] && takes_sums(arguments) {
        let mut leaves = Vec::new();
        if leaves_of_unrounded(tree, wide, &mut leaves) {
            return Expression::Add(own, leaves);
        }
    }
    Expression::Add(*adder, arguments.iter().map(|argument| at_once(argument, wide, own)).collect())
}

/// Collects the leaves of a tree; returns false if one of its additions rounds.
fn leaves_of_unrounded(tree: &Expression, wide: &[bool], leaves: &mut Vec<Expression>) -> bool {
    match tree {
        Expression::Add(adder, arguments) => {
            wide[*adder] && arguments.iter().all(|argument| leaves_of_unrounded(argument, wide, leaves))
        }
        leaf => {
            leaves.push(leaf.clone());
            true
        }
    }
}
