//! The change of a unit that ends the growth of errors.

use super::{
    cause::Cause,
    record::{Curve, Interval},
};

/// Names the changes that end the growth, at the longest n that the changed units were computed for: those with an
/// error of at most [`ENDED`] times the error that remains if both parts are mended. There is growth to explain if
/// mending both leaves a quarter of the error or less.
pub(super) fn name_the_cause(curves: &[Curve], name: &str) -> String {
    let curve = |what_if: Option<Cause>| {
        let of_variant = |curve: &&Curve| curve.name == name && curve.interval == Interval::Positive;
        curves.iter().filter(of_variant).find(|curve| curve.what_if == what_if)
    };
    let Some(n) = curve(Some(Cause::Both)).and_then(|curve| curve.points.last()).map(|point| point.n) else {
        return "no length was computed".into();
    };
    let error = |what_if: Option<Cause>| {
        let point = curve(what_if).and_then(|curve| curve.points.iter().find(|point| point.n == n));
        point.map_or(f64::NAN, |point| point.componentwise)
    };
    let (is, both) = (error(None), error(Some(Cause::Both)));
    let (nearest, aligned) = (error(Some(Cause::ResultToNearest)), error(Some(Cause::NothingLostAtAlignment)));
    let ends = |error: f64| error <= both * ENDED;
    let words = match (both * 4.0 <= is, ends(nearest), ends(aligned)) {
        (false, _, _) => {
            "neither the truncation at alignment nor the rounding of results: with both mended the error is much the same"
        }
        (true, true, false) => "the rounding of results: rounded to nearest, the error does not grow so",
        (true, false, true) => "the truncation at alignment: where nothing is lost there, the error does not grow so",
        (true, true, true) => "the rounding of results and the truncation at alignment, each enough to end it",
        (true, false, false) => {
            "the truncation at alignment and the rounding of results together: mending one of them alone leaves the \
             growth, mending both ends it"
        }
    };
    format!(
        "{words} (at n = {n}: {is:.1e} as it is, {nearest:.1e} with results rounded to nearest, {aligned:.1e} with nothing \
         lost at alignment, {both:.1e} with both)"
    )
}

/// Errors within this factor count as the same growth: they are two means of randomly drawn rounding errors.
const ENDED: f64 = 3.0;
