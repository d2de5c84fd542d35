//! What a run learnt: the types of the JSON report, from which every view is made.

pub mod check;
mod compare;
mod compare_screen;
mod compare_view;
mod comparison;
mod csv;
mod distinction;
mod document;
mod groups;
mod html;
mod identification;
mod json;
mod markdown;
mod matching;
mod pages;
pub mod plain;
mod plot;
mod provenance;
mod same_device;
mod screen;
mod table;
mod throughput;
mod throughput_view;
mod unfinished;
mod unique;
mod view;
mod words;

use std::collections::BTreeMap;

use mxprobe_api::{DeviceInfo, DeviceKind, Format, OperationId, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dots::Dot;

pub use compare::compare;
pub use comparison::{
    Alone, Answer, COMPARISON_SCHEMA, Compared, Comparison, DotCompared, Match, MatchedBy, Side, State,
};
pub use distinction::{
    DISTINCTION_SCHEMA, DistinctionReport, DistinctionVerdict, Inputs, ProofRecord, RefutedFormula, distinction_schema,
};
pub use groups::grouped;
pub use identification::{
    IDENTIFICATION_SCHEMA, IdentificationOutcome, IdentificationReport, IdentifiedOperation, VERIFICATION_SCHEMA,
    VerificationReport, VerifiedOperation, identification_schema, verification_schema,
};
pub use json::to_json;
pub use matching::is_layout;
pub use provenance::{Conditions, Host, Time, Tool, build_version, now};
pub use screen::{Style, wrap};
pub use throughput::{
    BENCH_SCHEMA, BenchReport, BenchSettings, CyclePeak, Data, FEWEST_SAMPLES, Peak, Throughput, ThroughputRun,
    TimedBy, Units, bench_schema,
};
pub use unfinished::{EXECUTION, Plan, Resumption};
pub use view::{Csv, Html, Json, Markdown, Table, View};

/// The schema version a report carries: a reader ignores unknown keys of the same major version.
pub const SCHEMA: &str = "mxprobe-report/1.3";

/// Everything one run learnt about one device.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// `mxprobe-report/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// When it was made.
    pub time: Time,
    /// The machine it was made on.
    pub host: Host,
    /// The device.
    pub device: DeviceRecord,
    /// What a reader has to know before the findings: that a model stood in for a device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Clocks, temperature and power of the device, where the system tells them.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// What the run was to ask; without it the run cannot be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// The runs that went on with this report, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
    /// What was listed or looked for and could not be used.
    pub refusals: Vec<RefusalRecord>,
    /// What was learnt, one entry an operation.
    pub operations: Vec<OperationReport>,
}

/// What stands behind a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Silicon.
    Hardware,
    /// A driver that computes in software on the CPU.
    Software,
    /// An executable model: nothing was measured on a device.
    Model,
}

/// Who a device is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceRecord {
    /// `cpu`, `vulkan`, `sim`, …
    pub backend: String,
    /// What selected it in this run; an index may move between boots.
    pub selector: String,
    /// Its name for people.
    pub name: String,
    /// Its name for programs, the same on every machine.
    pub fingerprint: String,
    /// Hardware, software or model.
    pub kind: Kind,
    /// A double of the device, made for tests, answered: nothing was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub emulated: bool,
    /// Other selectors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The driver, where one stands between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverRecord>,
    /// What else is known of it.
    pub properties: BTreeMap<String, String>,
}

/// The driver that reaches a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriverRecord {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of the API it offers.
    pub api_version: String,
}

/// Something that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusalRecord {
    /// What.
    pub what: String,
    /// Why not.
    pub reason: String,
    /// A fact and an action for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// An operation as `list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationRecord {
    /// The canonical id.
    #[schemars(with = "String")]
    pub id: OperationId,
    /// Who computes one tile together.
    pub scope: String,
    /// The instruction or call behind it, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// Other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// What was learnt about one operation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OperationReport {
    /// The operation.
    #[serde(flatten)]
    pub operation: OperationRecord,
    /// A digest of the kernel that was handed to the driver, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_sha256: Option<String>,
    /// The findings, in the order of the questions.
    pub findings: Vec<Finding>,
    /// How many dots were asked.
    pub dots: u64,
    /// How long the probes of this operation took.
    pub duration_ns: u64,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Answered, with evidence.
    Measured,
    /// The question does not arise for this operation.
    Unsupported,
    /// Not asked in this run.
    Skipped,
    /// The device failed while it was asked.
    Failed,
    /// Asked, and the answers fit no hypothesis, or nothing that can be sent tells the hypotheses apart.
    Inconclusive,
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The question: `alignment.fraction_bits`.
    pub probe: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it is not `measured`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The answer for programs; present exactly where the outcome is `measured`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
    /// The answer in words.
    pub statement: String,
    /// The bits that prove it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// One dot that was computed, and what each rival answer would have returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What the input is made to show.
    pub about: String,
    /// The function of scalar arithmetic that was called: its operands are in `a`, and there is no `b` and no `c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// k elements of A as full-width hexadecimal.
    pub a: Vec<String>,
    /// k elements of B.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub b: Vec<String>,
    /// The element of C.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub c: String,
    /// Scales of A, for an operation that has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_a: Option<Vec<String>>,
    /// Scales of B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_b: Option<Vec<String>>,
    /// What the device returned.
    pub d: String,
    /// What other answers to the question would have returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<Rival>,
}

