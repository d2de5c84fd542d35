//! Question 4: how results are rounded — into the format that is returned, once or twice, and between blocks.

use mxprobe_api::{Error, Rounding};

use super::{
    Ask, Leaf, Probe, Subject,
    facts::{Facts, Kept, product_for_c},
    number::Number,
    once,
};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Evidence, Finding, Shown, source},
};

pub(crate) const FRACTION_BITS: Probe = Probe {
    name: "rounding.fraction_bits",
    question: "How many fraction bits does the result really have?",
    how: "Sums whose lowest bit lies further and further down.",
    answers: &[
        ("the bits of D", "the result is as precise as its format"),
        ("fewer", "the declared format is a container only, as for e4m3 sums of 13 bits: add outside the unit often"),
    ],
    source: "Fasi et al. (2021), section 3.1.4; for sums of 8-bit formats, the DeepSeek-V3 technical report (2024)",
    applies_to: AppliesTo::Floating,
    shown: Shown::at_a_glance(4, "bits of D"),
    ask: Ask::Question(ask),
};

pub(crate) const RESULT: Probe = Probe {
    name: "rounding.result",
    question: "In which direction is the result rounded?",
    how: "Sums of one to three quarters of a last place, positive and negative, above even and odd values.",
    answers: &[
        ("RNE", "to nearest, ties to even: no bias"),
        ("RZ", "toward zero: errors lean one way and grow with the number of roundings, not with its root"),
        ("RD, RU", "toward −∞ or +∞: a bias of one sign"),
        ("RO", "to odd: safe to round again to a narrower format"),
        ("none", "not rounded where it was looked for"),
    ],
    source: "IEEE 754-2019, 4.3; Fasi et al. (2021), section 3.1.3",
    applies_to: AppliesTo::Floating,
    shown: Shown::at_a_glance(5, "rounding"),
    ask: Ask::Along,
};

pub(crate) const BETWEEN_BLOCKS: Probe = Probe {
    name: "rounding.between_blocks",
    question: "How is the sum of one block rounded before the next block?",
    how: "As rounding.result, in the sum of the first block, which a product of the next then cancels.",
    answers: &[
        ("RNE, RZ, RD, RU, RO", "the running sum is rounded so after each block; with RZ the bias grows with k"),
        ("none", "the running sum is handed on unrounded"),
    ],
    source: source::FASI,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

const DIRECTIONS: [(&str, Rounding); 5] = [
    ("RNE", Rounding::NearestEven),
    ("RZ", Rounding::TowardZero),
    ("RD", Rounding::Down),
    ("RU", Rounding::Up),
    ("RO", Rounding::ToOdd),
];

/// The description of a direction.
pub(super) fn words(name: &str) -> &'static str {
    match name {
        "RNE" => "to nearest, ties to even",
        "RZ" => "toward zero",
        "RD" => "toward −∞",
        "RU" => "toward +∞",
        _ => "to odd",
    }
}

/// A sum of 2^growth equal terms and a small one, spread over leaves that are added at one node.
///
/// The equal terms raise the result's exponent above that of every term, so that bits that survived alignment fall
/// below the result's last place.
#[derive(Clone, Debug)]
struct Sum {
    leaves: Vec<Leaf>,
    exponent: i32,
    growth: i32,
}

impl Sum {
    fn copies(&self) -> usize {
        1 << self.growth
    }

    /// The exponent of the sum.
    fn top(&self) -> i32 {
        self.exponent + self.growth
    }

    /// A dot with the equal terms, `extra` (added to c, or on a leaf of its own), and `small`.
    fn dot(
        &self,
        subject: &Subject<'_>,
        negative: bool,
        extra: Number,
        small: Number,
        last: Option<(Leaf, Number)>,
    ) -> Option<Dot> {
        let sign = if negative { -1 } else { 1 };
        let term = Number::power(self.exponent).times(sign);
        let mut terms: Vec<(Leaf, Number)> = self.leaves.iter().take(self.copies()).map(|leaf| (*leaf, term)).collect();
        let mut rest = self.leaves.iter().skip(self.copies());
        terms.push((*rest.next()?, small.times(sign)));
        if !extra.is_zero() {
            let extra = extra.times(sign);
            match terms.first_mut() {
                Some((Leaf::C, value)) => *value = value.plus(extra)?,
                _ => terms.push((*rest.next()?, extra)),
            }
        }
        terms.extend(last.map(|(leaf, value)| (leaf, value.times(sign))));
        let mut dot = subject.dot(&terms)?;
        if negative {
            // Some adders depend on the sign of a zero product: give it that of the sum.
            let minus = subject.id().a.negative_zero().unwrap_or(0);
            dot.a.iter_mut().filter(|bits| **bits == 0).for_each(|bits| *bits = minus);
        }
        Some(dot)
    }

