//! A separate adder for single products, through which each passes before it meets anything else: it cuts or rounds the
//! product, or gives a NaN of its own.

use mxprobe_api::{Decoded, Format, Rounding};
use mxprobe_models::{Adder, NanRules};

use super::{
    climb::{Domain, climb},
    payloads,
    search::{FIRST, SECOND, fraction_bits, sweep_class},
};
use crate::{
    identify::{
        candidates::{
            hypothesis::{EACH_PRODUCT, Hypothesis, ON_THE_WAY, float, on_fixed_grids},
            nan,
            scored::{Scored, half_of_each, keep_among, keep_better, unexplained_of, without},
        },
        dots::experiments::{Experiments, Limit},
        tree::{expression::Expression, skeleton::Role},
    },
    probes::Leaf,
};

/// Candidates for the new adder that are changed value by value.
const CLIMBED: usize = 2;

/// Returns the candidate with a separate adder for single products, if that explains more of the domain's dots.
pub(in crate::identify) fn wrapped(
    experiments: &mut Experiments<'_, '_>,
    now: &Scored,
    domain: &Domain,
) -> Option<Scored> {
    let wrong = unexplained_of(experiments, &now.hypothesis, &domain.dots);
    if wrong.is_empty() || experiments.is_late() || experiments.subject.id().is_integer() {
        return None;
    }
    let hypothesis = with_own_adder(&now.hypothesis)?;
    let own = hypothesis.adders.len() - 1;
    let right = without(&domain.dots, &wrong);
    if let Some(found) = with_its_own_nan(experiments, &hypothesis, own, &wrong) {
        return Some(found);
    }
    let bits = fraction_bits(experiments);
    let (first, second) = (half_of_each(&wrong, &right, FIRST), half_of_each(&wrong, &right, SECOND));
    let start = Scored { hypothesis: hypothesis.clone(), explained: 0 };
    let beam = sweep_class(experiments, vec![start], own, bits, &ON_THE_WAY, &first, &second);
    let fixed = on_a_fixed_grid(experiments, &hypothesis, own, &second);
    let mut best: Option<Scored> = None;
    for candidate in fixed.into_iter().chain(beam.into_iter().take(CLIMBED)) {
        keep_better(&mut best, now.explained, climb(experiments, candidate, 0, domain));
        if best.as_ref().is_some_and(|best| best.explained == domain.dots.len()) {
            break;
        }
    }
    best
}

/// The most NaN that are tried as the result of an invalid product.
const NANS: usize = 3;

/// Returns a candidate that explains every dot, in which the new adder only gives a NaN of its own, if each of the dots
/// `wrong` results in a NaN. Until the NaN of other additions is changed as well, that may explain nothing.
fn with_its_own_nan(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    own: usize,
    wrong: &[usize],
) -> Option<Scored> {
    let id = experiments.subject.id();
    if !wrong.iter().all(|at| matches!(id.d.decode(experiments.answers[*at]), Decoded::Nan { .. })) {
        return None;
    }
    // As wide as d, or f32: no product of formats of at most half as many bits is rounded.
    let format = if id.d.bits() < 32 { Format::F32 } else { id.d };
    let output = float(format, format.fraction_bits(), Rounding::NearestEven);
    nan::bits_seen(experiments, format).into_iter().take(NANS).find_map(|invalid| {
        let mut changed = hypothesis.clone();
        changed.adders[own] =
            Adder::exact(EACH_PRODUCT, output, NanRules { invalid, ..nan::seen(experiments, format) });
        payloads::fitted(experiments, &Scored { hypothesis: changed, explained: 0 })
    })
}

/// Returns the best candidate in which the new adder cuts or rounds every product at the same place, if it explains
/// more than half of these dots. Half of them are explained without it.
fn on_a_fixed_grid(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    own: usize,
    which: &[usize],
) -> Option<Scored> {
    let with = |adder: Adder| {
        let mut changed = hypothesis.clone();
        changed.set(own, adder);
        changed
    };
    let candidates: Vec<Hypothesis> =
        on_fixed_grids(experiments.subject.exponents(Leaf::Product(0))).map(with).collect();
    let mut found = Vec::new();
    keep_among(experiments, Limit::None, &mut found, 1, &candidates, which);
    found.pop().filter(|best| best.explained > which.len() / 2)
}

/// Returns the hypothesis with a further adder that passes each product on unchanged; `None` if single products have
/// one already.
fn with_own_adder(hypothesis: &Hypothesis) -> Option<Hypothesis> {
    let before = &hypothesis.skeleton;
    if before.plan.nodes.is_empty() || before.names.iter().any(|name| name == EACH_PRODUCT) {
        return None;
    }
    let expression = around_products(&before.expression, hypothesis.adders.len());
    Some(hypothesis.with_one_more(expression, EACH_PRODUCT, Role::Inner))
}

/// Returns the tree with an addition by this adder around each product. It replaces an addition that has the product as
/// its only argument.
fn around_products(tree: &Expression, own: usize) -> Expression {
    match tree {
        Expression::Product(k) => Expression::Add(own, vec![Expression::Product(*k)]),
        Expression::Add(_, arguments) if matches!(arguments[..], [Expression::Product(_)]) => {
            Expression::Add(own, arguments.clone())
        }
        Expression::Add(adder, arguments) => {
            Expression::Add(*adder, arguments.iter().map(|argument| around_products(argument, own)).collect())
        }
        other => other.clone(),
    }
}
