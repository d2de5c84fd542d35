//! Chains of steps of one form, and trees whose results are rounded twice.

use super::expression::Expression;

/// Returns the tree in which each result of the adder that gives d is rounded once more, by an adder that takes its place
/// as the first.
pub(in crate::identify) fn rounded_twice(tree: &Expression) -> Expression {
    let Expression::Add(adder, arguments) = tree else { return tree.clone() };
    let sum = Expression::Add(adder + 1, arguments.iter().map(rounded_twice).collect());
    if *adder == 0 { Expression::Add(0, vec![sum]) } else { sum }
}

/// Whether each result of the adder that gives d is rounded once more, as [`rounded_twice`] does it.
pub(in crate::identify) fn is_rounded_twice(tree: &Expression) -> bool {
    matches!(tree, Expression::Add(_, arguments) if matches!(arguments[..], [Expression::Add(..)]))
}

/// Returns whether a tree is a chain of several steps of one form: c, or the result of the step before, meets as many
/// products and as many sums in each.
pub(in crate::identify) fn has_steps_alike(tree: &Expression) -> bool {
    fn steps(tree: &Expression) -> Vec<Vec<usize>> {
        let Expression::Add(_, arguments) = tree else { return Vec::new() };
        let (with_c, others): (Vec<&Expression>, Vec<&Expression>) =
            arguments.iter().partition(|argument| argument.has_c());
        let mut form: Vec<usize> = others.iter().map(|other| other.products().len()).collect();
        form.sort_unstable();
        let before = with_c.first().map_or(Vec::new(), |before| steps(before));
        std::iter::once(form).chain(before).collect()
    }
    let steps = steps(tree);
    steps.len() > 1 && steps.iter().all(|form| *form == steps[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_has_steps_of_one_form_and_each_result_is_rounded_once_more() {
        let (product, c) = (Expression::Product, || Expression::C);
        let sum = |adder: usize, terms: Vec<Expression>| Expression::Add(adder, terms);
        let pair = |first: usize| sum(1, vec![product(first), product(first + 1)]);
        let chain = sum(0, vec![pair(2), sum(0, vec![pair(0), c()])]);
        assert!(has_steps_alike(&chain));
        assert!(!has_steps_alike(&sum(0, vec![pair(0), c()])));
        assert!(!has_steps_alike(&sum(0, vec![product(2), sum(0, vec![pair(0), c()])])));
        assert!(!has_steps_alike(&sum(0, vec![pair(2), sum(0, vec![product(0), product(1), c()])])));
        let pair = |first: usize| sum(2, vec![product(first), product(first + 1)]);
        let wanted = sum(0, vec![sum(1, vec![pair(2), sum(0, vec![sum(1, vec![pair(0), c()])])])]);
        assert_eq!(rounded_twice(&chain), wanted);
        assert!(is_rounded_twice(&wanted) && !is_rounded_twice(&chain));
    }
}
