//! Models: operations, whole products, dots and their traces.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use pyo3::{
    prelude::*,
    types::{PyByteArray, PyDict},
};

use mxprobe::session::Asked;
use mxprobe_api::{Device, Elements, Error, Format, GemmOperands, Operation, OperationId, multiply};
use mxprobe_models::{Dot, Trace, load, shipped};

use crate::{error::raise, tolerance, wait::interruptibly};

/// Products below which a thread is not worthwhile: some milliseconds.
const SMALL: usize = 1 << 22;

/// Products between two checks whether to stop: about a second of the slowest path.
const BETWEEN_LOOKS: usize = 1 << 31;

/// The fewest rows that are multiplied at a time, so that B is not packed again too often.
const FEWEST_ROWS: usize = 256;

/// An executable model.
#[pyclass(frozen, module = "mxprobe._mxprobe")]
pub(crate) struct Model {
    pub(crate) model: mxprobe_models::Model,
    pub(crate) device: Arc<dyn Device>,
    /// The name it was loaded by: `h100`, `./mine.toml`.
    pub(crate) name: String,
}

/// The names of the models that come with the package.
#[pyfunction]
pub(crate) fn models() -> Vec<String> {
    shipped().iter().map(|model| model.name.clone()).collect()
}

impl Model {
    pub(crate) fn new(model: mxprobe_models::Model, name: &str) -> Self {
        Self { device: Asked::of_model(&model).device, model, name: name.to_owned() }
    }

    pub(crate) fn operation(&self, py: Python<'_>, id: &str) -> PyResult<&Operation> {
        self.model.operation_named(id).map_err(|error| raise(py, error))
    }
}

/// Describes an operation as a dictionary.
pub(crate) fn described<'py>(py: Python<'py>, operation: &Operation) -> PyResult<Bound<'py, PyDict>> {
    let id = &operation.id;
    let found = PyDict::new(py);
    found.set_item("id", id.to_string())?;
    found.set_item("shape", (id.shape.m, id.shape.n, id.shape.k))?;
    let formats = [("a", id.a), ("b", id.b), ("c", id.c), ("d", id.d)];
    formats.iter().try_for_each(|(name, format)| found.set_item(name, format.name()))?;
    let scale = id.block_scale();
    found.set_item("block", scale.map(|scale| scale.block))?;
    found.set_item("scale", scale.map(|scale| scale.format.name()))?;
    found.set_item("instruction", operation.instruction.clone())?;
    found.set_item("aliases", operation.aliases.clone())?;
    Ok(found)
}

#[pymethods]
impl Model {
    #[new]
    fn load(py: Python<'_>, name: &str) -> PyResult<Self> {
        Ok(Self::new(load(name).map_err(|error| raise(py, error))?, name))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn title(&self) -> &str {
        &self.model.title
    }

    #[getter]
    fn variants(&self) -> Vec<(String, String)> {
        let variants = self.model.variants.iter();
        variants.map(|(name, variant)| (name.clone(), variant.about.clone())).collect()
    }

    fn operations(&self) -> Vec<String> {
        self.model.operations.keys().map(ToString::to_string).collect()
    }

    fn operation_named<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        described(py, self.operation(py, name)?)
    }

    fn explain(&self) -> String {
        self.model.explain()
    }

    fn to_toml(&self) -> String {
        self.model.to_toml()
    }

    /// D = A·B + C of any sizes.
    #[pyo3(signature = (id, sizes, a, b, c, scale_a=None, scale_b=None))]
    #[allow(clippy::too_many_arguments, reason = "one for each operand")]
    fn multiply<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        sizes: (usize, usize, usize),
        a: &[u8],
        b: &[u8],
        c: Option<&[u8]>,
        scale_a: Option<&[u8]>,
        scale_b: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let operation = self.operation(py, id)?.clone();
        let device = self.device.clone();
        let operands = Operands::new(&operation.id, sizes, [a, b], c, scale_a.zip(scale_b));
        let operands = operands.map_err(|error| raise(py, error))?;
        let (m, n, k) = sizes;
        let found = if m.saturating_mul(n).saturating_mul(k) < SMALL {
            py.detach(|| operands.multiply(device.as_ref(), &operation, &AtomicBool::new(false)))
        } else {
            let stopped = Arc::new(AtomicBool::new(false));
            let seen = stopped.clone();
            let work = move || operands.multiply(device.as_ref(), &operation, &seen);
            interruptibly(py, work, || stopped.store(true, Ordering::Relaxed))?
        };
        Ok(PyByteArray::new(py, found.map_err(|error| raise(py, error))?.bytes()))
    }

    /// d of one dot, and with `trace` the model's computation of it.
    #[pyo3(signature = (id, a, b, c, scales, trace))]
    #[allow(clippy::too_many_arguments, reason = "one for each operand")]
    fn dot<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        a: &[u8],
        b: &[u8],
        c: &[u8],
        scales: Option<(&[u8], &[u8])>,
        trace: bool,
    ) -> PyResult<(Bound<'py, PyByteArray>, Option<String>)> {
        let operation = self.operation(py, id)?;
        let id = &operation.id;
        let k = id.shape.sizes().2;
        let operands = Operands::new(id, (1, 1, k), [a, b], Some(c), scales).map_err(|error| raise(py, error))?;
        if !trace {
            let found = operands.multiply(self.device.as_ref(), operation, &AtomicBool::new(false));
            return Ok((PyByteArray::new(py, found.map_err(|error| raise(py, error))?.bytes()), None));
        }
        let (found, text) = operands.as_dot(|dot| {
            let trace = Trace::of(&self.model, id, dot).expect("the model has the operation");
            (Elements::from_bits(id.d, [trace.result]), trace.text(&self.model, id, dot))
        });
        Ok((PyByteArray::new(py, found.bytes()), Some(text)))
    }

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
        let found = Operands::new(id, sizes, [a, b], c, scale_a.zip(scale_b))
            .and_then(|operands| py.detach(|| tolerance::intervals(&self.model, id, &operands.whole(), order)));
        let (low, high): (Vec<f64>, Vec<f64>) = found.map_err(|error| raise(py, error))?.into_iter().unzip();
        let bytes = |ends: &[f64]| ends.iter().flat_map(|end| end.to_le_bytes()).collect::<Vec<u8>>();
        Ok((PyByteArray::new(py, &bytes(&low)), PyByteArray::new(py, &bytes(&high))))
    }

    /// The number of elements of D, the number without an interval, and the elements outside of theirs.
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
    ) -> PyResult<tolerance::Checked> {
        let id = &self.operation(py, id)?.id;
        let found = Operands::new(id, sizes, [a, b], c, scale_a.zip(scale_b))
            .and_then(|operands| py.detach(|| tolerance::check(&self.model, id, &operands.whole(), d, order)));
        found.map_err(|error| raise(py, error))
    }
}

