//! How often each leaf counts: a product or c may be left out, or added twice.

use mxprobe_api::Error;

use super::expression::Expression;
use crate::probes::{Leaf, Number, Subject};

/// Significands of the values that a leaf holds while all others are zero: of few bits, so that no unit rounds them.
const SIGNIFICANDS: [i128; 4] = [1, -1, 3, -3];

/// The leaves that do not count exactly once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::identify) struct Counts {
    /// Leaves that never count.
    pub(in crate::identify) never: Vec<Leaf>,
    /// Leaves that count twice.
    pub(in crate::identify) twice: Vec<Leaf>,
}

/// Tests each leaf alone and returns those that never count or count twice: every result must be zero, or more than two
/// thirds of them must be doubled. If every leaf seems never to count, `never` is empty.
///
/// # Errors
/// Returns the error of the device if it fails.
pub(in crate::identify) fn counts(subject: &Subject<'_>) -> Result<Counts, Error> {
    let mut found = Counts::default();
    let leaves = subject.leaves();
    for leaf in &leaves {
        // Values about 1 and near the largest; small ones may be lost.
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

/// Returns the variants of a tree without a leaf in which that leaf is added at two places: twice in one addition, in
/// two additions, or in an addition of its own with the result of another.
pub(in crate::identify) fn twice(tree: &Expression, leaf: Leaf) -> Vec<Expression> {
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

/// Returns the variants of a tree in which a leaf is added at one more place.
fn once(tree: &Expression, term: &Expression) -> Vec<Expression> {
    let Expression::Add(adder, arguments) = tree else { return Vec::new() };
    let mut found = Vec::new();
    // As a further term of this addition, then of a new addition above it, then in each addition below.
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
