//! Peaks of GPUs: multiprocessors × boost clock × operations of a multiprocessor per cycle.

use mxprobe_api::{Error, OperationId};
use serde::Deserialize;

use crate::papers::computed::Computed;
use crate::{bench::boost_peak, papers::Target};

/// A rate of a GPU, or the ratio of two, to compare with its peaks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeakOf {
    /// A word of the GPU's name: `A100-SXM4-80GB`.
    chip: String,
    /// The operation.
    operation: String,
    /// The products of words that one product of matrices takes, by which the effective rate is divided.
    #[serde(default = "one")]
    products: u32,
    /// The operation whose rate is the denominator, if the value is a ratio.
    over: Option<String>,
    /// Flop/s in units of 10^12, or the ratio.
    value: f64,
    /// Whether the value was measured: it must not exceed the peak, rather than equal it.
    #[serde(default)]
    measured: bool,
}

fn one() -> u32 {
    1
}

/// The relative tolerance: peaks are printed with three digits.
const WITHIN: f64 = 0.006;

impl PeakOf {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        if target.device.is_some() {
            let words = "rates of a device are timed by `mxprobe bench` and `mxprobe gemm --experiment throughput`";
            return Err(Error::unsupported(words));
        }
        let peak = self.peak(&self.operation)? / f64::from(self.products);
        let (peak, unit) = match &self.over {
            Some(over) => (peak / self.peak(over)?, "times"),
            None => (peak / 1e12, "Tflop/s"),
        };
        if self.measured {
            let text = format!("needs that GPU; its peak is {peak:.1} {unit}");
            return Ok(Computed { text, agrees: self.value <= peak * (1.0 + WITHIN) });
        }
        Ok(Computed { text: format!("{peak:.2} {unit}"), agrees: (peak / self.value - 1.0).abs() <= WITHIN })
    }

    fn peak(&self, operation: &str) -> Result<f64, Error> {
        let id: OperationId = operation.parse()?;
        let none = || Error::invalid(format!("no peak of {id} on {}", self.chip));
        boost_peak(&self.chip, &id).map(|(rate, _)| rate).ok_or_else(none)
    }
}
