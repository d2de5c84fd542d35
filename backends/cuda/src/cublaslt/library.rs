//! The library's functions, its handle on a device, and its errors.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use libloading::Library;
use mxprobe_api::Error;

use crate::driver::or_lost;
use crate::found::{self, Named, release};

/// Where cuBLASLt is found.
const CUBLASLT: Named = Named {
    name: "cuBLASLt",
    variable: "MXPROBE_CUBLASLT",
    files: if cfg!(target_os = "windows") {
        &["cublasLt64_13.dll", "cublasLt64_12.dll", "cublasLt64_11.dll"]
    } else {
        &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"]
    },
};

/// `cublasStatus_t`; 0 is success.
pub(super) type Status = c_int;

/// A pointer to something that only the library reads: a handle or a descriptor.
pub(super) type Opaque = usize;

/// `cublasLtMatmulAlgo_t` (cublasLt.h).
pub(super) type Algorithm = [u64; 8];

/// `cublasLtMatmulHeuristicResult_t` (cublasLt.h).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct HeuristicResult {
    pub(super) algorithm: Algorithm,
    pub(super) workspace_bytes: usize,
    /// The status of this result; the other fields are valid only with success.
    pub(super) state: Status,
    waves: f32,
    reserved: [c_int; 4],
}

/// Defines a struct of functions that are looked up by their symbols.
macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        /// The functions of the library that are used here (cublasLt.h).
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// The name by which the library was opened.
            file: String,
            /// The library that contains the functions; it must outlive them.
            _library: Library,
        }

        impl Functions {
            /// Finds and opens the library.
            ///
            /// # Errors
            /// [`Error::is_missing_driver`] with the names that were tried, or with the function that it lacks.
            pub(super) fn find() -> Result<Self, Error> {
                let (file, library) = found::open(&CUBLASLT)?;
                let lacks = |symbol| Error::missing_driver(format!("no cuBLASLt: `{file}` has no {symbol}"));
                Ok(Self {
                    // SAFETY: these symbols have been these functions since CUDA 11 (cublasLt.h).
                    $($field: *unsafe { library.get($symbol) }.map_err(|_| lacks($symbol))?,)*
                    file,
                    _library: library,
                })
            }
        }
    };
}

functions! {
    create = "cublasLtCreate": fn(*mut Opaque) -> Status;
    destroy = "cublasLtDestroy": fn(Opaque) -> Status;
    version = "cublasLtGetVersion": fn() -> usize;
    create_product = "cublasLtMatmulDescCreate": fn(*mut Opaque, c_int, c_int) -> Status;
    destroy_product = "cublasLtMatmulDescDestroy": fn(Opaque) -> Status;
    set_product = "cublasLtMatmulDescSetAttribute": fn(Opaque, c_int, *const c_void, usize) -> Status;
    create_layout = "cublasLtMatrixLayoutCreate": fn(*mut Opaque, c_int, u64, u64, i64) -> Status;
    destroy_layout = "cublasLtMatrixLayoutDestroy": fn(Opaque) -> Status;
    create_preference = "cublasLtMatmulPreferenceCreate": fn(*mut Opaque) -> Status;
    destroy_preference = "cublasLtMatmulPreferenceDestroy": fn(Opaque) -> Status;
    set_preference = "cublasLtMatmulPreferenceSetAttribute": fn(Opaque, c_int, *const c_void, usize) -> Status;
    heuristic = "cublasLtMatmulAlgoGetHeuristic": fn(
        Opaque,
        Opaque,
        Opaque,
        Opaque,
        Opaque,
        Opaque,
        Opaque,
        c_int,
        *mut HeuristicResult,
        *mut c_int,
    ) -> Status;
    // Device pointers are addresses.
    multiply = "cublasLtMatmul": fn(
        Opaque,
        Opaque,
        *const c_void,
        u64,
        Opaque,
        u64,
        Opaque,
        *const c_void,
        u64,
        Opaque,
        u64,
        Opaque,
        *const Algorithm,
        u64,
        usize,
        *mut c_void,
    ) -> Status;
}

/// The library with a handle on one device.
pub(super) struct CublasLt {
    pub(super) functions: Arc<Functions>,
    pub(super) handle: Opaque,
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        // SAFETY: the handle was created by this library and is not used again.
        unsafe { (self.functions.destroy)(self.handle) };
    }
}

impl CublasLt {
    /// Creates a handle on the device whose context is current.
    ///
    /// # Errors
    /// The library's status.
    pub(super) fn create(functions: &Arc<Functions>) -> Result<Self, Error> {
        let mut handle = 0;
        // SAFETY: a context is current, and the pointer is to a variable.
        succeeded("cublasLtCreate", unsafe { (functions.create)(&raw mut handle) })?;
        Ok(Self { functions: functions.clone(), handle })
    }

    /// Its name and version: `cuBLASLt 12.9.3`.
    pub(super) fn title(&self) -> String {
        // SAFETY: the function takes no arguments.
        let number = unsafe { (self.functions.version)() };
        format!("cuBLASLt {}", release(c_int::try_from(number).unwrap_or_default()))
    }

    /// The name by which the library was opened.
    pub(super) fn file(&self) -> &str {
        &self.functions.file
    }
}

/// Something that the library created, and the function that destroys it.
pub(super) struct Held {
    pub(super) pointer: Opaque,
    destroy: unsafe extern "C" fn(Opaque) -> Status,
}

impl Held {
    /// Calls a function that creates something, and holds it.
    ///
    /// # Errors
    /// The status of that function, with its name.
    pub(super) fn new(
        call: &str,
        create: impl FnOnce(*mut Opaque) -> Status,
        destroy: unsafe extern "C" fn(Opaque) -> Status,
    ) -> Result<Self, Error> {
        let mut pointer = 0;
        succeeded(call, create(&raw mut pointer))?;
        Ok(Self { pointer, destroy })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the pointer was created by the function that belongs to this one, and is not used again.
        unsafe { (self.destroy)(self.pointer) };
    }
}

/// Turns a status into an error with its name: unsupported, out of memory, or otherwise the driver's, which is
/// [`Error::is_device_lost`] if the context is lost.
pub(super) fn succeeded(call: &str, status: Status) -> Result<(), Error> {
    if status == 0 {
        return Ok(());
    }
    let text = format!("{call} returned {} ({status})", status_name(status));
    Err(match status {
        NOT_SUPPORTED | ARCH_MISMATCH => Error::unsupported(text),
        ALLOC_FAILED => or_lost(Error::out_of_memory(text)),
        _ => or_lost(Error::driver(text)),
    })
}

const ALLOC_FAILED: Status = 3;
pub(super) const INVALID_VALUE: Status = 7;
const ARCH_MISMATCH: Status = 8;
pub(super) const NOT_SUPPORTED: Status = 15;

/// The name of a `cublasStatus_t` (cublas_api.h).
fn status_name(status: Status) -> &'static str {
    match status {
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        ALLOC_FAILED => "CUBLAS_STATUS_ALLOC_FAILED",
        INVALID_VALUE => "CUBLAS_STATUS_INVALID_VALUE",
        ARCH_MISMATCH => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        NOT_SUPPORTED => "CUBLAS_STATUS_NOT_SUPPORTED",
        16 => "CUBLAS_STATUS_LICENSE_ERROR",
        _ => "an unknown status",
    }
}
