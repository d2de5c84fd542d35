//! Errors of a function in units in the last place, of a device or from a device's published table.

use std::sync::LazyLock;

use mxprobe_api::{Error, Format, Scalar, ScalarId, scalars_of};
use serde::Deserialize;
use serde_json::Value;

use super::finding::measured;
use crate::papers::computed::Computed;
use crate::{
    papers::Target,
    report::{FindingRecord, Report},
    scalars, session,
};

/// The table that is used without a device: glibc on a CPU (docs/scalars.md).
const TABLE: &str = include_str!("../../../results/ulp/cpu-amd-zen4-glibc-2.36.json");

/// The number of arguments for a device: an exact value of f64 takes integers of hundreds of bits.
const POINTS: u64 = 20_000;

/// The printed errors of a function.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ulp {
    /// The name of the function: `sin`.
    function: String,
    /// The format of arguments and results.
    format: String,
    /// The largest error, in units in the last place.
    most: Option<f64>,
    /// The least share of correctly rounded results.
    correctly_rounded: Option<f64>,
}

impl Ulp {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        let format = Format::named(&self.format)?;
        let probe = format!("ulp.{}", self.function);
        let Some(asked) = target.device else {
            static REPORT: LazyLock<Result<Report, String>> =
                LazyLock::new(|| serde_json::from_str(TABLE).map_err(|error| error.to_string()));
            let report = REPORT.as_ref().map_err(|error| Error::invalid(error.clone()))?;
            let id = scalars::operation_id(&ScalarId::new(format));
            let none = || Error::unsupported(format!("the published table has no {probe} of {format}"));
            let found = report.operations.iter().find(|operation| operation.operation.id == id).ok_or_else(none)?;
            return self.judge(measured(found, &probe)?, &report.device.name);
        };
        let device = asked.device.as_ref();
        let is_meant = |scalar: &&Scalar| scalar.id == ScalarId::new(format);
        let none = || Error::unsupported(format!("no scalar.{format} to ask for {}", self.function));
        let scalar = scalars_of(device).iter().find(is_meant).ok_or_else(none)?;
        let id = scalars::operation_id(&scalar.id);
        let found = session::probe_at(device, &id, std::slice::from_ref(&probe), None, POINTS).ok_or_else(none)?;
        self.judge(measured(&found, &probe)?, &device.info().name)
    }

    fn judge(&self, finding: &FindingRecord, device: &str) -> Result<Computed, Error> {
        let none = || Error::invalid(format!("{} has other parts: {}", finding.probe, finding.statement));
        let part = |name: &str| finding.value.as_ref().and_then(|value| value.get(name)).ok_or_else(none);
        let number = |value: &Value| value.as_str().map_or_else(|| value.as_f64(), |text| text.parse().ok());
        let largest = number(part("largest")?).ok_or_else(none)?;
        let (right, points) = (part("correctly_rounded")?, part("points")?);
        let (Some(right), Some(points)) = (right.as_f64(), points.as_f64()) else { return Err(none()) };
        let share = right / points;
        let text = format!("at most {largest:.3} ulp, {:.2} % correctly rounded, on {device}", 100.0 * share);
        let agrees =
            self.most.is_none_or(|most| largest <= most) && self.correctly_rounded.is_none_or(|least| share >= least);
        Ok(Computed { text, agrees })
    }
}
