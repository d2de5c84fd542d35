//! The IEEE 754 questions about the scalar arithmetic next to the matrix unit, one file per question.
//!
//! In reports, the scalar arithmetic of a format and mode is the operation `scalar.m1n1k1.F.F.F.F` with the words of
//! its mode: a multiply-add of one element. Nothing here assumes that a device follows the standard.

mod ask;
mod cases;
mod dots;
mod exact;
mod extended;
mod flags;
mod found;
mod functions;
mod known;
mod mode;
mod nan;
mod once;
mod order;
mod subject;
mod subnormals;
mod sum;
mod ulp;

use std::time::Instant;

use mxprobe_api::{
    Device, Error, Format, Operation, OperationId, Rounding, Scalar, ScalarFunction, ScalarId, Subnormals, scalars_of,
    threads,
};

pub(crate) use ask::{Ask, Probe};
pub(crate) use cases::exactly;
pub(crate) use order::SUM_ORDER;
pub(crate) use subnormals::TININESS;
pub use ulp::POINTS;
pub use ulp::cosine;

use crate::{
    aside::aside,
    findings::{Finding, Outcome, Probed, settle},
};
use subject::Subject;

/// The questions, in the order in which they are asked.
pub(crate) const PROBES: &[&Probe] = &[
    &functions::ADD,
    &functions::SUBTRACT,
    &functions::MULTIPLY,
    &functions::DIVIDE,
    &functions::SQUARE_ROOT,
    &functions::FMA,
    &functions::MULTIPLY_ADD,
    &functions::CONVERT,
    &functions::DOT4,
    &functions::RECIPROCAL,
    &functions::REMAINDER,
    &functions::SCALE,
    &functions::NEGATE,
    &functions::ABS,
    &functions::COPY_SIGN,
    &functions::COMPARE,
    &mode::PROBE,
    &subnormals::INPUTS,
    &subnormals::RESULTS,
    &subnormals::TININESS,
    &nan::INVALID,
    &nan::OPERAND,
    &flags::PROBE,
    &dots::ERROR,
    &order::SUM_ORDER,
    ulp::PROBES[0],
    ulp::PROBES[1],
    ulp::PROBES[2],
    ulp::PROBES[3],
    ulp::PROBES[4],
    ulp::PROBES[5],
    ulp::PROBES[6],
    ulp::PROBES[7],
    ulp::PROBES[8],
    ulp::PROBES[9],
];

/// The family of scalar arithmetic in reports.
pub const FAMILY: &str = "scalar";

/// The name of scalar arithmetic in reports.
#[must_use]
pub fn operation_id(id: &ScalarId) -> OperationId {
    let format = id.format;
    let plain = OperationId::new(FAMILY, (1, 1, 1), format, format, format, format);
    id.mode.iter().fold(plain, |id, word| id.with(word))
}

/// Scalar arithmetic as an operation, for `list` and reports.
#[must_use]
pub fn operation(scalar: &Scalar) -> Operation {
    let mut operation = Operation::new(operation_id(&scalar.id), "thread");
    operation.aliases = vec![scalar.id.to_string()];
    operation
}

/// The scalar arithmetic of a device that has this id in reports.
#[must_use]
pub fn named<'d>(device: &'d dyn Device, id: &OperationId) -> Option<&'d Scalar> {
    if id.family != FAMILY {
        return None;
    }
    scalars_of(device).iter().find(|scalar| operation_id(&scalar.id) == *id)
}

