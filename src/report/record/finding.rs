//! Operations, findings and evidence in the form that reports use: answers as JSON, bits as full-width hexadecimal.

use mxprobe_api::{Format, Operation, OperationId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::EvidenceList;
use crate::findings::{Evidence, Finding, Input, Outcome, Probed, Value};

/// An operation in the form that `list` uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationRecord {
    /// The canonical id.
    #[schemars(with = "String")]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Finding")]
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
    #[schemars(with = "Vec<EvidenceRecord>")]
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

/// One dot that was computed, with the predictions of rival answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Evidence")]
pub struct EvidenceRecord {
    /// The purpose of the input.
    pub about: String,
    /// The scalar function that was called: its operands are in `a`, and `b` and `c` are absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The k elements of A, as full-width hexadecimal.
    pub a: Vec<String>,
    /// The k elements of B.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub b: Vec<String>,
    /// The element of C.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub c: String,
    /// Scales of A, if the operation has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_a: Option<Vec<String>>,
    /// Scales of B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_b: Option<Vec<String>>,
    /// The result of the device.
    pub d: String,
    /// The results that other answers to the question predict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<RivalRecord>,
}

/// A rival answer and its prediction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Rival")]
pub struct RivalRecord {
    /// The rival answer.
    pub answer: String,
    /// The predicted d.
    pub d: String,
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

impl EvidenceRecord {
    /// Converts evidence of an operation; its bits have the formats of the operation, or of the function that was
    /// called.
    #[must_use]
    pub fn new(evidence: &Evidence, id: &OperationId) -> Self {
        let hex = |format: Format, bits: &[u64]| bits.iter().map(|bits| format.hex(*bits)).collect::<Vec<_>>();
        let d_format = match &evidence.input {
            Input::Dot(_) => id.d,
            Input::Call(function, _) => function.result(id.a),
        };
        let rival = |(answer, d): &(String, u64)| RivalRecord { answer: answer.clone(), d: d_format.hex(*d) };
        let mut record = Self {
            about: evidence.about.clone(),
            function: None,
            a: Vec::new(),
            b: Vec::new(),
            c: String::new(),
            scale_a: None,
            scale_b: None,
            d: d_format.hex(evidence.d),
            rivals: evidence.rivals.iter().map(rival).collect(),
        };
        match &evidence.input {
            Input::Dot(dot) => {
                (record.a, record.b, record.c) = (hex(id.a, &dot.a), hex(id.b, &dot.b), id.c.hex(dot.c));
                let scales = id.block_scale().zip(dot.scales.as_ref());
                (record.scale_a, record.scale_b) =
                    scales.map(|(scale, (a, b))| (hex(scale.format, a), hex(scale.format, b))).unzip();
            }
            Input::Call(function, operands) => {
                (record.function, record.a) = (Some(function.to_string()), hex(id.a, operands));
            }
        }
        record
    }

    /// Converts several, as [`EvidenceRecord::new`] does for one.
    #[must_use]
    pub fn all<'e>(evidence: impl IntoIterator<Item = &'e Evidence>, id: &OperationId) -> Vec<Self> {
        evidence.into_iter().map(|evidence| Self::new(evidence, id)).collect()
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
