//! The chart of an experiment: errors against n, with logarithmic axes.

use mxprobe_api::OperationId;

use crate::{
    gemm::{Curve, Growth, Interval, Point},
    plot::{self, Chart, Panel, Scale},
};

/// The componentwise errors of an experiment, a panel for each interval; dashed curves are units that do not exist.
/// Below them the upper bounds of the errors in the same layout: solid for these elements, and dashed as published
/// (Table 2.1).
#[must_use]
pub fn growth_chart(growth: &Growth, title: &str) -> Chart {
    let (x, y) = scales(growth);
    let of = |interval: Interval| growth.curves.iter().filter(move |curve| curve.interval == interval);
    let errors = INTERVALS.map(|interval| Panel {
        title: format!("elements in {}", interval.name()),
        curves: of(interval).map(curve).collect(),
    });
    let bounds = INTERVALS.map(|interval| Panel {
        title: format!("bounds, elements in {}", interval.name()),
        curves: of(interval).filter(|curve| curve.what_if.is_none()).flat_map(bounds).collect(),
    });
    let bounds = bounds.into_iter().filter(|panel| !panel.curves.is_empty());
    Chart {
        title: title.to_owned(),
        x_name: "n, products in a sum".to_owned(),
        y_name: "error, max |Ĉ − C| / (|A|·|B|)".to_owned(),
        x,
        y,
        panels: errors.into_iter().chain(bounds).collect(),
    }
}

const INTERVALS: [Interval; 2] = [Interval::Positive, Interval::Centred];

/// The bounds of a curve: from the unit's model, and as published.
fn bounds(curve: &Curve) -> Vec<plot::Curve> {
    let points = |value: fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
        curve.points.iter().filter_map(|point| Some((point.n as f64, value(point)?))).collect()
    };
    let of = |name: String, dashed: bool, points: Vec<(f64, f64)>| {
        (!points.is_empty()).then(|| plot::Curve { name, kind: kind(curve), dashed, points })
    };
    let unit = of(curve.name.clone(), false, points(|point| point.bound));
    let published = points(|point| Some(point.bounds?.published.dominant));
    unit.into_iter().chain(of(format!("{}, published", curve.name), true, published)).collect()
}

/// The input format, which decides a curve's colour.
fn kind(curve: &Curve) -> String {
    let id = curve.operation.as_ref().and_then(|id| id.parse::<OperationId>().ok());
    id.map(|id| id.a.to_string()).unwrap_or_default()
}

/// Scales that cover every point.
#[expect(clippy::cast_possible_truncation, reason = "exponents of lengths and of errors are small")]
fn scales(growth: &Growth) -> (Scale, Scale) {
    let points = || growth.curves.iter().flat_map(|curve| &curve.points);
    let lengths = points().map(|point| (point.n.max(1) as f64).log2());
    let (from, to) = (lengths.clone().fold(f64::INFINITY, f64::min), lengths.fold(0.0, f64::max));
    let of_point = |point: &Point| {
        let published = point.bounds.map(|bounds| bounds.published.dominant);
        [Some(point.componentwise), point.bound, published].into_iter().flatten()
    };
    let errors = || points().flat_map(of_point).filter(|error| *error > 0.0 && error.is_finite());
    let lowest = errors().fold(1f64, f64::min).log10().floor() as i32;
    let highest = errors().fold(1e-12, f64::max).log10().ceil() as i32;
    (
        Scale::Octaves { from: from.min(to).floor() as i32, to: to.ceil() as i32 },
        Scale::Decades { from: lowest, to: highest.max(lowest + 1) },
    )
}

/// Curves of one input format share a colour, whatever the number of words and wherever they are added.
fn curve(curve: &Curve) -> plot::Curve {
    let name = match curve.what_if {
        Some(cause) => format!("{}, if {}", curve.name, cause.words()),
        None => curve.name.clone(),
    };
    let points = curve.points.iter().map(|point| (point.n as f64, point.componentwise)).collect();
    plot::Curve { name, kind: kind(curve), dashed: curve.what_if.is_some(), points }
}
