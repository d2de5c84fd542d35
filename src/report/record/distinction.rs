//! What `distinguish` found: the types of its JSON.

use std::collections::BTreeMap;

use mxprobe_api::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Tool, finding::EvidenceRecord};

/// The schema version of a distinction.
pub const DISTINCTION_SCHEMA: &str = "mxprobe-distinction/1.0";

/// What `distinguish` found about two models of one operation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DistinctionReport {
    /// `mxprobe-distinction/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// The models: names or files.
    pub models: [String; 2],
    /// The operation.
    #[schemars(with = "String")]
    pub operation: OperationId,
    /// What was compared with it of the second model, if that has no operation of this id: one of the same formats and k.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub counterpart: Option<OperationId>,
    /// Over which inputs the models were compared.
    pub inputs: Inputs,
    /// Ranges of exponents, both ends included, by input: `a`, `b`, `c`. An input without one may have any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exponents: BTreeMap<String, [i32; 2]>,
    /// What came of it.
    pub verdict: DistinctionVerdict,
    /// Dots that were tried before it was known.
    pub tried: u64,
    /// Where they differ: the dot, as simple as it was found. d is that of the first model, the rival the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceRecord>,
    /// Where they are equal: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// Where neither was decided: why there is no proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long it took.
    pub duration_ns: u64,
}

/// Inputs of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Inputs {
    /// Every input, NaN and infinities among them.
    All,
    /// Operands and c are no NaN and no infinity.
    Finite,
}

/// What came of a comparison of two models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DistinctionVerdict {
    /// They differ on a dot.
    Differ,
    /// They are proved equal.
    Equal,
    /// Neither was found.
    Undecided,
}

/// Why two models are equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofRecord {
    /// Whether the whole dot was compared at once, and not its rounded sums one by one.
    pub whole: bool,
    /// Rounded sums of a dot that were compared.
    pub sums: u64,
    /// Carry bits that suffice by their closed form and were taken as unlimited, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carry: Vec<String>,
    /// The formula that was refuted; none where both models are the same circuit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuted: Option<RefutedFormula>,
    /// Steps of the proof that was written and checked apart from the solver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_steps: Option<u64>,
}

/// A formula that a solver refuted: that two models differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefutedFormula {
    /// Its variables.
    pub variables: u64,
    /// Its clauses.
    pub clauses: u64,
    /// Conflicts on the way.
    pub conflicts: u64,
    /// How long it took.
    pub duration_ns: u64,
}

/// The JSON Schema of distinctions.
#[must_use]
pub fn distinction_schema() -> serde_json::Value {
    schemars::schema_for!(DistinctionReport).to_value()
}
