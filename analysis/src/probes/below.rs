//! Question 3, second part: how the bits that are shifted out at alignment are treated.

use mxprobe_api::Error;

use super::{Ask, Leaf, Probe, Subject, facts::Structure, number::Number};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Finding, Shown, source},
};

pub(crate) const PROBE: Probe = Probe {
    name: "alignment.below",
    question: "What becomes of the bits that are shifted out: truncated, floored, rounded, kept as sticky?",
    how: "Sums with one to three quarters of the lowest bit kept, of both signs.",
    answers: &[
        ("truncate", "dropped from the magnitude: errors lean toward zero and do not cancel over many products"),
        ("floor", "rounded toward −∞: a bias of one sign"),
        ("ceiling", "rounded toward +∞: a bias of one sign"),
        ("ones-complement", "dropped, and a term whose sign differs from c's is off by one in the lowest bit kept"),
        ("nearest", "rounded: no bias"),
        ("sticky", "remembered: the final rounding is right as if nothing was lost"),
    ],
    source: source::FASI,
    applies_to: AppliesTo::Floating,
    shown: Shown::at_a_glance(3, "bits below"),
    ask: Ask::Along,
};

/// The result of cutting a term of so many quarters of the grid's unit, in units; a one's complement depends on c's
/// sign.
type Rule = fn(quarters: i32, c_is_negative: bool) -> i32;

/// The rules for bits below the grid, each with its result for a term of `quarters`/4 of the grid's unit.
const RULES: [(&str, Rule); 6] = [
    ("truncate", |quarters, _| quarters / 4),
    ("floor", |quarters, _| quarters.div_euclid(4)),
    (
        "ones-complement",
        |quarters, c_is_negative| {
            if c_is_negative { -(-quarters).div_euclid(4) } else { quarters.div_euclid(4) }
        },
    ),
    ("nearest", |quarters, _| {
        let (whole, rest) = (quarters.div_euclid(4), quarters.rem_euclid(4));
        whole + i32::from(rest > 2 || (rest == 2 && whole % 2 != 0))
    }),
    ("sticky", |quarters, _| {
        let (whole, rest) = (quarters.abs() / 4, quarters.abs() % 4);
        (whole | i32::from(rest != 0)) * quarters.signum()
    }),
    ("ceiling", |quarters, _| -(-quarters).div_euclid(4)),
];

/// Asks for sums with one to three quarters of the lowest bit kept.
pub(super) fn ask(
    subject: &Subject<'_>,
    structure: &Structure,
    (large, opposite, small): (Leaf, Leaf, Leaf),
    bits: i32,
) -> Result<Finding, Error> {
    let (large, opposite, small) = match (small, &structure.site[..]) {
        (Leaf::C, [_, first, second, ..]) => (Leaf::C, *first, *second),
        _ => (large, opposite, small),
    };
    let unit = -bits;
    let (low, high) = subject.exponents(small);
    let (_, large_high) = subject.exponents(large);
    let top = large_high.min(high).min((low + bits + 4).max(bits / 2)).min(subject.exponents(opposite).1);
    let value = Number::power(top);
    let quarters = [1, 2, 3, 6, -1, -2, -3, -6];
    let mut dots = Vec::new();
    let mut keys = Vec::new();
    // If c is one of the three terms, it is the large one, with either sign; otherwise c is a zero of either sign.
    let c_is_large = large == Leaf::C;
    for c_is_negative in [false, true] {
        let value = if c_is_large && c_is_negative { value.negated() } else { value };
        let mut base = vec![(large, value), (opposite, value.negated())];
        // Zeros take c's sign, because a one's complement depends on the sign of a zero product.
        let minus = subject.id().a.negative_zero().unwrap_or(0);
        let sign_of_c = |mut dot: Dot| {
            if c_is_negative {
                dot.a.iter_mut().filter(|bits| **bits == 0).for_each(|bits| *bits = minus);
                if !c_is_large {
                    dot.c = subject.id().c.negative_zero().unwrap_or(0);
                }
            }
            dot
        };
        dots.extend(subject.dot(&base).map(sign_of_c));
        keys.push((c_is_negative, 0));
        for quarter in quarters {
            base.truncate(2);
            base.push((small, Number::new(i128::from(quarter), top + unit - 2)));
            let Some(dot) = subject.dot(&base) else { continue };
            dots.push(sign_of_c(dot));
            keys.push((c_is_negative, quarter));
        }
    }
    if dots.len() != keys.len() || !keys.iter().any(|(_, quarter)| *quarter < 0) {
        return Ok(Finding::inconclusive(PROBE.name, "no term lies below the grid"));
    }
    let answers = subject.ask(&dots)?;
    let mut bare = None;
    let mut seen = Vec::new();
    for ((c_is_negative, quarter), d) in keys.iter().zip(&answers) {
        let found = subject.d_value(*d);
        if *quarter == 0 {
            bare = found;
        }
        seen.push((*c_is_negative, *quarter, found.zip(bare).and_then(|(value, bare)| value - bare)));
    }
    let predicted = |rule: Rule, c_is_negative: bool, quarter: i32| {
        Number::new(i128::from(rule(quarter, c_is_negative)), top + unit)
    };
    let fits = |rule: Rule| {
        seen.iter()
            .all(|(negative, quarter, found)| *quarter == 0 || *found == Some(predicted(rule, *negative, *quarter)))
    };
    let matching: Vec<&str> = RULES.iter().filter(|(_, rule)| fits(*rule)).map(|(name, _)| *name).collect();
    let mut shown = Vec::new();
    for ((dot, d), (negative, quarter, _)) in dots.iter().zip(&answers).zip(&seen) {
        let wanted = [2, 3, -1, -2].contains(quarter) && (!negative || *quarter == 2);
        if !wanted {
            continue;
        }
        let of_bare = seen.iter().zip(&answers).find(|((sign, quarter, _), _)| sign == negative && *quarter == 0);
        let bare = of_bare.and_then(|(_, d)| subject.d_value(*d)).unwrap_or(Number::ZERO);
        let rivals: Vec<(String, u64)> = RULES
            .iter()
            .filter(|(name, _)| !matching.contains(name))
            .filter_map(|(name, rule)| {
                let value = bare.plus(predicted(*rule, *negative, *quarter))?;
                Some(((*name).to_owned(), subject.d_bits(value)?))
            })
            .filter(|(_, predicted)| predicted != d)
            .collect();
        let sign = if *negative { ", c negative" } else { "" };
        shown.push(subject.evidence(format!("M − M + {quarter}/4 of the lowest bit kept{sign}"), dot, *d, &rivals));
    }
    let words = |rule: &str| match rule {
        "truncate" => "dropped from the magnitude (truncation; no sticky bit)",
        "floor" => "rounded down, toward −∞",
        "ones-complement" => "dropped, and a term whose sign differs from c's is added as its one's complement",
        "nearest" => "rounded to nearest, ties to even",
        "sticky" => "kept as a sticky bit",
        _ => "rounded up, toward +∞",
    };
    Ok(match matching[..] {
        [rule] => Finding::measured(PROBE.name, rule, format!("bits below the grid are {}", words(rule))).with(shown),
        _ => Finding::inconclusive(
            PROBE.name,
            "the answers fit none of truncation, floor, ceiling, one's complement, nearest, sticky",
        )
        .with(shown),
    })
}
