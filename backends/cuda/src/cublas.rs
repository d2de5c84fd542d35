//! cuBLAS, opened at run time and never linked: the yardstick for f32 products.

use std::ffi::{CStr, OsStr, OsString, c_int};
use std::path::PathBuf;
use std::sync::Mutex;

use cudarc::driver::{DevicePtr, DevicePtrMut};
use libloading::Library as Opened;
use mxprobe_api::{Elements, Error, Format, Library};

use crate::driver::or_lost;
use crate::session::{Session, called};

/// The environment variable that names the library, by path or by soname.
const VARIABLE: &str = "MXPROBE_CUBLAS";

/// Common library names, the latest version first.
const NAMES: &[&str] = if cfg!(target_os = "windows") {
    &["cublas64_13.dll", "cublas64_12.dll", "cublas64_11.dll"]
} else {
    &["libcublas.so.13", "libcublas.so.12", "libcublas.so.11"]
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
        let (name, library) = match std::env::var_os(VARIABLE) {
            Some(named) => open(&named)
                .map(|library| (named.to_string_lossy().into_owned(), library))
                .map_err(|error| Error::missing_driver(format!("no cuBLAS: {error}")))?,
            None => NAMES
                .iter()
                .map(|name| OsString::from(*name))
                .chain(folders(|name| std::env::var_os(name)).into_iter().flat_map(files))
                .find_map(|name| Some((name.to_string_lossy().into_owned(), open(&name).ok()?)))
                .ok_or_else(|| {
                    let names = NAMES.join(", ");
                    Error::missing_driver(format!(
                        "no cuBLAS: none of {names} opens, nor is one in the toolkit or among Python's packages; \
                         set {VARIABLE} to name one"
                    ))
                })?,
        };
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

/// Folders with a cuBLAS that the dynamic loader does not search: the toolkit's, and those of the wheels
/// `nvidia-cublas` (`nvidia/cu13/lib`) and `nvidia-cublas-cu12` (`nvidia/cublas/lib`), on which PyTorch depends.
fn folders(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let named = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let toolkits = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(named);
    let toolkits = toolkits.chain(["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from));
    let toolkits = toolkits.chain(within(PathBuf::from("/usr/local"), "cuda-"));
    let pythons = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(named);
    let pythons = pythons.chain(named("HOME").map(|home| home.join(".local")));
    let pythons = pythons.chain(["/usr/local", "/usr"].map(PathBuf::from));
    let packages = pythons
        .flat_map(|prefix| within(prefix.join("lib"), "python3"))
        .flat_map(|python| ["site-packages", "dist-packages"].map(|name| python.join(name)))
        .flat_map(|packages| ["nvidia/cu13/lib", "nvidia/cublas/lib"].map(|name| packages.join(name)));
    toolkits.map(|toolkit| toolkit.join("lib64")).chain(packages).collect()
}

/// The entries of a folder whose names start with `beginning`, in descending order.
fn within(folder: PathBuf, beginning: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(beginning)));
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}

/// The libraries in a folder.
fn files(folder: PathBuf) -> impl Iterator<Item = OsString> {
    NAMES.iter().map(move |name| folder.join(name)).filter(|path| path.exists()).map(PathBuf::into_os_string)
}

fn open(name: &OsString) -> Result<Opened, String> {
    // SAFETY: cuBLAS's initialisers are meant to run on loading; a user who names another library runs the initialisers
    // of that library.
    unsafe { Opened::new(name) }.map_err(|error| format!("`{}` does not open: {error}", name.to_string_lossy()))
}

/// Formats a version number: 120301 as 12.3.1, and 11402 as 11.4.2 (cublas_api.h).
fn release(number: c_int) -> String {
    let major = if number < 100_000 { 1_000 } else { 10_000 };
    format!("{}.{}.{}", number / major, number % major / 100, number % 100)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_among_pythons_packages_and_in_the_toolkit() {
        let folder = tempfile::tempdir().unwrap();
        for (variable, place) in [
            ("CUDA_PATH", "lib64"),
            ("CUDA_HOME", "lib64"),
            ("VIRTUAL_ENV", "lib/python3.12/site-packages/nvidia/cu13/lib"),
            ("CONDA_PREFIX", "lib/python3.9/site-packages/nvidia/cublas/lib"),
            ("HOME", ".local/lib/python3.11/site-packages/nvidia/cublas/lib"),
        ] {
            let library = folder.path().join(variable).join(place).join(NAMES[1]);
            std::fs::create_dir_all(library.parent().unwrap()).unwrap();
            std::fs::write(&library, "").unwrap();
            let found = folders(|name| (name == variable).then(|| folder.path().join(variable).into_os_string()));
            let found: Vec<OsString> = found.into_iter().flat_map(files).collect();
            assert!(found.contains(&library.into_os_string()), "{variable}: {found:?}");
        }
    }

    #[test]
    fn releases_are_written_as_people_write_them() {
        assert_eq!([120_301, 130_000, 11_402].map(release), ["12.3.1", "13.0.0", "11.4.2"]);
    }
}
