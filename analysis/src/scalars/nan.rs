//! Which bits does a NaN result have: those of an operand, quieted, or always the same?

use mxprobe_api::{Decoded, Error, Format, ScalarFunction};

use super::{Ask, Probe, subject::Subject};
use crate::findings::{AppliesTo, Comparable, Finding, Shown, Value, source};

pub(crate) const INVALID: Probe = Probe {
    name: "nan.invalid",
    question: "Which bits does the NaN of an invalid operation have?",
    how: "Inf - Inf, 0 times Inf, 0 / 0, the square root of -1, and 0 times Inf + 1.",
    answers: &[
        ("bits", "what an invalid operation gives"),
        ("differs", "it depends on the operation"),
        ("no NaN", "an invalid operation gives a number or an infinity"),
    ],
    source: source::IEEE,
    applies_to: AppliesTo::Scalars,
    shown: Shown::PLAIN,
    ask: Ask::Question(|subject, _, findings| ask(subject, findings)),
};

pub(crate) const OPERAND: Probe = Probe {
    name: "nan.operand",
    question: "Which NaN operand's payload is in the result?",
    how: "Quiet and signalling NaNs of several payloads at each operand of one function.",
    answers: &[
        ("canonical", "every NaN result is the same: payloads do not pass"),
        ("first operand", "the first NaN operand passes, quieted"),
        ("last operand", "the last NaN operand passes, quieted"),
        ("signalling, then first", "a signalling NaN passes before a quiet one, quieted, as on Arm; else the first"),
        ("larger payload", "of two quiet NaNs the one of the larger payload passes"),
        ("some operand", "a NaN operand passes, quieted, and none of these rules says which"),
        ("other", "payloads pass changed, or signalling NaNs are not quieted"),
    ],
    source: source::IEEE,
    applies_to: AppliesTo::Scalars,
    shown: Shown::PLAIN.compared(Comparable::NanBits),
    ask: Ask::Along,
};

pub(super) fn ask(subject: &Subject<'_>, findings: &mut Vec<Finding>) -> Result<(), Error> {
    let functions = [ScalarFunction::Add, ScalarFunction::Multiply, ScalarFunction::Divide, ScalarFunction::Fma];
    let Some(function) = functions.into_iter().find(|function| subject.has(*function)) else {
        let reason = "this mode has no addition, multiplication or division";
        findings.extend([INVALID.name, OPERAND.name].map(|probe| Finding::unsupported(probe, reason)));
        return Ok(());
    };
    let format = subject.format();
    findings.push(invalid(subject, format)?);
    findings.push(operand(subject, function, format)?);
    Ok(())
}

/// Asks for Inf − Inf, 0 · Inf, 0 / 0 and the root of −1.
fn invalid(subject: &Subject<'_>, format: Format) -> Result<Finding, Error> {
    let (infinity, minus) = (format.infinity(false).unwrap_or(0), format.infinity(true).unwrap_or(0));
    let one = format.one();
    let minus_one = one | 1 << (format.bits() - 1);
    let all = [
        (ScalarFunction::Add, vec![infinity, minus]),
        (ScalarFunction::Subtract, vec![infinity, infinity]),
        (ScalarFunction::Multiply, vec![0, infinity]),
        (ScalarFunction::Divide, vec![0, 0]),
        (ScalarFunction::SquareRoot, vec![minus_one]),
        (ScalarFunction::Fma, vec![0, infinity, one]),
    ];
    let mut shown = Vec::new();
    let mut seen: Vec<u64> = Vec::new();
    for (function, operands) in all.into_iter().filter(|(function, _)| subject.has(*function)) {
        let d = subject.ask_one(function, &operands)?;
        shown.push(subject.evidence("an invalid operation", function, &operands, d, &[]));
        if !seen.contains(&d) {
            seen.push(d);
        }
    }
    let texts: Vec<String> = seen.iter().map(|bits| format.hex(*bits)).collect();
    let is_nan = |bits: &u64| matches!(format.decode(*bits), Decoded::Nan { .. });
    Ok(match &seen[..] {
        [] => Finding::unsupported(INVALID.name, "no function of this mode has an invalid operation"),
        [_] if seen.iter().all(is_nan) => Finding::measured(
            INVALID.name,
            Value::Bits(format, seen[0]),
            format!("an invalid operation gives {}", texts[0]),
        ),
        _ if seen.iter().all(is_nan) => {
            Finding::measured(INVALID.name, "differs", format!("invalid operations give {}", texts.join(", ")))
        }
        _ => Finding::measured(
            INVALID.name,
            "no NaN",
            format!("an invalid operation gives {}, which is not a NaN", texts.join(", ")),
        ),
    }
    .with(shown))
}

