//! Sessions with a device: `run`, `identify`, `verify`.

use std::{ffi::OsString, sync::Arc, time::Duration};

use pyo3::prelude::*;

use mxprobe::{
    Backends,
    identify::{Comparison, Effort, NanBits},
    report::IdentificationOutcome,
    session::{self, Asked, Expected, Session, Stop},
};
use mxprobe_api::{Error, OperationId};

use crate::{
    callable::{Callable, Calls},
    error::raise,
    model::{Model, described},
    shown::{Shown, What},
    wait::Signals,
};

/// A device that can be asked: a callable, a model, or a device of this machine.
#[pyclass(frozen, module = "mxprobe._mxprobe")]
pub(crate) struct Device {
    asked: Asked,
}

fn limit(py: Python<'_>, timeout: f64) -> PyResult<Duration> {
    let limit = Duration::try_from_secs_f64(timeout).ok().filter(|limit| !limit.is_zero());
    limit.ok_or_else(|| raise(py, Error::invalid(format!("a timeout of {timeout} s is not a positive time"))))
}

#[pymethods]
impl Device {
    /// Creates a device from a callable, and the calls to it that a thread must make.
    #[staticmethod]
    fn of_callable(py: Python<'_>, name: &str, id: &str, timeout: f64) -> PyResult<(Self, Calls)> {
        let id: OperationId = id.parse().map_err(|error| raise(py, error))?;
        let (device, calls) = Callable::new(name, id, limit(py, timeout)?);
        let device = Arc::new(device);
        let callable = Arc::clone(&device);
        let asked = Asked { gave_up: Arc::new(move || callable.gave_up()), ..Asked::new(device) };
        Ok((Self { asked }, calls))
    }

    /// A model as a device.
    #[staticmethod]
    fn of_model(model: &Model) -> Self {
        Self { asked: Asked::of_model(&model.model) }
    }

    /// Opens the device with a selector, such as `cpu:0`; hardware is accessed through its own process.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        selector: &str,
        operations: Vec<String>,
        timeout: f64,
        again: Vec<OsString>,
    ) -> PyResult<Self> {
        let limit = limit(py, timeout)?;
        let _ = Backends::included().started_by(again);
        let asked = py.detach(|| mxprobe::open(selector, &operations, limit)).map_err(|error| raise(py, error))?;
        Ok(Self { asked })
    }

    #[getter]
    fn selector(&self) -> String {
        self.asked.device.info().selector.clone()
    }

    #[getter]
    fn name(&self) -> String {
        self.asked.device.info().name.clone()
    }

    fn operations(&self) -> Vec<String> {
        self.asked.device.operations().keys().map(ToString::to_string).collect()
    }

    fn operation<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        let id: OperationId = id.parse().map_err(|error| raise(py, error))?;
        let found = mxprobe_api::operation_of(self.asked.device.as_ref(), &id).map_err(|error| raise(py, error))?;
        described(py, found)
    }
}

/// Runs `work` on a session with this device, without the interpreter's lock.
fn with_session<T: Send>(
    py: Python<'_>,
    device: &Device,
    (operations, arguments): (Vec<String>, Vec<String>),
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(Session<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let asked = device.asked.clone();
    let (found, raised) = py.detach(|| {
        let signals = Signals::default();
        let stop = || signals.is_stopped().then_some(Stop::Interrupted);
        let mut tell = |done: usize, of: usize, words: &str| {
            let Some(progress) = &progress else { return };
            if let Err(raised) = Python::attach(|py| progress.call1(py, (done, of, words)).map(drop)) {
                signals.keep(raised);
            }
        };
        let found = work(Session { asked, operations, arguments, stop: &stop, progress: &mut tell });
        (found, signals.raised())
    });
    raised?;
    found.map_err(|error| raise(py, error))
}

/// The command line that would do the same, for the report.
fn arguments(command: &str, operations: &[String], more: &[(&str, String)]) -> Vec<String> {
    let named = operations.iter().map(|name| ("--op", name.clone())).chain(more.iter().cloned());
    [command.to_owned()].into_iter().chain(named.flat_map(|(name, value)| [name.to_owned(), value])).collect()
}

/// Probes a device.
#[pyfunction]
#[pyo3(signature = (device, operations, probes, expected, progress))]
pub(crate) fn run(
    py: Python<'_>,
    device: &Device,
    operations: Vec<String>,
    probes: Vec<String>,
    expected: Option<&Model>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Shown> {
    for wanted in &probes {
        session::patterns::check_probe(wanted).map_err(|error| raise(py, error))?;
    }
    let mut more: Vec<(&str, String)> = probes.iter().map(|name| ("--probe", name.clone())).collect();
    let expected: Option<Expected> = expected.map(|model| (model.name.clone(), model.model.clone()));
    more.extend(expected.iter().map(|(name, _)| ("--expect", name.clone())));
    let arguments = arguments("run", &operations, &more);
    let work = |session: Session<'_>| session::run(session, &probes, expected);
    let report = with_session(py, device, (operations, arguments), progress, work)?;
    Ok(Shown(What::Report(Box::new(report))))
}

fn nan_bits(py: Python<'_>, nan: &str) -> PyResult<NanBits> {
    nan.parse().map_err(|error: String| raise(py, Error::invalid(error)))
}

/// Identifies operations: the results, whether all were identified, and a model of the identified ones.
#[pyfunction]
#[pyo3(signature = (device, operations, name, seed, nan, progress))]
pub(crate) fn identify(
    py: Python<'_>,
    device: &Device,
    operations: Vec<String>,
    name: &str,
    seed: u64,
    nan: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Shown, bool, Option<Model>)> {
    let effort = Effort { seed, nan: nan_bits(py, nan)?, ..Effort::default() };
    let arguments = arguments("identify", &operations, &[("--seed", seed.to_string()), ("--nan", nan.to_owned())]);
    let work = |session: Session<'_>| session::identify(session, effort, name);
    let (report, model) = with_session(py, device, (operations, arguments), progress, work)?;
    let is_identified =
        |operation: &mxprobe::report::IdentifiedOperation| operation.outcome == IdentificationOutcome::Identified;
    let all = report.operations.iter().all(is_identified);
    let model = model.map(|model| Model::new(model, name));
    Ok((Shown(What::Identification(Box::new(report))), all, model))
}

/// Compares a device with a model.
#[pyfunction]
#[pyo3(signature = (device, model, operations, count, seed, nan, progress))]
#[allow(clippy::too_many_arguments, reason = "one for each keyword")]
pub(crate) fn verify(
    py: Python<'_>,
    device: &Device,
    model: &Model,
    operations: Vec<String>,
    count: u64,
    seed: u64,
    nan: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Shown> {
    let comparison = Comparison { count, seed, nan: nan_bits(py, nan)?, shard: None };
    let more = [("--model", model.name.clone()), ("--count", count.to_string()), ("--seed", seed.to_string())];
    let arguments = arguments("verify", &operations, &more);
    let (of, name) = (model.model.clone(), model.name.clone());
    let work = |session: Session<'_>| session::verify(session, &of, &name, comparison);
    let report = with_session(py, device, (operations, arguments), progress, work)?;
    Ok(Shown(What::Verification(Box::new(report))))
}
