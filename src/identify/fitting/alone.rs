//! An adder through which products or c pass alone before they meet anything else, and which only rounds them or cuts
//! them at a fixed place: that shows in few dots, which the values of other adders can imitate in part.

use mxprobe_api::{Decoded, Rounding};
use mxprobe_models::{Adder, Below, Choices, Exponent, GridRule, NanRules, Output};

use super::{
    climb::{Domain, TRIED_RIGHT, TRIED_WRONG, climb},
    wrapped::EACH_PRODUCT,
};
use crate::{
    identify::{
        candidates::{
            hypothesis::{Hypothesis, ON_THE_WAY, float, plain_rule},
            nan,
            scored::{Scored, explained, spread, unexplained_of, without},
        },
        dots::experiments::Experiments,
        tree::{expression::Expression, skeleton::Role},
    },
    probes::Leaf,
};

/// Dots left unexplained that each adder is tried on first, and the fewest of them for any to be tried.
const TRIED_FIRST: usize = 10;
/// The dots that an adder must explain for each that it breaks.
const BROKEN: usize = 3;

/// The share of the dots left unexplained that an adder and further changes must explain, as one in so many.
const GAINED: usize = 8;

/// Returns the candidate with an adder for single leaves, after further changes, if that explains more. All products, c,
/// or both pass through it.
pub(in crate::identify) fn rounded_alone(
    experiments: &mut Experiments<'_, '_>,
    now: &Scored,
    domain: &Domain,
) -> Option<Scored> {
    let wrong = unexplained_of(experiments, &now.hypothesis, &domain.dots);
    let d = experiments.subject.id().d;
    let right = spread(&without(&domain.dots, &wrong), TRIED_RIGHT);
    // The signs of zeros and the bits of NaN alone do not tell of a further rounding.
    let tells =
        |at: &usize| matches!(d.decode(experiments.answers[*at]), Decoded::Finite { .. } | Decoded::Infinity { .. });
    let telling: Vec<usize> = wrong.iter().copied().filter(tells).collect();
    if telling.len() < TRIED_FIRST || experiments.subject.id().is_integer() {
        return None;
    }
    let some = spread(&telling, TRIED_FIRST);
    let wrong = spread(&wrong, TRIED_WRONG);
    let formats = std::iter::once(d).chain(ON_THE_WAY.into_iter().filter(|format| *format != d));
    let outputs = formats.flat_map(|format| Rounding::values().map(move |by| (format, by)));
    let mut adders: Vec<Adder> = outputs
        .map(|(format, by)| Adder::exact("", float(format, format.fraction_bits(), by), nan::seen(experiments, format)))
        .collect();
    adders.extend(now.hypothesis.adders.iter().filter(|adder| adder.float_format().is_some()).cloned());
    let fixed = on_fixed_grids(experiments);
    let mut best = None;
    let mut most = wrong.len() / 2;
    for (hypothesis, is_of_products) in with_leaves_alone(&now.hypothesis) {
        let own = hypothesis.adders.len() - 1;
        for adder in adders.iter().chain(if is_of_products { &fixed[..] } else { &[] }) {
            let mut changed = hypothesis.clone();
            changed.adders[own] = Adder { name: hypothesis.adders[own].name.clone(), ..adder.clone() };
            if explained(experiments, &changed, &some, some.len() - 1).is_none() {
                continue;
            }
            let Some(fixed) = explained(experiments, &changed, &wrong, wrong.len() - most) else { continue };
            let Some(kept) = explained(experiments, &changed, &right, (fixed - most) / BROKEN) else { continue };
            let net = fixed - BROKEN * (right.len() - kept);
            if net > most {
                (best, most) = (Some(changed), net);
            }
        }
    }
    let found = climb(experiments, Scored { hypothesis: best?, explained: 0 }, 0, domain);
    let left = domain.dots.len() - now.explained;
    (found.explained > now.explained + left / GAINED).then_some(found)
}

/// Returns the hypotheses with a further adder for single products, for c, or for both, except for leaves that pass
/// through one already; each with whether the adder is for products alone.
fn with_leaves_alone(now: &Hypothesis) -> Vec<(Hypothesis, bool)> {
    let (tree, own) = (&now.skeleton.expression, now.adders.len());
    let is_product = |leaf: &Expression| matches!(leaf, Expression::Product(_));
    let is_c = |leaf: &Expression| matches!(leaf, Expression::C);
    let (products, c) = (!tree.has_alone(&is_product), !tree.has_alone(&is_c));
    let with_c = |tree: &Expression| tree.each_alone(own, &is_c);
    let of_products = tree.each_alone(own, &is_product);
    let mut found = Vec::new();
    if c {
        found.push((with_c(tree), C_ALONE, false));
    }
    if c && products {
        found.push((with_c(&of_products), EACH_PRODUCT, false));
    }
    if products {
        found.push((of_products, EACH_PRODUCT, true));
    }
    let hypothesis = |(tree, name, alone)| (now.with_one_more(tree, name, Role::Inner), alone);
    found.into_iter().map(hypothesis).collect()
}

/// Fraction bits of a grid whose floor lies at any exponent: more than a product has in most formats.
const FIXED_BITS: i32 = 24;

/// Returns adders that cut or round every product at the same place and pass it on, for each such place.
pub(super) fn on_fixed_grids(experiments: &Experiments<'_, '_>) -> Vec<Adder> {
    let (low, high) = experiments.subject.exponents(Leaf::Product(0));
    let floors = Below::values().flat_map(|below| (low..=high + FIXED_BITS).map(move |floor| (below, floor)));
    let adders = floors.map(|(below, floor)| {
        let rule = GridRule { exponent_floor: Some(floor), ..plain_rule(Exponent::Operands, FIXED_BITS) };
        Adder { grid: vec![rule], below, ..Adder::exact("", Output::Wide, NanRules::default()) }
    });
    adders.collect()
}

/// The name of the adder of c.
const C_ALONE: &str = "alone";
