//! What `bench` measured: the types of its JSON, from which its views are made.

use mxprobe_api::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeviceRecord, Host, Time, Tool};
use crate::findings::Outcome;

/// The schema version of a measurement of throughput.
pub const BENCH_SCHEMA: &str = "mxprobe-bench/1.1";

/// A spread above this, in percent, is a warning: samples of a device that nothing disturbs differ by a few percent, and
/// a rate whose samples differ by a fifth depends on which of them is looked at.
pub const SPREAD_LIMIT_PERCENT: f64 = 20.0;

/// The fewest samples behind a number.
pub const FEWEST_SAMPLES: u64 = 7;

/// The throughput of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchReport {
    /// `mxprobe-bench/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// When it was made.
    pub time: Time,
    /// The machine it was made on.
    pub host: Host,
    /// The device.
    pub device: DeviceRecord,
    /// How it was measured.
    pub settings: BenchSettings,
    /// The operations whose samples differ by more than 20 percent of the median, longest less shortest, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// One entry an operation; the scalar units beside the matrix units first.
    pub operations: Vec<Throughput>,
}

/// What elements are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// Values from −1 to 1, or any integers of the format.
    Random,
    /// −1, 0 and 1.
    Small,
    /// +0: fewer wires switch, and some devices run faster than with anything else.
    Zeros,
}

/// How throughput was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BenchSettings {
    /// What elements were drawn from.
    pub data: Data,
    /// What a sample was to take.
    pub sample_ns: u64,
    /// Samples behind each number.
    pub samples: u64,
    /// The seed of the elements.
    pub seed: u64,
}

/// The throughput of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// The operation; the family `fma` is the scalar units beside the matrix units.
    #[schemars(with = "String")]
    pub id: OperationId,
    /// The instruction or call behind it, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// It is no operation of a matrix unit, but what those are held against.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub yardstick: bool,
    /// How the measurement ended.
    pub outcome: Outcome,
    /// Why it is not `measured`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was measured: on one unit of the device, and on all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ThroughputRun>,
    /// It runs on other units than the matrix unit; absent where nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<bool>,
    /// What tells, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<String>,
    /// The best rate of all units over that of the first yardstick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to_yardstick: Option<f64>,
    /// What the vendor promises, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Peak>,
    /// How long it took to measure.
    pub duration_ns: u64,
}

/// How much of a device worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Units {
    /// One unit.
    One,
    /// All of them.
    All,
}

/// Which clock measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimedBy {
    /// The device's own timestamps.
    Device,
    /// The host's clock: starting the work is in it.
    Host,
}

/// The samples of one operation on one unit or on all.
///
/// A multiplication and an addition are two FLOP, of integers too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThroughputRun {
    /// How much of the device worked.
    pub span: Units,
    /// Units that worked, where they can be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u32>,
    /// What a unit is: `core`, `multiprocessor`.
    pub unit: String,
    /// Which clock measured.
    pub clock: TimedBy,
    /// Independent chains of multiply-adds that ran at once.
    pub chains: u64,
    /// Multiply-adds in each of them, in a row.
    pub steps: u64,
    /// Samples.
    pub samples: u64,
    /// The shortest sample.
    pub best_ns: f64,
    /// The middle of the samples.
    pub median_ns: f64,
    /// The longest sample less the shortest, in percent of the middle.
    pub spread_percent: f64,
    /// The rate of the shortest sample.
    pub flop_per_s_best: f64,
    /// The rate of the middle of the samples.
    pub flop_per_s_median: f64,
    /// Cycles a second while the shortest sample ran, where they can be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_hz: Option<f64>,
    /// The best rate over frequency and units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop_per_cycle_and_unit: Option<f64>,
}

/// What the vendor promises of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// The rate of all units, dense.
    pub flop_per_s: f64,
    /// The best rate measured over it.
    pub ratio: f64,
    /// Who says so.
    pub source: String,
    /// The same of one unit in one cycle, where that is known and cycles were counted: the clock has no part in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_cycle: Option<CyclePeak>,
}

