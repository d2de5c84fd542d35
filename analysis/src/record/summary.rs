//! A summary of a report: matrix operations with the same answers folded into rows, and facts that a user must know.

use mxprobe_api::OperationId;
use serde::{Deserialize, Serialize};

/// A summary of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Summary {
    /// Rows of matrix operations with the same answers; their k, mixes of formats and modes may differ.
    pub rows: Vec<SummaryRow>,
    /// Facts that limit what a user of the device may rely on, most serious first.
    pub notable: Vec<Notable>,
}

/// Operations with the same answers. An answer that was measured for no operation of the row is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SummaryRow {
    /// Kinds of inputs: `f16`; `fp8` for e4m3 and e5m2 in any mix, `fp8 fnuz` for AMD's variants of both, `fp6`, `fp4`;
    /// `mxfp8`, `nvfp4` with block scales; `int8`, `int4`.
    pub inputs: Vec<String>,
    /// The format of D.
    pub result: String,
    /// Families of instructions.
    pub families: Vec<String>,
    /// `m8n8k4` or `k8`, if other shapes of these families and formats have other answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// Whether these operations multiply matrices, or compute single dots (m = n = 1).
    pub unit: Unit,
    /// The maximum number of products that are added at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products_at_once: Option<AtOnce>,
    /// Fraction bits kept below the largest term when terms are aligned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_kept: Option<BitsKept>,
    /// The treatment of lower bits: `truncate`, `floor`, …, as in `alignment.below`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
    /// The rounding of sums to the result: `RNE`, `RZ`, …, as in `rounding.result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounding: Option<String>,
    /// Fraction bits of results, if fewer than those of their format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bits: Option<u32>,
    /// The precision, in bits, to which each single addition is rounded, if it is otherwise exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounded_to_bits: Option<u32>,
    /// The treatment of integer sums out of range: `wraps`, `saturates`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow: Option<String>,
    /// Qualifiers that request other answers than those of the row: `satfinite`, `rz`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<String>,
    /// The operations, including those with such qualifiers.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub operations: Vec<OperationId>,
}

/// The kind of unit that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A matrix unit: tiles of D.
    Matrix,
    /// A dot-product instruction of a vector unit.
    Vector,
}

/// The number of products added at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AtOnce {
    /// All: integer sums are exact in any order.
    All,
    /// This number.
    #[serde(untagged)]
    Products(u32),
}

/// The fraction bits that are kept when terms are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BitsKept {
    /// All.
    Exact,
    /// At least this number: no bit was lost as far as the formats can show.
    AtLeast(u32),
    /// This number.
    #[serde(untagged)]
    Bits(u32),
}

/// A fact that limits what a user may rely on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Notable {
    /// The name of the rule that states it.
    pub rule: String,
    /// The probe whose findings show it.
    pub probe: String,
    /// The fact in words.
    pub text: String,
    /// The operations to which it applies.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub operations: Vec<OperationId>,
}
