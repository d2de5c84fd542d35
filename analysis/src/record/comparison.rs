//! The results of comparing reports: the types of their JSON.

use mxprobe_api::OperationId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    evidence::EvidenceRecord,
    report::{DriverRecord, Kind},
    summary::{SummaryRow, Unit},
};
use crate::findings::Outcome;

/// The schema version of a comparison.
pub const COMPARISON_SCHEMA: &str = "mxprobe-comparison/1.1";

/// Reports side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// `mxprobe-comparison/MAJOR.MINOR`.
    pub schema: String,
    /// The reports, in the order in which they were given. Lists named after the reports have one element for each.
    pub reports: Vec<Side>,
    /// Whether anything that decides a bit differs, or nothing could be compared.
    pub differ: bool,
    /// Notes to read first: which sides are the same device with another driver, and how operations were matched.
    pub notes: Vec<String>,
    /// The main facts about the devices, in a few sentences generated from rules.
    #[serde(default)]
    pub headline: Vec<String>,
    /// Kinds of sums by reports.
    #[serde(default)]
    pub matrix: Vec<MatrixRow>,
    /// Operations that were compared: those that differ come first.
    pub matches: Vec<Match>,
    /// Operations of one report without a counterpart.
    pub alone: Vec<Alone>,
}

/// A report of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Side {
    /// `A`, `B`, …
    pub label: String,
    /// The shortest name that distinguishes it from the other sides.
    #[serde(default)]
    pub title: String,
    /// The file that the report was read from.
    pub source: String,
    /// `cpu`, `vulkan`, …: together with the fingerprint, it identifies the device.
    pub backend: String,
    /// The device's name for programs.
    pub fingerprint: String,
    /// The selector of the device.
    pub selector: String,
    /// The device's name for people.
    pub name: String,
    /// Hardware, software or model.
    pub kind: Kind,
    /// Whether a double of the device answered.
    pub emulated: bool,
    /// The driver; not part of the device's identity.
    pub driver: Option<DriverRecord>,
    /// When the report was made.
    pub start: String,
}

/// A kind of sum, with the answers of each report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MatrixRow {
    /// `f16→f32`; `tf32 xf32→f32`: AMD's format next to NVIDIA's with the same bits; `fp8→f32`: FNUZ next to OCP.
    pub sums: String,
    /// The kind of unit that computes.
    pub unit: Unit,
    /// The answers of each report: empty if it has no such operations, several if families or shapes differ.
    pub cells: Vec<Vec<SummaryRow>>,
}

/// Why operations of several devices are comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MatchedBy {
    /// They have the same id.
    Id,
    /// They compute the same: formats, k and qualifiers are equal.
    Formats,
    /// They have the same formats and qualifiers but another k: the order of the sum is not compared.
    Terms,
}

/// Operations that were compared, together with others for which the results are the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Match {
    /// How they were matched.
    pub by: MatchedBy,
    /// The operations of each report; empty if a report has no such operation.
    #[cfg_attr(test, schemars(with = "Vec<Vec<String>>"))]
    pub operations: Vec<Vec<OperationId>>,
    /// The properties; those that differ come first.
    pub rows: Vec<Compared>,
    /// Number of dots of the evidence that more than one report has.
    pub dots_in_common: usize,
    /// The common dots whose results differ.
    pub dots: Vec<DotCompared>,
}

/// How the answers to one question compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Two answers differ, or the device failed on one side only.
    Differs,
    /// Answers are missing or cannot be compared; those present do not contradict each other.
    Open,
    /// Every report has the same answer, or the question applies to none of them.
    Equal,
}

/// One question, with the answer of each report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Compared {
    /// The question.
    pub probe: String,
    /// The result of the comparison.
    pub state: State,
    /// The distinct answers of each report's operations; several if its operations do not agree.
    pub answers: Vec<Vec<Answer>>,
}

/// An answer of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answer {
    /// The outcome of the question.
    pub outcome: Outcome,
    /// The answer for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The answer in words, or the reason why there is none.
    pub words: String,
    /// The operations that gave it, if others gave another answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub operations: Vec<OperationId>,
}

/// A dot that several reports have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DotCompared {
    /// The operation of each report.
    #[cfg_attr(test, schemars(with = "Vec<Option<String>>"))]
    pub operations: Vec<Option<OperationId>>,
    /// The purpose and the bits of the input. `d` is that of the first report that has it.
    pub input: EvidenceRecord,
    /// The result of each report's device.
    pub d: Vec<Option<String>>,
}

/// Operations of one report without a counterpart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Alone {
    /// The label of the report.
    pub report: String,
    /// The operations.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub operations: Vec<OperationId>,
    /// Whether another report is of the same device with another driver that lacks these operations.
    pub same_device: bool,
}

impl Match {
    /// Whether an answer or a bit differs.
    #[must_use]
    pub fn differs(&self) -> bool {
        !self.dots.is_empty() || self.rows.iter().any(|row| row.state == State::Differs)
    }

    /// Whether anything was compared at all: an answer, or the bits of a dot.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.dots_in_common > 0 || self.rows.iter().any(|row| row.state != State::Open)
    }

    /// How many properties are in this state.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.rows.iter().filter(|row| row.state == state).count()
    }
}
