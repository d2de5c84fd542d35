//! The cosine of an f64 by a library, and by x87.

use mxprobe_api::{Elementary, Error, Format, ScalarFunction, ScalarId};
use serde::Deserialize;

use super::scalar::{X87, call_one};
use crate::papers::computed::Computed;
use crate::{papers::Target, scalars};

/// The cosine of an f64, correctly rounded, or after a reduction with a π of some bits, as x87 has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cosine {
    /// The argument.
    x: f64,
    /// Bits of the π that it is reduced with; of any number, if missing.
    bits_of_pi: Option<usize>,
    /// The cosine in ten digits, as C's `%.10g` prints it.
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
