//! Are subnormals read, and are they returned? If they are flushed: is a result tiny before or after it is rounded?

use mxprobe_api::{Error, Rounding, ScalarFunction, Subnormals};

use super::{Ask, Probe, cases::number, found::Found, functions::FUNCTION, subject::Subject};
use crate::findings::{AppliesTo, Finding, Shown, source};

pub(crate) const INPUTS: Probe = Probe {
    name: "subnormals.inputs",
    question: "Are subnormal inputs read, or taken as zero (DAZ)?",
    how: FUNCTION,
    answers: &[
        ("read", "subnormal inputs count: small values lose digits, not everything"),
        ("zero", "inputs below the smallest normal value count as zero: scale data up, or results underflow early"),
        ("differs", "functions differ; the statement names them"),
    ],
    source: source::SUBNORMALS,
    applies_to: AppliesTo::Scalars,
    shown: Shown::PLAIN,
    ask: Ask::Question(ask),
};

pub(crate) const RESULTS: Probe = Probe {
    name: "subnormals.results",
    question: "Are subnormal results kept, or flushed to zero (FTZ)?",
    how: FUNCTION,
    answers: &[
        ("kept", "gradual underflow: x - y is zero only where x equals y"),
        ("zero", "results below the smallest normal value are lost"),
        ("differs", "functions differ; the statement names them"),
    ],
    source: source::SUBNORMALS,
    applies_to: AppliesTo::Scalars,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(crate) const TININESS: Probe = Probe {
    name: "subnormals.tininess",
    question: "Where results are flushed: is a result tiny by its exact value, or once it is rounded?",
    how: "The smallest normal value less a quarter of a subnormal place.",
    answers: &[
        ("after rounding", "a value that rounds to the smallest normal one is kept"),
        ("before rounding", "it is flushed, although its rounded value would be normal"),
    ],
    source: "IEEE 754-2019, 7.5",
    applies_to: AppliesTo::Scalars,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(super) fn ask(subject: &Subject<'_>, found: &[Found], findings: &mut Vec<Finding>) -> Result<(), Error> {
    findings.push(agree(subject, found, INPUTS.name, ["read", "zero"], |found| {
        let mut daz = found.readings.iter().map(|(mode, _)| mode.daz);
        let first = daz.next()?;
        daz.all(|other| other == first).then_some(first)
    })?);
    let results = agree(subject, found, RESULTS.name, ["kept", "zero"], |found| {
        let mut flushes = found.readings.iter().map(|(mode, _)| mode.results != Subnormals::Keep);
        let first = flushes.next()?;
        flushes.all(|other| other == first).then_some(first)
    })?;
    let flushed = results.is("zero") || results.is("differs");
    findings.push(results);
    findings.push(if flushed {
        tininess(subject, found)?
    } else {
        Finding::unsupported(TININESS.name, "subnormal results are kept")
    });
    Ok(())
}

/// The answer that all functions with a clear answer share, or the functions by answer.
fn agree(
    subject: &Subject<'_>,
    found: &[Found],
    probe: &str,
    words: [&'static str; 2],
    of: impl Fn(&Found) -> Option<bool>,
) -> Result<Finding, Error> {
    let told: Vec<(ScalarFunction, bool)> =
        found.iter().filter_map(|found| Some((found.function, of(found)?))).collect();
    let names = |flushes: bool| -> Vec<String> {
        told.iter().filter(|(_, other)| *other == flushes).map(|(function, _)| function.to_string()).collect()
    };
    let (kept, flushed) = (names(false), names(true));
    let (value, statement) = match (kept.is_empty(), flushed.is_empty()) {
        (true, true) => return Ok(Finding::inconclusive(probe, "no function was explained by one reading alone")),
        (false, true) => (words[0], format!("subnormals are {}, by {}", words[0], kept.join(", "))),
        (true, false) => (words[1], format!("subnormals are taken as {}, by {}", words[1], flushed.join(", "))),
        (false, false) => {
            ("differs", format!("{} by {}; {} by {}", words[0], kept.join(", "), words[1], flushed.join(", ")))
        }
    };
    let mut shown = Vec::new();
    if subject.has(ScalarFunction::Multiply) {
        let format = subject.format();
        // For inputs, the smallest subnormal times a large power; for results, half the smallest normal value.
        let normal = 1u64 << format.fraction_bits();
        let half = number(format, false, 1, -1);
        let large = number(format, false, 1, format.fraction_bits().cast_signed() + 2);
        let operands = if probe.ends_with("inputs") { [1, large] } else { [normal, half] };
        let kept =
            if probe.ends_with("inputs") { number(format, false, 1, least_exponent(subject) + 2) } else { normal / 2 };
        let d = subject.ask_one(ScalarFunction::Multiply, &operands)?;
        let rivals: Vec<(String, u64)> = [(words[0], kept), (words[1], 0)]
            .into_iter()
            .filter(|(_, bits)| *bits != d)
            .map(|(word, bits)| (word.to_owned(), bits))
            .collect();
        shown.push(subject.evidence(
            "a product that is subnormal, or has a subnormal factor",
            ScalarFunction::Multiply,
            &operands,
            d,
            &rivals,
        ));
    }
    Ok(Finding::measured(probe, value, statement).with(shown))
}

fn least_exponent(subject: &Subject<'_>) -> i32 {
    subject.format().as_float().map_or(0, |float| float.min_exponent())
}

/// Multiplies to just below the smallest normal value, with both signs: products that p bits round up to it show the
/// answer. Toward zero none is rounded up, and a result that is tiny before rounding is tiny after it.
fn tininess(subject: &Subject<'_>, found: &[Found]) -> Result<Finding, Error> {
    let Some(of_products) = found.iter().find(|found| found.function == ScalarFunction::Multiply) else {
        return Ok(Finding::unsupported(TININESS.name, "this mode has no multiplication"));
    };
    let mut directions = of_products.readings.iter().map(|(mode, _)| mode.rounding).peekable();
    if directions.peek().is_none() {
        return Ok(Finding::inconclusive(
            TININESS.name,
            "no reading explains the multiplication, so that its direction is open",
        ));
    }
    if directions.all(|rounding| rounding == Rounding::TowardZero) {
        let reason = "products are rounded toward zero: what is tiny before rounding is tiny after it";
        return Ok(Finding::unsupported(TININESS.name, reason));
    }
    let format = subject.format();
    let (bits, least) = (format.fraction_bits().cast_signed(), least_exponent(subject));
    let factor = |negative| number(format, negative, (1 << bits) + 1, -bits + least / 2);
    let b = number(format, false, (1 << bits) - 1, -bits + least - least / 2);
    let calls = [false, true].map(|negative| vec![factor(negative), b]);
    let results = subject.ask(ScalarFunction::Multiply, &calls)?;
    let sign = 1u64 << (format.bits() - 1);
    let normal = 1u64 << bits;
    let shown = calls.iter().zip(&results).map(|(operands, d)| {
        let sign = operands[0] & sign;
        let mut rivals = vec![
            ("tiny, by its exact value: flushed".to_owned(), sign),
            ("not tiny once it is rounded: kept".to_owned(), sign | normal),
        ];
        rivals.retain(|(_, bits)| bits != d);
        let about = "(1 + u)(1 − u) times the smallest normal value";
        subject.evidence(about, ScalarFunction::Multiply, operands, *d, &rivals)
    });
    let shown = shown.collect();
    let magnitudes: Vec<u64> = results.iter().map(|d| d & !sign).collect();
    Ok(match magnitudes[..] {
        [0, 0] => Finding::measured(TININESS.name, "before rounding", "a result is tiny by its exact value"),
        [x, y] if [0, normal].contains(&x) && [0, normal].contains(&y) => {
            Finding::measured(TININESS.name, "after rounding", "a result is tiny only if it is once rounded")
        }
        _ => Finding::inconclusive(TININESS.name, "neither zero nor the smallest normal value came back"),
    }
    .with(shown))
}