/// Asks for two NaNs with different payloads, one of them signalling, at every operand.
fn operand(subject: &Subject<'_>, function: ScalarFunction, format: Format) -> Result<Finding, Error> {
    let infinity = format.infinity(false).unwrap_or(0);
    let quiet_bit = 1u64 << (format.fraction_bits() - 1);
    let (quiet, signalling) = (infinity | quiet_bit | 5, infinity | 3);
    let one = format.one();
    let arity = function.arity();
    let call = |at: &[(usize, u64)]| {
        let mut operands = vec![one; arity];
        at.iter().for_each(|(place, bits)| operands[*place] = *bits);
        operands
    };
    let calls = [
        ("a quiet NaN alone", call(&[(0, quiet)])),
        ("a quiet NaN alone", call(&[(1, quiet)])),
        ("a signalling NaN alone", call(&[(0, signalling)])),
        ("two quiet NaNs", call(&[(0, quiet), (1, quiet | 8)])),
        ("two quiet NaNs", call(&[(0, quiet | 8), (1, quiet)])),
        ("a quiet and a signalling NaN", call(&[(0, quiet), (1, signalling)])),
    ];
    let operands: Vec<Vec<u64>> = calls.iter().map(|(_, operands)| operands.clone()).collect();
    let results = subject.ask(function, &operands)?;
    let shown = calls.iter().zip(&results).map(|((about, operands), d)| {
        let rivals = [("the first, quieted".to_owned(), operands[0] | quiet_bit)];
        let rivals: &[(String, u64)] = if *d == rivals[0].1 || operands[0] == one { &[] } else { &rivals };
        subject.evidence(*about, function, operands, *d, rivals)
    });
    let shown = shown.collect();
    let quieted = signalling | quiet_bit;
    let (value, words) = match results[..] {
        [a, b, c, d, e, f] if [a, b, c, d, e, f].iter().all(|other| *other == a) && a != quiet => {
            ("canonical".to_owned(), format!("every NaN result of {function} is {}", format.hex(a)))
        }
        [a, b, c, ..] if a != quiet || b != quiet || c != quieted => {
            ("other".to_owned(), format!("payloads pass {function} neither unchanged nor replaced by one"))
        }
        [.., d, e, f] if d == quiet && e == quiet | 8 && f == quieted => (
            "signalling, then first".to_owned(),
            format!("{function} returns the signalling NaN operand, quieted, else the first"),
        ),
        [.., d, e, _] if d == quiet && e == quiet | 8 => {
            ("first operand".to_owned(), format!("{function} returns the first NaN operand, quieted"))
        }
        [.., d, e, _] if d == quiet | 8 && e == quiet => {
            ("last operand".to_owned(), format!("{function} returns the last NaN operand, quieted"))
        }
        [.., d, e, _] if d == e && d == quiet | 8 => {
            ("larger payload".to_owned(), format!("{function} returns the NaN operand of the larger payload"))
        }
        _ => ("some operand".to_owned(), format!("{function} returns one of the NaN operands, quieted")),
    };
    Ok(Finding::measured(OPERAND.name, value, words).with(shown))
}
