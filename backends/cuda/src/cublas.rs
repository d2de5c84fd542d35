//! cuBLAS, opened at run time and never linked: the yardstick for f32 products.

use std::ffi::{CStr, c_int};
use std::sync::Mutex;

use cudarc::driver::{DevicePtr, DevicePtrMut};
use libloading::Library as Opened;
use mxprobe_api::{Elements, Error, Format, Library};

use crate::driver::or_lost;
use crate::found::{self, Named, release};
use crate::session::{Session, called};

/// Where cuBLAS is found.
const CUBLAS: Named = Named {
    name: "cuBLAS",
    variable: "MXPROBE_CUBLAS",
    files: if cfg!(target_os = "windows") {
        &["cublas64_13.dll", "cublas64_12.dll", "cublas64_11.dll"]
    } else {
        &["libcublas.so.13", "libcublas.so.12", "libcublas.so.11"]
    },
};

const CREATE: &CStr = c"cublasCreate_v2";
const DESTROY: &CStr = c"cublasDestroy_v2";
const VERSION: &CStr = c"cublasGetVersion_v2";
const SGEMM: &CStr = c"cublasSgemm_v2";

/// `cublasHandle_t`: a pointer that only the library reads.
type Handle = usize;
/// `cublasStatus_t`; 0 is success.
type Status = c_int;
type Create = unsafe extern "C" fn(*mut Handle) -> Status;
type Destroy = unsafe extern "C" fn(Handle) -> Status;
type Version = unsafe extern "C" fn(Handle, *mut c_int) -> Status;
/// Device pointers are addresses.
type Sgemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const f32,
    u64,
    c_int,
    u64,
    c_int,
    *const f32,
    u64,
    c_int,
) -> Status;

/// `CUBLAS_OP_N`.
const NOT_TRANSPOSED: c_int = 0;

/// cuBLAS on a device: f32 products in f32, unless an environment variable makes it use TF32.
pub(crate) struct Cublas {
    name: String,
    handle: Handle,
    destroy: Destroy,
    sgemm: Sgemm,
    /// Locked for one product at a time.
    session: Mutex<Session>,
    /// The library that contains the functions; it must outlive them.
    _library: Opened,
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: the handle was created by this library and is not used again.
        unsafe { (self.destroy)(self.handle) };
    }
}

impl Cublas {
    /// Opens the library that the environment variable names, or else the first of the usual names that opens, found by
    /// the dynamic loader or in a folder where toolkits and Python packages install it.
    ///
    /// # Errors
    /// [`Error::is_missing_driver`] with the names that were tried; otherwise whatever the library reports.
    pub(crate) fn find(session: Session) -> Result<Self, Error> {
        let (name, library) = found::open(&CUBLAS)?;
        let lacks =
            |symbol: &CStr| Error::missing_driver(format!("no cuBLAS: `{name}` has no {}", symbol.to_string_lossy()));
        // SAFETY: these symbols have been these functions since CUDA 4 (cublas_v2.h).
        let (create, destroy, version, sgemm) = unsafe {
            (
                *library.get::<Create>(CREATE).map_err(|_| lacks(CREATE))?,
                *library.get::<Destroy>(DESTROY).map_err(|_| lacks(DESTROY))?,
                *library.get::<Version>(VERSION).map_err(|_| lacks(VERSION))?,
                *library.get::<Sgemm>(SGEMM).map_err(|_| lacks(SGEMM))?,
            )
        };
        session.context.bind_to_thread().map_err(called("cuCtxSetCurrent"))?;
        let (mut handle, mut number) = (0, 0);
        // SAFETY: the device's context is current, and the pointer is to a variable.
        succeeded("cublasCreate", unsafe { create(&raw mut handle) })?;
        // SAFETY: as above, and the handle was just created.
        succeeded("cublasGetVersion", unsafe { version(handle, &raw mut number) })?;
        let file = std::path::Path::new(&name).file_name().map_or(name.clone(), |file| file.display().to_string());
        let name = format!("cuBLAS {} ({file})", release(number));
        Ok(Self { name, handle, destroy, sgemm, session: Mutex::new(session), _library: library })
    }
}

fn succeeded(call: &str, status: Status) -> Result<(), Error> {
    if status == 0 { Ok(()) } else { Err(Error::driver(format!("{call} returned {status}"))) }
}

impl Library for Cublas {
    fn name(&self) -> &str {
        &self.name
    }

    fn multiply(&self, sizes: (usize, usize, usize), a: &Elements, b: &Elements) -> Result<Elements, Error> {
        let (m, n, k) = sizes;
        if m == 0 || n == 0 || k == 0 {
            return Ok(Elements::zeros(Format::F32, m * n));
        }
        let too_large = |_| Error::unsupported(format!("{m}×{n}×{k} is too large for the library's integers"));
        let [wide_m, wide_n, wide_k] = [m, n, k].map(|size| c_int::try_from(size).map_err(too_large));
        let (m, n, k) = (wide_m?, wide_n?, wide_k?);
        let session = self.session.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        session.context.bind_to_thread().map_err(called("cuCtxSetCurrent"))?;
        let (of_a, of_b) = (session.upload(a.bytes())?, session.upload(b.bytes())?);
        let bytes = sizes.0 * sizes.1 * Format::F32.storage_bytes();
        let mut of_d = session.filled(0xff, bytes)?;
        let started = session.started()?;
        let status = {
            let ((a, _a), (b, _b)) = (of_a.device_ptr(&session.stream), of_b.device_ptr(&session.stream));
            let (d, _d) = of_d.device_ptr_mut(&session.stream);
            let (one, zero) = (1f32, 0f32);
            let no = NOT_TRANSPOSED;
            // The library's matrices are column-major: Dᵀ = Bᵀ·Aᵀ. SAFETY: the buffers hold k×n, m×k and m×n elements
            // without gaps; the context is current; the default stream, which the library also uses, orders the copies
            // and this call.
            unsafe { (self.sgemm)(self.handle, no, no, n, m, k, &raw const one, b, n, a, k, &raw const zero, d, n) }
        };
        succeeded("cublasSgemm", status).map_err(or_lost)?;
        session.ended(&started)?;
        Elements::from_bytes(Format::F32, session.download(&of_d, bytes)?)
    }

    fn kernel_ns(&self) -> Option<u64> {
        Some(self.session.lock().unwrap_or_else(std::sync::PoisonError::into_inner).kernel_ns())
    }
}
