//! Adders with a grid rule for values (c and rounded results) in addition to one for products or sums. The bits that
//! one rule keeps show only if terms of the other are absent: dots without values determine the second rule and the
//! rounding, and few candidates are then left for the rule for values.

use mxprobe_models::{Adder, Below, Choices, Class, Exponent, GridRule, Output};

use super::search::sweep_class;
use crate::{
    identify::{
        candidates::{
            hypothesis::{Hypothesis, ON_THE_WAY},
            scored::{Scored, best_first, explained, spread},
        },
        dots::experiments::Experiments,
        tree::expression::Expression,
    },
    probes::Leaf,
};

/// Minimum number of dots without values from which an adder is inferred.
const TELLING: usize = 24;
/// Number of dots on which every candidate is tried first, and on which the better ones are compared.
const FIRST: usize = 40;
const SECOND: usize = 700;
/// Number of adders inferred from dots without values that get a rule for values, of candidates that are returned, and
/// of candidates that are compared on more dots.
const STARTS: usize = 3;
const KEPT: usize = 2;
const COMPARED: usize = 12;
/// Fraction bits of a rule for values.
const BITS: std::ops::RangeInclusive<i32> = 4..=60;

/// Finds the best adders with a rule for values for one addition of an untied tree, from the dots `about` that
/// addition. Returns nothing if the addition takes no c, or if the argument with c is zero in too few of the dots or in
/// all of them.
pub(in crate::identify) fn with_values_apart(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    (tree, node, class): (&Expression, usize, usize),
    bits: u32,
    about: &[usize],
) -> Vec<Scored> {
    let arguments = &tree.arguments_by_adder()[node];
    let Some(of_c) = arguments.iter().find(|leaves| leaves.contains(&Leaf::C)) else { return Vec::new() };
    let is_absent = |at: &usize| {
        let dot = &experiments.dots[*at];
        of_c.iter().all(|leaf| match leaf {
            Leaf::C => dot.c == 0,
            Leaf::Product(k) => dot.a[*k] == 0 || dot.b[*k] == 0,
        })
    };
    let without: Vec<usize> = about.iter().copied().filter(is_absent).collect();
    if without.len() < TELLING || without.len() == about.len() {
        return Vec::new();
    }
    let start = Scored { hypothesis: hypothesis.clone(), explained: 0 };
    let (first, second) = (spread(&without, FIRST), spread(&without, SECOND));
    let starts = sweep_class(experiments, vec![start], class, bits, &ON_THE_WAY, &first, &second);
    let (first, second) = (spread(about, FIRST), spread(about, SECOND));
    let others = classes_beside_c(hypothesis, tree, node);
    let mut quick: Vec<Scored> = Vec::new();
    for from in starts.into_iter().take(STARTS) {
        for adder in with_rules(&from.hypothesis.adders[class], &others) {
            let mut hypothesis = from.hypothesis.clone();
            hypothesis.adders.set(class, adder);
            let allowed =
                quick.get(COMPARED - 1).map_or(first.len(), |worst| (first.len() - worst.explained).saturating_sub(1));
            if let Some(explained) = explained(experiments, &hypothesis, &first, allowed) {
                let at = quick.partition_point(|known| known.explained >= explained);
                quick.insert(at, Scored { hypothesis, explained });
                quick.truncate(COMPARED);
            }
            if quick.last().is_some_and(|worst| quick.len() == COMPARED && worst.explained == first.len()) {
                break;
            }
        }
    }
    for scored in &mut quick {
        scored.explained = explained(experiments, &scored.hypothesis, &second, second.len()).unwrap_or(0);
    }
    best_first(&mut quick);
    quick.truncate(KEPT);
    quick
}

/// Returns the classes of the terms that an addition takes beside the argument with c: products, and sums that were not
/// rounded.
fn classes_beside_c(hypothesis: &Hypothesis, tree: &Expression, node: usize) -> Vec<Class> {
    let addition = tree.adders_by_addition().iter().position(|adder| *adder == node).unwrap_or(0);
    let (products, sums) = hypothesis.skeleton.expression.takes_beside_c(addition);
    let is_wide = |adder: &usize| hypothesis.adders[*adder].output == Output::Wide;
    let mut classes = Vec::new();
    classes.extend(products.then_some(Class::Products));
    classes.extend(sums.iter().any(is_wide).then_some(Class::Sums));
    classes
}

/// Returns variants of an adder, one for each rule for values. The rules that it has are kept for terms of the `others`
/// only.
fn with_rules(adder: &Adder, others: &[Class]) -> Vec<Adder> {
    let mut found = Vec::new();
    let others: Vec<GridRule> =
        others.iter().flat_map(|terms| adder.grid.iter().map(|rule| GridRule { terms: *terms, ..*rule })).collect();
    for below in std::iter::once(adder.below).chain(Below::values().filter(|below| *below != adder.below)) {
        for exponent in [Exponent::Operands, Exponent::Leading] {
            for fraction_bits in BITS {
                let own = GridRule { terms: Class::Values, exponent, fraction_bits, exponent_floor: None };
                let grid: Vec<GridRule> = others.iter().copied().chain([own]).collect();
                found.push(Adder { grid, below, ..adder.clone() });
            }
        }
    }
    found
}
