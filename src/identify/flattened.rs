//! Trees in which sums that are handed on unrounded no longer pass through each other.

use std::{rc::Rc, sync::Arc};

use mxprobe_models::Output;

use super::{expression::Expression, hypothesis::Hypothesis, skeleton::Skeleton};

/// The same with fewer levels of unrounded sums: each joined into the addition that takes it, or all of one argument
/// added at once by the adder of any of them. Empty if no unrounded sum takes another sum.
pub(super) fn flattened(hypothesis: &Hypothesis) -> Vec<Hypothesis> {
    let tree = &hypothesis.skeleton.expression;
    let wide: Vec<bool> = hypothesis.adders.iter().map(|adder| adder.output == Output::Wide).collect();
    let at_once = (0..wide.len()).filter(|own| wide[*own]).map(|own| at_once(tree, &wide, own));
    let mut found: Vec<Expression> = std::iter::once(joined(tree, &wide)).chain(at_once).collect();
    found.retain(|changed| changed != tree);
    found.dedup();
    let with = |expression: Expression| {
        let plan = Arc::new(expression.plan());
        let skeleton = Skeleton { expression, plan, ..(*hypothesis.skeleton).clone() };
        Hypothesis { skeleton: Rc::new(skeleton), ..hypothesis.clone() }
    };
    found.into_iter().map(with).collect()
}

fn takes_sums(arguments: &[Expression]) -> bool {
    arguments.iter().any(|argument| matches!(argument, Expression::Add(..)))
}

/// Unrounded sums of sums, replaced by their arguments.
fn joined(tree: &Expression, wide: &[bool]) -> Expression {
    let Expression::Add(own, arguments) = tree else { return tree.clone() };
    let arguments = arguments.iter().flat_map(|argument| match joined(argument, wide) {
        Expression::Add(adder, inner) if wide[adder] && takes_sums(&inner) => inner,
        other => vec![other],
    });
    Expression::Add(*own, arguments.collect())
}

/// Unrounded sums of unrounded sums, replaced by one addition of all their leaves.
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

/// Collects the leaves of a tree; false if one of its additions rounds.
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
