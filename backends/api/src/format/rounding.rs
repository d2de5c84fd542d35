//! Rounding into a format: the policies and the results.

use serde::{Deserialize, Serialize};

/// The direction in which an inexact result is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// RNE: to nearest, ties to even.
    NearestEven,
    /// RZ: toward zero.
    TowardZero,
    /// RD: toward −∞.
    Down,
    /// RU: toward +∞.
    Up,
    /// RO: to odd; the lowest bit of an inexact result is set.
    ToOdd,
}

/// The treatment of a finite result whose rounded magnitude exceeds the largest finite value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// Infinity whenever the magnitude, rounded with an unbounded exponent, exceeds the largest finite value; NaN if
    /// the format has no infinity.
    Infinity,
    /// As in IEEE 754-2019, 7.4: infinity or the largest finite value, depending on the rounding direction.
    Ieee,
    /// NaN.
    Nan,
    /// The largest finite value of the same sign.
    Saturate,
}

/// The treatment of results smaller in magnitude than the smallest normal value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subnormals {
    /// Kept: gradual underflow.
    Keep,
    /// Flushed to zero of the same sign if the exact value is tiny.
    FlushBeforeRounding,
    /// Flushed to zero of the same sign if the value rounded with an unbounded exponent is tiny.
    FlushAfterRounding,
    /// As `FlushAfterRounding`, but always to +0.
    FlushToPositiveZero,
}

/// The value that bits encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// Not a number, with its sign and its fraction field.
    Nan {
        /// The sign bit.
        negative: bool,
        /// The fraction field; its top bit is the quiet bit.
        payload: u64,
    },
    /// Infinity.
    Infinity {
        /// The sign bit.
        negative: bool,
    },
    /// Zero.
    Zero {
        /// The sign bit.
        negative: bool,
    },
    /// `±significand · 2^(exponent − fraction bits of the format)`.
    ///
    /// For a subnormal the exponent is the smallest normal one and the significand is below 2^(fraction bits). For an
    /// integer the exponent is 0 and the format has no fraction bits.
    Finite {
        /// The sign.
        negative: bool,
        /// The significand as an integer, the leading one included.
        significand: u64,
        /// The unbiased exponent.
        exponent: i32,
    },
}

/// The outcome of rounding a value into a format. Callers that model hardware must check the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The bits.
    pub bits: u64,
    /// The value of the bits differs from the given value.
    pub inexact: bool,
    /// The rounded magnitude exceeded the largest finite value.
    pub overflow: bool,
    /// The result is tiny and inexact, or was flushed.
    pub underflow: bool,
}
