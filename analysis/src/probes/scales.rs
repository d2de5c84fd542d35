//! Question 9, for block scales: do they multiply exactly, which k does one scale cover, and what do zero and NaN
//! scales give?

use mxprobe_api::{Decoded, Error, Format};

use super::{Ask, Probe, Subject, number::Number};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Finding, Shown, Value, source},
};

pub(crate) const VALUE: Probe = Probe {
    name: "scales.value",
    question: "Do block scales multiply exactly?",
    how: "Codes of the scale beside a product of 1, on A and on B.",
    answers: &[("exact", "a scale multiplies exactly"), ("inexact", "a scale is rounded or clamped on the way")],
    source: source::MICROSCALING,
    applies_to: AppliesTo::BlockScales,
    shown: Shown::PLAIN,
    ask: Ask::Question(|subject, _, found| ask(subject, found)),
};

pub(crate) const COVER: Probe = Probe {
    name: "scales.cover",
    question: "Which k does one block scale cover?",
    how: "A scale of 2 on each block in turn, and a product of 1 at each k.",
    answers: &[
        ("a number", "so many consecutive k share one scale"),
        ("other", "scales act on other k than the id declares"),
    ],
    source: "OCP Microscaling Formats Specification 1.0, section 5",
    applies_to: AppliesTo::BlockScales,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(crate) const SPECIALS: Probe = Probe {
    name: "scales.specials",
    question: "What do a zero and a NaN scale give?",
    how: "Zero and NaN codes of the scale.",
    answers: &[("NaN bits", "a NaN scale shows in the result"), ("a number", "the code counts as an ordinary value")],
    source: source::MICROSCALING,
    applies_to: AppliesTo::BlockScales,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(super) fn ask(subject: &Subject<'_>, found: &mut Vec<Finding>) -> Result<(), Error> {
    let Some(scale) = subject.id().block_scale() else { return Ok(()) };
    found.push(value(subject, scale.format)?);
    found.push(cover(subject, scale.format, scale.block)?);
    found.push(specials(subject, scale.format)?);
    Ok(())
}

fn one(subject: &Subject<'_>, k: usize) -> Dot {
    let mut dot = subject.zeros();
    (dot.a[k], dot.b[k]) = (subject.id().a.one(), subject.id().b.one());
    dot
}

/// Tests every code of the scale, on A and on B, with a product of 1.
fn value(subject: &Subject<'_>, format: Format) -> Result<Finding, Error> {
    let name = VALUE.name;
    let codes: Vec<u64> =
        (0..=format.mask()).filter(|bits| matches!(format.decode(*bits), Decoded::Finite { .. })).collect();
    let mut dots = Vec::new();
    let mut wanted = Vec::new();
    for code in codes {
        for of_a in [true, false] {
            let mut dot = one(subject, 0);
            let Some((a, b)) = &mut dot.scales else { continue };
            if of_a {
                a[0] = code
            } else {
                b[0] = code
            }
            let Some(bits) = Number::decode(format, code).and_then(|value| subject.d_bits(value)) else { continue };
            wanted.push(bits);
            dots.push(dot);
        }
    }
    let answers = subject.ask(&dots)?;
    let wrong = wanted.iter().zip(&answers).position(|(wanted, d)| wanted != d);
    let at = wrong.unwrap_or(dots.len() / 2);
    let rivals = if wrong.is_some() {
        vec![("scaled exactly".to_owned(), wanted[at])]
    } else {
        vec![("not scaled".to_owned(), subject.id().d.one())]
    };
    let shown = vec![subject.evidence("a product of 1 and a scale", &dots[at], answers[at], &rivals)];
    Ok(if wrong.is_none() {
        let words = format!("each of the {} codes tried multiplies a product exactly, on A and on B", dots.len());
        Finding::measured(name, "exact", words).with(shown)
    } else {
        Finding::measured(name, "inexact", "a scale does not multiply a product exactly").with(shown)
    })
}

/// Tests a scale of 2 on each block in turn, with a product of 1 at each k.
fn cover(subject: &Subject<'_>, format: Format, block: usize) -> Result<Finding, Error> {
    let name = COVER.name;
    let two = Number::power(1);
    let Some(code) = (0..=format.mask()).find(|bits| Number::decode(format, *bits) == Some(two)) else {
        return Ok(Finding::unsupported(name, "the scale format has no 2"));
    };
    let blocks = subject.k().div_ceil(block);
    let mut dots = Vec::new();
    let mut keys = Vec::new();
    for scaled in 0..blocks {
        for k in 0..subject.k() {
            let mut dot = one(subject, k);
            if let Some((a, _)) = &mut dot.scales {
                a[scaled] = code;
            }
            dots.push(dot);
            keys.push((scaled, k));
        }
    }
    let answers = subject.ask(&dots)?;
    let doubled = subject.d_bits(two).unwrap_or(0);
    let one = subject.id().d.one();
    let right = |(scaled, k): (usize, usize), d: u64| d == if k / block == scaled { doubled } else { one };
    let wrong = keys.iter().zip(&answers).position(|(key, d)| !right(*key, *d));
    let at = wrong.unwrap_or(0);
    let rivals = [("this k is not scaled".to_owned(), one)];
    let shown =
        vec![subject.evidence("a product of 1 at one k, a scale of 2 on one block", &dots[at], answers[at], &rivals)];
    Ok(match wrong {
        None => Finding::measured(name, block, format!("one scale covers {block} consecutive k")).with(shown),
        Some(at) => {
            let words = format!("a scale on block {} does not act at k = {} as declared", keys[at].0, keys[at].1);
            Finding::measured(name, "other", words).with(shown)
        }
    })
}

fn specials(subject: &Subject<'_>, format: Format) -> Result<Finding, Error> {
    let name = SPECIALS.name;
    let mut dots = Vec::new();
    let mut abouts = Vec::new();
    for (about, code) in [
        ("a zero scale", (0..=format.mask()).find(|bits| matches!(format.decode(*bits), Decoded::Zero { .. }))),
        ("a NaN scale", format.nan()),
    ] {
        let Some(code) = code else { continue };
        let mut dot = one(subject, 0);
        if let Some((a, _)) = &mut dot.scales {
            a[0] = code;
        }
        dots.push(dot);
        abouts.push(about);
    }
    let answers = subject.ask(&dots)?;
    let hex = |d: u64| subject.id().d.hex(d);
    let shown = dots
        .iter()
        .zip(&answers)
        .zip(&abouts)
        .map(|((dot, d), about)| subject.evidence(*about, dot, *d, &[]))
        .collect();
    let parts: Vec<String> =
        abouts.iter().zip(&answers).map(|(about, d)| format!("{about} gives {}", hex(*d))).collect();
    let values = abouts.iter().zip(&answers).map(|(about, d)| (*about, Value::Bits(subject.id().d, *d)));
    Ok(Finding::measured(name, Value::parts(values), parts.join(", ")).with(shown))
}