    fn value(&self, negative: bool, extra: Number, small: Number) -> Option<Number> {
        let sum = Number::power(self.top()).plus(extra)?.plus(small)?;
        Some(if negative { sum.negated() } else { sum })
    }
}

/// Finds a site for sums whose result has `fraction_bits` fraction bits, with `below` more bits below its last place.
fn place(subject: &Subject<'_>, facts: &Facts, fraction_bits: i32, below: i32) -> Option<Sum> {
    let kept = facts.kept.unwrap_or(Kept::All(0));
    let site = facts.structure.as_ref().map(|structure| structure.site.clone()).unwrap_or_default();
    let beside_c = vec![Leaf::C, product_for_c(subject, facts)];
    // If fewer bits are kept than the result has, a block after the sum would cut it again: only the last block's
    // products will do.
    let last: Vec<Leaf> = facts
        .structure
        .as_ref()
        .and_then(|structure| structure.tree.as_ref())
        .map(super::Tree::direct_leaves)
        .unwrap_or_default();
    let cuts = matches!(kept, Kept::Bits(bits) if bits < subject.id().d.fraction_bits().cast_signed());
    let sites = if cuts { vec![last, site] } else { vec![beside_c.clone(), site] };
    let (low, high) = subject.exponents(beside_c[1]);
    for growth in 0..=6 {
        if let Kept::Bits(bits) = kept
            && bits + growth < fraction_bits + below
        {
            continue;
        }
        for leaves in &sites {
            let sum = |exponent| Sum { leaves: leaves.clone(), exponent, growth };
            // The smallest term must fit a product; so must the equal ones if they are products.
            let lowest = low + fraction_bits + below - growth;
            let candidates = [lowest.max(0), lowest, high - growth, 0];
            let fits = |exponent: &i32| {
                let sum = sum(*exponent);
                let unit = sum.top() - fraction_bits;
                let small = Number::power(unit - below);
                sum.dot(subject, false, Number::power(unit), small, None).is_some()
                    && sum.dot(subject, true, Number::ZERO, Number::new(3, unit - below.max(1)), None).is_some()
            };
            if let Some(exponent) = candidates.into_iter().find(fits) {
                return Some(sum(exponent));
            }
        }
    }
    None
}

pub(super) fn ask(subject: &Subject<'_>, facts: &mut Facts, found: &mut Vec<Finding>) -> Result<(), Error> {
    found.push(precision(subject, facts)?);
    let Some(fraction_bits) = facts.result_fraction_bits else {
        found.push(Finding::inconclusive(RESULT.name, "no sum is longer than what the result holds"));
        return Ok(());
    };
    let sum = place(subject, facts, fraction_bits, 2).map(|sum| (sum, 2));
    let sum = sum.or_else(|| place(subject, facts, fraction_bits, 1).map(|sum| (sum, 1)));
    let Some((sum, below)) = sum else {
        found.push(Finding::inconclusive(
            RESULT.name,
            "no bit that survives alignment falls below the result's last place",
        ));
        return Ok(());
    };
    let (finding, direction) = direction(subject, RESULT.name, &sum, fraction_bits, below, None)?;
    facts.rounding = direction;
    found.push(finding);
    found.push(once::ask(subject, facts, fraction_bits)?);
    found.push(between_blocks(subject, facts, fraction_bits)?);
    Ok(())
}

