//! The report of `screen`, one a device.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use mxprobe_api::{Injection, OperationId};
use serde::{Deserialize, Serialize};

use super::{
    provenance::{Host, Time, Tool},
    report::DeviceRecord,
};
use crate::{nan_bits::NanBits, plain::counted, shard::Shard};

/// The version of the format of screens.
pub const SCREEN_SCHEMA: &str = "mxprobe-screen/1.0";

/// The screen of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScreenReport {
    /// [`SCREEN_SCHEMA`].
    pub schema: String,
    /// The program.
    pub tool: Tool,
    /// The time of the screen.
    pub time: Time,
    /// The machine, without its name.
    pub host: Host,
    /// The name of the machine, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The device.
    pub device: DeviceRecord,
    /// The share of the devices that was screened; absent if it is all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ScreenShard>,
    /// The seed of the inputs.
    pub seed: u64,
    /// Which NaN results are right; if any is, no result was NaN.
    #[serde(default)]
    pub nan: NanBits,
    /// The passes of each unit over all blocks, if their number was given and not a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u64>,
    /// The fault that was planted on purpose; such a screen says nothing about the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<std::collections::BTreeMap<String, u64>>"))]
    pub injected: Option<Injection>,
    /// The verdict.
    pub verdict: Health,
    /// The operations.
    pub operations: Vec<ScreenedOperation>,
}

/// A share of the devices of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScreenShard {
    /// Which share, `I/N`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub shard: Shard,
    /// The devices of all shares.
    pub devices: u64,
}

/// The verdict of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Every compared result is right, and every operation with a model was compared.
    Healthy,
    /// The device could not be judged: nothing was compared, or an operation failed or was not reached.
    Unknown,
    /// At least one result is wrong.
    Wrong,
}

impl Health {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The screen of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScreenedOperation {
    /// The operation.
    #[cfg_attr(test, schemars(with = "String"))]
    pub id: OperationId,
    /// The model that gives the right results; absent if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The number of compared results.
    pub dots: u64,
    /// The units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<ScreenedUnit>,
    /// The wrong bits, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<WrongRecord>,
    /// Why the operation was not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl ScreenedOperation {
    /// Returns the entry of an operation that was not compared, with the reason.
    #[must_use]
    pub fn failed(id: &OperationId, model: Option<String>, why: impl Into<String>) -> Self {
        Self { id: id.clone(), model, dots: 0, units: Vec::new(), wrong: None, failed: Some(why.into()) }
    }

    /// Adds more results of the same operation, and their wrong bits.
    #[must_use]
    pub fn and(mut self, more: Self) -> Self {
        for unit in more.units {
            match self.units.iter_mut().find(|known| known.unit == unit.unit) {
                Some(known) => {
                    known.pinned &= unit.pinned;
                    known.dots += unit.dots;
                    known.wrong_blocks += unit.wrong_blocks;
                    known.elapsed_ns += unit.elapsed_ns;
                }
                None => self.units.push(unit),
            }
        }
        Self {
            dots: self.dots + more.dots,
            wrong: self.wrong.or(more.wrong),
            failed: self.failed.or(more.failed),
            ..self
        }
    }

    /// Returns what the operation says about the device; `None` without a model.
    #[must_use]
    pub fn health(&self) -> Option<Health> {
        match self {
            Self { wrong: Some(_), .. } => Some(Health::Wrong),
            Self { model: None, .. } => None,
            Self { failed: Some(_), .. } => Some(Health::Unknown),
            _ => Some(Health::Healthy),
        }
    }
}

impl ScreenReport {
    /// Returns the verdict that follows from all operations.
    #[must_use]
    pub fn judged(&self) -> Health {
        let known = self.operations.iter().filter_map(ScreenedOperation::health);
        known.max().unwrap_or(Health::Unknown)
    }

