//! Reaches NVIDIA's tensor cores with nothing but the driver, which compiles the PTX that `mxprobe-shaders` writes.
//!
//! Nothing of CUDA is needed to build this, and the driver's library is opened at run time. Operations are those of the
//! PTX ISA: `mma.mMnNkK.D.A.B.C`, then `satfinite`, a rounding mode (`rz`, `rm`, `rp`), or the block and the format of
//! scales; `wgmma.…` on compute capability 9.0; `tcgen05.…` on 10.x and 11.0. A device offers what its capability has and
//! its driver's version of PTX can say.
//!
//! Beside them stand the scalar units: `add`, `mul`, `div`, `sqrt`, `fma` and `cvt` in each direction and with `.ftz`, the
//! approximations, and what the driver's compiler makes of `mul` and `add` where it may contract them.
//!
//! Operands are laid out on the host, so that every register is loaded as it lies. Before an operation's first batch its
//! layout is checked with sums of small integers, output memory is filled before every launch, so that memory which
//! the device never wrote is not taken for a result, and the machine code that the driver made is read for the instructions
//! in it, so that an emulation is not taken for the unit.

mod calls;
mod cublas;
mod device;
mod driver;
mod dump;
mod library;
mod link;
mod opcodes;
mod product;
mod session;
mod tiles;
mod timed;
mod written;

use mxprobe_api::{Backend, Device, Discovery, Refusal};

pub use device::CudaDevice;
pub use opcodes::{issued, scalar_counts};

/// The backend `cuda`.
///
/// ```
/// use mxprobe_api::Backend;
///
/// let found = mxprobe_cuda::CudaBackend::new().discover();
/// // Without a driver there is no device, and a reason.
/// assert!(!found.devices.is_empty() || !found.refusals.is_empty());
/// ```
#[derive(Debug, Default)]
pub struct CudaBackend;

impl CudaBackend {
    /// The backend.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// As [`discover`](Backend::discover), with the devices' own type.
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
