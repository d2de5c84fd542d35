//! Reaches NVIDIA's tensor cores using only the driver, which compiles the PTX that `mxprobe-shaders` writes.
//!
//! Building this needs no part of CUDA; the driver library is opened at run time. Operations are those of the PTX ISA:
//! `mma.mMnNkK.D.A.B.C`, then `satfinite`, a rounding mode (`rz`, `rm`, `rp`), or the block size and the format of
//! scales; `wgmma.…` on compute capability 9.0; `tcgen05.…` on 10.x and 11.0. A device offers the operations that its
//! capability has and that its driver's version of PTX can express.
//!
//! The scalar units have `add`, `mul`, `div`, `sqrt`, `fma` and `cvt` in each rounding direction and with `.ftz`, the
//! approximations, and `mul` and `add` in a form that the driver's compiler may contract.
//!
//! Operands are laid out on the host, so that registers are loaded directly. Three checks protect the results. Before
//! an operation's first batch, its layout is tested with sums of small integers. Output memory is filled before every
//! launch, so that memory the device never wrote is not mistaken for a result. And the driver's machine code is
//! searched for the expected instructions, so that an emulation is not mistaken for the unit.

mod calls;
mod cublas;
mod cublaslt;
mod device;
mod driver;
mod dump;
mod found;
mod library;
mod link;
mod opcodes;
mod product;
mod screening;
mod session;
mod tiles;
mod timed;
mod written;

use mxprobe_api::{Backend, Device, Discovery, Refusal};

pub use cublaslt::CublasLtBackend;
pub use device::CudaDevice;
pub use opcodes::{issued, scalar_counts};

/// The backend `cuda`.
///
/// ```
/// use mxprobe_api::Backend;
///
/// let found = mxprobe_cuda::CudaBackend::new().discover();
/// // Without a driver, discovery returns a reason instead of a device.
/// assert!(!found.devices.is_empty() || !found.refusals.is_empty());
/// ```
#[derive(Debug, Default)]
pub struct CudaBackend;

impl CudaBackend {
    /// Creates the backend.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Like [`discover`](Backend::discover), but returns the concrete device type.
    #[must_use]
    pub fn devices(&self) -> (Vec<CudaDevice>, Vec<Refusal>) {
        let driver = match driver::open() {
            Ok(driver) => driver,
            Err(refusal) => return (Vec::new(), vec![refusal]),
        };
        let (mut devices, mut refusals) = (Vec::new(), Vec::new());
        for ordinal in 0..driver.devices {
            match CudaDevice::examine(driver, ordinal) {
                Ok(device) => devices.push(device),
                Err(refusal) => refusals.push(refusal),
            }
        }
        (devices, refusals)
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn discover(&self) -> Discovery {
        let (devices, refusals) = self.devices();
        let devices = devices.into_iter().map(|device| Box::new(device) as Box<dyn Device>).collect();
        Discovery { devices, refusals }
    }
}
