//! Question 9, for integers: are sums exact, do they wrap or saturate, and does that happen once, at the end?

use mxprobe_api::{Encoding, Error, Format};

use super::{Ask, Probe, Subject};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Finding, Shown, source},
};

pub(crate) const EXACT: Probe = Probe {
    name: "integers.exact",
    question: "Are integer sums exact?",
    how: "Extreme operands, once and at every k, beside a c of middle size, where the sum is within range.",
    answers: &[("true", "integer sums are exact"), ("false", "a sum within range is wrong")],
    source: source::OWN,
    applies_to: AppliesTo::Integers,
    shown: Shown::at_a_glance(1, "exact"),
    ask: Ask::Question(|subject, _, found| ask(subject, found)),
};

pub(crate) const OVERFLOW: Probe = Probe {
    name: "integers.overflow",
    question: "Do integer sums wrap or saturate?",
    how: "Sums beyond both ends of the range.",
    answers: &[
        ("wraps", "modulo a power of two: intermediate overflow is harmless if the last sum fits"),
        ("saturates", "clamped to the ends of the range"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Integers,
    shown: Shown::at_a_glance(2, "overflow"),
    ask: Ask::Along,
};

pub(crate) const SATURATION_STAGE: Probe = Probe {
    name: "integers.saturation_stage",
    question: "Does the whole sum saturate, or each step?",
    how: "A sum that leaves the range and comes back.",
    answers: &[
        ("once", "only the whole sum is clamped"),
        ("staged", "a partial sum is clamped first: the result depends on the order"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Integers,
    shown: Shown::at_a_glance(3, "saturation"),
    ask: Ask::Along,
};

pub(super) fn ask(subject: &Subject<'_>, found: &mut Vec<Finding>) -> Result<(), Error> {
    found.push(exact(subject)?);
    found.push(overflow(subject)?);
    found.push(staged(subject)?);
    Ok(())
}

fn value(format: Format, bits: u64) -> i128 {
    match format.encoding() {
        Encoding::Integer { bits: width, signed } if signed && bits >> (width - 1) & 1 == 1 => {
            i128::from(bits & format.mask()) - (1 << width)
        }
        _ => i128::from(bits & format.mask()),
    }
}

fn sum(subject: &Subject<'_>, dot: &Dot) -> i128 {
    let id = subject.id();
    let products = dot.a.iter().zip(&dot.b).map(|(a, b)| value(id.a, *a) * value(id.b, *b));
    products.sum::<i128>() + value(id.c, dot.c)
}

fn wrapped(format: Format, sum: i128) -> u64 {
    u64::try_from(sum.rem_euclid(1 << format.bits())).unwrap_or(0)
}

fn saturated(format: Format, sum: i128) -> u64 {
    let (low, high) = (value(format, format.largest(true)), value(format, format.largest(false)));
    wrapped(format, sum.clamp(low, high))
}

/// Tests every extreme of the operands at every k, with c in the middle of its range.
fn exact(subject: &Subject<'_>) -> Result<Finding, Error> {
    let id = subject.id();
    let extremes = |format: Format| [format.largest(true), format.largest(false), 1, format.mask() / 3];
    let mut dots = Vec::new();
    for a in extremes(id.a) {
        for b in extremes(id.b) {
            for count in [1, subject.k()] {
                let mut dot = subject.zeros();
                dot.a.iter_mut().take(count).for_each(|bits| *bits = a & id.a.mask());
                dot.b.iter_mut().take(count).for_each(|bits| *bits = b & id.b.mask());
                dot.c = 1 << (id.c.bits() / 2);
                dots.push(dot);
            }
        }
    }
    let (low, high) = (value(id.d, id.d.largest(true)), value(id.d, id.d.largest(false)));
    dots.retain(|dot| (low..=high).contains(&sum(subject, dot)));
    let answers = subject.ask(&dots)?;
    let wrong = dots.iter().zip(&answers).position(|(dot, d)| *d != wrapped(id.d, sum(subject, dot)));
    let at = wrong.unwrap_or(dots.len() - 1);
    let expected = wrapped(id.d, sum(subject, &dots[at]));
    let rivals = if wrong.is_some() { vec![("the exact sum".to_owned(), expected)] } else { Vec::new() };
    let shown = vec![subject.evidence("extreme operands at every k", &dots[at], answers[at], &rivals)];
    Ok(match wrong {
        None => {
            Finding::measured(EXACT.name, true, format!("exact on {} sums of extreme operands", dots.len())).with(shown)
        }
        Some(_) => Finding::measured(EXACT.name, false, "a sum within range is wrong").with(shown),
    })
}

/// Tests sums just beyond and far beyond each end of the range.
fn overflow(subject: &Subject<'_>) -> Result<Finding, Error> {
    let name = OVERFLOW.name;
    let id = subject.id();
    let mut dots = Vec::new();
    for (c, negative) in [(id.c.largest(false), false), (id.c.largest(true), true)] {
        for count in [1, subject.k()] {
            // Products of the largest magnitude with c's sign, one or k of them.
            let signed = matches!(id.a.encoding(), Encoding::Integer { signed: true, .. });
            let b_signed = matches!(id.b.encoding(), Encoding::Integer { signed: true, .. });
            let (a, b) = match (negative, signed, b_signed) {
                (false, ..) => (id.a.largest(false), id.b.largest(false)),
                (true, true, _) => (id.a.largest(true), id.b.largest(false)),
                (true, false, true) => (id.a.largest(false), id.b.largest(true)),
                (true, false, false) => continue,
            };
            let mut dot = subject.zeros();
            dot.a.iter_mut().take(count).for_each(|bits| *bits = a);
            dot.b.iter_mut().take(count).for_each(|bits| *bits = b);
            dot.c = c;
            dots.push(dot);
        }
    }
    let answers = subject.ask(&dots)?;
    let fits =
        |rule: fn(Format, i128) -> u64| dots.iter().zip(&answers).all(|(dot, d)| *d == rule(id.d, sum(subject, dot)));
    let shown: Vec<_> = dots
        .iter()
        .zip(&answers)
        .map(|(dot, d)| {
            let sum = sum(subject, dot);
            let rivals = [("wraps".to_owned(), wrapped(id.d, sum)), ("saturates".to_owned(), saturated(id.d, sum))];
            subject.evidence("a sum beyond the range of d", dot, *d, &rivals)
        })
        .collect();
    Ok(if fits(wrapped) {
        let words = format!("wraps modulo 2^{}", id.d.bits());
        Finding::measured(name, "wraps", words).with(shown)
    } else if fits(saturated) {
        Finding::measured(name, "saturates", "saturates at the ends of the range").with(shown)
    } else {
        Finding::inconclusive(name, "the sums neither wrap nor saturate").with(shown)
    })
}

/// Tests c at the top, with a product that leaves the range and one that returns, in both orders of k.
fn staged(subject: &Subject<'_>) -> Result<Finding, Error> {
    let name = SATURATION_STAGE.name;
    let id = subject.id();
    let signed = |format: Format| matches!(format.encoding(), Encoding::Integer { signed: true, .. });
    if subject.k() < 2 || !(signed(id.a) || signed(id.b)) || !signed(id.d) {
        return Ok(Finding::unsupported(name, "no product takes another one back"));
    }
    let (minus_a, minus_b) = if signed(id.a) { (id.a.mask(), 1) } else { (1, id.b.mask()) };
    let last = subject.k() - 1;
    let mut dots = Vec::new();
    for (up, down) in [(0, last), (last, 0)] {
        let mut dot = subject.zeros();
        dot.c = id.c.largest(false);
        (dot.a[up], dot.b[up]) = (1, 1);
        (dot.a[down], dot.b[down]) = (minus_a, minus_b);
        dots.push(dot);
    }
    let answers = subject.ask(&dots)?;
    let whole = id.d.largest(false);
    let staged = whole - 1;
    let shown: Vec<_> = dots
        .iter()
        .zip(&answers)
        .map(|(dot, d)| {
            let rivals =
                [("the exact sum, saturated once".to_owned(), whole), ("saturated after a step".to_owned(), staged)];
            subject.evidence("the largest c, +1 and −1", dot, *d, &rivals)
        })
        .collect();
    Ok(if answers.iter().all(|d| *d == whole) {
        Finding::measured(name, "once", "only the whole sum meets the ends of the range").with(shown)
    } else if answers.iter().all(|d| *d == whole || *d == staged) {
        Finding::measured(name, "staged", "a partial sum saturates before the rest is added").with(shown)
    } else {
        Finding::inconclusive(name, "the sums are neither").with(shown)
    })
}
