//! Results of `identify` and `verify`: the types of their JSON, from which their text is made.

use mxprobe_api::OperationId;
use serde::{Deserialize, Serialize};

use super::{DeviceRecord, Host, Resumption, Time, Tool, evidence::EvidenceRecord, request::Request};
use crate::nan_bits::NanBits;

/// The schema version of an identification.
pub const IDENTIFICATION_SCHEMA: &str = "mxprobe-identification/1.3";
/// The schema version of a verification.
pub const VERIFICATION_SCHEMA: &str = "mxprobe-verification/1.3";

/// The results of `identify` for one device.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdentificationReport {
    /// `mxprobe-identification/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made the report.
    pub tool: Tool,
    /// When the report was made.
    pub time: Time,
    /// The machine on which the report was made.
    pub host: Host,
    /// The device.
    pub device: DeviceRecord,
    /// The file to which the model was written, if any operation was identified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which NaNs counted as equal: only those with the same bits, or any.
    #[serde(default)]
    pub nan: NanBits,
    /// The request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// The runs that continued this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
    /// One entry per operation.
    pub operations: Vec<IdentifiedOperation>,
}

/// The outcome of the identification of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum IdentificationOutcome {
    /// A model explains every dot asked.
    Identified,
    /// No model that a model file can express explains every dot.
    Outside,
    /// The same dot does not always give the same bits.
    Unrepeatable,
    /// The device failed.
    Failed,
}

/// The results for one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdentifiedOperation {
    /// The operation.
    #[cfg_attr(test, schemars(with = "String"))]
    pub id: OperationId,
    /// The outcome.
    pub outcome: IdentificationOutcome,
    /// Why the outcome is not `identified`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The order of summation in words, or why it cannot be observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// The tree of the model, or of the nearest candidate, as in a model file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The behaviour of each adder of the tree, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<String>,
    /// Batches of dots asked after the tree was known.
    pub rounds: u64,
    /// Total number of dots asked.
    pub dots: u64,
    /// Number of dots on which the model was compared with the device.
    pub tested: u64,
    /// How many of the `tested` dots the nearest candidate explains, if no model explains all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<u64>,
    /// Number of interpretations of the tree that were tried.
    pub readings: u64,
    /// Shipped models that gave the same bits in everything that was compared, such as `h100
    /// mma.m16n8k16.f32.f16.f16.f32`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equals: Vec<String>,
    /// Probe findings that differ between the device and the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disagreements: Vec<String>,
    /// Inputs on which an earlier candidate failed; or the simplest input that no model explains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRecord>,
    /// A model file with this operation only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The duration.
    pub duration_ns: u64,
}

/// The results of `verify`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerificationReport {
    /// `mxprobe-verification/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made the report.
    pub tool: Tool,
    /// When the report was made.
    pub time: Time,
    /// The machine on which the report was made.
    pub host: Host,
    /// The device.
    pub device: DeviceRecord,
    /// The model that the device was compared with: a name or a file.
    pub model: String,
    /// Which NaNs counted as equal: only those with the same bits, or any.
    #[serde(default)]
    pub nan: NanBits,
    /// The request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// The runs that continued this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
    /// One entry per operation.
    pub operations: Vec<VerifiedOperation>,
}

/// The comparison of one operation with a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerifiedOperation {
    /// The operation.
    #[cfg_attr(test, schemars(with = "String"))]
    pub id: OperationId,
    /// Number of dots compared.
    pub dots: u64,
    /// Number of dots whose bits differ.
    pub mismatches: u64,
    /// Number of dots that are NaNs with bits other than the model's and count as equal.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_nan: u64,
    /// The first mismatches, simplified; the rivals are the model's results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRecord>,
    /// Of a shard, the blocks of dots in which something differs, ascending, from which `merge` counts as one run does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockRecord>,
    /// Why the comparison did not finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The duration.
    pub duration_ns: u64,
}

/// A block of dots in which something differs from the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlockRecord {
    /// Which block of the operation, from 0.
    pub block: u64,
    /// Dots whose bits differ.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mismatches: u64,
    /// Dots that are NaN of other bits than the model's and count as the same.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_nan: u64,
    /// The first mismatches of the block, made simple.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRecord>,
}

impl VerifiedOperation {
    /// Whether the comparison finished and every dot has the model's bits.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.failed.is_none() && self.mismatches == 0
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
