//! Tolerances: intervals of elements, and elements outside of them.

use mxprobe::tolerance::{Interval, Order, Tolerance};
use mxprobe_api::{Elements, Error, Format, GemmOperands, OperationId};
use mxprobe_models::{Model, threads};

/// Elements of D, elements without an interval, and those outside of theirs.
pub(crate) type Checked = (usize, usize, Vec<Outside>);

/// Row, column, d, the ends of its interval, the exact sum, how far d lies beyond, and |d − exact| in units of the tolerance.
type Outside = (usize, usize, f64, f64, f64, f64, f64, f64);

/// The ends of an interval as values: NaN of a NaN, infinities if there is none.
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

/// How many elements D has, how many have no interval, and those that lie outside of theirs.
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
