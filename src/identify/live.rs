//! How often each leaf counts: a product or c that is left out, and one that is added twice.

use mxprobe_api::Error;

use super::expression::Expression;
use crate::probes::{Leaf, Number, Subject};

/// Significands of the values that each leaf holds alone: of few bits, so that no unit rounds them.
const SIGNIFICANDS: [i128; 4] = [1, -1, 3, -3];

/// How often a leaf counts, where it counts otherwise than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Leaves that never count.
    pub(super) never: Vec<Leaf>,
    /// Leaves that count twice.
    pub(super) twice: Vec<Leaf>,
}

/// Each leaf alone: most of its values have to come out as nothing, or doubled.
pub(super) fn counts(subject: &Subject<'_>) -> Result<Counts, Error> {
    let mut found = Counts::default();
    let leaves = subject.leaves();
    for leaf in &leaves {
        // About 1, and as large as it gets: what is small may be lost.
        let (low, high) = subject.exponents(*leaf);
        let exponents = [0, -2, 2, high / 2, high - 4].map(|exponent| exponent.clamp(low, high));
        let values = exponents.iter().flat_map(|exponent| SIGNIFICANDS.map(|of| Number::new(of, *exponent)));
        let dots: Vec<_> = values.filter_map(|value| Some((value, subject.dot(&[(*leaf, value)])?))).collect();
        let answers = subject.ask(&dots.iter().map(|(_, dot)| dot.clone()).collect::<Vec<_>>())?;
        let of = |wanted: &dyn Fn(Number) -> Number| {
            dots.iter().zip(&answers).filter(|((value, _), d)| subject.d_value(**d) == Some(wanted(*value))).count()
        };
        if of(&|_| Number::ZERO) == dots.len() {
            found.never.push(*leaf);
        } else if of(&|value| value.times(2)) * 3 > dots.len() * 2 {
            found.twice.push(*leaf);
        }
    }
    if found.never.len() == leaves.len() {
        found.never.clear();
    }
    Ok(found)
}

/// Trees in which a leaf that counts twice stands at two places: in one addition twice, in two of them, and joined with the
/// result of one.
pub(super) fn twice(tree: &Expression, leaf: Leaf) -> Vec<Expression> {
    let term = match leaf {
        Leaf::C => Expression::C,
        Leaf::Product(k) => Expression::Product(k),
    };
    let once = once(tree, &term);
    let mut found: Vec<Expression> = Vec::new();
    for with_one in &once {
        for with_two in self::once(with_one, &term) {
            if !found.contains(&with_two) {
                found.push(with_two);
            }
        }
    }
    found
}

/// Trees in which a leaf stands at one more place.
fn once(tree: &Expression, term: &Expression) -> Vec<Expression> {
    let Expression::Add(adder, arguments) = tree else { return Vec::new() };
    let mut found = Vec::new();
    // Among the terms of this addition, then below it, then after it.
    let mut beside = arguments.clone();
    beside.push(term.clone());
    found.push(Expression::Add(*adder, beside));
    found.push(Expression::Add(*adder, vec![tree.clone(), term.clone()]));
    for (at, argument) in arguments.iter().enumerate() {
        for changed in once(argument, term) {
            let mut arguments = arguments.clone();
            arguments[at] = changed;
            found.push(Expression::Add(*adder, arguments));
        }
    }
    found
}
