//! Runs probes, identification or verification on one operation, and builds its entry of a report.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use crate::{
    identify::{
        self, Arithmetic, Comparison, Effort, NanBits, Outcome as Ending, disagreements, equals, model_of, parameters,
    },
    probes,
    report::{EvidenceRecord, IdentificationOutcome, IdentifiedOperation, OperationReport, VerifiedOperation},
    scalars,
};
use mxprobe_api::{Device, Error, Operation, OperationId};
use mxprobe_models::Model;

use super::patterns;

/// A model that operations are compared with, and its name.
pub type Expected = (String, Model);

/// Probes one operation or scalar mode; `None` if the device does not have it. `wanted` are patterns of probes; if it
/// is empty, all probes run.
#[must_use]
pub fn probe(
    device: &dyn Device,
    id: &OperationId,
    wanted: &[String],
    expected: Option<&Expected>,
) -> Option<OperationReport> {
    probe_at(device, id, wanted, expected, scalars::POINTS)
}

/// Like [`probe`], with this many arguments for each function whose error in ulp is measured.
#[must_use]
pub fn probe_at(
    device: &dyn Device,
    id: &OperationId,
    wanted: &[String],
    expected: Option<&Expected>,
    points: u64,
) -> Option<OperationReport> {
    let is_wanted = |name: &str| patterns::is_wanted(wanted, name);
    let is_wanted: Option<&dyn Fn(&str) -> bool> = if wanted.is_empty() { None } else { Some(&is_wanted) };
    if let Some(scalar) = scalars::named(device, id) {
        return Some(scalars::probe(device, scalar, is_wanted, points).into());
    }
    let operation = device.operations().get(id)?;
    let mut report = OperationReport::from(probes::probe(device, operation, is_wanted));
    if let Some((name, model)) = expected {
        report.findings.push(identify::as_expected(device, operation, model, name));
    }
    Some(report)
}

/// Identifies one operation; if the device fails, the entry says so. `progress` receives a line for each step.
#[must_use]
pub fn identify_one(
    device: &dyn Device,
    id: &OperationId,
    effort: Effort,
    progress: &dyn Fn(&str),
) -> IdentifiedOperation {
    let start = Instant::now();
    let missing = || Error::invalid(format!("{} has no operation {id} any more", device.info().selector));
    progress(&format!("{} {id}", device.info().selector));
    let step = |text: &str| progress(&format!("  {text}"));
    let operation = device.operations().get(id).ok_or_else(missing);
    let found = operation.and_then(|operation| identified(device, operation, effort, &step, start));
    found.unwrap_or_else(|error| unidentified(id, &error.to_string(), start.elapsed()))
}

fn identified(
    device: &dyn Device,
    operation: &Operation,
    effort: Effort,
    progress: &dyn Fn(&str),
    start: Instant,
) -> Result<IdentifiedOperation, Error> {
    let found = identify::identify(device, operation, effort, progress)?;
    let mut record = IdentifiedOperation {
        id: operation.id.clone(),
        outcome: IdentificationOutcome::Identified,
        reason: None,
        order: found.order.clone(),
        tree: None,
        parameters: Vec::new(),
        rounds: found.rounds as u64,
        dots: found.dots,
        tested: found.tested as u64,
        explained: None,
        readings: found.readings as u64,
        equals: Vec::new(),
        disagreements: Vec::new(),
        evidence: EvidenceRecord::all(&found.counterexamples, &operation.id),
        model: None,
        duration_ns: 0,
    };
    let describe = |record: &mut IdentifiedOperation, arithmetic: &Arithmetic| {
        record.tree = Some(arithmetic.tree.clone());
        record.parameters = parameters(arithmetic);
    };
    match &found.outcome {
        Ending::Identified(arithmetic) => {
            describe(&mut record, arithmetic);
            let pair = (arithmetic.clone(), operation.clone());
            let model = model_of(device.info(), "identified", "this run", &[pair])?;
            progress("comparing with known models and with the probes");
            record.equals = equals(arithmetic, effort.seed, effort.nan)?;
            record.disagreements = disagreements(&operation.id, &found.findings, &model, effort.nan);
            record.model = Some(model.to_toml());
        }
        Ending::Unrepeatable { what, evidence } => {
            record.outcome = IdentificationOutcome::Unrepeatable;
            record.reason = Some(what.clone());
            record.evidence = EvidenceRecord::all(evidence, &operation.id);
        }
        Ending::Outside { evidence, nearest, explained, of, only_nan } => {
            record.outcome = IdentificationOutcome::Outside;
            let nan = if *only_nan { NanBits::HINT } else { "" };
            record.reason = Some(format!("nothing that a model file can say explains every dot{nan}"));
            describe(&mut record, nearest);
            record.evidence = EvidenceRecord::all(evidence, &operation.id);
            (record.explained, record.tested) = (Some(*explained as u64), *of as u64);
        }
    }
    record.duration_ns = crate::clock::elapsed_ns(start);
    Ok(record)
}

/// The entry of an operation whose identification failed.
#[must_use]
pub fn unidentified(id: &OperationId, reason: &str, took: Duration) -> IdentifiedOperation {
    IdentifiedOperation {
        id: id.clone(),
        outcome: IdentificationOutcome::Failed,
        reason: Some(reason.to_owned()),
        order: None,
        tree: None,
        parameters: Vec::new(),
        rounds: 0,
        dots: 0,
        tested: 0,
        explained: None,
        readings: 0,
        equals: Vec::new(),
        disagreements: Vec::new(),
        evidence: Vec::new(),
        model: None,
        duration_ns: crate::clock::lasted_ns(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)),
    }
}

/// Compares one operation with the model's, bit for bit; if the device fails, the entry says so. `progress` receives
/// the number of dots compared, once a second.
#[must_use]
pub fn verify_one(
    device: &dyn Device,
    id: &OperationId,
    model: &Model,
    comparison: Comparison,
    progress: &dyn Fn(u64),
) -> VerifiedOperation {
    let missing = || Error::invalid(format!("{} has no operation {id} any more", device.info().selector));
    let told = Cell::new(Instant::now());
    let tell = |dots: u64| {
        if told.get().elapsed() > Duration::from_secs(1) {
            told.set(Instant::now());
            progress(dots);
        }
    };
    let operation = device.operations().get(id).ok_or_else(missing);
    let found = operation.and_then(|operation| identify::verify(device, operation, model, comparison, &tell));
    found.unwrap_or_else(|error| unverified(id, &error.to_string()))
}

/// The entry of an operation that was not compared.
#[must_use]
pub fn unverified(id: &OperationId, reason: &str) -> VerifiedOperation {
    VerifiedOperation {
        id: id.clone(),
        dots: 0,
        mismatches: 0,
        other_nan: 0,
        evidence: Vec::new(),
        blocks: Vec::new(),
        failed: Some(reason.to_owned()),
        duration_ns: 0,
    }
}
