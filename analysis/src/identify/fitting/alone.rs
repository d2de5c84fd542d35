//! An adder through which products or c pass alone before they meet anything else, and which only rounds them or cuts
//! them at a fixed place: that shows in few dots, which the values of other adders can imitate in part.

use mxprobe_api::{Decoded, Format, Rounding};
use mxprobe_models::{Adder, Choices};

use super::{
    climb::{Domain, climb},
    trial::{TRIED_RIGHT, TRIED_WRONG},
};
use crate::{
    identify::{
        candidates::{
            hypothesis::{EACH_PRODUCT, Hypothesis, ON_THE_WAY, float, on_fixed_grids},
            nan,
            scored::{Scored, differing, explained, explained_of, spread, without},
        },
        dots::experiments::{Experiments, Limit},
        tree::{expression::Expression, skeleton::Role},
    },
    probes::Leaf,
};

/// Dots left unexplained that each adder is tried on first, and the fewest of them for any to be tried.
const TRIED_FIRST: usize = 10;
/// The dots that an adder must explain for each that it breaks.
const BROKEN: usize = 3;

/// Adders that are tried before those that explain less than the best so far are left out, and how many a thread tries
/// at a time.
const BATCH: usize = 512;
const AT_ONCE: usize = 16;

/// The most dots left unexplained once c passes another adder, as one in so many, for values to be changed then.
const FAR: usize = 5;

/// How many more dots one adder for products and c must explain than one for either, as one in so many.
const CLEARLY: usize = 8;

/// Per cent of the term budget for changing values of the candidate found.
const BUDGET: u64 = 3;

/// Returns the candidate with an adder for single leaves, after further changes, if that explains most of what is left.
/// All products, c, or both pass through it.
pub(in crate::identify) fn rounded_alone(
    experiments: &mut Experiments<'_, '_>,
    now: &Scored,
    domain: &Domain,
) -> Option<Scored> {
    if experiments.subject.id().is_integer() {
        return None;
    }
    let differing = differing(experiments, &now.hypothesis, &domain.dots)?;
    let telling = telling(experiments, &differing);
    if telling.len() < TRIED_FIRST {
        return None;
    }
    let wrong: Vec<usize> = differing.into_iter().map(|(at, _)| at).collect();
    let some = spread(&telling, TRIED_FIRST);
    let right = spread(&without(&domain.dots, &wrong), TRIED_RIGHT);
    let wrong = spread(&wrong, TRIED_WRONG);
    let adders = rounding(experiments, &now.hypothesis);
    // There are too many places for terms of f64.
    let on_grids = |leaf: Leaf| on_fixed_grids(experiments.subject.exponents(leaf));
    let (mut of_products, mut of_c) = (Vec::new(), Vec::new());
    if experiments.subject.id().d.bits() <= 32 {
        let alone = of_c_alone(experiments);
        of_products.extend(on_grids(Leaf::Product(0)));
        of_c.extend(on_grids(Leaf::C).map(|adder| Adder { grid: adder.grid, below: adder.below, ..alone.clone() }));
    }
    let mut best = None;
    let mut most = wrong.len() / 2;
    for (hypothesis, who) in with_leaves_alone(&now.hypothesis) {
        let own = hypothesis.adders.len() - 1;
        // One adder for both must explain clearly more than one for either.
        let mut least = if who == Who::Both { most + most / CLEARLY } else { most };
        let fixed = match who {
            Who::Products => &of_products[..],
            Who::C => &of_c,
            Who::Both => &[],
        };
        let adders = adders.iter().chain(fixed);
        for adders in adders.collect::<Vec<_>>().chunks(BATCH) {
            if experiments.is_late() {
                return None;
            }
            if least >= wrong.len() {
                break;
            }
            let tried = experiments.each(Limit::Stage, AT_ONCE, adders, |spent, answered, adder| {
                let mut changed = hypothesis.clone();
                changed.set(own, (*adder).clone());
                explained_of(spent, answered, &changed, &some, some.len() - 1)?;
                let fixed = explained_of(spent, answered, &changed, &wrong, wrong.len() - least)?;
                let kept = explained_of(spent, answered, &changed, &right, (fixed - least) / BROKEN)?;
                Some((changed, fixed - BROKEN * (right.len() - kept)))
            });
            for (changed, net) in tried.into_iter().flatten() {
                if net > least {
                    (best, most, least) = (Some(changed), net, net);
                }
            }
        }
    }
    let start = Scored { hypothesis: best?, explained: 0 };
    let stage = experiments.at_most(BUDGET);
    let found = climb(experiments, start, 0, domain);
    experiments.back_to(stage);
    Some(found)
}

