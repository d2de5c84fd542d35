//! Tolerances: intervals of elements, and elements outside their intervals.

use mxprobe::tolerance::{Interval, Order, Tolerance};
use mxprobe_api::{Elements, Error, Format, GemmOperands, OperationId};
use mxprobe_models::{Model, threads};

/// The number of elements of D, the number without an interval, and the elements outside of theirs.
pub(crate) type Checked = (usize, usize, Vec<Outside>);

/// Row, column, d, the ends of its interval, the exact sum, the distance of d from the interval, and |d − exact| in
/// units of the tolerance.
type Outside = (usize, usize, f64, f64, f64, f64, f64, f64);

/// The ends of an interval as values: NaN for a NaN, infinities without an interval.
fn ends(of: Interval, d: Format) -> (f64, f64) {
    match of {
        Interval::Within { low, high } => (d.to_f64(low), d.to_f64(high)),
        Interval::Nan => (f64::NAN, f64::NAN),
        Interval::Unbounded => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

/// The ends of the interval of each element of D, as f64, row-major.
///
/// # Errors
/// As [`Tolerance::new`] and [`Tolerance::elements`].
pub(crate) fn intervals(
    model: &Model,
    id: &OperationId,
    operands: &GemmOperands<'_>,
    order: &str,
) -> Result<Vec<(f64, f64)>, Error> {
    let found = Tolerance::new(model, id, operands.k, Order::named(order)?)?.elements(operands, threads())?;
    Ok(found.iter().map(|element| ends(element.interval, id.d)).collect())
}

/// The number of elements of D, the number without an interval, and the elements outside of theirs.
///
/// # Errors
/// As [`Tolerance::new`] and [`Tolerance::check`].
pub(crate) fn check(
    model: &Model,
    id: &OperationId,
    operands: &GemmOperands<'_>,
    d: &[u8],
    order: &str,
) -> Result<Checked, Error> {
    let d = Elements::from_bytes(id.d, d.to_vec())?;
    let checked = Tolerance::new(model, id, operands.k, Order::named(order)?)?.check(operands, &d, threads())?;
    let outside = checked.outside.iter().map(|found| {
        let (low, high) = ends(found.element.interval, id.d);
        (found.row, found.column, found.value, low, high, found.element.exact, found.beyond, found.times)
    });
    Ok((checked.elements, checked.unbounded, outside.collect()))
}
