//! A report at a glance: matrix operations with the same answers folded into rows, and what a user must know.

use mxprobe_api::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A report at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Matrix operations; those with the same answers share a row, whatever their k, mixes of formats and modes.
    pub rows: Vec<SummaryRow>,
    /// Facts that change what a user of the device may rely on, most serious first.
    pub notable: Vec<Notable>,
}

/// Operations with the same answers. An answer that no operation of the row has measured is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryRow {
    /// Kinds of inputs: `f16`; `fp8` for e4m3 and e5m2 in any mix, `fp8 fnuz` for AMD's variants of both, `fp6`, `fp4`;
    /// `mxfp8`, `nvfp4` with block scales; `int8`, `int4`.
    pub inputs: Vec<String>,
    /// The format of D.
    pub result: String,
    /// Families of instructions.
    pub families: Vec<String>,
    /// `m8n8k4` or `k8`, if other shapes of these families and formats answer otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// Whether these operations multiply matrices, or compute single dots (m = n = 1).
    pub unit: Unit,
    /// The most products that are added at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products_at_once: Option<AtOnce>,
    /// Fraction bits kept below the largest term when terms are aligned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_kept: Option<BitsKept>,
    /// What becomes of lower bits: `truncate`, `floor`, … as `alignment.below` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
    /// How sums are rounded to the result: `RNE`, `RZ`, … as `rounding.result` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounding: Option<String>,
    /// Fraction bits of results, if they are fewer than those of their format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bits: Option<u32>,
    /// The precision in bits to which each single addition is rounded, if it is otherwise exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounded_to_bits: Option<u32>,
    /// What integer sums beyond the range do: `wraps`, `saturates`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow: Option<String>,
    /// Qualifiers that ask for other answers than the row says: `satfinite`, `rz`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<String>,
    /// The operations, those with such qualifiers among them.
    #[schemars(with = "Vec<String>")]
    pub operations: Vec<OperationId>,
}

/// Who computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A matrix unit: tiles of D.
    Matrix,
    /// A dot-product instruction of a vector unit.
    Vector,
}

/// How many products are added at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AtOnce {
    /// All: integer sums are exact in any order.
    All,
    /// So many.
    #[serde(untagged)]
    Products(u32),
}

/// Fraction bits that are kept when terms are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BitsKept {
    /// All.
    Exact,
    /// At least so many: no bit was lost as far as the formats can show it.
    AtLeast(u32),
    /// So many.
    #[serde(untagged)]
    Bits(u32),
}

/// A fact that changes what a user may rely on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notable {
    /// The name of the rule that it follows from.
    pub rule: String,
    /// The probe whose findings show it.
    pub probe: String,
    /// The fact in words.
    pub text: String,
    /// The operations that it is true of.
    #[schemars(with = "Vec<String>")]
    pub operations: Vec<OperationId>,
}
