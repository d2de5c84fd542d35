//! What an experiment on the growth of errors finds, as its JSON has it.

use mxprobe_api::Format;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{
    cause::Cause,
    fit::{Fit, Fits},
};
use crate::gemm::{bound::PROBABILITY, theory::Published};

/// Where elements are drawn from, uniformly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Interval {
    /// (0, 1]: sums grow, and every truncation goes the same way.
    #[serde(rename = "(0, 1]")]
    Positive,
    /// (−0.5, 0.5]: mean zero.
    #[serde(rename = "(-0.5, 0.5]")]
    Centred,
}

impl Interval {
    /// Its ends, the lower one open.
    #[must_use]
    pub fn ends(self) -> (f64, f64) {
        match self {
            Self::Positive => (0.0, 1.0),
            Self::Centred => (-0.5, 0.5),
        }
    }

    /// As people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Positive => "(0, 1]",
            Self::Centred => "(-0.5, 0.5]",
        }
    }
}

/// The error at one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Products in a sum.
    pub n: u64,
    /// max |Ĉ − C| / (|A|·|B|).
    pub componentwise: f64,
    /// ‖Ĉ − C‖ / ‖C‖, Frobenius.
    pub normwise: f64,
    /// What `componentwise` is at the most, proved from the unit's model and the sizes of A and B (docs/gemm.md): the error of
    /// the words, of every alignment and of every rounding at its worst. Missing if no model of the unit is shipped, or a sum may
    /// overflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// What else bounds it. Missing for integers and block scales.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
}

/// Bounds that depend on n alone, but for underflow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// `componentwise` at the most, for any A and B: the counterpart of bound (2.7), of (2.5) if all products are computed, and of
    /// section 4.4's for blocks, from the unit's model. Missing where [`Point::bound`] is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any: Option<f64>,
    /// The same with probability [`Growth::probability`], if the errors of the unit's operations were random variables of mean
    /// zero: then the number of operations counts with its root (Azuma and Hoeffding). Truncation gives other errors, which
    /// may exceed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probable: Option<f64>,
    /// As published, for a unit that rounds every sum to f32.
    pub published: Published,
}

/// The errors of one way to multiply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// The way: `double-f16`.
    pub name: String,
    /// The operation, where it is not the loop in f32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// What is changed in the unit's model, if anything: then this is no unit that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Cause>,
    /// The model that bounds are proved from, of a device that is not a model itself: the shipped one of its fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_model: Option<String>,
    /// Where elements are drawn from.
    pub interval: Interval,
    /// The errors, n ascending.
    pub points: Vec<Point>,
    /// How errors and bounds grow with n, over all points.
    #[serde(default)]
    pub fits: Fits,
}

/// What an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Growth {
    /// Rows of A, and columns of B.
    pub m: u64,
    /// The seed of the elements.
    pub seed: u32,
    /// The words that each element is a sum of, if elements were drawn so: then no word is rounded of as many of this format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<Drawn>,
    /// The probability of [`Bounds::probable`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Products of words that the unit computed, in units of one multiply-add.
    pub products: u64,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Which parts of the unit make the error grow on (0, 1], in words, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl Growth {
    /// Nothing found yet.
    #[must_use]
    pub fn new(m: u64, seed: u32, drawn: Option<Drawn>) -> Self {
        Self { m, seed, drawn, probability: Some(PROBABILITY), products: 0, curves: Vec::new(), cause: None }
    }
}

/// How elements are drawn: as sums of words of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drawn {
    /// How many words.
    pub words: usize,
    /// The format of A's.
    #[serde(deserialize_with = "format_named")]
    #[schemars(with = "String")]
    pub a: Format,
    /// The format of B's.
    #[serde(deserialize_with = "format_named")]
    #[schemars(with = "String")]
    pub b: Format,
}

/// Reads a format's name. The derived implementation of [`Format`] asks for a static lifetime.
fn format_named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Format, D::Error> {
    Format::try_from(String::deserialize(deserializer)?).map_err(D::Error::custom)
}

impl Fits {
    /// Of the points of a curve.
    pub(super) fn of(points: &[Point]) -> Self {
        let fit = |value: fn(&Point) -> Option<f64>| {
            let points: Vec<(u64, f64)> = points.iter().filter_map(|point| Some((point.n, value(point)?))).collect();
            Fit::of(&points)
        };
        Self {
            error: fit(|point| Some(point.componentwise)),
            bound: fit(|point| point.bound),
            any: fit(|point| point.bounds?.any),
            probable: fit(|point| point.bounds?.probable),
            dominant: fit(|point| Some(point.bounds?.published.dominant)),
        }
    }
}
