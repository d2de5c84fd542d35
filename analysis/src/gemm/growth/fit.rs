//! Measured exponents of growth: error ~ n^x.

use serde::{Deserialize, Serialize};

/// A least-squares fit of log error = x·log n + constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Fit {
    /// x.
    pub exponent: f64,
    /// The smallest n of the fit.
    pub from: u64,
    /// The largest n of the fit.
    pub to: u64,
    /// The number of n used: those with a value above 0.
    pub points: u64,
}

/// The fits of a curve: of its errors, and of their upper bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Fits {
    /// The fit of [`Point::componentwise`](super::Point::componentwise).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fit>,
    /// The fit of [`Point::bound`](super::Point::bound).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Fit>,
    /// The fit of [`Bounds::any`](super::Bounds::any).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any: Option<Fit>,
    /// The fit of [`Bounds::probable`](super::Bounds::probable).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probable: Option<Fit>,
    /// The fit of [`Published::dominant`](crate::gemm::Published::dominant).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dominant: Option<Fit>,
}

impl Fit {
    /// Fits values at n; `None` if fewer than two of them are finite and above 0.
    #[must_use]
    pub fn of(points: &[(u64, f64)]) -> Option<Self> {
        let used = || points.iter().filter(|(n, value)| *n > 0 && *value > 0.0 && value.is_finite());
        let count = used().count();
        if count < 2 {
            return None;
        }
        let logs = || used().map(|(n, value)| ((*n as f64).log2(), value.log2()));
        let mean = |of: fn((f64, f64)) -> f64| logs().map(of).sum::<f64>() / count as f64;
        let (x, y) = (mean(|of| of.0), mean(|of| of.1));
        let (above, below) = logs()
            .fold((0.0, 0.0), |(above, below), (n, value)| (above + (n - x) * (value - y), below + (n - x) * (n - x)));
        let lengths = || used().map(|(n, _)| *n);
        let (from, to) = (lengths().min()?, lengths().max()?);
        (below > 0.0).then(|| Self { exponent: above / below, from, to, points: count as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_of_n_has_its_exponent_and_zeros_and_infinities_are_left_out() {
        let points: Vec<(u64, f64)> = (9..=20).map(|e| (1 << e, 3e-8 * f64::from(e).exp2().powf(0.75))).collect();
        let fit = Fit::of(&points).unwrap();
        assert!((fit.exponent - 0.75).abs() < 1e-12, "{fit:?}");
        assert_eq!((fit.from, fit.to, fit.points), (512, 1 << 20, 12));
        let holes = [(2, 0.0), (4, 1.0), (8, f64::INFINITY), (16, 0.25)];
        let fit = Fit::of(&holes).unwrap();
        assert!((fit.exponent + 1.0).abs() < 1e-12 && (fit.from, fit.to, fit.points) == (4, 16, 2), "{fit:?}");
        assert_eq!(Fit::of(&holes[..2]), None);
        assert_eq!(Fit::of(&[(4, 1.0), (4, 2.0)]), None, "one n has no slope");
    }
}
