//! Tolerances: intervals of elements, and elements outside of them.

use std::thread::available_parallelism;

use pyo3::{prelude::*, types::PyByteArray};

use mxprobe::tolerance::{Interval, Order, Tolerance};
use mxprobe_api::{Elements, Error};

use crate::{
    error::raise,
    model::{Model, Operands},
};

/// Row, column, d, the ends of its interval, the exact sum, how far d lies beyond, and |d − exact| in units of the tolerance.
type Outside = (usize, usize, f64, f64, f64, f64, f64, f64);

/// The ends of an interval as values: NaN of a NaN, infinities if there is none.
fn ends(of: Interval, d: mxprobe_api::Format) -> (f64, f64) {
    match of {
        Interval::Within { low, high } => (d.to_f64(low), d.to_f64(high)),
        Interval::Nan => (f64::NAN, f64::NAN),
        Interval::Unbounded => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

fn threads() -> usize {
    available_parallelism().map_or(1, std::num::NonZero::get)
}

#[pymethods]
impl Model {
    /// The ends of the interval of each element of D, as f64, row-major.
    #[pyo3(signature = (id, sizes, a, b, c, scale_a, scale_b, order))]
    #[allow(clippy::too_many_arguments, reason = "one for each operand")]
    fn intervals<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        sizes: (usize, usize, usize),
        a: &[u8],
        b: &[u8],
        c: Option<&[u8]>,
        scale_a: Option<&[u8]>,
        scale_b: Option<&[u8]>,
        order: &str,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let id = &self.operation(py, id)?.id;
        let found = Operands::new(id, sizes, [a, b], c, scale_a.zip(scale_b)).and_then(|operands| {
            let tolerance = Tolerance::new(&self.model, id, sizes.2, Order::named(order)?)?;
            py.detach(|| tolerance.elements(&operands.whole(), threads()))
        });
        let found = found.map_err(|error| raise(py, error))?;
        let ends: Vec<(f64, f64)> = found.iter().map(|element| ends(element.interval, id.d)).collect();
        let low: Vec<u8> = ends.iter().flat_map(|(low, _)| low.to_le_bytes()).collect();
        let high: Vec<u8> = ends.iter().flat_map(|(_, high)| high.to_le_bytes()).collect();
        Ok((PyByteArray::new(py, &low), PyByteArray::new(py, &high)))
    }

    /// How many elements D has, how many have no interval, and those that lie outside of theirs.
    #[pyo3(signature = (id, sizes, a, b, c, scale_a, scale_b, d, order))]
    #[allow(clippy::too_many_arguments, reason = "one for each operand")]
    fn check(
        &self,
        py: Python<'_>,
        id: &str,
        sizes: (usize, usize, usize),
        a: &[u8],
        b: &[u8],
        c: Option<&[u8]>,
        scale_a: Option<&[u8]>,
        scale_b: Option<&[u8]>,
        d: &[u8],
        order: &str,
    ) -> PyResult<(usize, usize, Vec<Outside>)> {
        let id = &self.operation(py, id)?.id;
        let checked = || -> Result<_, Error> {
            let operands = Operands::new(id, sizes, [a, b], c, scale_a.zip(scale_b))?;
            let d = Elements::from_bytes(id.d, d.to_vec())?;
            let tolerance = Tolerance::new(&self.model, id, sizes.2, Order::named(order)?)?;
            py.detach(|| tolerance.check(&operands.whole(), &d, threads()))
        };
        let checked = checked().map_err(|error| raise(py, error))?;
        let outside = checked.outside.iter().map(|found| {
            let (low, high) = ends(found.element.interval, id.d);
            (found.row, found.column, found.value, low, high, found.element.exact, found.beyond, found.times)
        });
        Ok((checked.elements, checked.unbounded, outside.collect()))
    }
}
