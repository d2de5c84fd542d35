//! Results of `bench`: the types of its JSON, from which its views are made.

use mxprobe_api::OperationId;
use serde::{Deserialize, Serialize};

use super::{DeviceRecord, Host, Time, Tool};
use crate::findings::Outcome;

/// The schema version of throughput measurements.
pub const BENCH_SCHEMA: &str = "mxprobe-bench/1.1";

/// The spread, in percent, above which a measurement gets a warning: the samples of an undisturbed device differ by a
/// few percent, and a rate whose samples differ by a fifth depends on which sample is taken.
pub const SPREAD_LIMIT_PERCENT: f64 = 20.0;

/// The minimum number of samples behind a rate.
pub const FEWEST_SAMPLES: u64 = 7;

/// The throughput of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BenchReport {
    /// `mxprobe-bench/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made the file.
    pub tool: Tool,
    /// When the file was made.
    pub time: Time,
    /// The machine on which the file was made.
    pub host: Host,
    /// The device.
    pub device: DeviceRecord,
    /// The settings of the measurement.
    pub settings: BenchSettings,
    /// One sentence for each operation whose samples differ, longest minus shortest, by more than 20 percent of the
    /// median.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// One entry per operation; the scalar units next to the matrix units come first.
    pub operations: Vec<Throughput>,
}

/// The distribution that elements are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// Values from −1 to 1, or any integers of the format.
    Random,
    /// −1, 0 and 1.
    Small,
    /// +0: fewer wires switch, so some devices run faster than with other data.
    Zeros,
}

/// The settings of a throughput measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BenchSettings {
    /// The distribution that elements were drawn from.
    pub data: Data,
    /// The intended duration of a sample.
    pub sample_ns: u64,
    /// The number of samples behind each rate.
    pub samples: u64,
    /// The seed of the elements.
    pub seed: u64,
}

/// The throughput of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Throughput {
    /// The operation; the family `fma` denotes the scalar units next to the matrix units.
    #[cfg_attr(test, schemars(with = "String"))]
    pub id: OperationId,
    /// The instruction or call behind it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// Whether this is not an operation of a matrix unit but the yardstick for those.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub yardstick: bool,
    /// The outcome of the measurement.
    pub outcome: Outcome,
    /// Why the outcome is not `measured`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The measurements: on one unit of the device, and on all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ThroughputRun>,
    /// Whether it runs on units other than the matrix unit; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<bool>,
    /// The evidence for `emulated`, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<String>,
    /// The best rate of all units divided by that of the first yardstick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to_yardstick: Option<f64>,
    /// The vendor's peak, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Peak>,
    /// The duration of the measurement.
    pub duration_ns: u64,
}

/// The part of a device that worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Units {
    /// One unit.
    One,
    /// All of them.
    All,
}

/// The clock that took the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TimedBy {
    /// The device's own timestamps.
    Device,
    /// The host's clock: the time includes launching the work.
    Host,
}

/// The samples of one operation on one unit or on all.
///
/// A multiplication and an addition count as two FLOP, also for integers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThroughputRun {
    /// The part of the device that worked.
    pub span: Units,
    /// The number of units that worked, if it can be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u32>,
    /// The name of a unit: `core`, `multiprocessor`.
    pub unit: String,
    /// The clock that took the time.
    pub clock: TimedBy,
    /// The number of independent chains of multiply-adds that ran concurrently.
    pub chains: u64,
    /// The number of consecutive multiply-adds in each chain.
    pub steps: u64,
    /// The number of samples.
    pub samples: u64,
    /// The shortest sample.
    pub best_ns: f64,
    /// The median of the samples.
    pub median_ns: f64,
    /// The longest sample minus the shortest, in percent of the median.
    pub spread_percent: f64,
    /// The rate of the shortest sample.
    pub flop_per_s_best: f64,
    /// The rate of the median sample.
    pub flop_per_s_median: f64,
    /// Cycles per second while the shortest sample ran, if they can be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_hz: Option<f64>,
    /// The best rate divided by frequency and units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop_per_cycle_and_unit: Option<f64>,
}

/// The vendor's peak rate for an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Peak {
    /// The dense rate of all units.
    pub flop_per_s: f64,
    /// The best measured rate divided by `flop_per_s`.
    pub ratio: f64,
    /// The source of the figure.
    pub source: String,
    /// The peak of one unit in one cycle, if it is known and cycles were counted: independent of the clock frequency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_cycle: Option<CyclePeak>,
}

/// The vendor's peak rate for one unit in one cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CyclePeak {
    /// The dense rate of one unit.
    pub flop_per_cycle_and_unit: f64,
    /// The best measured rate divided by `flop_per_cycle_and_unit`.
    pub ratio: f64,
    /// The source of the figure.
    pub source: String,
}

impl Peak {
    /// The sources of the peaks of the device and of a unit.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        let of_unit = self.per_cycle.iter().map(|peak| peak.source.as_str());
        std::iter::once(self.source.as_str()).chain(of_unit)
    }
}

impl Throughput {
    /// An operation without measurements, and the reason.
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

    /// Returns the samples of one unit, or of all.
    #[must_use]
    pub fn run(&self, span: Units) -> Option<&ThroughputRun> {
        self.runs.iter().find(|run| run.span == span)
    }

    /// Returns the best available rate: that of all units, or else of one.
    #[must_use]
    pub fn best(&self) -> Option<&ThroughputRun> {
        self.run(Units::All).or_else(|| self.run(Units::One))
    }
}

impl BenchReport {
    /// Returns the problems that the schema cannot express, as paths and reasons: duplicate operations; a measurement
    /// without numbers, or numbers without a measurement; impossible numbers.
    pub(super) fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        for (at, found) in self.operations.iter().enumerate() {
            let path = format!("operations[{at}]");
            if self.operations[..at].iter().any(|before| before.id == found.id) {
                problems.push((format!("{path}.id"), format!("`{}` appears twice", found.id)));
            }
            let is_measured = found.outcome == Outcome::Measured;
            if is_measured == found.runs.is_empty() {
                let words = if is_measured {
                    "it is empty, but the outcome is measured"
                } else {
                    "it is not empty, but nothing was measured"
                };
                problems.push((format!("{path}.runs"), words.to_owned()));
            }
            if is_measured == found.reason.is_some() {
                let words = if is_measured { "it is present, but the outcome is measured" } else { "it is missing" };
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
    /// Whether the samples differ by more than [`SPREAD_LIMIT_PERCENT`].
    #[must_use]
    pub fn is_unsteady(&self) -> bool {
        self.spread_percent > SPREAD_LIMIT_PERCENT
    }

    /// Returns the first impossible number, as field and reason.
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
