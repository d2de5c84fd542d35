//! A saved experiment on the growth of errors: its provenance and results.

use serde::{Deserialize, Serialize};

use super::{DeviceRecord, Host, Time, Tool};
use crate::{gemm::Growth, shard::Shard};

/// The schema version of an experiment on the growth of errors.
pub const GROWTH_SCHEMA: &str = "mxprobe-growth/1.2";

/// How the errors of one device grow with the length of sums.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GrowthReport {
    /// `mxprobe-growth/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made the file.
    pub tool: Tool,
    /// When the file was made.
    pub time: Time,
    /// The machine on which the file was made.
    pub host: Host,
    /// The device.
    pub device: DeviceRecord,
    /// The share of the points that was computed, `I/N`; absent if it is all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub shard: Option<Shard>,
    /// The results; their fields are fields of the report.
    #[serde(flatten)]
    pub growth: Growth,
}
