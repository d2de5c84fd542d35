//! The adder of a single addition given up for that of others, and a format of more bits than d on the way given up for
//! sums that are not rounded. If few dots show a value of a shared adder, one addition may seem to differ from the others,
//! and every dot so far is explained by two adders of which neither is right; and hardly any dot shows what a wider format
//! loses. An addition that does nothing is given up, too.

use super::climb::{Domain, climb};
use crate::identify::{
    candidates::{
        flattened::without_nothing,
        hypothesis::Hypothesis,
        scored::{Scored, explained},
        unrounded::{rounded_last, rounds_to_more, unrounded},
    },
    dots::experiments::Experiments,
    tree::skeleton::Role,
};

/// Per cent of the term budget for one such adder.
const BUDGET: u64 = 2;
/// Of all dots, one in so many may be unexplained before a value of the shared adder changes.
const FEW_SHOW: usize = 20;

/// Returns a candidate that explains every dot, in which additions that do nothing are left out, or an adder of one
/// addition has become one with an adder of several.
pub(in crate::identify) fn rejoined(experiments: &mut Experiments<'_, '_>, hypothesis: &Hypothesis) -> Option<Scored> {
    if experiments.subject.id().is_integer() {
        return None;
    }
    let domain = Domain::whole((0..experiments.dots.len()).collect());
    // Terms that are passed on unchanged imitate rules for zeros.
    without_nothing(hypothesis).into_iter().chain(with_one_less(hypothesis)).find_map(|hypothesis| {
        explained(experiments, &hypothesis, &domain.dots, domain.dots.len() / FEW_SHOW)?;
        let stage = experiments.at_most(BUDGET);
        let found = climb(experiments, Scored { hypothesis, explained: 0 }, 0, &domain);
        experiments.back_to(stage);
        (found.explained == domain.dots.len()).then_some(found)
    })
}

/// Returns a candidate that explains every dot, in which sums that were rounded to more bits than d has are passed on
/// unrounded, or of which the last is complete before d is rounded.
pub(in crate::identify) fn passed_on(experiments: &mut Experiments<'_, '_>, hypothesis: &Hypothesis) -> Option<Scored> {
    let bits = experiments.subject.id().d.fraction_bits();
    let all: Vec<usize> = (0..experiments.dots.len()).collect();
    let complexity = hypothesis.complexity();
    let mut now = rounded_last(hypothesis, bits)
        .into_iter()
        .find(|last| last.complexity() <= complexity && explained(experiments, last, &all, 0).is_some());
    for at in 0..hypothesis.adders.len() {
        let from = now.as_ref().unwrap_or(hypothesis);
        if !rounds_to_more(from, at, bits) {
            continue;
        }
        if let Some(found) = unrounded(from, at).into_iter().find(|it| explained(experiments, it, &all, 0).is_some()) {
            now = Some(found);
        }
    }
    now.map(|hypothesis| Scored { hypothesis, explained: all.len() })
}

/// Returns the hypotheses in which an adder of one addition and an adder of several are one, where their results allow it:
/// the latter first.
fn with_one_less(hypothesis: &Hypothesis) -> Vec<Hypothesis> {
    let of = hypothesis.skeleton.expression.adders_by_addition();
    let count = |adder: usize| of.iter().filter(|other| **other == adder).count();
    let adders = &hypothesis.adders;
    let mut found = Vec::new();
    for single in (0..adders.len()).filter(|adder| count(*adder) == 1) {
        for shared in (0..adders.len()).filter(|adder| count(*adder) > 1) {
            let is_alike = adders[single].float_format() == adders[shared].float_format();
            // An addition on the way may also pass its sum on.
            let is_inner = hypothesis.skeleton.roles[single] != Role::Root;
            for (to, from) in [(single, shared), (shared, single)] {
                if !(is_alike || to == single && is_inner) {
                    continue;
                }
                let mut changed = hypothesis.clone();
                changed.set(to, adders[from].clone());
                found.push(changed.merged());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mxprobe_api::{Format, Rounding};
    use mxprobe_models::{Adder, Flush, NanRules};

    use super::*;
    use crate::identify::{
        candidates::hypothesis::float,
        tree::{
            expression::Expression,
            skeleton::{Role, Skeleton},
        },
    };

    #[test]
    fn only_adders_of_one_addition_join_those_of_several() {
        let (product, sum) = (Expression::Product, Expression::Add);
        let adder = |rounding| Adder::exact("sum", float(Format::F32, 23, rounding), NanRules::default());
        let with = |expression: Expression| Hypothesis {
            skeleton: Arc::new(Skeleton {
                plan: Arc::new(expression.plan()),
                expression,
                names: vec!["sum".into(), "sum-1".into()],
                roles: vec![Role::Root, Role::Inner],
            }),
            adders: vec![adder(Rounding::NearestEven), adder(Rounding::TowardZero)].into(),
            flush: Flush::default(),
        };
        // The addition in the middle of a chain has an adder of its own.
        let chain = |middle| {
            let first = sum(0, vec![product(0), Expression::C]);
            sum(0, vec![product(2), sum(middle, vec![product(1), first])])
        };
        let found = with_one_less(&with(chain(1)));
        let outputs: Vec<_> = found.iter().map(|fewer| fewer.adders[0].output).collect();
        assert_eq!(outputs, [adder(Rounding::NearestEven), adder(Rounding::TowardZero)].map(|adder| adder.output));
        assert!(found.iter().all(|fewer| fewer.adders.len() == 1 && fewer.skeleton.expression == chain(0)));
        // Each adder has one addition.
        assert!(with_one_less(&with(sum(0, vec![sum(1, vec![product(0), product(1)]), Expression::C]))).is_empty());
    }
}
