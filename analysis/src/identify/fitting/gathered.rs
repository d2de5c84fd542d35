//! A separate adder for the terms that meet c or a sum with c: they are added first, and their sum is not rounded. If its
//! grid reaches far below the terms, few dots show it.

use super::{
    climb::{Domain, climb},
    search::{FIRST, SECOND, fraction_bits, sweep_class},
};
use crate::identify::{
    candidates::{
        hypothesis::Hypothesis,
        scored::{Scored, best_first, explained, half_of_each, unexplained_of, without},
    },
    dots::experiments::Experiments,
    tree::{expression::Expression, skeleton::Role},
};

/// Candidates that are changed value by value.
const CLIMBED: usize = 2;
/// The most dots left unexplained, as one in so many.
const NEARLY_ALL: usize = 20;
/// The most sizes of groups that are tried.
const SIZES: usize = 4;

/// Returns a candidate that explains all of the domain's dots, in which the terms that meet c in the additions of one
/// adder are added by a separate adder first: all of them, or groups of neighbours.
pub(in crate::identify) fn gathered(
    experiments: &mut Experiments<'_, '_>,
    now: &Scored,
    domain: &Domain,
) -> Option<Scored> {
    let wrong = unexplained_of(experiments, &now.hypothesis, &domain.dots);
    if wrong.len() * NEARLY_ALL > domain.dots.len() || experiments.subject.id().is_integer() {
        return None;
    }
    let right = without(&domain.dots, &wrong);
    let bits = fraction_bits(experiments);
    let (first, second) = (half_of_each(&wrong, &right, FIRST), half_of_each(&wrong, &right, SECOND));
    let before = second.iter().filter(|at| right.binary_search(at).is_ok()).count();
    let mut found = Vec::new();
    for hypothesis in (0..now.hypothesis.adders.len()).flat_map(|by| with_own_adder(&now.hypothesis, by)) {
        let explained = explained(experiments, &hypothesis, &second, second.len()).unwrap_or(0);
        found.push(Scored { hypothesis, explained });
    }
    // If no exact sum explains more, the new adder has a grid.
    if found.iter().all(|scored| scored.explained <= before) {
        for start in std::mem::take(&mut found) {
            if experiments.is_late() {
                break;
            }
            let class = start.hypothesis.adders.len() - 1;
            let beam = sweep_class(experiments, vec![start], class, bits, &[], &first, &second);
            found.extend(beam.into_iter().take(CLIMBED));
        }
    }
    best_first(&mut found);
    found.truncate(CLIMBED);
    found.into_iter().find_map(|candidate| {
        let found = climb(experiments, candidate, 0, domain);
        (found.explained == domain.dots.len()).then_some(found)
    })
}

/// Returns the hypotheses with a further adder that passes on exact sums of the terms that meet c in the additions by one
/// adder, in groups of several sizes. Empty if none of these additions has two such terms.
fn with_own_adder(hypothesis: &Hypothesis, by: usize) -> Vec<Hypothesis> {
    let (own, before) = (hypothesis.adders.len(), &hypothesis.skeleton);
    let most = others_than_c(&before.expression, by);
    let sizes = (2..=most).rev().filter(|size| most.is_multiple_of(*size)).take(SIZES);
    let name = format!("gathered-{own}");
    let with = |size| {
        let tree = before.expression.gathered(&|adder| adder == by, own, size);
        hypothesis.with_one_more(tree, &name, Role::Group)
    };
    sizes.map(with).collect()
}

/// Returns the largest number of terms that meet c in an addition by an adder.
fn others_than_c(tree: &Expression, by: usize) -> usize {
    let Expression::Add(adder, arguments) = tree else { return 0 };
    let others = arguments.iter().filter(|argument| !argument.has_c()).count();
    let own = if *adder == by && others < arguments.len() { others } else { 0 };
    arguments.iter().map(|argument| others_than_c(argument, by)).fold(own, usize::max)
}
