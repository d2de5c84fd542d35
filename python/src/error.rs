//! Converts errors to exceptions and back.

use pyo3::prelude::*;

use mxprobe_api::Error;

/// The module that defines the package's exceptions.
const ERRORS: &str = "mxprobe._errors";

/// The exception for an error, with the same message: an `InvalidError` if the caller can fix it, otherwise a
/// `DeviceError`.
pub(crate) fn raise(py: Python<'_>, error: Error) -> PyErr {
    let name = if error.is_invalid() || error.is_unsupported() { "InvalidError" } else { "DeviceError" };
    let made = py.import(ERRORS).and_then(|module| module.getattr(name)?.call1((error.to_string(),)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The error of a device whose Python code raised: the exception's message, preceded by its type if it is not one of
/// ours.
pub(crate) fn of_exception(py: Python<'_>, raised: &PyErr) -> Error {
    let value = raised.value(py);
    let words = value.str().map_or_else(|_| String::new(), |words| words.to_string());
    let is_ours = py
        .import(ERRORS)
        .and_then(|module| module.getattr("Error"))
        .and_then(|base| value.is_instance(&base))
        .unwrap_or(false);
    if is_ours {
        return Error::driver(words);
    }
    let name = raised.get_type(py).name().map_or_else(|_| "exception".to_owned(), |name| name.to_string());
    Error::driver(if words.is_empty() { name } else { format!("{name}: {words}") })
}
