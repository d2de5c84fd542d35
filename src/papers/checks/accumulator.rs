//! The width of an accumulator as Fasi et al. (2021) write it: {I.F}, integer bits and fraction bits.

use mxprobe_api::Error;
use serde::Deserialize;

use super::finding::{found, measured};
use crate::papers::Target;
use crate::papers::computed::Computed;

/// The accumulator of an operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accumulator {
    /// A pattern of the operation.
    operation: String,
    /// Integer bits: one, plus those that carries need.
    integer: u64,
    /// Fraction bits below the leading bit of the largest term.
    fraction: u64,
}

const CARRY: &str = "carry";
const BITS: &str = "alignment.fraction_bits";

impl Accumulator {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        let asked = target.asked()?;
        let operation = target.operation(&asked, &self.operation, 0)?;
        let report = found(&asked, &operation, &[CARRY, BITS])?;
        let number = |probe: &str, field: Option<&str>| {
            let finding = measured(&report, probe)?;
            let value = finding.value.as_ref();
            let value = field.map_or(value, |field| value?.get(field));
            let none = || Error::unsupported(format!("{probe}: {}", finding.statement));
            value.and_then(serde_json::Value::as_u64).ok_or_else(none)
        };
        let integer = 1 + number(CARRY, Some("beyond_leading_bit"))?;
        let fraction = number(BITS, None)?;
        let text = format!("{{{integer}.{fraction}}}");
        Ok(Computed { text, agrees: (integer, fraction) == (self.integer, self.fraction) })
    }
}