/// The operands of a product.
pub(crate) struct Operands {
    sizes: (usize, usize, usize),
    a: Elements,
    b: Elements,
    c: Elements,
    scales: Option<(Elements, Elements)>,
}

impl Operands {
    /// Reads the operands of an operation and checks their lengths.
    pub(crate) fn new(
        id: &OperationId,
        sizes: (usize, usize, usize),
        factors: [&[u8]; 2],
        c: Option<&[u8]>,
        scales: Option<(&[u8], &[u8])>,
    ) -> Result<Self, Error> {
        let operands = Self::read(id, id.c, sizes, factors, c, scales)?;
        operands.whole().validate(id)?;
        Ok(operands)
    }

    /// Reads the operands of an operation, with C in its own format (+0 if absent); lengths are not checked.
    pub(crate) fn read(
        id: &OperationId,
        c_format: Format,
        sizes: (usize, usize, usize),
        [a, b]: [&[u8]; 2],
        c: Option<&[u8]>,
        scales: Option<(&[u8], &[u8])>,
    ) -> Result<Self, Error> {
        let of = |format, bytes: &[u8]| Elements::from_bytes(format, bytes.to_vec());
        let (a, b) = (of(id.a, a)?, of(id.b, b)?);
        let c = c.map_or_else(|| Ok(Elements::zeros(c_format, sizes.0 * sizes.1)), |c| of(c_format, c))?;
        let scales = match (id.block_scale(), scales) {
            (Some(scale), Some((a, b))) => Some((of(scale.format, a)?, of(scale.format, b)?)),
            _ => None,
        };
        Ok(Self { sizes, a, b, c, scales })
    }

    /// Passes the operands to `make` as one dot: a row of A, a column of B and one element of C.
    pub(crate) fn as_dot<T>(&self, make: impl FnOnce(Dot<'_>) -> T) -> T {
        let bits = |elements: &Elements| elements.iter().collect::<Vec<u64>>();
        let (a, b) = (bits(&self.a), bits(&self.b));
        let scales = self.scales.as_ref().map(|(a, b)| (bits(a), bits(b)));
        let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
        make(Dot { a: &a, b: &b, c: self.c.get(0), scales })
    }

    /// All operands.
    pub(crate) fn whole(&self) -> GemmOperands<'_> {
        self.rows(self.sizes.0, &self.a, &self.c, self.scales.as_ref().map(|(a, _)| a))
    }

    /// `count` rows of A and C, with all of B.
    fn rows<'a>(
        &'a self,
        count: usize,
        a: &'a Elements,
        c: &'a Elements,
        scale_a: Option<&'a Elements>,
    ) -> GemmOperands<'a> {
        let (_, n, k) = self.sizes;
        let scale_b = self.scales.as_ref().map(|(_, b)| b);
        GemmOperands { m: count, n, k, a, b: &self.b, c, scale_a, scale_b }
    }

    /// Computes the product, some rows at a time if it is large; returns an error if it was stopped in between.
    fn multiply(&self, device: &dyn Device, operation: &Operation, stopped: &AtomicBool) -> Result<Elements, Error> {
        let multiply = |operands: &GemmOperands<'_>| {
            let found = multiply(device, operation, operands)?;
            found.ok_or_else(|| Error::unsupported(format!("{} does not multiply matrices", device.info().selector)))
        };
        let (m, n, k) = self.sizes;
        let at_once = (BETWEEN_LOOKS / n.saturating_mul(k).max(1)).max(FEWEST_ROWS);
        let scale_a = self.scales.as_ref().map(|(a, _)| a);
        if m <= at_once {
            return multiply(&self.rows(m, &self.a, &self.c, scale_a));
        }
        let mut d = Vec::with_capacity(m * n * operation.id.d.storage_bytes());
        for first in (0..m).step_by(at_once) {
            if stopped.load(Ordering::Relaxed) {
                return Err(Error::device_lost("the product was stopped"));
            }
            let count = at_once.min(m - first);
            let part = |of: &Elements| {
                let row = of.bytes().len() / m;
                Elements::from_bytes(of.format(), of.bytes()[first * row..][..count * row].to_vec())
            };
            let (a, c, scale_a) = (part(&self.a)?, part(&self.c)?, scale_a.map(part).transpose()?);
            let rows = multiply(&self.rows(count, &a, &c, scale_a.as_ref()))?;
            d.extend_from_slice(rows.bytes());
        }
        Elements::from_bytes(operation.id.d, d)
    }
}
