//! The compiled half of the Python package `mxprobe`, the module `mxprobe._mxprobe`.
//!
//! Only the Python half in `python/mxprobe` calls it, which gives the package its public types:
//!
//! ```python
//! import mxprobe, numpy as np
//!
//! h100 = mxprobe.model("h100")
//! h100.matmul(np.ones((2, 3), np.float16), np.ones((3, 1), np.float16))
//! ```
//!
//! Operands and results cross the boundary as bytes: elements in the fewest whole bytes, little-endian and row-major;
//! the Python half makes arrays of them. The interpreter's lock is released while a model or a session computes;
//! signals are checked about twenty times a second, so that Ctrl-C ends any wait.

mod callable;
mod command;
mod dlpack;
mod error;
mod model;
mod recipe;
mod session;
mod shown;
mod tolerance;
mod wait;

use pyo3::prelude::*;

use mxprobe_api::{Decoded, Format};

use error::raise;

/// The value of bits: `"nan"`, `"inf"` or `"-inf"`, or an integer and the power of two that it is multiplied by.
#[pyfunction]
fn decode(py: Python<'_>, format: &str, bits: u64) -> PyResult<(String, i64, i32)> {
    let format = Format::named(format).map_err(|error| raise(py, error))?;
    if bits & !format.mask() != 0 {
        let words = format!("{bits:#x} is wider than {format}, which has {} bits", format.bits());
        return Err(raise(py, mxprobe_api::Error::invalid(words)));
    }
    let signed = |negative: bool, magnitude: u64| {
        let magnitude = magnitude.cast_signed();
        if negative { -magnitude } else { magnitude }
    };
    Ok(match format.decode(bits) {
        Decoded::Nan { .. } => ("nan".to_owned(), 0, 0),
        Decoded::Infinity { negative } => ((if negative { "-inf" } else { "inf" }).to_owned(), 0, 0),
        Decoded::Zero { .. } => (String::new(), 0, 0),
        Decoded::Finite { negative, significand, exponent } => {
            let fraction = i32::try_from(format.fraction_bits()).expect("a format has few bits");
            (String::new(), signed(negative, significand), exponent - fraction)
        }
    })
}

/// All formats: name, number of bits, and bytes of storage per element.
#[pyfunction]
fn formats() -> Vec<(&'static str, u32, usize)> {
    Format::ALL.iter().map(|format| (format.name(), format.bits(), format.storage_bytes())).collect()
}

/// The compiled half.
#[pymodule]
fn _mxprobe(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<model::Model>()?;
    module.add_class::<session::Device>()?;
    module.add_class::<callable::Calls>()?;
    module.add_function(wrap_pyfunction!(callable::ending, module)?)?;
    module.add_class::<shown::Shown>()?;
    module.add_function(wrap_pyfunction!(decode, module)?)?;
    module.add_function(wrap_pyfunction!(formats, module)?)?;
    module.add_function(wrap_pyfunction!(model::models, module)?)?;
    module.add_class::<recipe::Recipe>()?;
    module.add_function(wrap_pyfunction!(recipe::recipes, module)?)?;
    module.add_function(wrap_pyfunction!(dlpack::dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(session::run, module)?)?;
    module.add_function(wrap_pyfunction!(session::identify, module)?)?;
    module.add_function(wrap_pyfunction!(session::verify, module)?)?;
    module.add_function(wrap_pyfunction!(shown::compare, module)?)?;
    module.add_function(wrap_pyfunction!(shown::distinguish, module)?)?;
    module.add_function(wrap_pyfunction!(shown::read, module)?)?;
    module.add_function(wrap_pyfunction!(command::main, module)?)?;
    Ok(())
}