/// Returns the candidate in which c passes alone through an adder of other additions, after further changes, if that
/// explains every dot. A flush rule for c, and other roundings of the adder that gives d, can imitate that in part.
pub(in crate::identify) fn c_by_another_adder(
    experiments: &mut Experiments<'_, '_>,
    now: &Scored,
    domain: &Domain,
) -> Option<Scored> {
    let tree = &now.hypothesis.skeleton.expression;
    if experiments.subject.id().is_integer() || tree.of_c_alone().is_some() {
        return None;
    }
    let of = domain.dots.len();
    let inner = |at: &usize| {
        now.hypothesis.skeleton.roles[*at] != Role::Root && now.hypothesis.adders[*at].float_format().is_some()
    };
    for own in (0..now.hypothesis.adders.len()).filter(inner) {
        let mut hypothesis = now.hypothesis.in_tree(tree.each_alone(own, &|leaf| matches!(leaf, Expression::C)));
        hypothesis.flush.c = false;
        let Some(explained) = explained(experiments, &hypothesis, &domain.dots, of / FAR) else { continue };
        let found = climb(experiments, Scored { hypothesis, explained }, 0, domain);
        if found.explained == of {
            return Some(found);
        }
    }
    None
}

/// Returns those of the dots, each with the result that a candidate gives, that may tell of a further rounding: the sign of
/// a zero and the bits of a NaN do not.
fn telling(experiments: &Experiments<'_, '_>, differing: &[(usize, u64)]) -> Vec<usize> {
    let d = experiments.subject.id().d;
    let tells = |(at, found): &(usize, u64)| match (d.decode(experiments.answers[*at]), d.decode(*found)) {
        (Decoded::Zero { .. }, Decoded::Zero { .. }) | (Decoded::Nan { .. }, Decoded::Nan { .. }) => None,
        _ => Some(*at),
    };
    differing.iter().filter_map(tells).collect()
}

/// Returns adders that only round, to each format on the way, and the adders of a hypothesis that round.
fn rounding(experiments: &Experiments<'_, '_>, hypothesis: &Hypothesis) -> Vec<Adder> {
    let d = experiments.subject.id().d;
    let formats = std::iter::once(d).chain(ON_THE_WAY.into_iter().filter(|format| *format != d));
    let outputs = formats.flat_map(|format| Rounding::values().map(move |by| (format, by)));
    let plain = |(format, by): (Format, Rounding)| {
        Adder::exact("", float(format, format.fraction_bits(), by), nan::seen(experiments, format))
    };
    let others = hypothesis.adders.iter().filter(|adder| adder.float_format().is_some()).cloned();
    outputs.map(plain).chain(others).collect()
}

/// The leaves that pass through the adder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Products,
    C,
    Both,
}

/// Returns the hypothesis with a further adder that c passes alone and that changes no number, only NaN; `None` if c
/// passes one alone already.
pub(in crate::identify) fn with_nan_of_c(experiments: &Experiments<'_, '_>, now: &Hypothesis) -> Option<Hypothesis> {
    let (mut changed, _) = with_leaves_alone(now).into_iter().find(|(_, who)| *who == Who::C)?;
    changed.set(changed.adders.len() - 1, of_c_alone(experiments));
    Some(changed)
}

/// Returns an adder that c passes alone and that changes no number.
fn of_c_alone(experiments: &Experiments<'_, '_>) -> Adder {
    let format = experiments.subject.id().c;
    let output = float(format, format.fraction_bits(), Rounding::NearestEven);
    Adder::exact(C_ALONE, output, nan::seen(experiments, format))
}

/// Returns the hypotheses with a further adder for single products, for c, or for both, except for leaves that pass
/// through one already.
fn with_leaves_alone(now: &Hypothesis) -> Vec<(Hypothesis, Who)> {
    let (tree, own) = (&now.skeleton.expression, now.adders.len());
    let is_product = |leaf: &Expression| matches!(leaf, Expression::Product(_));
    let is_c = |leaf: &Expression| matches!(leaf, Expression::C);
    let of_products = tree.each_alone(own, &is_product);
    let both = of_products.each_alone(own, &is_c);
    let all = [
        (of_products, EACH_PRODUCT, Who::Products),
        (tree.each_alone(own, &is_c), C_ALONE, Who::C),
        (both, EACH_PRODUCT, Who::Both),
    ];
    let is_new = |who: &Who| match who {
        Who::Products => !tree.has_alone(&is_product),
        Who::C => !tree.has_alone(&is_c),
        Who::Both => !tree.has_alone(&|leaf: &Expression| is_product(leaf) || is_c(leaf)),
    };
    let hypothesis = |(tree, name, who)| (now.with_one_more(tree, name, Role::Inner), who);
    all.into_iter().filter(|(.., who)| is_new(who)).map(hypothesis).collect()
}

/// The name of the adder of c.
const C_ALONE: &str = "alone";
