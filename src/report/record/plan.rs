//! What a run was to ask, and the runs that went on with it.

use mxprobe_api::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run was to ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The operations, in their order.
    #[schemars(with = "Vec<String>")]
    pub operations: Vec<OperationId>,
    /// What `--op` named; all that the device has, if it named nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// Which findings are kept, as `--probe` named them; all, if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<String>,
    /// Arguments of each function whose error in ulp is asked, as `--points` says; 10,000,000, if it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<u64>,
}

/// A run that went on with a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumption {
    /// When, RFC 3339, UTC.
    pub time: String,
    /// The program's version and commit.
    pub version: String,
    /// How many operations were left.
    pub operations: usize,
}
