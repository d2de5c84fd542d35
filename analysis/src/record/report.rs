//! Reports and listings: the results of one run on a device, and the devices that exist.

use std::collections::BTreeMap;

use mxprobe_api::{DeviceInfo, DeviceKind, Refusal};
use serde::{Deserialize, Serialize};

use super::{
    finding::{OperationRecord, OperationReport},
    plan::{Plan, Resumption},
    provenance::{Conditions, Host, Time, Tool, published},
    summary::Summary,
};

/// The schema version of a report: readers ignore unknown keys of the same major version.
pub const SCHEMA: &str = "mxprobe-report/1.4";

/// Everything that one run learnt about one device.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// `mxprobe-report/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made the report.
    pub tool: Tool,
    /// When the report was made.
    pub time: Time,
    /// The machine on which the report was made.
    pub host: Host,
    /// The device.
    pub device: DeviceRecord,
    /// Notes to read before the findings, such as that a model stood in for a device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Clocks, temperature and power of the device, if the system provides them.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// The plan of the run; without it, the run cannot be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// The runs that continued this report, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
    /// Devices and operations that were listed or searched for and could not be used.
    pub refusals: Vec<RefusalRecord>,
    /// A summary of the findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The findings, one entry per operation.
    pub operations: Vec<OperationReport>,
}

/// Whether a device is hardware, software or a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Silicon.
    Hardware,
    /// A driver that computes in software on the CPU.
    Software,
    /// An executable model: nothing was measured on a device.
    Model,
}

/// The identity of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeviceRecord {
    /// `cpu`, `vulkan`, `sim`, …
    pub backend: String,
    /// The selector used in this run; an index may change between boots.
    pub selector: String,
    /// The name for people.
    pub name: String,
    /// The name for programs, the same on every machine.
    pub fingerprint: String,
    /// Hardware, software or model.
    pub kind: Kind,
    /// Whether a double of the device, made for tests, answered: nothing was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub emulated: bool,
    /// Other selectors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The driver, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverRecord>,
    /// Other known properties.
    pub properties: BTreeMap<String, String>,
}

/// The driver that reaches a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriverRecord {
    /// The driver's name.
    pub name: String,
    /// The driver's version.
    pub version: String,
    /// The version of the API it offers.
    pub api_version: String,
}

/// Something that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RefusalRecord {
    /// The thing that could not be used.
    pub what: String,
    /// The reason.
    pub reason: String,
    /// A fact and an action, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// The output of `list --json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Listing {
    /// `mxprobe-list/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made the listing.
    pub tool: Tool,
    /// The usable devices.
    pub devices: Vec<ListedDevice>,
    /// Devices that were found or searched for and cannot be used.
    pub refusals: Vec<RefusalRecord>,
}

/// A device and the operations it offers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListedDevice {
    /// The device.
    #[serde(flatten)]
    pub device: DeviceRecord,
    /// Its operations.
    pub operations: Vec<OperationRecord>,
    /// The device's scalar arithmetic, in the form that reports use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scalars: Vec<OperationRecord>,
    /// Operations that the device lists but that cannot be used.
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