    /// Contradictions in a saved screen: paths in its JSON, each with what is wrong there.
    #[must_use]
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let judged = self.judged();
        if self.verdict != judged {
            let reason = format!("it is `{}`, and the operations say `{judged}`", self.verdict);
            problems.push(("verdict".to_owned(), reason));
        }
        let mut ids = BTreeSet::new();
        for (at, operation) in self.operations.iter().enumerate() {
            let path = format!("operations[{at}]");
            if !ids.insert(&operation.id) {
                problems.push((format!("{path}.id"), format!("`{}` is there twice", operation.id)));
            }
            let dots: u64 = operation.units.iter().map(|unit| unit.dots).sum();
            if dots != operation.dots {
                problems.push((format!("{path}.dots"), format!("it is {}, and units have {dots}", operation.dots)));
            }
            let blocks: u64 = operation.units.iter().map(|unit| unit.wrong_blocks).sum();
            let wrong = operation.wrong.as_ref().map_or(0, |wrong| wrong.blocks);
            if wrong != blocks {
                let reason = format!("it has {}, and units have {blocks}", counted(wrong, "wrong block"));
                problems.push((format!("{path}.wrong"), reason));
            }
        }
        problems
    }

    /// Returns the number of compared results of all operations.
    #[must_use]
    pub fn dots(&self) -> u64 {
        self.operations.iter().map(|operation| operation.dots).sum()
    }
}

/// The results of one unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScreenedUnit {
    /// The number of a logical processor or multiprocessor; absent if units cannot be told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<u32>,
    /// Whether it is certain that this unit computed the results.
    pub pinned: bool,
    /// The number of compared results.
    pub dots: u64,
    /// Blocks of results with a wrong digest.
    pub wrong_blocks: u64,
    /// The computing time in nanoseconds.
    pub elapsed_ns: u64,
}

/// Wrong bits: their places and examples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WrongRecord {
    /// The places that all wrong words have in common, as in `core 1`, `lane 5`, `bit 3`.
    pub place: Vec<String>,
    /// Blocks with a wrong digest.
    pub blocks: u64,
    /// Wrong words among those that were compared.
    pub words: u64,
    /// Words that were compared.
    pub looked_at: u64,
    /// The number of instructions before each compared word, D of one being C of the next; absent if each word is D of
    /// one instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Wrong words by unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<Tally>,
    /// Wrong words by lane: the element of the tile, or of 16 tiles of one element.
    pub lanes: Vec<Tally>,
    /// Wrong words by tile of a block, if tiles have more than one element.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiles: Vec<Tally>,
    /// Wrong words by bit, from the lowest, 0.
    pub bits: Vec<Tally>,
    /// Wrong words by the exponent field of the right result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exponents: Vec<Tally>,
    /// The first wrong words.
    pub first: Vec<WrongWord>,
    /// Whether the fault repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
}

/// The number of wrong words at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tally {
    /// The place.
    pub at: u64,
    /// The number of wrong words.
    pub words: u64,
}

/// A wrong word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WrongWord {
    /// The unit that computed it, if units can be told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<u32>,
    /// The pass over all blocks, from 0.
    pub pass: u64,
    /// The block, from 0.
    pub block: u64,
    /// The tile of the block.
    pub tile: u64,
    /// The row in the tile.
    pub row: u64,
    /// The column in the tile.
    pub column: u64,
    /// The lane.
    pub lane: u64,
    /// The right bits, in hexadecimal.
    pub expected: String,
    /// The computed bits, in hexadecimal.
    pub got: String,
    /// The bits that differ, in hexadecimal.
    pub mask: String,
}

/// The result of computing wrong blocks again on the same units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Again {
    /// The number of blocks computed again.
    pub blocks: u64,
    /// How many of them were wrong again.
    pub wrong: u64,
    /// Whether all kept blocks had the same wrong bits in the same places.
    pub same_bits: bool,
}

/// The name of a unit of a device with these properties.
#[must_use]
pub fn unit_noun(properties: &BTreeMap<String, String>) -> &'static str {
    if properties.contains_key("multiprocessors") { "multiprocessor" } else { "core" }
}