/// Finds how many fraction bits of the result are used: the longest sum that is returned exactly.
fn precision(subject: &Subject<'_>, facts: &mut Facts) -> Result<Finding, Error> {
    let name = FRACTION_BITS.name;
    let declared = subject.id().d.fraction_bits().cast_signed();
    let Some(sum) = (1..=declared).rev().find_map(|bits| place(subject, facts, bits, 0)) else {
        return Ok(Finding::inconclusive(name, "no two terms add up to more than one bit"));
    };
    let mut dots = Vec::new();
    let mut wanted = Vec::new();
    for bits in 1..=declared + 1 {
        let small = Number::power(sum.top() - bits);
        let Some(dot) = sum.dot(subject, false, Number::ZERO, small, None) else { continue };
        let Some(value) = sum.value(false, Number::ZERO, small) else { continue };
        dots.push(dot);
        wanted.push((bits, value));
    }
    let answers = subject.ask(&dots)?;
    let whole = wanted.iter().zip(&answers).take_while(|((_, value), d)| subject.d_value(**d) == Some(*value)).count();
    let Some(((bits, _), dot, d)) = whole.checked_sub(1).map(|at| (wanted[at], &dots[at], answers[at])) else {
        let shown = dots.first().map(|dot| subject.evidence("a sum of two bits", dot, answers[0], &[]));
        return Ok(
            Finding::inconclusive(name, "not even a sum of two bits comes back").with(shown.into_iter().collect())
        );
    };
    let mut shown = vec![subject.evidence(format!("a sum whose lowest bit is {bits} places down: whole"), dot, d, &[])];
    if let (Some((next, _)), Some(dot)) = (wanted.get(whole), dots.get(whole)) {
        let rivals: Vec<_> =
            subject.d_bits(wanted[whole].1).map(|d| (format!("{next} bits kept"), d)).into_iter().collect();
        shown.push(subject.evidence(
            format!("a sum whose lowest bit is {next} places down"),
            dot,
            answers[whole],
            &rivals,
        ));
    }
    if whole == dots.len() && bits < declared {
        return through_c(subject, facts, shown);
    }
    // A bit that was not returned may have been lost at alignment: then the grid is the limit.
    let reach = match facts.kept {
        Some(Kept::Bits(kept)) => kept + sum.growth,
        _ => i32::MAX,
    };
    if bits >= declared {
        facts.result_fraction_bits = Some(declared);
        let statement = format!("the result has all {declared} fraction bits of {}", subject.id().d);
        return Ok(Finding::measured(name, declared, statement).with(shown));
    }
    if bits >= reach {
        let reason = format!("alignment leaves {bits} bits; the result holds them all and may hold more");
        return Ok(Finding::inconclusive(name, reason).with(shown));
    }
    facts.result_fraction_bits = Some(bits);
    let statement = format!("the result has {bits} fraction bits, not the {declared} of {}", subject.id().d);
    Ok(Finding::measured(name, bits, statement).with(shown))
}

/// Products are too close in magnitude to make a long sum: tests how many bits of c alone are returned.
fn through_c(subject: &Subject<'_>, facts: &mut Facts, mut shown: Vec<Evidence>) -> Result<Finding, Error> {
    let name = FRACTION_BITS.name;
    let (c, d) = (subject.id().c, subject.id().d);
    let bits = c.fraction_bits().min(d.fraction_bits()).cast_signed();
    let value = |bits: i32| Number::power(0).plus(Number::power(-bits)).unwrap_or(Number::ZERO);
    let dots: Option<Vec<Dot>> = (1..=bits).map(|bits| subject.dot(&[(Leaf::C, value(bits))])).collect();
    let Some(dots) = dots else { return Ok(Finding::inconclusive(name, "c cannot hold 1 and a low bit")) };
    let answers = subject.ask(&dots)?;
    let whole = (1..=bits).zip(&answers).take_while(|(bits, d)| subject.d_value(**d) == Some(value(*bits))).count();
    let seen = i32::try_from(whole).unwrap_or(0);
    if let (Some(dot), Some(d)) = (dots.get(whole.saturating_sub(1)), answers.get(whole.saturating_sub(1))) {
        shown.push(subject.evidence(format!("c = 1 + 2^-{seen}, every product zero"), dot, *d, &[]));
    }
    if seen == d.fraction_bits().cast_signed() {
        facts.result_fraction_bits = Some(seen);
        return Ok(Finding::measured(name, seen, format!("the result has all {seen} fraction bits of {d}")).with(shown));
    }
    Ok(Finding::inconclusive(name, format!("{seen} fraction bits are seen; no longer sum can be made")).with(shown))
}

