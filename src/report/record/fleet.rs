//! What reports and screens of many machines say together.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{provenance::Tool, screening::Health};

/// The version of the format of fleets.
pub const FLEET_SCHEMA: &str = "mxprobe-fleet/1.0";

/// What a later fleet is compared with.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EarlierFleet {
    /// [`FLEET_SCHEMA`].
    pub schema: String,
    /// When it was merged.
    pub time: String,
    /// Device by device.
    pub members: Vec<Member>,
}

/// Machines, and what their devices do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetReport {
    /// [`FLEET_SCHEMA`].
    pub schema: String,
    /// The program.
    pub tool: Tool,
    /// When it was merged, RFC 3339, UTC.
    pub time: String,
    /// Reports that were read, of every time.
    pub reports: u64,
    /// Screens that were read.
    pub screens: u64,
    /// Machines.
    pub nodes: u64,
    /// Kinds of devices, the most frequent first.
    pub kinds: Vec<FleetKind>,
    /// Devices that were wrong or could not be judged when they were screened last.
    pub unhealthy: Vec<Unhealthy>,
    /// What differs from the earlier fleet, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Drift>,
    /// Files that are neither reports nor screens, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedFile>,
    /// Device by device, the last report and the last screen of each.
    pub members: Vec<Member>,
}

/// Devices of one kind: the same backend and fingerprint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetKind {
    /// The backend.
    pub backend: String,
    /// The name for programs.
    pub fingerprint: String,
    /// Names for people.
    pub names: Vec<String>,
    /// Devices of this kind.
    pub devices: u64,
    /// Classes of devices that answered every question alike, the largest first.
    pub classes: Vec<FleetClass>,
    /// Drivers, the most frequent first.
    pub drivers: Vec<Counted>,
}

/// Devices that behave alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetClass {
    /// The beginning of the SHA-256 of all answers.
    pub class: String,
    /// How many devices.
    pub devices: u64,
    /// Their machines, in order; the largest class has the first ones only.
    pub nodes: Vec<String>,
    /// Their drivers.
    pub drivers: Vec<Counted>,
    /// In what they differ from the largest class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<FleetDifference>,
}

/// A name, and how often it occurs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// The name.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// A question that is answered in two ways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetDifference {
    /// The operation.
    pub operation: String,
    /// The probe.
    pub probe: String,
    /// The answer of the largest class; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<String>,
    /// The answer of this class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<String>,
}

/// A device that is not healthy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unhealthy {
    /// The machine.
    pub node: String,
    /// The device.
    pub selector: String,
    /// What the last screen says.
    pub verdict: Health,
    /// When that screen began.
    pub start: String,
    /// What is wrong, operation by operation.
    pub what: Vec<String>,
}

/// A device of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// The machine.
    pub node: String,
    /// The device.
    pub selector: String,
    /// Its backend.
    pub backend: String,
    /// Its name for programs.
    pub fingerprint: String,
    /// Its driver, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The class of its last report; absent if there is only a screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The verdict of its last screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Health>,
}

/// What differs from an earlier fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// When the earlier one was merged.
    pub time: String,
    /// Devices that were not there.
    pub new: Vec<String>,
    /// Devices that are not there any more.
    pub gone: Vec<String>,
    /// Devices that changed.
    pub changed: Vec<Change>,
}

/// A device that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The machine.
    pub node: String,
    /// The device.
    pub selector: String,
    /// `behaviour`, `driver`, `verdict` or `kind`.
    pub what: String,
    /// Before.
    pub before: String,
    /// Now.
    pub now: String,
}

/// A file that was not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedFile {
    /// Where it is.
    pub path: String,
    /// Why.
    pub reason: String,
}

impl FleetReport {
    /// Contradictions in a saved fleet: paths in its JSON, each with what is wrong there.
    #[must_use]
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let nodes: BTreeSet<&str> = self.members.iter().map(|member| member.node.as_str()).collect();
        if nodes.len() as u64 != self.nodes {
            problems.push(("nodes".to_owned(), format!("it is {}, and `members` has {}", self.nodes, nodes.len())));
        }
        let mut places = BTreeSet::new();
        for (at, member) in self.members.iter().enumerate() {
            if !places.insert((&member.node, &member.selector)) {
                let reason = format!("`{}` of `{}` is there twice", member.selector, member.node);
                problems.push((format!("members[{at}]"), reason));
            }
        }
        for (at, kind) in self.kinds.iter().enumerate() {
            let is_of = |member: &&Member| member.backend == kind.backend && member.fingerprint == kind.fingerprint;
            let members = self.members.iter().filter(is_of).count() as u64;
            if members != kind.devices {
                let reason = format!("it is {}, and `members` has {members}", kind.devices);
                problems.push((format!("kinds[{at}].devices"), reason));
            }
        }
        problems
    }
}

/// The JSON Schema of fleets.
#[must_use]
pub fn fleet_schema() -> serde_json::Value {
    schemars::schema_for!(FleetReport).to_value()
}
