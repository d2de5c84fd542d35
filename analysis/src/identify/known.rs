//! Comparison of an identified model with what is known: shipped models that compute the same bits, probes whose
//! findings differ, and the model that is expected of a device.

use std::{collections::HashSet, sync::Arc};

use mxprobe_api::{Device, Error, Operation, OperationId};
use mxprobe_models::{Evaluator, Flush, Model, Path, Sample, shipped};
use mxprobe_sim::ModelDevice;

use super::{
    dots::{experiments::fewer, operands::sample_of},
    outcome::Arithmetic,
    verify::{Comparison, verify},
};
use crate::{
    dots::{Dot, Draw, seed_of},
    findings::{Finding, Outcome},
    in_order::InOrder,
    nan_bits::{NanBits, OneNan},
    probes::probe,
    record::FindingRecord,
};

/// Dots on which a shipped model is compared with what was identified, or [`fewer`] of many products, and how many of them
/// are computed together.
const COMPARED: usize = 20_000;
const AT_ONCE: usize = 512;

/// Returns the shipped models that have an operation of the same k and formats and give the same bits on every dot
/// compared, each with the id of that operation.
///
/// # Errors
/// Returns an error if the arithmetic does not fit its own operation: if the tree cannot be parsed or an evaluator
/// cannot be made.
pub fn equals(arithmetic: &Arithmetic, seed: u64, nan: NanBits) -> Result<Vec<String>, Error> {
    let id = &arithmetic.operation;
    let names: Vec<&str> = arithmetic.adders.iter().map(|adder| adder.name.as_str()).collect();
    let plan = Arc::new(mxprobe_models::plan_of(&arithmetic.tree, &names, id.shape.sizes().2)?);
    let own = Evaluator::of_plan(arithmetic.adders.clone(), arithmetic.flush, &plan, id, Path::Scalar)?;
    let mut rivals: Vec<((&str, &OperationId), Evaluator)> = Vec::new();
    for model in shipped() {
        // A model may have several units for these formats, which round in other ways or add in another order.
        let mut units = HashSet::new();
        let mut of_units: Vec<&OperationId> = model.operations.keys().filter(|other| alike(id, other)).collect();
        of_units.order_by_key(|other| *other != id);
        of_units.retain(|other| units.insert(model.units.iter().position(|unit| unit.operations.contains(other))));
        for other in of_units {
            rivals.push(((&model.name, other), Evaluator::new(model, other)?));
        }
    }
    let mut draw = Draw::new(id, seed_of(seed, 9));
    let count = fewer(COMPARED, id.shape.sizes().2);
    for first in (0..count).step_by(AT_ONCE) {
        let dots: Vec<Dot> = draw.by_ref().take(AT_ONCE.min(count - first)).collect();
        let mut samples: Vec<Sample> = Vec::new();
        let d = results(id, &own, &dots, &mut samples);
        rivals.retain(|(_, rival)| {
            let others = results(id, rival, &dots, &mut samples);
            others.iter().zip(&d).all(|(other, d)| nan.alike(id.d, *other, *d))
        });
        if rivals.is_empty() {
            break;
        }
    }
    rivals.dedup_by_key(|((model, _), _)| *model);
    Ok(rivals.into_iter().map(|((model, other), _)| format!("{model} {other}")).collect())
}

/// Computes dots that are in the sample for the evaluator's flush rule, or are put into one.
fn results(id: &OperationId, evaluator: &Evaluator, dots: &[Dot], samples: &mut Vec<Sample>) -> Vec<u64> {
    let flush: Flush = evaluator.flush();
    let at = samples.iter().position(|sample| sample.flush() == flush).unwrap_or_else(|| {
        samples.push(sample_of(id, dots, flush));
        samples.len() - 1
    });
    let mut found = Vec::with_capacity(dots.len());
    evaluator.visit(&samples[at], 0..dots.len(), |_, d| {
        found.push(d);
        true
    });
    found
}

/// Returns whether two operations take the same dots.
fn alike(id: &OperationId, other: &OperationId) -> bool {
    let of = |id: &OperationId| {
        (id.shape.k, id.d, id.a, id.b, id.c, id.block_scale().map(|scale| (scale.format, scale.block)))
    };
    of(id) == of(other) && id.has("satfinite") == other.has("satfinite")
}

/// Probes the model of an operation, and returns the findings that differ from those of the device, one line each. If any
/// NaN counts as equal, the finding about NaN bits is left out.
#[must_use]
pub fn disagreements(id: &OperationId, of_device: &[Finding], model: &Model, nan: NanBits) -> Vec<String> {
    let Some(modelled) = model.operations.get(id) else { return Vec::new() };
    let device = ModelDevice::new(model.clone());
    let one_nan = OneNan(&device);
    // As the device was probed.
    let of_model = probe(if nan == NanBits::Any { &one_nan } else { &device }, modelled, None);
    let mut found = Vec::new();
    let asks_nothing = |probe: &str| probe == "instruction" || nan == NanBits::Any && probe == "specials.nan";
    for finding in of_device.iter().filter(|finding| !asks_nothing(&finding.probe)) {
        let Some(other) = of_model.finding(&finding.probe) else { continue };
        if (finding.outcome, &finding.value) != (other.outcome, &other.value) {
            let said = |finding: &Finding| match (finding.outcome, &finding.reason) {
                (Outcome::Measured, _) => finding.statement.clone(),
                (_, Some(reason)) => reason.clone(),
                (..) => "nothing".into(),
            };
            found.push(format!("{}: the device: {}; the model: {}", finding.probe, said(finding), said(other)));
        }
    }
    found
}

/// The probe name of a comparison with an expected model: whether the device gives the same bits.
pub const EXPECTED: &str = "expected";

/// The least number of dots of such a comparison.
const EXPECTED_DOTS: u64 = 200_000;

/// Compares an operation with the model that is expected of it, and returns the result as a finding of a run.
#[must_use]
pub fn as_expected(device: &dyn Device, operation: &Operation, model: &Model, name: &str) -> FindingRecord {
    let finding = |outcome: Outcome, reason: Option<String>, value: Option<bool>, statement: String| FindingRecord {
        probe: EXPECTED.into(),
        outcome,
        reason,
        value: value.map(Into::into),
        statement,
        evidence: Vec::new().into(),
    };
    if !model.operations.contains_key(&operation.id) {
        let reason = format!("the model {name} has no operation {}", operation.id);
        return finding(Outcome::Unsupported, Some(reason), None, String::new());
    }
    let comparison = Comparison { count: EXPECTED_DOTS, seed: 1, nan: NanBits::Bits, shard: None };
    match verify(device, operation, model, comparison, &|_| ()) {
        Err(error) => finding(Outcome::Failed, Some(error.to_string()), None, String::new()),
        Ok(found) if found.mismatches == 0 => {
            let statement = format!("{} dots have the bits of the model {name}", found.dots);
            finding(Outcome::Measured, None, Some(true), statement)
        }
        Ok(found) => {
            let statement =
                format!("{} of {} dots have other bits than the model {name}", found.mismatches, found.dots);
            let finding = finding(Outcome::Measured, None, Some(false), statement);
            FindingRecord { evidence: found.evidence.into(), ..finding }
        }
    }
}
