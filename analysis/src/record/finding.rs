//! Operations and findings in the form that reports use: answers as JSON.

use mxprobe_api::{Operation, OperationId};
use serde::{Deserialize, Serialize};

use super::evidence::{EvidenceList, EvidenceRecord};
use crate::findings::{Finding, Outcome, Probed, Value};

/// An operation in the form that `list` uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OperationRecord {
    /// The canonical id.
    #[cfg_attr(test, schemars(with = "String"))]
    pub id: OperationId,
    /// The scope that computes one tile together.
    pub scope: String,
    /// The instruction or call behind it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// Other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// The results for one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OperationReport {
    /// The operation.
    #[serde(flatten)]
    pub operation: OperationRecord,
    /// A digest of the kernel passed to the driver, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_sha256: Option<String>,
    /// The findings, in the order of the questions.
    pub findings: Vec<FindingRecord>,
    /// The number of dots asked.
    pub dots: u64,
    /// The time that the probes of this operation took.
    pub duration_ns: u64,
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Finding"))]
pub struct FindingRecord {
    /// The question: `alignment.fraction_bits`.
    pub probe: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Why the outcome is not `measured`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The answer for programs; present if and only if the outcome is `measured`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
    /// The answer in words.
    pub statement: String,
    /// The bits that prove it.
    #[serde(default, skip_serializing_if = "EvidenceList::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<EvidenceRecord>"))]
    pub evidence: EvidenceList,
}

impl FindingRecord {
    /// Returns the answer in words, or else a dash with the outcome and its reason.
    #[must_use]
    pub fn words(&self) -> String {
        if self.outcome == Outcome::Measured {
            return self.statement.clone();
        }
        let outcome = self.outcome.name();
        match (&self.reason, self.statement.as_str()) {
            (Some(reason), _) => format!("— {outcome}: {reason}"),
            (None, "") => format!("— {outcome}"),
            (None, statement) => format!("— {outcome}: {statement}"),
        }
    }

    /// Whether the answer is this value.
    #[must_use]
    pub fn is(&self, value: impl Into<serde_json::Value>) -> bool {
        self.value == Some(value.into())
    }
}

impl From<&Operation> for OperationRecord {
    fn from(operation: &Operation) -> Self {
        Self {
            id: operation.id.clone(),
            scope: operation.scope.clone(),
            instruction: operation.instruction.clone(),
            aliases: operation.aliases.clone(),
        }
    }
}

impl OperationReport {
    /// Returns the finding of a probe.
    #[must_use]
    pub fn finding(&self, probe: &str) -> Option<&FindingRecord> {
        self.findings.iter().find(|finding| finding.probe == probe)
    }
}

impl From<Probed> for OperationReport {
    fn from(probed: Probed) -> Self {
        let id = &probed.operation.id;
        Self {
            findings: probed.findings.iter().map(|finding| FindingRecord::new(finding, id)).collect(),
            operation: (&probed.operation).into(),
            kernel_sha256: probed.kernel_sha256,
            dots: probed.dots,
            duration_ns: probed.duration_ns,
        }
    }
}

impl FindingRecord {
    fn new(finding: &Finding, id: &OperationId) -> Self {
        Self {
            probe: finding.probe.clone(),
            outcome: finding.outcome,
            reason: finding.reason.clone(),
            value: finding.value.as_ref().map(Into::into),
            statement: finding.statement.clone(),
            evidence: EvidenceRecord::all(&finding.evidence, id).into(),
        }
    }
}

impl From<&Value> for serde_json::Value {
    fn from(value: &Value) -> Self {
        match value {
            Value::Flag(flag) => (*flag).into(),
            Value::Number(number) => (*number).into(),
            Value::Decimal(number) => format!("{number:.3}").into(),
            Value::Word(word) => word.as_ref().into(),
            Value::Bits(format, bits) => format.hex(*bits).into(),
            Value::List(values) => values.iter().map(Self::from).collect(),
            Value::Parts(parts) => parts.iter().map(|(name, part)| (name.as_ref(), Self::from(part))).collect(),
        }
    }
}

/// Converts back into a [`Value`]; bits and decimals stay the text that they are in reports, as does any value that a
/// probe never returns.
impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Bool(flag) => Self::Flag(*flag),
            serde_json::Value::Array(values) => Self::List(values.iter().map(Self::from).collect()),
            serde_json::Value::Object(parts) => {
                Self::Parts(parts.iter().map(|(name, part)| (name.clone().into(), part.into())).collect())
            }
            other => match (other.as_i64(), other.as_str()) {
                (Some(number), _) => Self::Number(number),
                (_, text) => Self::Word(text.map_or_else(|| other.to_string(), Into::into).into()),
            },
        }
    }
}
