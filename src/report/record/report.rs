//! A report and a listing: what one run learnt about a device, and what there is.

use std::collections::BTreeMap;

use mxprobe_api::{DeviceInfo, DeviceKind, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    finding::{OperationRecord, OperationReport},
    plan::{Plan, Resumption},
    provenance::{Conditions, Host, Time, Tool, published},
    summary::Summary,
};

/// The schema version a report carries: a reader ignores unknown keys of the same major version.
pub const SCHEMA: &str = "mxprobe-report/1.4";

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
    /// What was learnt at a glance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
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
            properties: published(&info.properties),
        }
    }
}

impl From<&Refusal> for RefusalRecord {
    fn from(refusal: &Refusal) -> Self {
        Self { what: refusal.what.clone(), reason: refusal.reason.to_string(), help: refusal.help.clone() }
    }
}

/// The JSON Schema of reports.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Report).to_value()
}

/// The JSON Schema of listings.
#[must_use]
pub fn list_schema() -> serde_json::Value {
    schemars::schema_for!(Listing).to_value()
}
