//! Steps of scalar arithmetic, each rounded to nearest, as IEEE 754 has them or as a device computes them.

use mxprobe_api::{Elements, Error, Format, ScalarFunction, ScalarId, call, scalars_of};
use serde::Deserialize;

use super::digits;
use crate::papers::computed::Computed;
use crate::{literal, papers::Target, plain, scalars};

/// Steps in one format, and the last one's result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scalar {
    /// The format.
    format: String,
    /// The steps, in their order.
    steps: Vec<Step>,
    /// The result, as `eval` takes it.
    d: String,
    /// Its digits as they are printed: cut, or rounded.
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
            results.push(result(target, function, format, &operands)?);
        }
        let found = results.last().copied().unwrap_or(0);
        let printed = read(format, &self.d)?;
        let value = digits::decimal(format, found);
        let agrees = found == printed && self.decimal.as_ref().is_none_or(|text| digits::are_those_of(text, &value));
        Ok(Computed { text: format!("{} ({})", format.hex(found), plain::short(format, found)), agrees })
    }
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

/// A number that the format holds.
fn read(format: Format, text: &str) -> Result<u64, Error> {
    match literal::read(format, text) {
        Ok(found) if !found.rounded => Ok(found.bits),
        Ok(_) => Err(Error::invalid(format!("`{text}` is not a value of {format}"))),
        Err(reason) => Err(Error::invalid(reason)),
    }
}

fn result(target: &Target<'_>, function: ScalarFunction, format: Format, operands: &[u64]) -> Result<u64, Error> {
    let Some(asked) = target.device else {
        let none = || Error::unsupported(format!("{function} of these operands has no result that IEEE 754 fixes"));
        return scalars::ieee(function, format, operands).ok_or_else(none);
    };
    let device = asked.device.as_ref();
    let has =
        |scalar: &&mxprobe_api::Scalar| scalar.id == ScalarId::new(format) && scalar.functions.contains_key(&function);
    let scalar = scalars_of(device).iter().find(has);
    let scalar = scalar.ok_or_else(|| Error::unsupported(format!("no {function} of scalar.{format}")))?;
    Ok(call(device, scalar, function, &Elements::from_bits(format, operands.iter().copied()))?.get(0))
}
