//! Question 6, its third part: can a larger c give a smaller result?
//!
//! Beside a c just below a power of two the grid is one place finer than beside that power. Small terms of the finer grid's
//! lowest bit survive there, and lose that bit beside the larger c: where they lose more than c gains, and a last place of
//! the result lies between, the sum goes down. Terms that are odd multiples of that bit lose it each, so that few of them
//! are enough where their multiples are chosen to reach a last place.

use mxprobe_api::Error;

use super::{
    Ask, Leaf, Probe, Subject,
    facts::{Facts, Kept, Structure},
    number::Number,
};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Finding, Shown},
};

pub(crate) const PROBE: Probe = Probe {
    name: "monotone",
    question: "Can a larger c give a smaller result?",
    how: "Pairs of inputs with the same products and growing c, made from what was found about alignment: equal small terms, \
         and odd multiples of the lowest bit that survives beside the smaller c.",
    answers: &[
        ("false", "a larger c gives a smaller result for the inputs shown: bisection and interval bounds may fail"),
        ("inconclusive", "no such pair was found; that is no proof that there is none"),
    ],
    source: "Fasi et al. (2021), section 3.1.4",
    applies_to: AppliesTo::Floating,
    shown: Shown::at_a_glance(8, "monotone"),
    ask: Ask::Along,
};

/// The most units of the finer grid in a last place of the result for which unequal terms are tried: beyond, more terms
/// would be needed than a block has.
const WIDEST_PLACE_UNITS: i32 = 64;

/// Asks pairs of dots that differ in c alone.
pub(super) fn ask(subject: &Subject<'_>, facts: &Facts, structure: &Structure) -> Result<Finding, Error> {
    let name = PROBE.name;
    let pairs = pairs(subject, facts, structure);
    let dots: Vec<Dot> = pairs.iter().flat_map(|(below, above)| [below.clone(), above.clone()]).collect();
    let answers = subject.ask(&dots)?;
    let value = |d: u64| subject.id().d.to_f64(d);
    let witness = answers.chunks(2).position(|pair| value(pair[0]) > value(pair[1]));
    let count = pairs.len();
    Ok(match witness {
        Some(at) => {
            let (below, above) = (&pairs[at].0, &pairs[at].1);
            let monotone = [("a monotone sum is at least".to_owned(), answers[2 * at])];
            let shown = vec![
                subject.evidence("the smaller c", below, answers[2 * at], &[]),
                subject.evidence("the larger c, the same products", above, answers[2 * at + 1], &monotone),
            ];
            let words = "not monotone: with the same products a larger c gives a smaller result".to_owned();
            Finding::measured(name, false, words).with(shown)
        }
        None if count == 0 => Finding::inconclusive(name, "no pair of inputs could be made"),
        None => {
            let reason = format!("no witness against it among {count} pairs made for this unit; that is no proof");
            Finding::inconclusive(name, reason)
        }
    })
}

/// Dots of the same products, the smaller c first: every depth of the small terms around what is kept, every count of
/// them, both signs, around a power of two; equal terms first.
fn pairs(subject: &Subject<'_>, facts: &Facts, structure: &Structure) -> Vec<(Dot, Dot)> {
    let products: Vec<usize> = structure.blocks.iter().find(|block| !block.is_empty()).cloned().unwrap_or_default();
    let c_fraction = subject.id().c.fraction_bits().cast_signed();
    let reach = facts.kept.map_or(c_fraction, Kept::at_least);
    // Every count up to a wide block's, then powers of two.
    let counts: Vec<usize> = (1..=products.len())
        .filter(|count| *count <= 24 || count.is_power_of_two() || *count == products.len())
        .collect();
    let (low, high) = subject.exponents(Leaf::Product(0));
    let exponent_of = |depth: i32| Some((low + depth).max(0)).filter(|exponent| exponent - depth <= high);
    let pair = |exponent: i32, side: i32, small: &[Number]| {
        let smaller = Number::power(exponent).plus(Number::power(exponent - 1 - c_fraction).negated());
        let below = if side == 1 { smaller } else { Some(Number::power(exponent).negated()) };
        let above = if side == 1 { Some(Number::power(exponent)) } else { smaller.map(Number::negated) };
        let dot = |c: Option<Number>| {
            let mut terms = vec![(Leaf::C, c?)];
            terms.extend(products.iter().zip(small).map(|(k, value)| (Leaf::Product(*k), *value)));
            subject.dot(&terms)
        };
        dot(below).zip(dot(above))
    };
    let mut pairs: Vec<(Dot, Dot)> = Vec::new();
    for depth in (reach - 14).max(1)..=reach + 4 {
        let Some(exponent) = exponent_of(depth) else { continue };
        for count in &counts {
            for side in [1, -1] {
                let small = vec![Number::power(exponent - depth).times(side); *count];
                pairs.extend(pair(exponent, side, &small));
            }
        }
    }
    // Units of the finer grid in one last place of the result.
    let result_bits = facts.result_fraction_bits.unwrap_or(subject.id().d.fraction_bits().cast_signed());
    let place = 1i32.checked_shl((reach + 1 - result_bits).max(0).unsigned_abs()).filter(|place| *place > 0);
    let Some(place) = place.filter(|place| *place <= WIDEST_PLACE_UNITS) else { return pairs };
    for depth in reach.max(1)..=reach + 2 {
        let Some(exponent) = exponent_of(depth) else { continue };
        for count in &counts {
            let odd = i32::try_from(*count).unwrap_or(i32::MAX);
            // The sum lies above one last place, and without a unit of each term below it.
            for sum in (odd + 2..=2 * place + odd).step_by(2) {
                for (side, sign) in [(1, 1), (-1, -1), (1, -1), (-1, 1)] {
                    let unit = Number::power(exponent - depth).times(sign);
                    let small: Vec<Number> = odd_parts(sum, odd).map(|part| unit.times(part)).collect();
                    pairs.extend(pair(exponent, side, &small));
                }
            }
        }
    }
    pairs
}

/// A sum in so many odd parts, as equal as can be, the larger ones first; both are odd or both even.
fn odd_parts(sum: i32, count: i32) -> impl Iterator<Item = i32> {
    let twos = (sum - count) / 2;
    let (each, more) = (twos / count, twos % count);
    (0..count).map(move |at| 1 + 2 * (each + i32::from(at < more)))
}

#[cfg(test)]
mod tests {
    use super::odd_parts;

    #[test]
    fn a_sum_falls_into_odd_parts_of_nearly_the_same_size() {
        assert!(odd_parts(6, 4).eq([3, 1, 1, 1]));
        assert!(odd_parts(12, 8).eq([3, 3, 1, 1, 1, 1, 1, 1]));
        assert!(odd_parts(12, 2).eq([7, 5]));
        for count in 1..20 {
            for sum in (count..60).step_by(2) {
                let parts: Vec<i32> = odd_parts(sum, count).collect();
                assert_eq!(parts.iter().sum::<i32>(), sum);
                assert!(parts.iter().all(|part| part % 2 == 1));
            }
        }
    }
}
