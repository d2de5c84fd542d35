//! What `distinguish` found about several models: the types of its JSON.

use std::collections::BTreeMap;

use mxprobe_api::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Tool,
    distinction::{DistinctionVerdict, Inputs, ProofRecord},
    finding::EvidenceRecord,
};

/// The schema version of classes of models.
pub const CLASSES_SCHEMA: &str = "mxprobe-classes/1.0";

/// Which of several models compute an operation alike.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClassesReport {
    /// `mxprobe-classes/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// The models: names or files.
    pub models: Vec<String>,
    /// The operation.
    #[schemars(with = "String")]
    pub operation: OperationId,
    /// By model, the operation that was compared with it, of models that have none of this id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub counterparts: BTreeMap<String, OperationId>,
    /// Over which inputs the models were compared.
    pub inputs: Inputs,
    /// Ranges of exponents, both ends included, by input: `a`, `b`, `c`. An input without one may have any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exponents: BTreeMap<String, [i32; 2]>,
    /// Models that are proved equal; each other model alone.
    pub classes: Vec<Vec<String>>,
    /// Whether the first dot gives models of different classes different results.
    pub one_dot_tells_all: bool,
    /// Dots on which models differ. d is that of the first model, the rivals are the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRecord>,
    /// Each pair.
    pub pairs: Vec<PairRecord>,
    /// How long it took.
    pub duration_ns: u64,
}

/// What came of a pair of models.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PairRecord {
    /// The models.
    pub models: [String; 2],
    /// What came of it.
    pub verdict: DistinctionVerdict,
    /// Where they differ: which of the evidence shows it, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<u64>,
    /// Where they are equal: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// Where they are equal because both are equal to a third model: that model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// Where neither was decided: why there is no proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The JSON Schema of classes of models.
#[must_use]
pub fn classes_schema() -> serde_json::Value {
    schemars::schema_for!(ClassesReport).to_value()
}
