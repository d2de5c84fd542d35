//! Results of `distinguish --property`: the types of its JSON.

use std::collections::BTreeMap;

use mxprobe_api::OperationId;
use serde::{Deserialize, Serialize};

use super::{
    Tool,
    distinction::{DistinctionVerdict, ProofRecord},
    evidence::EvidenceRecord,
};

/// The schema version of properties of a model.
pub const PROPERTIES_SCHEMA: &str = "mxprobe-properties/1.0";

/// How a model computes an operation, for finite inputs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PropertiesReport {
    /// `mxprobe-properties/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made the report.
    pub tool: Tool,
    /// The model: a name or a file.
    pub model: String,
    /// The operation.
    #[cfg_attr(test, schemars(with = "String"))]
    pub operation: OperationId,
    /// Ranges of exponents, both ends inclusive, by input: `a`, `b`, `c`. An input without a range may have any
    /// exponent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exponents: BTreeMap<String, [i32; 2]>,
    /// The requested properties.
    pub properties: Vec<PropertyRecord>,
    /// The duration.
    pub duration_ns: u64,
}

/// One property.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PropertyRecord {
    /// Its name.
    pub property: String,
    /// The question.
    pub question: String,
    /// The model's behaviour, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why it does not apply to the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub does_not_apply: Option<String>,
    /// Dots that show it. d is the model's result, the rivals are the results of each other answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRecord>,
    /// The other answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<AlternativeRecord>,
    /// The duration.
    pub duration_ns: u64,
}

/// Another answer to a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AlternativeRecord {
    /// The difference from the model.
    pub alternative: String,
    /// Whether a dot distinguishes it from the model.
    pub verdict: DistinctionVerdict,
    /// The index, from 0, of the evidence that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<u64>,
    /// Why no dot can show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// Why neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
