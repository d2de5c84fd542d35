//! Findings: the answers to questions about an operation, with the bits that prove them; and [`Probe`], what is said of a question.
//!
//! Questions make findings, and reports hold them. Nothing here names either.

mod make;
mod probe;

use mxprobe_api::{Format, Operation, OperationId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dots::Dot;

pub(crate) use make::settle;
pub(crate) use probe::source;
pub use probe::{AppliesTo, Comparable, Glance, Probe, Shown};

/// An operation as `list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationRecord {
    /// The canonical id.
    #[schemars(with = "String")]
    pub id: OperationId,
    /// Who computes one tile together.
    pub scope: String,
    /// The instruction or call behind it, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// Other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// What was learnt about one operation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OperationReport {
    /// The operation.
    #[serde(flatten)]
    pub operation: OperationRecord,
    /// A digest of the kernel that was handed to the driver, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_sha256: Option<String>,
    /// The findings, in the order of the questions.
    pub findings: Vec<Finding>,
    /// How many dots were asked.
    pub dots: u64,
    /// How long the probes of this operation took.
    pub duration_ns: u64,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Answered, with evidence.
    Measured,
    /// The question does not arise for this operation.
    Unsupported,
    /// Not asked in this run.
    Skipped,
    /// The device failed while it was asked.
    Failed,
    /// Asked, and the answers fit no hypothesis, or nothing that can be sent tells the hypotheses apart.
    Inconclusive,
}

impl Outcome {
    /// Its name, as in the JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Unsupported => "unsupported",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The question: `alignment.fraction_bits`.
    pub probe: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it is not `measured`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The answer for programs; present exactly where the outcome is `measured`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
    /// The answer in words.
    pub statement: String,
    /// The bits that prove it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

impl Finding {
    /// The answer in words; if there is none, a dash with the outcome and its reason.
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
}

/// One dot that was computed, and what each rival answer would have returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What the input is made to show.
    pub about: String,
    /// The function of scalar arithmetic that was called: its operands are in `a`, and there is no `b` and no `c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// k elements of A as full-width hexadecimal.
    pub a: Vec<String>,
    /// k elements of B.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub b: Vec<String>,
    /// The element of C.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub c: String,
    /// Scales of A, for an operation that has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_a: Option<Vec<String>>,
    /// Scales of B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_b: Option<Vec<String>>,
    /// What the device returned.
    pub d: String,
    /// What other answers to the question would have returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<Rival>,
}

impl Evidence {
    /// A dot of an operation, its d, and what d other answers would have given.
    #[must_use]
    pub fn of_dot(id: &OperationId, about: impl Into<String>, dot: &Dot, d: u64, rivals: &[(String, u64)]) -> Self {
        let hex = |format: Format, bits: &[u64]| bits.iter().map(|bits| format.hex(*bits)).collect();
        let scale_format = id.block_scale().map(|scale| scale.format);
        let scales = scale_format.zip(dot.scales.as_ref());
        Self {
            function: None,
            about: about.into(),
            a: hex(id.a, &dot.a),
            b: hex(id.b, &dot.b),
            c: id.c.hex(dot.c),
            scale_a: scales.map(|(format, (a, _))| hex(format, a)),
            scale_b: scales.map(|(format, (_, b))| hex(format, b)),
            d: id.d.hex(d),
            rivals: rivals.iter().map(|(answer, d)| Rival { answer: answer.clone(), d: id.d.hex(*d) }).collect(),
        }
    }
}

/// A rival answer and its prediction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rival {
    /// The answer.
    pub answer: String,
    /// What it predicts for d.
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
    /// The finding of a probe.
    #[must_use]
    pub fn finding(&self, probe: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.probe == probe)
    }
}
