//! Steps of scalar arithmetic, each rounded to nearest, computed as IEEE 754 specifies or by a device.

use mxprobe_api::{Device, Elements, Error, Format, ScalarFunction, ScalarId, call, scalars_of};
use serde::Deserialize;

use super::digits;
use crate::papers::computed::Computed;
use crate::{literal, papers::Target, plain, scalars};

/// Steps in one format, and the result of the last one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scalar {
    /// The format.
    format: String,
    /// The mode of the arithmetic, if any: `x87`, whose registers hold 64 significand bits.
    mode: Option<String>,
    /// The steps, in order.
    steps: Vec<Step>,
    /// The result, in the syntax of `eval`.
    d: String,
    /// Its digits as printed, truncated or rounded.
    decimal: Option<String>,
}

/// One call; an operand is a number, or `#0` for the result of the first step.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    function: String,
    operands: Vec<String>,
}

impl Scalar {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        let format = Format::named(&self.format)?;
        let mut results: Vec<u64> = Vec::new();
        for step in &self.steps {
            let function: ScalarFunction = step.function.parse()?;
            let operands = step.operands.iter().map(|text| operand(format, text, &results));
            let operands = operands.collect::<Result<Vec<_>, _>>()?;
            if operands.len() != function.arity() {
                return Err(Error::invalid(format!("{function} takes {} operands", function.arity())));
            }
            results.push(self.result(target, function, format, &operands)?);
        }
        let found = results.last().copied().unwrap_or(0);
        let printed = read(format, &self.d)?;
        let value = digits::decimal(format, found);
        let agrees = found == printed && self.decimal.as_ref().is_none_or(|text| digits::are_those_of(text, &value));
        Ok(Computed { text: format!("{} ({})", format.hex(found), plain::short(format, found)), agrees })
    }

    fn result(
        &self,
        target: &Target<'_>,
        function: ScalarFunction,
        format: Format,
        operands: &[u64],
    ) -> Result<u64, Error> {
        let mode = self.mode.as_deref();
        let Some(asked) = target.device else {
            let none = || Error::unsupported(format!("{function} of these operands has no result that IEEE 754 fixes"));
            let known = match mode {
                None => scalars::ieee(function, format, operands),
                Some(X87) => scalars::x87(function, format, operands),
                Some(_) => None,
            };
            return known.ok_or_else(none);
        };
        let id = mode.iter().fold(ScalarId::new(format), |id, word| id.with(word));
        call_one(asked.device.as_ref(), &id, function, operands)
    }
}

/// The mode word that requests x87 registers.
pub(super) const X87: &str = "x87";

/// The result of one call.
///
/// # Errors
/// `Unsupported` if the device does not have the function in that mode.
pub(super) fn call_one(
    device: &dyn Device,
    id: &ScalarId,
    function: ScalarFunction,
    operands: &[u64],
) -> Result<u64, Error> {
    let has = |scalar: &&mxprobe_api::Scalar| scalar.id == *id && scalar.functions.contains_key(&function);
    let scalar = scalars_of(device).iter().find(has);
    let scalar = scalar.ok_or_else(|| Error::unsupported(format!("no {function} of {id}")))?;
    Ok(call(device, scalar, function, &Elements::from_bits(id.format, operands.iter().copied()))?.get(0))
}

fn operand(format: Format, text: &str, results: &[u64]) -> Result<u64, Error> {
    match text.strip_prefix('#') {
        Some(at) => {
            let at: usize = at.parse().map_err(|_| Error::invalid(format!("`{text}` is not a step")))?;
            results.get(at).copied().ok_or_else(|| Error::invalid(format!("`{text}` is not a step before this one")))
        }
        None => read(format, text),
    }
}

/// Parses a number that the format holds exactly.
fn read(format: Format, text: &str) -> Result<u64, Error> {
    match literal::read(format, text) {
        Ok(found) if !found.rounded => Ok(found.bits),
        Ok(_) => Err(Error::invalid(format!("`{text}` is not a value of {format}"))),
        Err(reason) => Err(Error::invalid(reason)),
    }
}
