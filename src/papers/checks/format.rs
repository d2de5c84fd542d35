//! Properties of number formats.

use mxprobe_api::{Error, Format};
use serde::Deserialize;

use crate::papers::computed::Computed;

/// A property of a format, and its expected integer or power of two.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Property {
    /// The format.
    format: String,
    /// The property.
    property: Which,
    /// The integer, or the exponent of two.
    value: i32,
}

/// A property of a format.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Which {
    /// The digits of the significand, with the implicit bit.
    Precision,
    /// The largest exponent of a finite number.
    LargestExponent,
    /// The smallest exponent of a normal number.
    SmallestExponent,
    /// The exponent of the distance from 1 to the next number.
    Epsilon,
    /// The exponent of the smallest normal number.
    SmallestNormal,
    /// The exponent of the smallest subnormal number.
    SmallestSubnormal,
}

impl Property {
    pub(super) fn compute(&self) -> Result<Computed, Error> {
        let format = Format::named(&self.format)?;
        let float =
            format.as_float().ok_or_else(|| Error::invalid(format!("{format} is not a floating-point format")))?;
        let fraction = i32::try_from(float.fraction_bits).map_err(|error| Error::invalid(error.to_string()))?;
        let (value, is_power) = match self.property {
            Which::Precision => (fraction + 1, false),
            Which::LargestExponent => (float.exponents().1, false),
            Which::SmallestExponent => (float.min_exponent(), false),
            Which::Epsilon => (-fraction, true),
            Which::SmallestNormal => (float.min_exponent(), true),
            Which::SmallestSubnormal => (float.exponents().0, true),
        };
        let text = if is_power { format!("2^{value}") } else { value.to_string() };
        Ok(Computed { text, agrees: value == self.value })
    }
}
