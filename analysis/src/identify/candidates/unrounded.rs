//! Sums that are passed on unrounded in place of sums in a format of more bits than d, the reverse, and sums that are
//! complete in such a format before d is rounded: hardly any dot tells one from the other.

use mxprobe_api::{Format, Rounding};
use mxprobe_models::{Adder, Exponent, Output};

use super::{
    hypothesis::{Hypothesis, float, in_format},
    moves::hand_on,
};
use crate::identify::tree::{expression::Expression, skeleton::Role};

/// Roundings on the way that are told from a sum that is not rounded.
const ROUNDINGS: [Rounding; 2] = [Rounding::NearestEven, Rounding::TowardZero];

/// Returns whether an adder on the way to d rounds to more fraction bits than these.
pub(in crate::identify) fn rounds_to_more(hypothesis: &Hypothesis, at: usize, fraction_bits: u32) -> bool {
    is_rounded_on_the_way(hypothesis, at)
        && matches!(hypothesis.adders[at].output, Output::Float { fraction_bits: own, .. } if own > fraction_bits)
}

/// Returns whether an adder rounds to a floating format, and does not give d.
pub(in crate::identify) fn is_rounded_on_the_way(hypothesis: &Hypothesis, at: usize) -> bool {
    hypothesis.skeleton.roles[at] != Role::Root && matches!(hypothesis.adders[at].output, Output::Float { .. })
}

/// Returns the hypotheses in which an adder passes its sums on unrounded: as it is, and with the adders that take them
/// counting from the leading bit of each term.
pub(in crate::identify) fn unrounded(hypothesis: &Hypothesis, at: usize) -> [Hypothesis; 2] {
    let mut passed = hypothesis.clone();
    hand_on(&mut passed.adders[at]);
    let mut leading = passed.clone();
    for taker in hypothesis.skeleton.expression.takers(at) {
        leading.adders[taker].grid.iter_mut().for_each(|rule| rule.exponent = Exponent::Leading);
    }
    [passed, leading]
}

/// Returns the hypotheses in which the last addition is by an adder of others that rounds to more fraction bits than
/// these, and its sum is rounded alone: one addition that loses as little before it rounds imitates both.
pub(in crate::identify) fn rounded_last(hypothesis: &Hypothesis, fraction_bits: u32) -> Vec<Hypothesis> {
    let Expression::Add(last, arguments) = &hypothesis.skeleton.expression else { return Vec::new() };
    let adder = &hypothesis.adders[*last];
    let with = |own: usize| {
        let sum = Expression::Add(own, arguments.clone());
        let mut changed = hypothesis.in_tree(Expression::Add(*last, vec![sum]));
        changed.set(*last, Adder::exact("", adder.output, adder.nan.clone()));
        changed
    };
    let is_alone = hypothesis.skeleton.plan.nodes.iter().filter(|node| node.adder == *last).count() == 1;
    let wider = (0..hypothesis.adders.len()).filter(|own| is_alone && rounds_to_more(hypothesis, *own, fraction_bits));
    wider.map(with).collect()
}

/// Returns the hypothesis in which a sum that is complete in a format of more fraction bits than these before d is rounded
/// is rounded only once; `None` if there is no such sum.
pub(in crate::identify) fn rounded_once(hypothesis: &Hypothesis, fraction_bits: u32) -> Option<Hypothesis> {
    let Expression::Add(last, arguments) = &hypothesis.skeleton.expression else { return None };
    match &arguments[..] {
        [Expression::Add(own, terms)] if rounds_to_more(hypothesis, *own, fraction_bits) => {
            Some(hypothesis.in_tree(Expression::Add(*last, terms.clone())))
        }
        _ => None,
    }
}

/// Returns the hypotheses in which an adder that passes its sums on unrounded rounds them to a format.
pub(in crate::identify) fn rounded_to(hypothesis: &Hypothesis, at: usize, format: Format) -> Vec<Hypothesis> {
    let adder = &hypothesis.adders[at];
    let Some(rounded) = in_format(adder, format).filter(|_| adder.output == Output::Wide) else {
        return Vec::new();
    };
    let with = |rounding| {
        let mut changed = hypothesis.clone();
        let output = float(format, format.fraction_bits(), rounding);
        changed.set(at, Adder { output, ..rounded.clone() });
        changed
    };
    ROUNDINGS.map(with).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mxprobe_models::{Flush, NanRules};

    use super::*;
    use crate::identify::{candidates::hypothesis::grid, tree::skeleton::Skeleton};

    #[test]
    fn a_wider_format_on_the_way_is_given_up_and_its_taker_counts_from_the_leading_bit() {
        let (product, sum) = (Expression::Product, Expression::Add);
        let expression = sum(0, vec![sum(1, vec![product(0), product(1)]), Expression::C]);
        let of = |format: Format| {
            Adder::exact("sum", float(format, format.fraction_bits(), Rounding::TowardZero), NanRules::default())
        };
        let with = |inner: Adder| Hypothesis {
            skeleton: Arc::new(Skeleton {
                plan: Arc::new(expression.plan()),
                expression: expression.clone(),
                names: vec!["sum".into(), "sum-1".into()],
                roles: vec![Role::Root, Role::Inner],
            }),
            adders: vec![Adder { grid: grid(Exponent::Operands, 25), ..of(Format::F32) }, inner].into(),
            flush: Flush::default(),
        };
        let (narrow, wide) = (with(of(Format::F32)), with(of(Format::F64)));
        assert_eq!([0, 1].map(|at| rounds_to_more(&narrow, at, 23)), [false, false]);
        assert_eq!([0, 1].map(|at| rounds_to_more(&wide, at, 23)), [false, true]);
        let [passed, leading] = unrounded(&wide, 1);
        assert_eq!([&passed, &leading].map(|hypothesis| hypothesis.adders[1].output), [Output::Wide; 2]);
        let exponents = [passed, leading.clone()].map(|hypothesis| hypothesis.adders[0].grid[0].exponent);
        assert_eq!(exponents, [Exponent::Operands, Exponent::Leading]);
        assert!(rounded_last(&narrow, 23).is_empty());
        let [last] = &rounded_last(&wide, 23)[..] else { panic!("one") };
        assert_eq!(last.skeleton.text(2), "fold(c, all/2, sum(sum-1(sum-1(all), acc)))");
        assert!(last.adders[0].grid.is_empty() && last.adders[0].output == wide.adders[0].output);
        assert!(rounded_once(&wide, 23).is_none());
        assert_eq!(rounded_once(last, 23).expect("one").skeleton.text(2), "fold(c, all/2, sum(sum-1(all), acc))");
        assert!(rounded_to(&wide, 1, Format::F64).is_empty());
        let outputs: Vec<Output> =
            rounded_to(&leading, 1, Format::F64).iter().map(|rounded| rounded.adders[1].output).collect();
        assert_eq!(outputs, ROUNDINGS.map(|rounding| float(Format::F64, 52, rounding)));
    }
}
