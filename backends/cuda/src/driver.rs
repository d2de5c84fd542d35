//! The driver library: loading it, and translating its errors.

use std::ffi::CStr;

use cudarc::driver::{DriverError, result, sys};
use mxprobe_api::{Error, Refusal};

use crate::{dump, library};
use mxprobe_shaders::ptx::PtxVersion;

/// Every driver symbol that this crate or `cudarc` uses; `cudarc` panics at the first call of a missing one.
const SYMBOLS: &[&str] = &[
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetDefaultMemPool",
    "cuDeviceGetName",
    "cuDeviceGetUuid",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncGetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuInit",
    "cuLaunchKernel",
    "cuLinkAddData_v2",
    "cuLinkComplete",
    "cuLinkCreate_v2",
    "cuLinkDestroy",
    "cuMemAllocAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFree_v2",
    "cuMemPoolSetAttribute",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// A working driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Driver {
    /// The CUDA release it belongs to: 13000 is 13.0.
    pub(crate) cuda: i32,
    /// The number of devices that it reports.
    pub(crate) devices: i32,
    /// Whether it is the fake driver for tests, which has no device.
    pub(crate) is_fake: bool,
}

impl Driver {
    /// The CUDA release as text: `13.0`.
    pub(crate) fn release(self) -> String {
        format!("{}.{}", self.cuda / 1000, self.cuda % 1000 / 10)
    }

    /// The latest version of PTX that it accepts.
    pub(crate) fn ptx(self) -> PtxVersion {
        PtxVersion::accepted_by(self.cuda)
    }
}

/// Opens and initialises the driver library. Never panics.
///
/// # Errors
/// The reason why the driver cannot be used, with advice for the user.
pub(crate) fn open() -> Result<Driver, Refusal> {
    let refused = |reason: Error, help: &str| Refusal { what: "NVIDIA driver".into(), reason, help: Some(help.into()) };
    dump::prepare().map_err(|reason| Refusal {
        what: "the folder for kernels".into(),
        reason,
        help: Some("name a folder that can be written to, or unset the variable".into()),
    })?;
    library::prefer_soname();
    // SAFETY: loading a library runs its initialisers; NVIDIA's are designed for that, as any CUDA program runs them.
    if !unsafe { sys::is_culib_present() } {
        let name = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
        let reason = Error::missing_driver(format!("{name} was not found"));
        return Err(refused(
            reason,
            "install NVIDIA's driver; in a container, run it with the GPU passed in (--gpus all)",
        ));
    }
    // SAFETY: the library was just opened, so that this does not panic; it is never closed.
    let library = unsafe { sys::culib() };
    // SAFETY: the symbols are looked up and not called.
    let has = |name: &str| unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_ok();
    let missing: Vec<&str> = SYMBOLS.iter().copied().filter(|name| !has(name)).collect();
    if !missing.is_empty() {
        let names = missing.iter().take(3).copied().collect::<Vec<_>>().join(", ");
        let text = format!("the driver's library lacks {} of {} functions: {names}", missing.len(), SYMBOLS.len());
        return Err(refused(Error::missing_driver(text), "CUDA 11.2 (driver 460) or later is needed"));
    }
    result::init().map_err(|error| {
        let help = match error.0 {
            sys::CUresult::CUDA_ERROR_STUB_LIBRARY => {
                "the toolkit's stub was loaded in place of the driver's library; take .../stubs out of LD_LIBRARY_PATH"
            }
            sys::CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
            | sys::CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => {
                "the library and the kernel's module are of different versions; reboot after an update, and let the \
                 container's library match the host's driver"
            }
            sys::CUresult::CUDA_ERROR_NO_DEVICE => {
                "`nvidia-smi` shows what the driver sees; CUDA_VISIBLE_DEVICES may hide it"
            }
            _ => "`nvidia-smi` shows what the driver sees",
        };
        refused(failure("cuInit", error), help)
    })?;
    let fail =
        |call: &'static str| move |error| refused(failure(call, error), "`nvidia-smi` shows what the driver sees");
    let mut cuda = 0;
    // SAFETY: the pointer is to an integer that outlives the call.
    unsafe { sys::cuDriverGetVersion(&raw mut cuda) }.result().map_err(fail("cuDriverGetVersion"))?;
    let devices = result::device::get_count().map_err(fail("cuDeviceGetCount"))?;
    if devices == 0 {
        let reason = Error::missing_driver("the CUDA driver found no device");
        return Err(refused(reason, "`nvidia-smi` shows what the driver sees; CUDA_VISIBLE_DEVICES may hide it"));
    }
    Ok(Driver { cuda, devices, is_fake: has("mxprobe_fake_driver") })
}

