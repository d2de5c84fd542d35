//! A grid for values beside another for products or sums: what one of them keeps shows only where the other is out of the way.
//! Dots in which no value joins tell the second, and whatever rounds; the rule for values is then one of few.

use mxprobe_models::{Adder, Below, Choices, Class, Exponent, GridRule};

use super::{
    experiments::Experiments,
    expression::Expression,
    hypothesis::{Hypothesis, ON_THE_WAY},
    scored::{Scored, explained, spread},
    search::sweep_class,
};
use crate::probes::Leaf;

/// Dots without values from which an adder is told at the least.
const TELLING: usize = 24;
/// Dots on which every candidate is tried first, and on which the better ones are compared.
const FIRST: usize = 40;
const SECOND: usize = 700;
/// Adders told from dots without values that get a rule for values, and candidates that are kept.
const STARTS: usize = 3;
const KEPT: usize = 2;
const COMPARED: usize = 12;
/// Fraction bits of a rule for values.
const BITS: std::ops::RangeInclusive<i32> = 4..=60;

/// The best adders of one addition that have a rule for values, told from the dots `about` that addition of an untied tree.
pub(super) fn with_values_apart(
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
    let mut quick: Vec<Scored> = Vec::new();
    for from in starts.into_iter().take(STARTS) {
        for adder in with_rules(&from.hypothesis.adders[class]) {
            let mut hypothesis = from.hypothesis.clone();
            hypothesis.adders[class] = adder;
            let allowed = quick.get(COMPARED - 1).map_or(first.len(), |worst| first.len() - worst.explained - 1);
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
    quick.sort_by_key(|scored| std::cmp::Reverse(scored.explained));
    quick.truncate(KEPT);
    quick
}

/// An adder with every rule for values alone, beside those that it has.
fn with_rules(adder: &Adder) -> Vec<Adder> {
    let mut found = Vec::new();
    let others: Vec<GridRule> = adder.grid.iter().map(|rule| GridRule { terms: Class::Products, ..*rule }).collect();
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
