//! The backend `cublaslt`: its devices, and why there are none.

use std::sync::Arc;

use mxprobe_api::{Backend, Device, Discovery, Error, Refusal};

use super::device::LibraryDevice;
use super::library::Functions;
use crate::driver;

/// The environment variable for the size of the workspace in bytes.
const WORKSPACE: &str = "MXPROBE_CUBLASLT_WORKSPACE";

/// The workspace in bytes if the variable is not set: 32 MiB.
const USUAL_WORKSPACE_BYTES: usize = 32 << 20;

/// The backend `cublaslt`: NVIDIA's library for matrix products on each CUDA device.
///
/// ```
/// use mxprobe_api::Backend;
///
/// let found = mxprobe_cuda::CublasLtBackend::new().discover();
/// // Without a driver or the library, discovery returns a reason instead of a device.
/// assert!(!found.devices.is_empty() || !found.refusals.is_empty());
/// ```
#[derive(Debug, Default)]
pub struct CublasLtBackend;

impl CublasLtBackend {
    /// Creates the backend.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Backend for CublasLtBackend {
    fn name(&self) -> &'static str {
        "cublaslt"
    }

    fn discover(&self) -> Discovery {
        let refused = |refusal| Discovery { devices: Vec::new(), refusals: vec![refusal] };
        let driver = match driver::open() {
            Ok(driver) => driver,
            Err(refusal) => return refused(refusal),
        };
        let workspace_bytes = match workspace_bytes(std::env::var(WORKSPACE).ok().as_deref()) {
            Ok(bytes) => bytes,
            Err(reason) => {
                let help = Some(format!("unset {WORKSPACE} for {USUAL_WORKSPACE_BYTES} bytes"));
                return refused(Refusal { what: "the workspace of cuBLASLt".into(), reason, help });
            }
        };
        let functions = match Functions::find() {
            Ok(functions) => Arc::new(functions),
            Err(reason) => {
                let help = "install NVIDIA's CUDA toolkit, or in Python `pip install nvidia-cublas-cu12`";
                return refused(Refusal { what: "cuBLASLt".into(), reason, help: Some(help.into()) });
            }
        };
        let mut found = Discovery::default();
        for ordinal in 0..driver.devices {
            match LibraryDevice::examine(driver, ordinal, &functions, workspace_bytes) {
                Ok(device) => found.devices.push(Box::new(device) as Box<dyn Device>),
                Err(reason) => {
                    let help = Some("`mxprobe list --backend cuda` shows the devices themselves".into());
                    found.refusals.push(Refusal { what: format!("cublaslt:{ordinal}"), reason, help });
                }
            }
        }
        found
    }
}

/// Parses the size of the workspace.
fn workspace_bytes(text: Option<&str>) -> Result<usize, Error> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(USUAL_WORKSPACE_BYTES) };
    text.parse().map_err(|_| Error::invalid(format!("{WORKSPACE}=`{text}` is not a number of bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_32_mib_or_the_number_of_bytes_in_the_environment() {
        assert_eq!(workspace_bytes(None), Ok(33_554_432));
        assert_eq!(workspace_bytes(Some("")), Ok(33_554_432));
        assert_eq!(workspace_bytes(Some("0")), Ok(0));
        let error = workspace_bytes(Some("32M")).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("`32M` is not a number of bytes"), "{error}");
    }
}
