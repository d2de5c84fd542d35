//! The plan of a run, and the runs that continued it.

use mxprobe_api::OperationId;
use serde::{Deserialize, Serialize};

/// The plan of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Plan {
    /// The operations, in order.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub operations: Vec<OperationId>,
    /// The patterns given with `--op`; if empty, all operations of the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// The probes given with `--probe`, whose findings are kept; if empty, all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<String>,
    /// The number of arguments for each function whose error in ulp is measured, as given with `--points`; 10,000,000
    /// if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<u64>,
}

/// A run that continued a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Resumption {
    /// The start, as RFC 3339 in UTC.
    pub time: String,
    /// The program's version and commit.
    pub version: String,
    /// The number of operations that were left.
    pub operations: usize,
}
