//! The types of comparisons of measurements: of throughput, and of errors that grow.

use mxprobe_api::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Side, Units};
use crate::gemm::{Cause, Interval, Point};

/// The schema version of a comparison of throughput.
pub const BENCH_COMPARISON_SCHEMA: &str = "mxprobe-bench-comparison/1.0";
/// The schema version of a comparison of growing errors.
pub const GROWTH_COMPARISON_SCHEMA: &str = "mxprobe-growth-comparison/1.0";

/// Measurements of throughput side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchComparison {
    /// `mxprobe-bench-comparison/MAJOR.MINOR`.
    pub schema: String,
    /// The measurements, in the order in which they were given. Lists of rates have one element for each.
    pub sides: Vec<Side>,
    /// Whether some rate differs by more than its samples do.
    pub differ: bool,
    /// Operations that two sides or more have measured, on one unit or on all.
    pub rates: Vec<ComparedRate>,
    /// Operations that only one side has measured.
    pub alone: Vec<AloneRate>,
}

/// An operation that only one side has measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AloneRate {
    /// The label of the side.
    pub side: String,
    /// The operation.
    #[schemars(with = "String")]
    pub id: OperationId,
}

/// The rates of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRate {
    /// The operation.
    #[schemars(with = "String")]
    pub id: OperationId,
    /// On one unit, or on all.
    pub span: Units,
    /// The rate of each side; `null` if it was not measured.
    pub rates: Vec<Option<Rate>>,
    /// Whether the samples of a side and those of the first lie apart: no sample of one is as fast as any of the other.
    pub differ: bool,
}

/// A rate, and how it compares with that of the first side that has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// The rate of the middle of the samples.
    pub flop_per_s_median: f64,
    /// The rate of the longest sample.
    pub flop_per_s_low: f64,
    /// The rate of the shortest sample.
    pub flop_per_s_high: f64,
    /// The longest sample less the shortest, in percent of the middle.
    pub spread_percent: f64,
    /// The median over that of the first side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
}

/// A ratio of two rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Of the medians.
    pub median: f64,
    /// The slowest sample over the fastest of the first side.
    pub low: f64,
    /// The fastest sample over the slowest of the first side.
    pub high: f64,
}

/// Growing errors side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrowthComparison {
    /// `mxprobe-growth-comparison/MAJOR.MINOR`.
    pub schema: String,
    /// The experiments, in the order in which they were given. Lists of points have one element for each.
    pub sides: Vec<Side>,
    /// Whether some error differs.
    pub differ: bool,
    /// What a reader has to know first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Curves that two sides or more have.
    pub curves: Vec<ComparedCurve>,
    /// Curves that only one side has: `A: double-bf16`.
    pub alone: Vec<String>,
}

/// The errors of one way to multiply on several devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCurve {
    /// The way: `double-f16`.
    pub name: String,
    /// What is changed in the unit's model, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Cause>,
    /// Where elements are drawn from.
    pub interval: Interval,
    /// The operation of each side; `null` for the loop in f32, and if it does not have the curve.
    pub operations: Vec<Option<String>>,
    /// The errors by their length, ascending; of each side, `null` if it was not computed.
    pub points: Vec<Vec<Option<Point>>>,
}

impl ComparedCurve {
    /// The length of a row of points.
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

/// The JSON Schema of comparisons of throughput.
#[must_use]
pub fn bench_comparison_schema() -> serde_json::Value {
    schemars::schema_for!(BenchComparison).to_value()
}

/// The JSON Schema of comparisons of growing errors.
#[must_use]
pub fn growth_comparison_schema() -> serde_json::Value {
    schemars::schema_for!(GrowthComparison).to_value()
}