/// Asks the questions. `wanted` selects by name which findings to keep (if `None`, all that do not have to be named).
/// `points` is the number of arguments of each function whose error in ulp is wanted. Never fails: a device error
/// becomes a finding whose outcome is `failed`.
#[must_use]
pub fn probe(device: &dyn Device, scalar: &Scalar, wanted: Option<&dyn Fn(&str) -> bool>, points: u64) -> Probed {
    let started = Instant::now();
    let subject = Subject::new(device, scalar);
    let mut findings = Vec::new();
    // Functions are named one by one: `function.convert.f16`.
    let names = subject.scalar.functions.keys().map(|function| functions::probe(*function));
    let unnamed = PROBES.iter().filter(|probe| !matches!(probe.ask, Ask::Named)).map(|probe| probe.name.to_owned());
    let mut stop = None;
    if wanted.is_none_or(|wanted| names.chain(unnamed).any(|name| wanted(&name))) {
        stop = ask(&subject, &mut findings);
    }
    if let Some(wanted) = wanted {
        for (name, function) in ulp::functions(&subject).iter().filter(|(name, _)| wanted(name)) {
            if let Some(reason) = stop {
                findings.push(Finding::skipped(name, reason));
                continue;
            }
            match ulp::ask(&subject, name, *function, points) {
                Ok(finding) => findings.push(finding),
                Err(error) => stop = settle(&mut findings, &[name], &error),
            }
        }
    }
    if let Some(wanted) = wanted {
        findings.retain(|finding| wanted(&finding.probe) || finding.outcome == Outcome::Failed);
    }
    Probed {
        operation: operation(scalar),
        kernel_sha256: None,
        findings,
        dots: subject.asked(),
        duration_ns: crate::clock::elapsed_ns(started),
    }
}

/// The result of x87, whose registers have 64 significand bits, to nearest; `None` if it is not known.
pub fn x87(function: ScalarFunction, format: Format, operands: &[u64]) -> Option<u64> {
    extended::result(function, format, operands, Rounding::NearestEven)
}

/// The result that IEEE 754 specifies for a function, rounded to nearest even with subnormals kept; `None` if it leaves
/// the result open.
pub fn ieee(function: ScalarFunction, format: Format, operands: &[u64]) -> Option<u64> {
    let mode = once::Mode { rounding: Rounding::NearestEven, daz: false, results: Subnormals::Keep };
    exact::result(function, format, operands, mode, exact::Steps::AsNamed).ok()
}

/// Asks a question, and adds its findings.
type Asking<'a> = dyn FnMut(&mut Vec<Finding>) -> Result<(), Error> + 'a;

/// Asks every question. Findings of a failed question stay; its other probes fail with the same reason. If the device
/// is lost, the probes of later questions are skipped, and the reason is returned.
fn ask(subject: &Subject<'_>, findings: &mut Vec<Finding>) -> Option<&'static str> {
    let mut stop = None;
    let mut asked = |findings: &mut Vec<Finding>, probes: &[&str], ask: &mut Asking<'_>| {
        if let Some(reason) = stop {
            findings.extend(probes.iter().map(|probe| Finding::skipped(probe, reason)));
        } else if let Err(error) = ask(findings) {
            stop = settle(findings, probes, &error);
        }
    };
    let has_exact_bits = |function: &&ScalarFunction| !matches!(function, ScalarFunction::Elementary(_));
    let functions: Vec<ScalarFunction> = subject.scalar.functions.keys().filter(has_exact_bits).copied().collect();
    // Those of functions that the device did not answer.
    let mut unanswered: Vec<Vec<Finding>> = vec![Vec::new(); functions.len()];
    // The device is asked about one function after another, while answers are held against readings.
    let answered = aside(
        functions.len(),
        threads(),
        |at| {
            let mut calls = None;
            asked(&mut unanswered[at], &[&functions::probe(functions[at])], &mut |_| {
                calls = Some(functions::ask(subject, functions[at])?);
                Ok(())
            });
            calls
        },
        |calls| functions::explain(subject, calls),
    );
    let mut found = Vec::new();
    for (answered, unanswered) in answered.into_iter().zip(unanswered) {
        findings.extend(unanswered);
        if let Some((finding, of)) = answered {
            findings.push(finding);
            found.push(of);
        }
    }
    for probes in PROBES.chunk_by(|_, next| matches!(next.ask, Ask::Along)) {
        let Ask::Question(ask) = probes[0].ask else { continue };
        let names: Vec<&str> = probes.iter().map(|probe| probe.name).collect();
        asked(findings, &names, &mut |findings| ask(subject, &found, findings));
    }
    stop
}
