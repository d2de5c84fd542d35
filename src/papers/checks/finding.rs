//! The finding of a probe.

use mxprobe_api::{Error, Operation};
use serde::Deserialize;
use serde_json::Value;

use crate::papers::computed::Computed;
use crate::{
    findings::Outcome,
    papers::Target,
    report::{FindingRecord, OperationReport},
    session::{self, Asked},
};

/// The finding of a probe, and its expected value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindingOf {
    /// A pattern of the operation.
    operation: String,
    /// The probe.
    probe: String,
    /// The field of the value to compare, if it has fields.
    field: Option<String>,
    /// The value that corresponds to what is printed.
    value: Option<Value>,
    /// The smallest number that corresponds to it, instead.
    least: Option<u64>,
}

impl FindingOf {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        let asked = target.asked()?;
        let operation = target.operation(&asked, &self.operation, 0)?;
        let report = found(&asked, &operation, &[&self.probe])?;
        let finding = measured(&report, &self.probe)?;
        let value = match (&self.field, &finding.value) {
            (Some(field), Some(value)) => value.get(field),
            (_, value) => value.as_ref(),
        };
        let number = value.and_then(Value::as_u64);
        let agrees = self.value.as_ref().is_none_or(|wanted| value == Some(wanted))
            && self.least.is_none_or(|least| number.is_some_and(|number| number >= least));
        Ok(Computed { text: finding.statement.clone(), agrees })
    }
}

/// Probes an operation.
///
/// # Errors
/// If the device no longer has the operation.
pub(super) fn found(asked: &Asked, operation: &Operation, probes: &[&str]) -> Result<OperationReport, Error> {
    let probes: Vec<String> = probes.iter().map(|probe| (*probe).to_owned()).collect();
    let none = || Error::invalid(format!("{} is gone", operation.id));
    session::probe(asked.device.as_ref(), &operation.id, &probes, None).ok_or_else(none)
}

/// The finding of a probe, if it has an answer.
///
/// # Errors
/// `Unsupported` if the question does not apply, otherwise the reason why it was not answered.
pub(super) fn measured<'a>(report: &'a OperationReport, probe: &str) -> Result<&'a FindingRecord, Error> {
    let finding = report.finding(probe).ok_or_else(|| Error::invalid(format!("unknown probe `{probe}`")))?;
    let reason = || finding.reason.clone().unwrap_or_else(|| finding.statement.clone());
    match finding.outcome {
        Outcome::Measured => Ok(finding),
        Outcome::Failed => Err(Error::driver(reason())),
        _ => Err(Error::unsupported(reason())),
    }
}
