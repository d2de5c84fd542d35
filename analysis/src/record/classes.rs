//! Results of `distinguish` for several models: the types of its JSON.

use std::collections::BTreeMap;

use mxprobe_api::OperationId;
use serde::{Deserialize, Serialize};

use super::{
    Tool,
    distinction::{DistinctionVerdict, Inputs, ProofRecord},
    evidence::EvidenceRecord,
};

/// The schema version of classes of models.
pub const CLASSES_SCHEMA: &str = "mxprobe-classes/1.0";

/// Which of several models compute an operation alike.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassesReport {
    /// `mxprobe-classes/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made the report.
    pub tool: Tool,
    /// The models: names or files.
    pub models: Vec<String>,
    /// The operation.
    #[cfg_attr(test, schemars(with = "String"))]
    pub operation: OperationId,
    /// For each model without an operation of this id, the operation that was compared instead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub counterparts: BTreeMap<String, OperationId>,
    /// The inputs over which the models were compared.
    pub inputs: Inputs,
    /// Ranges of exponents, both ends inclusive, by input: `a`, `b`, `c`. An input without a range may have any
    /// exponent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exponents: BTreeMap<String, [i32; 2]>,
    /// Groups of models that are proved equal; every other model is a group of its own.
    pub classes: Vec<Vec<String>>,
    /// Whether the first dot distinguishes all classes.
    pub one_dot_tells_all: bool,
    /// Dots on which models differ. d is the result of the first model, the rivals are the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRecord>,
    /// The result for each pair.
    pub pairs: Vec<PairRecord>,
    /// The duration.
    pub duration_ns: u64,
}

/// The result for a pair of models.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PairRecord {
    /// The models.
    pub models: [String; 2],
    /// The result.
    pub verdict: DistinctionVerdict,
    /// If the models differ: the index, from 0, of the evidence that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<u64>,
    /// If the models are equal: the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// If the models are equal because both equal a third: that model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// If undecided: why no proof was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