/// The error of a call.
pub(crate) fn failure(call: &str, error: DriverError) -> Error {
    use sys::CUresult as Code;
    let code = error.0;
    let text = format!("{call} returned {} ({})", name(code), code as u32);
    match code {
        Code::CUDA_ERROR_NO_DEVICE => Error::missing_driver(format!("{text}: no device that CUDA can use")),
        Code::CUDA_ERROR_STUB_LIBRARY => Error::missing_driver(format!("{text}: a stub, not the driver")),
        Code::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
            Error::missing_driver(format!("{text}: the library does not match the kernel's module"))
        }
        Code::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
        | Code::CUDA_ERROR_SYSTEM_NOT_READY
        | Code::CUDA_ERROR_DEVICE_UNAVAILABLE => Error::missing_driver(text),
        Code::CUDA_ERROR_OUT_OF_MEMORY => Error::out_of_memory(format!("{text}: memory of the device ran out")),
        Code::CUDA_ERROR_TIMEOUT => Error::timed_out(text),
        Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            Error::unsupported(format!("{text}: the driver is too old for this instruction's PTX"))
        }
        Code::CUDA_ERROR_NO_BINARY_FOR_GPU => {
            Error::unsupported(format!("{text}: the instruction's target is not this device's"))
        }
        Code::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => Error::missing_driver(format!(
            "{text}: libnvidia-ptxjitcompiler.so.1, which belongs to the driver, is not on this machine or in this container"
        )),
        Code::CUDA_ERROR_JIT_COMPILATION_DISABLED => {
            Error::unsupported(format!("{text}: CUDA_DISABLE_PTX_JIT is set, and every kernel here is PTX"))
        }
        // Sticky: the context is lost, and every later call in it fails (CUDA Driver API, CUresult).
        Code::CUDA_ERROR_ASSERT
        | Code::CUDA_ERROR_CONTAINED
        | Code::CUDA_ERROR_EXTERNAL_DEVICE
        | Code::CUDA_ERROR_LAUNCH_TIMEOUT
        | Code::CUDA_ERROR_TENSOR_MEMORY_LEAK
        | Code::CUDA_ERROR_ILLEGAL_ADDRESS
        | Code::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | Code::CUDA_ERROR_MISALIGNED_ADDRESS
        | Code::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | Code::CUDA_ERROR_INVALID_PC
        | Code::CUDA_ERROR_HARDWARE_STACK_ERROR
        | Code::CUDA_ERROR_LAUNCH_FAILED
        | Code::CUDA_ERROR_ECC_UNCORRECTABLE
        | Code::CUDA_ERROR_NVLINK_UNCORRECTABLE
        | Code::CUDA_ERROR_CONTEXT_IS_DESTROYED
        | Code::CUDA_ERROR_DEINITIALIZED => Error::device_lost(text),
        _ => Error::driver(text),
    }
}

/// The error of a call made in a context.
pub(crate) fn failure_in_context(call: &str, error: DriverError) -> Error {
    or_lost(failure(call, error))
}

/// Returns the same error, or [`Error::is_device_lost`] if the current context no longer synchronises: errors that are
/// not always fatal, such as `CUDA_ERROR_UNKNOWN`, may have ended it, and an earlier launch may have caused any error.
pub(crate) fn or_lost(error: Error) -> Error {
    if error.is_device_lost() {
        return error;
    }
    // SAFETY: the call takes no arguments.
    let lost = match unsafe { sys::cuCtxSynchronize() } {
        sys::CUresult::CUDA_SUCCESS | sys::CUresult::CUDA_ERROR_INVALID_CONTEXT => return error,
        lost => lost,
    };
    let (name, code) = (name(lost), lost as u32);
    Error::device_lost(format!("{error}; the context is lost: cuCtxSynchronize returned {name} ({code})"))
}

/// The driver's own name for a code.
fn name(code: sys::CUresult) -> String {
    let mut text = std::ptr::null();
    // SAFETY: the driver sets the pointer to a constant of its own, or leaves it null if it does not know the code.
    let found = unsafe { sys::cuGetErrorName(code, &raw mut text) };
    if found != sys::CUresult::CUDA_SUCCESS || text.is_null() {
        return format!("{code:?}");
    }
    // SAFETY: the pointer is to a zero-terminated constant string of the driver's.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