impl Evidence {
    /// A dot of an operation, its d, and what d other answers would have given.
    #[must_use]
    pub fn of_dot(id: &OperationId, about: impl Into<String>, dot: &Dot, d: u64, rivals: &[(String, u64)]) -> Self {
        let hex = |format: Format, bits: &[u64]| bits.iter().map(|bits| format.hex(*bits)).collect();
        let scale_format = id.block_scale().map(|scale| scale.format);
        let scales = scale_format.zip(dot.scales.as_ref());
        Self {
            function: None,
            about: about.into(),
            a: hex(id.a, &dot.a),
            b: hex(id.b, &dot.b),
            c: id.c.hex(dot.c),
            scale_a: scales.map(|(format, (a, _))| hex(format, a)),
            scale_b: scales.map(|(format, (_, b))| hex(format, b)),
            d: id.d.hex(d),
            rivals: rivals.iter().map(|(answer, d)| Rival { answer: answer.clone(), d: id.d.hex(*d) }).collect(),
        }
    }
}

/// A rival answer and its prediction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rival {
    /// The answer.
    pub answer: String,
    /// What it predicts for d.
    pub d: String,
}

/// What `list --json` prints.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Listing {
    /// `mxprobe-list/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// The devices that can be used.
    pub devices: Vec<ListedDevice>,
    /// What was found or looked for and cannot be used.
    pub refusals: Vec<RefusalRecord>,
}

/// A device and what it claims.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListedDevice {
    /// The device.
    #[serde(flatten)]
    pub device: DeviceRecord,
    /// Its operations.
    pub operations: Vec<OperationRecord>,
    /// Its scalar arithmetic, as it stands in reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scalars: Vec<OperationRecord>,
    /// What it lists and cannot be used.
    pub refusals: Vec<RefusalRecord>,
}

/// The schema version of a listing.
pub const LIST_SCHEMA: &str = "mxprobe-list/1.0";

impl From<&DeviceInfo> for DeviceRecord {
    fn from(info: &DeviceInfo) -> Self {
        Self {
            backend: info.backend.clone(),
            selector: info.selector.clone(),
            name: info.name.clone(),
            fingerprint: info.fingerprint.clone(),
            kind: match info.kind {
                DeviceKind::Hardware => Kind::Hardware,
                DeviceKind::Software => Kind::Software,
                DeviceKind::Model => Kind::Model,
            },
            emulated: info.emulated,
            aliases: info.aliases.clone(),
            driver: info.driver.as_ref().map(|driver| DriverRecord {
                name: driver.name.clone(),
                version: driver.version.clone(),
                api_version: driver.api_version.clone(),
            }),
            properties: provenance::published(&info.properties),
        }
    }
}

impl From<&Refusal> for RefusalRecord {
    fn from(refusal: &Refusal) -> Self {
        Self { what: refusal.what.clone(), reason: refusal.reason.to_string(), help: refusal.help.clone() }
    }
}

impl From<&mxprobe_api::Operation> for OperationRecord {
    fn from(operation: &mxprobe_api::Operation) -> Self {
        Self {
            id: operation.id.clone(),
            scope: operation.scope.clone(),
            instruction: operation.instruction.clone(),
            aliases: operation.aliases.clone(),
        }
    }
}

impl OperationReport {
    /// The finding of a probe.
    #[must_use]
    pub fn finding(&self, probe: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.probe == probe)
    }
}

/// The JSON Schema of reports.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Report).to_value()
}

/// The JSON Schema of comparisons.
#[must_use]
pub fn comparison_schema() -> serde_json::Value {
    schemars::schema_for!(Comparison).to_value()
}

/// The JSON Schema of listings.
#[must_use]
pub fn list_schema() -> serde_json::Value {
    schemars::schema_for!(Listing).to_value()
}
