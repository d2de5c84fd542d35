//! The results of an experiment on the growth of errors, as in its JSON.

use mxprobe_api::Format;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{
    cause::Cause,
    fit::{Fit, Fits},
};
use crate::gemm::{bound::PROBABILITY, theory::Published};

/// The interval that elements are drawn from, uniformly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

    /// The interval as people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Positive => "(0, 1]",
            Self::Centred => "(-0.5, 0.5]",
        }
    }
}

/// The error at one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Point {
    /// Products in a sum.
    pub n: u64,
    /// max |Ĉ − C| / (|A|·|B|).
    pub componentwise: f64,
    /// ‖Ĉ − C‖ / ‖C‖, Frobenius.
    pub normwise: f64,
    /// The upper bound of `componentwise`, proved from the unit's model and the sizes of A and B (docs/gemm.md): the
    /// worst case of the errors of the words, of every alignment and of every rounding. Missing if no model of the unit
    /// is shipped, or a sum may overflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// Further bounds. Missing for integers and block scales.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
}

/// Bounds that depend only on n, apart from underflow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bounds {
    /// The upper bound of `componentwise` for any A and B, from the unit's model: the counterpart of bound (2.7), of
    /// (2.5) if all products are computed, and of the one in section 4.4 for blocks. Missing if [`Point::bound`] is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any: Option<f64>,
    /// The same with probability [`Growth::probability`], if the errors of the unit's operations were random variables
    /// of mean zero: the bound then grows with the square root of the number of operations (Azuma and Hoeffding). The
    /// errors of truncation do not have mean zero and may exceed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probable: Option<f64>,
    /// As published, for a unit that rounds every sum to f32.
    pub published: Published,
}

/// The errors of one way to multiply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Curve {
    /// The name of the way: `double-f16`.
    pub name: String,
    /// The operation, unless it is the loop in f32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The change to the unit's model, if any: such a unit does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Cause>,
    /// The model that bounds are proved from if the device is not a model itself: the shipped model with its
    /// fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_model: Option<String>,
    /// The interval that elements are drawn from.
    pub interval: Interval,
    /// The errors, n ascending.
    pub points: Vec<Point>,
    /// How errors and bounds grow with n, over all points.
    #[serde(default)]
    pub fits: Fits,
}

/// The results of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Growth {
    /// Rows of A, and columns of B.
    pub m: u64,
    /// The seed of the elements.
    pub seed: u32,
    /// The words that each element is the sum of, if elements were drawn so: splitting into as many words of this
    /// format then rounds none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<Drawn>,
    /// The probability of [`Bounds::probable`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Products of words that the unit computed, counted in multiply-adds.
    pub products: u64,
    /// The curves.
    pub curves: Vec<Curve>,
    /// The parts of the unit that make the error grow on (0, 1], in words, if the cause was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl Growth {
    /// An experiment without results.
    #[must_use]
    pub fn new(m: u64, seed: u32, drawn: Option<Drawn>) -> Self {
        Self { m, seed, drawn, probability: Some(PROBABILITY), products: 0, curves: Vec::new(), cause: None }
    }
}

/// Elements drawn as sums of words of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Drawn {
    /// The number of words.
    pub words: usize,
    /// The format of A's words.
    #[serde(deserialize_with = "format_named")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub a: Format,
    /// The format of B's words.
    #[serde(deserialize_with = "format_named")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub b: Format,
}

/// Reads the name of a format. The derived implementation of [`Format`] needs a static lifetime.
fn format_named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Format, D::Error> {
    Format::try_from(String::deserialize(deserializer)?).map_err(D::Error::custom)
}

impl Fits {
    /// Fits the points of a curve.
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
