//! What is plotted of an experiment: errors against n, logarithmic both ways.

use mxprobe_api::OperationId;

use super::{Curve, Growth, Interval};
use crate::plot::{self, Chart, Panel, Scale};

/// The componentwise errors of an experiment, a panel for each interval; dashed curves are units that do not exist.
#[must_use]
pub fn chart(growth: &Growth, title: &str) -> Chart {
    let (x, y) = scales(growth);
    let panels = [Interval::Positive, Interval::Centred].map(|interval| Panel {
        title: format!("elements in {}", interval.name()),
        curves: growth.curves.iter().filter(|curve| curve.interval == interval).map(curve).collect(),
    });
    Chart {
        title: title.to_owned(),
        x_name: "n, products in a sum".to_owned(),
        y_name: "error, max |Ĉ − C| / (|A|·|B|)".to_owned(),
        x,
        y,
        panels: panels.into(),
    }
}

/// Scales that hold every point.
#[expect(clippy::cast_possible_truncation, reason = "exponents of lengths and of errors are small")]
fn scales(growth: &Growth) -> (Scale, Scale) {
    let points = || growth.curves.iter().flat_map(|curve| &curve.points);
    let lengths = points().map(|point| (point.n.max(1) as f64).log2());
    let (from, to) = (lengths.clone().fold(f64::INFINITY, f64::min), lengths.fold(0.0, f64::max));
    let errors = || points().map(|point| point.componentwise).filter(|error| *error > 0.0 && error.is_finite());
    let lowest = errors().fold(1f64, f64::min).log10().floor() as i32;
    let highest = errors().fold(1e-12, f64::max).log10().ceil() as i32;
    (
        Scale::Octaves { from: from.min(to).floor() as i32, to: to.ceil() as i32 },
        Scale::Decades { from: lowest, to: highest.max(lowest + 1) },
    )
}

/// Curves of one input format have one colour, whatever the number of words and wherever they are added.
fn curve(curve: &Curve) -> plot::Curve {
    let name = match curve.what_if {
        Some(cause) => format!("{}, if {}", curve.name, cause.words()),
        None => curve.name.clone(),
    };
    let format = curve.operation.as_ref().and_then(|id| id.parse::<OperationId>().ok()).map(|id| id.a.to_string());
    let points = curve.points.iter().map(|point| (point.n as f64, point.componentwise)).collect();
    plot::Curve { name, kind: format.unwrap_or_default(), dashed: curve.what_if.is_some(), points }
}
