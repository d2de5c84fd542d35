//! Comparisons of measurements: the types of their JSON, for throughput and for growing errors.

use mxprobe_api::OperationId;
use serde::{Deserialize, Serialize};

use super::{Side, Units};
use crate::gemm::{Cause, Interval, Point};

/// The schema version of a comparison of throughput.
pub const BENCH_COMPARISON_SCHEMA: &str = "mxprobe-bench-comparison/1.0";
/// The schema version of a comparison of growing errors.
pub const GROWTH_COMPARISON_SCHEMA: &str = "mxprobe-growth-comparison/1.0";

/// Throughput measurements side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BenchComparison {
    /// `mxprobe-bench-comparison/MAJOR.MINOR`.
    pub schema: String,
    /// The measurements, in the order in which they were given. Lists of rates have one element for each.
    pub sides: Vec<Side>,
    /// Whether some rate differs by more than the spread of its samples.
    pub differ: bool,
    /// Operations that at least two sides have measured, on one unit or on all.
    pub rates: Vec<ComparedRate>,
    /// Operations that only one side has measured.
    pub alone: Vec<AloneRate>,
}

/// An operation that only one side has measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AloneRate {
    /// The label of the side.
    pub side: String,
    /// The operation.
    #[cfg_attr(test, schemars(with = "String"))]
    pub id: OperationId,
}

/// The rates of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedRate {
    /// The operation.
    #[cfg_attr(test, schemars(with = "String"))]
    pub id: OperationId,
    /// Whether the rates are those of one unit or of all.
    pub span: Units,
    /// The rate of each side; `null` if not measured.
    pub rates: Vec<Option<Rate>>,
    /// Whether the samples of some side and those of the first do not overlap: no sample of one is as fast as any of
    /// the other.
    pub differ: bool,
}

/// A rate, with its ratio to that of the first side that has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rate {
    /// The rate of the median sample.
    pub flop_per_s_median: f64,
    /// The rate of the longest sample.
    pub flop_per_s_low: f64,
    /// The rate of the shortest sample.
    pub flop_per_s_high: f64,
    /// The longest sample minus the shortest, in percent of the median.
    pub spread_percent: f64,
    /// The median divided by that of the first side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
}

/// A ratio of two rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The ratio of the medians.
    pub median: f64,
    /// The slowest sample divided by the fastest of the first side.
    pub low: f64,
    /// The fastest sample divided by the slowest of the first side.
    pub high: f64,
}

/// Growing errors side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GrowthComparison {
    /// `mxprobe-growth-comparison/MAJOR.MINOR`.
    pub schema: String,
    /// The experiments, in the order in which they were given. Lists of points have one element for each.
    pub sides: Vec<Side>,
    /// Whether some error differs.
    pub differ: bool,
    /// Notes to read first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Curves that at least two sides have.
    pub curves: Vec<ComparedCurve>,
    /// Curves that only one side has: `A: double-bf16`.
    pub alone: Vec<String>,
}

/// The errors of one multiplication method on several devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedCurve {
    /// The method: `double-f16`.
    pub name: String,
    /// The change to the unit's model, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Cause>,
    /// The interval that elements are drawn from.
    pub interval: Interval,
    /// The operation of each side; `null` for the loop in f32, and if the side does not have the curve.
    pub operations: Vec<Option<String>>,
    /// The errors by length, ascending; `null` for a side that did not compute one.
    pub points: Vec<Vec<Option<Point>>>,
}

impl ComparedCurve {
    /// Returns the length that a row of points has in common.
    #[must_use]
    pub fn n(row: &[Option<Point>]) -> u64 {
        row.iter().flatten().map(|point| point.n).next().unwrap_or(0)
    }

    /// Whether the errors of a row differ.
    #[must_use]
    pub fn differs(row: &[Option<Point>]) -> bool {
        let mut errors = row.iter().flatten().map(|point| point.componentwise.to_bits());
        let first = errors.next();
        errors.any(|error| Some(error) != first)
    }
}
