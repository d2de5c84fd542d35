//! Results of `distinguish` for two models: the types of its JSON.

use std::collections::BTreeMap;

use mxprobe_api::OperationId;
use serde::{Deserialize, Serialize};

use super::{Tool, evidence::EvidenceRecord};

/// The schema version of a distinction.
pub const DISTINCTION_SCHEMA: &str = "mxprobe-distinction/1.0";

/// The results of `distinguish` for two models of one operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DistinctionReport {
    /// `mxprobe-distinction/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made the report.
    pub tool: Tool,
    /// The models: names or files.
    pub models: [String; 2],
    /// The operation.
    #[cfg_attr(test, schemars(with = "String"))]
    pub operation: OperationId,
    /// The operation of the second model that was compared, if that model has none with this id: one with the same
    /// formats and k.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub counterpart: Option<OperationId>,
    /// The inputs over which the models were compared.
    pub inputs: Inputs,
    /// Ranges of exponents, both ends inclusive, by input: `a`, `b`, `c`. An input without a range may have any
    /// exponent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exponents: BTreeMap<String, [i32; 2]>,
    /// The result.
    pub verdict: DistinctionVerdict,
    /// Number of dots tried before the result was known.
    pub tried: u64,
    /// If the models differ: a dot that shows it, simplified as far as possible. d is the result of the first model,
    /// the rival that of the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceRecord>,
    /// If the models are equal: the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// If undecided: why no proof was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The duration.
    pub duration_ns: u64,
}

/// The inputs of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Inputs {
    /// Every input, including NaNs and infinities.
    All,
    /// Finite inputs: no operand and no c is NaN or infinite.
    Finite,
}

/// The result of comparing two models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DistinctionVerdict {
    /// They differ on some dot.
    Differ,
    /// They are proved equal.
    Equal,
    /// Neither a difference nor a proof was found.
    Undecided,
}

/// A proof that two models are equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProofRecord {
    /// Whether the whole dot was compared, rather than its rounded sums one by one.
    pub whole: bool,
    /// Number of rounded sums of a dot that were compared.
    pub sums: u64,
    /// Carry bits that suffice according to their closed form and were treated as unlimited, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carry: Vec<String>,
    /// The formula that was refuted; absent if both models are the same circuit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuted: Option<RefutedFormula>,
    /// Number of steps of the written proof, which was checked independently of the solver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_steps: Option<u64>,
}

/// A formula, stating that two models differ, that a solver refuted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RefutedFormula {
    /// Number of variables.
    pub variables: u64,
    /// Number of clauses.
    pub clauses: u64,
    /// Number of conflicts on the way.
    pub conflicts: u64,
    /// The duration.
    pub duration_ns: u64,
}
