//! Findings: the answers to questions about an operation, with the bits that prove them; and [`Probe`], the description
//! of a question.
//!
//! Questions make findings, and [records](crate::record) store them as text. This module depends on neither.

mod make;
mod probe;
mod value;

use mxprobe_api::{Operation, ScalarFunction};
use serde::{Deserialize, Serialize};

use crate::dots::Dot;

pub(crate) use make::settle;
pub(crate) use probe::source;
pub use probe::{AppliesTo, Comparable, Glance, Probe, Shown};
pub use value::Value;

/// The result of probing one operation.
#[derive(Clone, Debug)]
pub struct Probed {
    /// The operation.
    pub operation: Operation,
    /// A digest of the kernel that was handed to the driver, in hex.
    pub kernel_sha256: Option<String>,
    /// The findings, in the order of the questions.
    pub findings: Vec<Finding>,
    /// The number of dots that were computed.
    pub dots: u64,
    /// How long the probes of this operation took.
    pub duration_ns: u64,
}

impl Probed {
    /// The finding of a probe.
    #[must_use]
    pub fn finding(&self, probe: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.probe == probe)
    }
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The name used in the JSON.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The question: `alignment.fraction_bits`.
    pub probe: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The reason if the outcome is not `measured`.
    pub reason: Option<String>,
    /// The answer for programs; present if and only if the outcome is `measured`.
    pub value: Option<Value>,
    /// The answer in words.
    pub statement: String,
    /// The bits that prove it.
    pub evidence: Vec<Evidence>,
}

/// A computation, and the result that each rival answer would have given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The purpose of the input.
    pub about: String,
    /// The inputs.
    pub input: Input,
    /// The bits that the device returned.
    pub d: u64,
    /// The other answers to the question, and the bits that each of them would have returned.
    pub rivals: Vec<(String, u64)>,
}

impl Evidence {
    /// A dot, its result d, and the d of each rival answer.
    #[must_use]
    pub fn of_dot(about: impl Into<String>, dot: &Dot, d: u64, rivals: &[(String, u64)]) -> Self {
        Self { about: about.into(), input: Input::Dot(dot.clone()), d, rivals: rivals.to_vec() }
    }

    /// The dot, or `None` if a scalar function was called.
    #[must_use]
    pub fn dot(&self) -> Option<&Dot> {
        match &self.input {
            Input::Dot(dot) => Some(dot),
            Input::Call(..) => None,
        }
    }
}

/// The inputs of a computation, as bits in the formats of its operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A dot of a matrix operation.
    Dot(Dot),
    /// A scalar function and its operands.
    Call(ScalarFunction, Vec<u64>),
}
