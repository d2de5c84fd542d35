//! The types of a comparison of reports.

use mxprobe_api::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    finding::EvidenceRecord,
    report::{DriverRecord, Kind},
    summary::{SummaryRow, Unit},
};
use crate::findings::Outcome;

/// The schema version of a comparison.
pub const COMPARISON_SCHEMA: &str = "mxprobe-comparison/1.1";

/// Reports side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// `mxprobe-comparison/MAJOR.MINOR`.
    pub schema: String,
    /// The reports, in the order in which they were given. Lists named after them have one element for each.
    pub reports: Vec<Side>,
    /// Whether anything differs that decides a bit, or nothing could be compared.
    pub differ: bool,
    /// What a reader has to know first: which sides are one device with another driver, what was matched how.
    pub notes: Vec<String>,
    /// What a reader has to know of the devices, in a few sentences that follow by rule.
    #[serde(default)]
    pub headline: Vec<String>,
    /// Kinds of sums by reports.
    #[serde(default)]
    pub matrix: Vec<MatrixRow>,
    /// Operations that were compared: first those that differ.
    pub matches: Vec<Match>,
    /// Operations of one report that have no counterpart.
    pub alone: Vec<Alone>,
}

/// A report of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// `A`, `B`, …
    pub label: String,
    /// The shortest name that tells it from the other sides.
    #[serde(default)]
    pub title: String,
    /// Where it was read.
    pub source: String,
    /// `cpu`, `vulkan`, …: with the fingerprint, which device it is.
    pub backend: String,
    /// The device's name for programs.
    pub fingerprint: String,
    /// What selected it.
    pub selector: String,
    /// Its name for people.
    pub name: String,
    /// Hardware, software or model.
    pub kind: Kind,
    /// A double of the device answered.
    pub emulated: bool,
    /// The driver; it is no part of what the device is.
    pub driver: Option<DriverRecord>,
    /// When the report was made.
    pub start: String,
}

/// A kind of sums, and what each report says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixRow {
    /// `f16→f32`; `tf32 xf32→f32`: AMD's format beside NVIDIA's of the same bits; `fp8→f32`: FNUZ beside OCP.
    pub sums: String,
    /// Who computes.
    pub unit: Unit,
    /// The answers of each report: none if it has no such operations, several if families or shapes answer otherwise.
    pub cells: Vec<Vec<SummaryRow>>,
}

/// How operations of several devices were found to be comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MatchedBy {
    /// They have the same id.
    Id,
    /// They compute the same: formats, k and qualifiers are equal.
    Formats,
    /// They have the same formats and qualifiers, and another k: the order of the sum is not compared.
    Terms,
}

/// Operations that were compared, and others for which the same is to be said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Match {
    /// How they were matched.
    pub by: MatchedBy,
    /// The operations of each report; none where a report has no such operation.
    #[schemars(with = "Vec<Vec<String>>")]
    pub operations: Vec<Vec<OperationId>>,
    /// Property by property, first those that differ.
    pub rows: Vec<Compared>,
    /// How many dots of the evidence were asked of more than one report.
    pub dots_in_common: usize,
    /// Those of them whose results differ.
    pub dots: Vec<DotCompared>,
}

/// How the answers to one question compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Two answers differ, or the device failed on one side only.
    Differs,
    /// Answers are missing, or cannot be compared; those that are there do not contradict.
    Open,
    /// Every report has the same answer, or the question arises for none.
    Equal,
}

/// One question, and every report's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// The question.
    pub probe: String,
    /// How the answers compare.
    pub state: State,
    /// The different answers of each report's operations; several where its operations do not agree.
    pub answers: Vec<Vec<Answer>>,
}

/// An answer as a report has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// How the question ended.
    pub outcome: Outcome,
    /// The answer for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The answer in words, or the reason why there is none.
    pub words: String,
    /// The operations that gave it, where others gave another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub operations: Vec<OperationId>,
}

/// A dot that was asked of several reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DotCompared {
    /// The operation of each report.
    #[schemars(with = "Vec<Option<String>>")]
    pub operations: Vec<Option<OperationId>>,
    /// What the input is made to show, and its bits. `d` is that of the first report that has it.
    pub input: EvidenceRecord,
    /// What each report's device returned.
    pub d: Vec<Option<String>>,
}

/// Operations of one report without a counterpart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alone {
    /// The label of the report.
    pub report: String,
    /// The operations.
    #[schemars(with = "Vec<String>")]
    pub operations: Vec<OperationId>,
    /// Another report is of the same device with another driver, which has no such operation.
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

/// The JSON Schema of comparisons.
#[must_use]
pub fn comparison_schema() -> serde_json::Value {
    schemars::schema_for!(Comparison).to_value()
}
