//! The merged reports and screens of many machines.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{provenance::Tool, screening::Health};

/// The version of the format of fleets.
pub const FLEET_SCHEMA: &str = "mxprobe-fleet/1.0";

/// The part of an earlier fleet that a later one is compared with.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EarlierFleet {
    /// [`FLEET_SCHEMA`].
    pub schema: String,
    /// When it was merged.
    pub time: String,
    /// The devices.
    pub members: Vec<Member>,
}

/// Machines and the behaviour of their devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetReport {
    /// [`FLEET_SCHEMA`].
    pub schema: String,
    /// The program.
    pub tool: Tool,
    /// When it was merged, RFC 3339, UTC.
    pub time: String,
    /// The number of reports that were read.
    pub reports: u64,
    /// The number of screens that were read.
    pub screens: u64,
    /// The number of machines.
    pub nodes: u64,
    /// Kinds of devices, the most frequent first.
    pub kinds: Vec<FleetKind>,
    /// Devices whose last screen found wrong bits or could not judge them.
    pub unhealthy: Vec<Unhealthy>,
    /// The changes since the earlier fleet, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Drift>,
    /// Files that are neither reports nor screens, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedFile>,
    /// The devices, with the last report and the last screen of each.
    pub members: Vec<Member>,
}

/// Devices of one kind: the same backend and fingerprint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetKind {
    /// The backend.
    pub backend: String,
    /// The fingerprint.
    pub fingerprint: String,
    /// The names of the devices.
    pub names: Vec<String>,
    /// The number of devices of this kind.
    pub devices: u64,
    /// Classes of devices with the same answers, the largest first.
    pub classes: Vec<FleetClass>,
    /// Drivers, the most frequent first.
    pub drivers: Vec<Counted>,
}

/// Devices with the same answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetClass {
    /// The first letters of the SHA-256 of all answers.
    pub class: String,
    /// The number of devices.
    pub devices: u64,
    /// Their machines, sorted; only the first ones for the largest class.
    pub nodes: Vec<String>,
    /// Their drivers.
    pub drivers: Vec<Counted>,
    /// The answers that differ from those of the largest class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<FleetDifference>,
}

/// A name with its number of occurrences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counted {
    /// The name.
    pub name: String,
    /// The number of occurrences.
    pub count: u64,
}

/// A question with two different answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unhealthy {
    /// The machine.
    pub node: String,
    /// The device.
    pub selector: String,
    /// The verdict of the last screen.
    pub verdict: Health,
    /// The start of that screen, RFC 3339, UTC.
    pub start: String,
    /// The faults or failures, one an operation.
    pub what: Vec<String>,
}

/// A device of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Member {
    /// The machine.
    pub node: String,
    /// The device.
    pub selector: String,
    /// Its backend.
    pub backend: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// Its driver, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The class of its last report; absent without a report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The verdict of its last screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Health>,
}

/// The changes since an earlier fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Drift {
    /// The time at which the earlier fleet was merged.
    pub time: String,
    /// Devices that the earlier fleet does not have.
    pub new: Vec<String>,
    /// Devices that only the earlier fleet has.
    pub gone: Vec<String>,
    /// Devices that changed.
    pub changed: Vec<Change>,
}

/// A device that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Change {
    /// The machine.
    pub node: String,
    /// The device.
    pub selector: String,
    /// `behaviour`, `driver`, `verdict` or `kind`.
    pub what: String,
    /// The earlier value.
    pub before: String,
    /// The value now.
    pub now: String,
}

/// A file that was ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedFile {
    /// Its path.
    pub path: String,
    /// The reason.
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
