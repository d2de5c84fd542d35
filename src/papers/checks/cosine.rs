//! The cosine of an f64, computed by a library and by x87.

use mxprobe_api::{Elementary, Error, Format, ScalarFunction, ScalarId};
use serde::Deserialize;

use super::scalar::{X87, call_one};
use crate::papers::computed::Computed;
use crate::{papers::Target, scalars};

/// The cosine of an f64: correctly rounded, or after a reduction with a truncated π, as in x87.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cosine {
    /// The argument.
    x: f64,
    /// The bits of π that the argument is reduced with; missing for an exact reduction.
    bits_of_pi: Option<usize>,
    /// The cosine to ten digits, as C's `%.10g` prints it.
    is: String,
}

impl Cosine {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        let bits = if let Some(asked) = target.device {
            let plain = ScalarId::new(Format::F64);
            let id = if self.bits_of_pi.is_some() { plain.with(X87) } else { plain };
            let cosine = ScalarFunction::Elementary(Elementary::Cos);
            call_one(asked.device.as_ref(), &id, cosine, &[self.x.to_bits()])?
        } else {
            let none = || Error::invalid(format!("{} has no cosine", self.x));
            scalars::cosine(self.x.to_bits(), self.bits_of_pi).ok_or_else(none)?
        };
        let text = format!("{:.9e}", f64::from_bits(bits));
        Ok(Computed { agrees: text == self.is, text })
    }
}