/// What the vendor promises of one unit in one cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CyclePeak {
    /// The rate of one unit, dense.
    pub flop_per_cycle_and_unit: f64,
    /// The best rate measured over it.
    pub ratio: f64,
    /// Who says so.
    pub source: String,
}

impl Peak {
    /// Who says so, of the device and of a unit.
    pub(in crate::report) fn sources(&self) -> impl Iterator<Item = &str> {
        let of_unit = self.per_cycle.iter().map(|peak| peak.source.as_str());
        std::iter::once(self.source.as_str()).chain(of_unit)
    }
}

impl Throughput {
    /// An operation of which nothing was measured, and why.
    #[must_use]
    pub fn without(id: OperationId, outcome: Outcome, reason: impl Into<String>) -> Self {
        Self {
            id,
            instruction: None,
            yardstick: false,
            outcome,
            reason: Some(reason.into()),
            runs: Vec::new(),
            emulated: None,
            emulation: None,
            ratio_to_yardstick: None,
            peak: None,
            duration_ns: 0,
        }
    }

    /// The samples of one unit, or of all.
    #[must_use]
    pub fn run(&self, span: Units) -> Option<&ThroughputRun> {
        self.runs.iter().find(|run| run.span == span)
    }

    /// The best rate there is: of all units, else of one.
    #[must_use]
    pub fn best(&self) -> Option<&ThroughputRun> {
        self.run(Units::All).or_else(|| self.run(Units::One))
    }
}

impl BenchReport {
    /// What is wrong with it beyond what its schema can say, as paths and reasons: an operation that stands twice; a
    /// measurement without numbers, or numbers without a measurement; numbers that cannot be.
    pub(super) fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        for (at, found) in self.operations.iter().enumerate() {
            let path = format!("operations[{at}]");
            if self.operations[..at].iter().any(|before| before.id == found.id) {
                problems.push((format!("{path}.id"), format!("`{}` stands there twice", found.id)));
            }
            let is_measured = found.outcome == Outcome::Measured;
            if is_measured == found.runs.is_empty() {
                let words =
                    if is_measured { "it is empty, and the outcome is measured" } else { "there is nothing measured" };
                problems.push((format!("{path}.runs"), words.to_owned()));
            }
            if is_measured == found.reason.is_some() {
                let words = if is_measured { "what was measured needs none" } else { "it is missing" };
                problems.push((format!("{path}.reason"), words.to_owned()));
            }
            for (run_at, run) in found.runs.iter().enumerate() {
                let wrong = run.problem().map(|(field, reason)| (format!("{path}.runs[{run_at}].{field}"), reason));
                problems.extend(wrong);
            }
        }
        problems
    }
}

impl ThroughputRun {
    /// Whether its samples differ by more than [`SPREAD_LIMIT_PERCENT`].
    #[must_use]
    pub fn is_unsteady(&self) -> bool {
        self.spread_percent > SPREAD_LIMIT_PERCENT
    }

    /// The first number that cannot be.
    fn problem(&self) -> Option<(&'static str, String)> {
        let positive = [
            ("best_ns", self.best_ns),
            ("median_ns", self.median_ns),
            ("flop_per_s_best", self.flop_per_s_best),
            ("flop_per_s_median", self.flop_per_s_median),
            ("frequency_hz", self.frequency_hz.unwrap_or(1.0)),
            ("flop_per_cycle_and_unit", self.flop_per_cycle_and_unit.unwrap_or(1.0)),
        ];
        if let Some((field, number)) = positive.into_iter().find(|(_, number)| *number <= 0.0) {
            return Some((field, format!("{number} is not above 0")));
        }
        if self.samples < FEWEST_SAMPLES {
            return Some(("samples", format!("{} are fewer than {FEWEST_SAMPLES}", self.samples)));
        }
        if self.best_ns > self.median_ns {
            return Some(("best_ns", format!("{} is above the median, {}", self.best_ns, self.median_ns)));
        }
        (self.steps == 0 || self.chains == 0).then(|| ("steps", "there was no work".to_owned()))
    }
}

/// The JSON Schema of measurements of throughput.
#[must_use]
pub fn bench_schema() -> serde_json::Value {
    schemars::schema_for!(BenchReport).to_value()
}
