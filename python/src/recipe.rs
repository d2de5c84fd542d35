//! Recipes: products as a library computes them on a unit, and traces of single elements.

use std::collections::BTreeMap;

use pyo3::{
    prelude::*,
    types::{PyByteArray, PyDict},
};

use mxprobe_api::{Elements, Error, OperationId};
use mxprobe_models::{
    recipe::{Case, InputShape, Program, load},
    threads,
};

use crate::{
    error::raise,
    model::{Operands, described},
    wait::interruptibly,
};

/// A recipe, with the chosen case and parameters.
#[pyclass(frozen, module = "mxprobe._mxprobe")]
pub(crate) struct Recipe {
    recipe: mxprobe_models::recipe::Recipe,
    model: mxprobe_models::Model,
    /// The name it was loaded by.
    name: String,
    case: Option<String>,
    parameters: BTreeMap<String, usize>,
}

/// The names of the recipes that come with the package.
#[pyfunction]
pub(crate) fn recipes() -> Vec<String> {
    mxprobe_models::recipe::shipped().iter().map(|recipe| recipe.name.clone()).collect()
}

/// The bytes of inputs, by name.
type Given = Vec<(String, Vec<u8>)>;

/// An input's name, format, and shape for m rows and n columns, and whether it is required.
type Wanted = (String, &'static str, Vec<usize>, bool);

impl Recipe {
    /// The case for a shape; if `sizes` is `None`, for an element of k products.
    fn case_for(&self, id: &OperationId, sizes: Option<(usize, usize)>, k: usize) -> Result<&Case, Error> {
        let name = self.case.as_deref();
        match sizes {
            Some((m, n)) => self.recipe.case_for(name, Some(id), (m, n, k)),
            None => self.recipe.case_of_element(name, Some(id), k),
        }
    }

    fn program(&self, id: &str, sizes: Option<(usize, usize)>, k: usize) -> Result<Program, Error> {
        let id = id.parse()?;
        Program::new(&self.recipe, &self.model, self.case_for(&id, sizes, k)?, &id, &self.parameters)
    }

    fn inputs(program: &Program, given: Given) -> Result<BTreeMap<String, Elements>, Error> {
        let known = &program.case().inputs;
        let one = |(name, bytes): (String, Vec<u8>)| {
            let Some(input) = known.get(&name) else {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                let case = &program.case().name;
                return Err(Error::invalid(format!("case {case} has no input `{name}`; it has {}", names.join(", "))));
            };
            Ok((name, Elements::from_bytes(input.format, bytes)?))
        };
        given.into_iter().map(one).collect()
    }
}

#[pymethods]
impl Recipe {
    #[new]
    fn load(py: Python<'_>, name: &str, case: Option<String>, parameters: BTreeMap<String, usize>) -> PyResult<Self> {
        let (recipe, model) = load(name).map_err(|error| raise(py, error))?;
        if case.is_some() && recipe.operations(case.as_deref()).is_empty() {
            // The error for a missing case lists those that exist.
            recipe.case_for(case.as_deref(), None, (1, 1, 1)).map_err(|error| raise(py, error))?;
        }
        Ok(Self { recipe, model, name: name.to_owned(), case, parameters })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn title(&self) -> &str {
        &self.recipe.title
    }

    #[getter]
    fn model(&self) -> &str {
        &self.recipe.model
    }

    #[getter]
    fn case(&self) -> Option<&str> {
        self.case.as_deref()
    }

    fn cases(&self) -> Vec<String> {
        let mut names: Vec<String> = self.recipe.cases.iter().map(|case| case.name.clone()).collect();
        names.dedup();
        names
    }

    /// The operations of the chosen case, or of all cases.
    fn operations<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let known = self.recipe.operations(self.case.as_deref());
        known.iter().map(|id| described(py, &self.model.operations[*id])).collect()
    }

    fn operation_named<'py>(&self, py: Python<'py>, op: &str) -> PyResult<Bound<'py, PyDict>> {
        let found = self.recipe.operation_named(&self.model, self.case.as_deref(), op);
        let id = found.map_err(|error| raise(py, error))?.ok_or_else(|| {
            let known: Vec<String> =
                self.recipe.operations(self.case.as_deref()).iter().map(ToString::to_string).collect();
            raise(py, Error::invalid(format!("`{op}`: the recipe {} is for {}", self.name, known.join(", "))))
        })?;
        described(py, &self.model.operations[id])
    }

    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.recipe.explain(&self.model).map_err(|error| raise(py, error))?.join("\n"))
    }

    /// The formats of C and D, whether C is read, and the inputs of the case for a shape, or for one element if `sizes`
    /// is None.
    #[pyo3(signature = (id, sizes, k))]
    fn wanted(
        &self,
        py: Python<'_>,
        id: &str,
        sizes: Option<(usize, usize)>,
        k: usize,
    ) -> PyResult<(&'static str, &'static str, bool, Vec<Wanted>)> {
        let program = self.program(id, sizes, k).map_err(|error| raise(py, error))?;
        let (m, n) = sizes.unwrap_or((1, 1));
        let inputs = program.case().inputs.iter().map(|(name, input)| {
            let shape = match (sizes, input.shape) {
                (None, _) | (_, InputShape::Scalar) => vec![],
                (_, InputShape::Row) => vec![m],
                (_, InputShape::Column) => vec![n],
                (_, InputShape::Matrix) => vec![m, n],
            };
            (name.clone(), input.format.name(), shape, input.default.is_none())
        });
        Ok((program.c_format().name(), program.format().name(), program.reads_c(), inputs.collect()))
    }

    /// D as the recipe computes it.
    #[pyo3(signature = (id, sizes, a, b, c, scale_a, scale_b, inputs))]
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
        inputs: Given,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let (m, n, k) = sizes;
        let program = self.program(id, Some((m, n)), k).map_err(|error| raise(py, error))?;
        let operands = operands(&program, sizes, [a, b], c, scale_a.zip(scale_b)).map_err(|error| raise(py, error))?;
        let given = Self::inputs(&program, inputs).map_err(|error| raise(py, error))?;
        // A product that has started is not interrupted.
        let found = interruptibly(py, move || program.multiply(&operands.whole(), &given, threads()), || ())?;
        Ok(PyByteArray::new(py, found.map_err(|error| raise(py, error))?.bytes()))
    }

    /// d of one element with any number of products, and the recipe's computation of it.
    #[pyo3(signature = (id, k, a, b, c, scales, inputs))]
    #[allow(clippy::too_many_arguments, reason = "one for each operand")]
    fn element<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        k: usize,
        a: &[u8],
        b: &[u8],
        c: Option<&[u8]>,
        scales: Option<(&[u8], &[u8])>,
        inputs: Given,
    ) -> PyResult<(Bound<'py, PyByteArray>, String)> {
        let traced = self.program(id, None, k).and_then(|program| {
            let operands = operands(&program, (1, 1, k), [a, b], c, scales)?;
            let given = Self::inputs(&program, inputs)?;
            operands.as_dot(|dot| program.trace(&self.recipe, &self.model, dot, &given))
        });
        let traced = traced.map_err(|error| raise(py, error))?;
        let found = Elements::from_bits(traced.format, [traced.bits]);
        Ok((PyByteArray::new(py, found.bytes()), traced.lines.join("\n")))
    }
}

/// Reads the operands of a product by a case; an error if C is given but the case does not add it.
fn operands(
    program: &Program,
    sizes: (usize, usize, usize),
    factors: [&[u8]; 2],
    c: Option<&[u8]>,
    scales: Option<(&[u8], &[u8])>,
) -> Result<Operands, Error> {
    if c.is_some() && !program.reads_c() {
        return Err(Error::invalid(format!("case {} does not add C", program.case().name)));
    }
    Operands::read(program.id(), program.c_format(), sizes, factors, c, scales)
}
