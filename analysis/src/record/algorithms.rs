//! Results of `distinguish --algorithm`: the types of its JSON.

use std::collections::BTreeMap;

use mxprobe_api::OperationId;
use serde::{Deserialize, Serialize};

use super::Tool;

/// The schema version of comparisons of two algorithms.
pub const ALGORITHMS_SCHEMA: &str = "mxprobe-algorithms/1.0";

/// Two algorithms over a model's operation, for finite inputs and results.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AlgorithmsReport {
    /// `mxprobe-algorithms/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made the report.
    pub tool: Tool,
    /// The model: a name or a file.
    pub model: String,
    /// The operation that the algorithms call.
    #[cfg_attr(test, schemars(with = "String"))]
    pub operation: OperationId,
    /// The operation whose dots are the inputs.
    #[cfg_attr(test, schemars(with = "String"))]
    pub inputs: OperationId,
    /// Ranges of exponents, both ends inclusive, by input: `a`, `b`, `c`. An input without a range may have any
    /// exponent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exponents: BTreeMap<String, [i32; 2]>,
    /// The algorithms.
    pub algorithms: [AlgorithmRecord; 2],
    /// The algorithm asked to have the larger error; absent if any difference counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worse: Option<String>,
    /// `found`, `none` (proved) or `undecided`; for a given dot, whether it answers the question: `found` or
    /// `not-here`.
    pub verdict: String,
    /// The dot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dot: Option<AlgorithmDot>,
    /// Why no dot exists, or why that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The duration.
    pub duration_ns: u64,
}

/// An algorithm.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AlgorithmRecord {
    /// Its name.
    pub name: String,
    /// The algorithm as a program: `unit[0..4](fl(a), fl(b), c)` is a call of the unit on products 0 to 3.
    pub program: String,
}

/// A dot, with the results of both algorithms. Numbers are whole multiples of powers of two, such as `105·2^-29`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AlgorithmDot {
    /// Elements of A, as full-width hexadecimal.
    pub a: Vec<String>,
    /// Elements of B.
    pub b: Vec<String>,
    /// c.
    pub c: String,
    /// The exact result.
    pub exact: String,
    /// Each algorithm's result.
    pub d: [String; 2],
    /// Each algorithm's absolute error.
    pub errors: [String; 2],
}
