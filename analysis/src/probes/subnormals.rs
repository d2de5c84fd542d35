//! Question 1: are subnormals kept (in A, in B, in C, in D), and when does a result count as tiny?

use mxprobe_api::{Decoded, Error, Format};

use super::{Ask, Leaf, Probe, Subject, facts::Facts, number::Number};
use crate::{
    findings::{AppliesTo, Finding, Shown, source},
    scalars,
};

const READ: &[(&str, &str)] = &[
    ("kept", "subnormal inputs count: small values lose digits, not everything"),
    ("zero", "inputs below the smallest normal value count as zero: scale data up, or results underflow early"),
];

pub(crate) const A: Probe = Probe {
    name: "subnormals.a",
    question: "Are subnormals of A read, or taken as zero (DAZ)?",
    how: "The smallest subnormal of A times a power of two.",
    answers: READ,
    source: source::SUBNORMALS,
    applies_to: AppliesTo::Floating,
    shown: Shown::at_a_glance(6, "subnormals of A"),
    ask: Ask::Question(|subject, _, found| ask_inputs(subject, found)),
};

pub(crate) const B: Probe = Probe {
    name: "subnormals.b",
    question: "Are subnormals of B read, or taken as zero (DAZ)?",
    how: "The smallest subnormal of B times a power of two.",
    answers: READ,
    source: source::SUBNORMALS,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(crate) const C: Probe = Probe {
    name: "subnormals.c",
    question: "Are subnormals of C read and returned?",
    how: "The largest subnormal as c, positive and negative, beside products of zero.",
    answers: &[
        ("kept", "a running sum may become subnormal and go on"),
        ("zero", "a subnormal running sum is lost: read as zero, or flushed when it is returned"),
    ],
    source: source::SUBNORMALS,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(crate) const D: Probe = Probe {
    name: "subnormals.d",
    question: "Are subnormal results kept, or flushed to zero (FTZ)?",
    how: "One product below the normal range, or a difference that falls there.",
    answers: &[
        ("kept", "gradual underflow"),
        ("flushed to signed zero, flushed to zero", "results below the smallest normal value vanish (FTZ): scale up"),
    ],
    source: source::SUBNORMALS,
    applies_to: AppliesTo::Floating,
    shown: Shown::at_a_glance(7, "subnormals of D"),
    ask: Ask::Question(ask_results),
};

/// Also asked about scalar arithmetic.
pub(crate) const TININESS: Probe = scalars::TININESS.asked_of(AppliesTo::Floating, Ask::Along);

/// Asked before all other questions that build their terms from its findings.
pub(super) fn ask_inputs(subject: &Subject<'_>, found: &mut Vec<Finding>) -> Result<(), Error> {
    let id = subject.id();
    let mut kept = Vec::new();
    for (name, of_a) in [(A.name, true), (B.name, false)] {
        let (narrow, wide) = if of_a { (id.a, id.b) } else { (id.b, id.a) };
        let finding = operand(subject, name, narrow, wide, of_a)?;
        kept.push(finding.value == Some("kept".into()));
        found.push(finding);
    }
    if kept == [true, true] {
        subject.allow_subnormal_operands();
    }
    found.push(of_c(subject)?);
    Ok(())
}

fn min_exponent(format: Format) -> Option<i32> {
    format.as_float().map(mxprobe_api::FloatEncoding::min_exponent)
}

/// Tests the smallest subnormal of one operand times a power of two of the other: a normal product.
fn operand(subject: &Subject<'_>, name: &str, narrow: Format, wide: Format, of_a: bool) -> Result<Finding, Error> {
    let bits = 1 << narrow.as_float().map_or(0, |float| float.unread_bits);
    let Decoded::Finite { significand: 1, exponent, .. } = narrow.decode(bits) else {
        return Ok(Finding::unsupported(name, format!("{narrow} has no subnormals")));
    };
    if narrow.fraction_bits() == 0 {
        return Ok(Finding::unsupported(name, format!("{narrow} has no subnormals")));
    }
    let smallest = exponent - narrow.fraction_bits().cast_signed();
    // The product should be a normal value of d.
    let d_low = min_exponent(subject.id().d).unwrap_or(0);
    let (low, high) = wide.as_float().map_or((0, 0), |float| (float.min_exponent(), float.max_exponent()));
    let factor = (d_low - smallest).max(0).clamp(low, high);
    let factor_bits = Number::power(factor).encode(wide, mxprobe_api::Rounding::TowardZero);
    let mut dot = subject.zeros();
    (dot.a[0], dot.b[0]) = if of_a { (bits, factor_bits) } else { (factor_bits, bits) };
    let d = subject.ask(std::slice::from_ref(&dot))?[0];
    let product = Number::power(smallest + factor);
    let Some(whole) = subject.d_bits(product) else {
        return Ok(Finding::inconclusive(
            name,
            format!("no {wide} makes a product of the smallest {narrow} that d holds"),
        ));
    };
    let rivals = [("kept".to_owned(), whole), ("read as zero".to_owned(), 0)];
    let operand = if of_a { "A" } else { "B" };
    let shown =
        vec![subject.evidence(format!("the smallest subnormal of {operand} times 2^{factor}"), &dot, d, &rivals)];
    Ok(match subject.d_value(d) {
        Some(value) if value == product => {
            Finding::measured(name, "kept", format!("subnormals of {operand} are read")).with(shown)
        }
        Some(value) if value.is_zero() => {
            Finding::measured(name, "zero", format!("subnormals of {operand} are read as zero (DAZ)")).with(shown)
        }
        _ => Finding::inconclusive(name, "the product is neither right nor zero").with(shown),
    })
}

fn of_c(subject: &Subject<'_>) -> Result<Finding, Error> {
    let name = C.name;
    let format = subject.id().c;
    let largest = (1u64 << format.fraction_bits()) - 1;
    let sign = 1u64 << (format.bits() - 1);
    let mut dots = Vec::new();
    for bits in [largest, largest | sign] {
        let mut dot = subject.zeros();
        dot.c = bits;
        dots.push(dot);
    }
    let answers = subject.ask(&dots)?;
    let value = Number::decode(format, largest).unwrap_or(Number::ZERO);
    let (Some(positive), Some(negative)) = (subject.d_bits(value), subject.d_bits(value.negated())) else {
        return Ok(Finding::unsupported(name, "d cannot hold a subnormal c"));
    };
    let zero_sign = 1u64 << (subject.id().d.bits() - 1);
    let shown: Vec<_> = dots
        .iter()
        .zip(&answers)
        .zip([positive, negative])
        .map(|((dot, d), kept)| {
            let rivals = [("kept".to_owned(), kept), ("read as zero".to_owned(), 0)];
            subject.evidence("c is the largest subnormal, all products are zero", dot, *d, &rivals)
        })
        .collect();
    let is_zero = |d: u64| d & !zero_sign == 0;
    Ok(if answers == [positive, negative] {
        Finding::measured(name, "kept", "subnormals of C are read and returned").with(shown)
    } else if is_zero(answers[0]) && is_zero(answers[1]) {
        Finding::measured(name, "zero", "a subnormal C gives zero: it is read as zero, or the result is flushed")
            .with(shown)
    } else {
        Finding::inconclusive(name, "a subnormal c comes back neither whole nor as zero").with(shown)
    })
}

/// Tests subnormal results of normal inputs, and, if they are flushed, when a result counts as tiny.
pub(super) fn ask_results(subject: &Subject<'_>, facts: &mut Facts, found: &mut Vec<Finding>) -> Result<(), Error> {
    let id = subject.id();
    let Some(low) = min_exponent(id.d) else { return Ok(()) };
    let name = D.name;
    // A product below d's normal range, or c minus a product.
    let fraction_bits = id.d.fraction_bits().cast_signed();
    let target = Number::power(low - 1);
    let by_product = subject.product_bits(target).map(|(a, b)| {
        let mut dot = subject.zeros();
        (dot.a[0], dot.b[0]) = (a, b);
        (dot, "one product below the normal range")
    });
    let by_difference = || {
        let c = Number::new(3, low - 1);
        let dot = subject.dot(&[(Leaf::C, c), (Leaf::Product(0), Number::power(low).negated())])?;
        Some((dot, "1.5 times the smallest normal value less that value"))
    };
    let Some((dot, about)) = by_product.or_else(by_difference) else {
        let reason = "no normal inputs give a subnormal result";
        found.push(Finding::unsupported(name, reason));
        return Ok(());
    };
    let mut negative = dot.clone();
    let a_sign = 1u64 << (id.a.bits() - 1);
    negative.a[0] ^= a_sign;
    let ask_negative = about.starts_with("one product");
    let dots = if ask_negative { vec![dot, negative] } else { vec![dot] };
    let answers = subject.ask(&dots)?;
    let kept_bits = subject.d_bits(target).unwrap_or(0);
    let rivals = [("kept".to_owned(), kept_bits), ("flushed to zero".to_owned(), 0)];
    let shown: Vec<_> = dots.iter().zip(&answers).map(|(dot, d)| subject.evidence(about, dot, *d, &rivals)).collect();
    let zero_sign = 1u64 << (id.d.bits() - 1);
    if answers[0] == kept_bits {
        found.push(Finding::measured(name, "kept", "subnormal results are kept (gradual underflow)").with(shown));
        found.push(Finding::unsupported(TININESS.name, "subnormal results are not flushed"));
        return Ok(());
    }
    if answers[0] & !zero_sign != 0 {
        found.push(Finding::inconclusive(name, "the result is neither right nor zero").with(shown));
        return Ok(());
    }
    facts.flushes_results = true;
    let signed = answers.get(1).is_some_and(|d| *d == zero_sign);
    let words = if !ask_negative {
        "subnormal results are flushed to zero (FTZ)"
    } else if signed {
        "subnormal results are flushed to zero of their sign (FTZ)"
    } else {
        "subnormal results are flushed to +0 (FTZ)"
    };
    let value = if ask_negative && signed { "flushed to signed zero" } else { "flushed to zero" };
    found.push(Finding::measured(name, value, words).with(shown));
    let decided = facts.kept.is_none_or(|kept| kept.at_least() > fraction_bits + 1);
    found.push(if decided {
        tininess(subject, low, fraction_bits)?
    } else {
        Finding::inconclusive(TININESS.name, "the bit that would decide is lost at alignment")
    });
    Ok(())
}

/// Subtracts from the smallest normal value half a subnormal place, which is tiny under every rule, and a quarter, a
/// tie that rounds to the normal value and is tiny only by its exact value. A pair of leaves counts if the first test
/// shows that they are added without rounding.
fn tininess(subject: &Subject<'_>, low: i32, fraction_bits: i32) -> Result<Finding, Error> {
    let name = TININESS.name;
    let smallest = Number::power(low);
    let half = Number::power(low - fraction_bits - 1).negated();
    let quarter = Number::power(low - fraction_bits - 2).negated();
    let leaves = subject.leaves();
    let pairs = leaves.iter().flat_map(|first| leaves.iter().map(move |second| (*first, *second)));
    let mut dots = Vec::new();
    for (first, second) in pairs.filter(|(first, second)| first != second).take(2048) {
        let surely = subject.dot(&[(first, smallest), (second, half)]);
        let maybe = subject.dot(&[(first, smallest), (second, quarter)]);
        dots.extend(surely.zip(maybe).map(|(surely, maybe)| [surely, maybe]).into_iter().flatten());
    }
    let answers = subject.ask(&dots)?;
    let normal = subject.d_bits(smallest).unwrap_or(0);
    let is_zero = |d: u64| subject.d_value(d).is_some_and(Number::is_zero);
    let Some(at) = answers.chunks(2).position(|pair| is_zero(pair[0])) else {
        return Ok(Finding::inconclusive(name, "no two terms meet unrounded just below the normal range"));
    };
    let (surely, maybe) = (answers[2 * at], answers[2 * at + 1]);
    let rivals = [("tiny after rounding only".to_owned(), normal), ("tiny before rounding".to_owned(), 0)];
    let shown = vec![
        subject.evidence("the smallest normal value less half a subnormal place", &dots[2 * at], surely, &[]),
        subject.evidence(
            "the smallest normal value less a quarter of a subnormal place",
            &dots[2 * at + 1],
            maybe,
            &rivals,
        ),
    ];
    Ok(if maybe == normal {
        Finding::measured(name, "after rounding", "a result is tiny by its value after rounding").with(shown)
    } else if is_zero(maybe) {
        Finding::measured(name, "before rounding", "a result is tiny by its exact value").with(shown)
    } else {
        Finding::inconclusive(name, "the result is neither zero nor the smallest normal value").with(shown)
    })
}
