//! Are subnormals read, and are they returned? Where they are flushed: is a result tiny before or after it is rounded?

use mxprobe_api::{Error, ScalarFunction, Subnormals};

use super::{cases::number, functions::Found, subject::Subject};
use crate::report::Finding;

pub(super) fn ask(subject: &Subject<'_>, found: &[Found]) -> Result<Vec<Finding>, Error> {
    let inputs = agree(subject, found, "subnormals.inputs", ["read", "zero"], |found| {
        let mut daz = found.readings.iter().map(|(mode, _)| mode.daz);
        let first = daz.next()?;
        daz.all(|other| other == first).then_some(first)
    })?;
    let results = agree(subject, found, "subnormals.results", ["kept", "zero"], |found| {
        let mut flushes = found.readings.iter().map(|(mode, _)| mode.results != Subnormals::Keep);
        let first = flushes.next()?;
        flushes.all(|other| other == first).then_some(first)
    })?;
    let flushed = results.is("zero") || results.is("differs");
    let mut findings = vec![inputs, results];
    findings.push(if flushed {
        tininess(subject)?
    } else {
        Finding::unsupported("subnormals.tininess", "subnormal results are kept")
    });
    Ok(findings)
}

/// What every function that tells says, or which of them say what.
fn agree(
    subject: &Subject<'_>,
    found: &[Found],
    probe: &str,
    words: [&str; 2],
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
        // Inputs: the smallest subnormal times a large power; results: half the smallest normal.
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
    Ok(Finding::measured(probe, value.into(), statement).with(shown))
}

fn least_exponent(subject: &Subject<'_>) -> i32 {
    subject.format().as_float().map_or(0, |float| float.min_exponent())
}

/// A product just below the smallest normal value, which rounds to it with p bits.
fn tininess(subject: &Subject<'_>) -> Result<Finding, Error> {
    const PROBE: &str = "subnormals.tininess";
    if !subject.has(ScalarFunction::Multiply) {
        return Ok(Finding::unsupported(PROBE, "there is no multiplication in this mode"));
    }
    let format = subject.format();
    let (bits, least) = (format.fraction_bits().cast_signed(), least_exponent(subject));
    let a = number(format, false, (1 << bits) + 1, -bits + least / 2);
    let b = number(format, false, (1 << bits) - 1, -bits + least - least / 2);
    let d = subject.ask_one(ScalarFunction::Multiply, &[a, b])?;
    let normal = 1u64 << bits;
    let shown = subject.evidence(
        "(1 + u)(1 − u) times the smallest normal value",
        ScalarFunction::Multiply,
        &[a, b],
        d,
        &[
            ("tiny, by its exact value: flushed".to_owned(), 0),
            ("not tiny once it is rounded: kept".to_owned(), normal),
        ],
    );
    Ok(match d {
        0 => Finding::measured(
            PROBE,
            "before rounding".into(),
            "a result is tiny by its exact value, or is rounded down".to_owned(),
        ),
        d if d == normal => {
            Finding::measured(PROBE, "after rounding".into(), "a result is tiny only if it is once rounded".to_owned())
        }
        _ => Finding::inconclusive(PROBE, "neither zero nor the smallest normal value came back"),
    }
    .with(vec![shown]))
}