/// Tests sums one to three quarters of a last place above even and odd values, positive and negative.
fn direction(
    subject: &Subject<'_>,
    name: &str,
    sum: &Sum,
    fraction_bits: i32,
    below: i32,
    last: Option<Leaf>,
) -> Result<(Finding, Option<Rounding>), Error> {
    let unit = sum.top() - fraction_bits;
    let last = last.map(|leaf| (leaf, Number::power(sum.top()).negated()));
    let quarters: &[i32] = if below >= 2 { &[1, 2, 3] } else { &[2] };
    let mut cases = Vec::new();
    let mut dots = Vec::new();
    for negative in [false, true] {
        for odd in [false, true] {
            for quarter in quarters {
                let extra = if odd { Number::power(unit) } else { Number::ZERO };
                let small = Number::new(i128::from(*quarter), unit - 2);
                let Some(dot) = sum.dot(subject, negative, extra, small, last) else { continue };
                let Some(value) = sum.value(negative, extra, small) else { continue };
                let about = format!(
                    "{}a sum {quarter}/4 of a last place above an {} value{}",
                    if negative { "minus " } else { "" },
                    if odd { "odd" } else { "even" },
                    if last.is_some() { ", less the large part in the next block" } else { "" }
                );
                cases.push((value, negative, about));
                dots.push(dot);
            }
        }
    }
    // The remnant of cancelling the large part when nothing is rounded.
    let mut all = dots.clone();
    for negative in [false, true] {
        all.extend(sum.dot(subject, negative, Number::ZERO, Number::ZERO, last));
    }
    let mut answers = subject.ask(&all)?;
    let bare = answers.split_off(dots.len());
    let bare_value = |negative: bool| {
        let bits = bare.get(usize::from(negative)).copied().unwrap_or(0);
        subject.d_value(bits).unwrap_or(Number::ZERO)
    };
    let large = |negative: bool| Number::power(sum.top()).times(if negative { -1 } else { 1 });
    let predicted = |value: Number, negative: bool, rounding: Rounding| {
        let rounded = value.rounded(unit, rounding);
        let more = (rounded - large(negative)).unwrap_or(Number::ZERO);
        bare_value(negative).plus(more)
    };
    let fits = |rounding: Rounding| {
        cases.iter().zip(&answers).all(|((value, negative, _), d)| {
            subject.d_value(*d).is_some() && subject.d_value(*d) == predicted(*value, *negative, rounding)
        })
    };
    let matching: Vec<(&str, Rounding)> = DIRECTIONS.into_iter().filter(|(_, rounding)| fits(*rounding)).collect();
    let unrounded = last.is_some()
        && cases.iter().zip(&answers).all(|((value, negative, _), d)| {
            let more = (*value - large(*negative)).unwrap_or(Number::ZERO);
            subject.d_value(*d).is_some() && subject.d_value(*d) == bare_value(*negative).plus(more)
        });
    let shown = dots.iter().zip(&answers).zip(&cases).filter(|(_, (_, negative, _))| !negative || below < 2).map(
        |((dot, d), (value, negative, about))| {
            let rivals: Vec<(String, u64)> = DIRECTIONS
                .iter()
                .filter(|(name, _)| !matching.iter().any(|(match_name, _)| match_name == name))
                .filter_map(|(name, rounding)| {
                    Some(((*name).to_owned(), subject.d_bits(predicted(*value, *negative, *rounding)?)?))
                })
                .filter(|(_, predicted)| predicted != d)
                .collect();
            subject.evidence(about.clone(), dot, *d, &rivals)
        },
    );
    let shown: Vec<_> = shown.collect();
    Ok(match matching[..] {
        [(direction, rounding)] if !cases.is_empty() => {
            let statement = format!("rounded {} ({direction})", words(direction));
            (Finding::measured(name, direction, statement).with(shown), Some(rounding))
        }
        _ if unrounded => (Finding::measured(name, "none", "not rounded").with(shown), None),
        _ => (Finding::inconclusive(name, "the answers fit none of RNE, RZ, RD, RU, RO").with(shown), None),
    })
}

fn between_blocks(subject: &Subject<'_>, facts: &Facts, fraction_bits: i32) -> Result<Finding, Error> {
    let name = BETWEEN_BLOCKS.name;
    let Some(structure) = &facts.structure else { return Ok(Finding::inconclusive(name, "the order is not known")) };
    let Some(later) = structure.blocks.get(1).and_then(|block| block.first()).filter(|_| structure.tree.is_some())
    else {
        return Ok(Finding::unsupported(name, "there is one block"));
    };
    let first_block: Vec<Leaf> = structure.blocks[0].iter().map(|k| Leaf::Product(*k)).collect();
    let in_first = |sum: &Sum| sum.leaves.iter().all(|leaf| *leaf == Leaf::C || first_block.contains(leaf));
    let sum = [2, 1].into_iter().find_map(|below| Some((place(subject, facts, fraction_bits, below)?, below)));
    let Some((mut sum, below)) = sum else {
        return Ok(Finding::inconclusive(name, "no bit falls below the last place of the first block's sum"));
    };
    if !in_first(&sum) {
        sum.leaves = [Leaf::C].into_iter().chain(first_block).collect();
    }
    let (mut finding, direction) = direction(subject, name, &sum, fraction_bits, below, Some(Leaf::Product(*later)))?;
    if direction.is_some() {
        finding.statement = format!("the sum of one block is {} before the next", finding.statement);
    } else if finding.is("none") {
        finding.statement = "the sum is not rounded between blocks".into();
    }
    Ok(finding)
}
