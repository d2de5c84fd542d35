//! What `identify` and `verify` learnt: the types of their JSON, from which their text is made.

use mxprobe_api::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeviceRecord, Host, Resumption, Time, Tool, finding::EvidenceRecord, request::Request};
use crate::nan_bits::NanBits;

/// The schema version of an identification.
pub const IDENTIFICATION_SCHEMA: &str = "mxprobe-identification/1.3";
/// The schema version of a verification.
pub const VERIFICATION_SCHEMA: &str = "mxprobe-verification/1.3";

/// What `identify` learnt about one device.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IdentificationReport {
    /// `mxprobe-identification/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// When it was made.
    pub time: Time,
    /// The machine it was made on.
    pub host: Host,
    /// The device.
    pub device: DeviceRecord,
    /// The file that the model was written to, where any operation was identified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which NaN counted as the same: those of the same bits, or any.
    #[serde(default)]
    pub nan: NanBits,
    /// What was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// The runs that continued it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
    /// One entry an operation.
    pub operations: Vec<IdentifiedOperation>,
}

/// How the identification of an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IdentificationOutcome {
    /// A model explains every dot asked.
    Identified,
    /// Nothing that a model file can say explains every dot.
    Outside,
    /// The same dot does not always give the same bits.
    Unrepeatable,
    /// The device failed.
    Failed,
}

/// What was learnt about one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdentifiedOperation {
    /// The operation.
    #[schemars(with = "String")]
    pub id: OperationId,
    /// How it ended.
    pub outcome: IdentificationOutcome,
    /// Why it is not `identified`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The order of summation in words, or why it does not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// The tree of the model, or of the nearest candidate, as in a model file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// What each adder of the tree does, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<String>,
    /// Batches asked once the tree was known.
    pub rounds: u64,
    /// Dots asked in all.
    pub dots: u64,
    /// Dots on which the model was compared with the device.
    pub tested: u64,
    /// Dots that the nearest candidate explains, of `tested`, where nothing explains all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<u64>,
    /// Readings of the tree that were tried.
    pub readings: u64,
    /// Shipped models that give the same bits for everything that was compared, as `h100 mma.m16n8k16.f32.f16.f16.f32`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equals: Vec<String>,
    /// Findings of the probes that differ between the device and the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disagreements: Vec<String>,
    /// Inputs on which an earlier candidate failed; or the simplest that nothing explains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRecord>,
    /// A model file of this operation alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How long it took.
    pub duration_ns: u64,
}

/// What `verify` found.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VerificationReport {
    /// `mxprobe-verification/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// When it was made.
    pub time: Time,
    /// The machine it was made on.
    pub host: Host,
    /// The device.
    pub device: DeviceRecord,
    /// The model it was compared with: a name or a file.
    pub model: String,
    /// Which NaN counted as the same: those of the same bits, or any.
    #[serde(default)]
    pub nan: NanBits,
    /// What was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// The runs that continued it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
    /// One entry an operation.
    pub operations: Vec<VerifiedOperation>,
}

/// The comparison of one operation with a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedOperation {
    /// The operation.
    #[schemars(with = "String")]
    pub id: OperationId,
    /// Dots compared.
    pub dots: u64,
    /// Dots whose bits differ.
    pub mismatches: u64,
    /// Dots that are NaN of other bits than the model's and count as the same.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_nan: u64,
    /// The first of them, made simple; rivals say what the model gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRecord>,
    /// Of a shard, the blocks of dots in which something differs, ascending: `merge` counts as one run would.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockRecord>,
    /// Why the comparison did not come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// How long it took.
    pub duration_ns: u64,
}

/// A block of dots in which something differs from the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Whether it was compared to the end, and every dot has the model's bits.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.failed.is_none() && self.mismatches == 0
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The JSON Schema of identifications.
#[must_use]
pub fn identification_schema() -> serde_json::Value {
    schemars::schema_for!(IdentificationReport).to_value()
}

/// The JSON Schema of verifications.
#[must_use]
pub fn verification_schema() -> serde_json::Value {
    schemars::schema_for!(VerificationReport).to_value()
}
