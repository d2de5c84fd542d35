//! A BLAS library of this machine, opened at run time and never linked: the yardstick for f32 products.

use std::ffi::{CStr, OsString, c_char, c_int};

use libloading::Library as Opened;
use mxprobe_api::{Elements, Error, Format, Library};

/// The environment variable that names a library, by path or by soname.
const VARIABLE: &str = "MXPROBE_BLAS";

/// Common library names, the fastest first; the last ones are the system's default, which may be the slow reference
/// BLAS.
const NAMES: &[&str] = if cfg!(target_os = "windows") {
    &["mkl_rt.3.dll", "mkl_rt.2.dll", "libopenblas.dll", "openblas.dll"]
} else if cfg!(target_os = "macos") {
    &["libopenblas.dylib", "/System/Library/Frameworks/Accelerate.framework/Accelerate"]
} else {
    &[
        "libmkl_rt.so.3",
        "libmkl_rt.so.2",
        "libmkl_rt.so",
        "libopenblas.so.0",
        "libopenblas.so",
        "libopenblas64_.so.0",
        "libblis.so.4",
        "libcblas.so.3",
        "libblas.so.3",
    ]
};

/// Names of `cblas_sgemm`, and whether its integers have 64 bits (suffix `64_`). NumPy's wheels contain an OpenBLAS
/// whose names all start with `scipy_`.
const SYMBOLS: [(&CStr, bool); 4] = [
    (c"cblas_sgemm", false),
    (c"cblas_sgemm64_", true),
    (c"scipy_cblas_sgemm64_", true),
    (c"scipy_cblas_sgemm", false),
];

/// OpenBLAS functions that return its version, build options and selected kernels.
const CONFIGURATIONS: [&CStr; 4] =
    [c"openblas_get_config", c"openblas_get_config64_", c"scipy_openblas_get_config64_", c"scipy_openblas_get_config"];

/// `CblasRowMajor` and `CblasNoTrans`, from the reference implementation's cblas.h.
const ROW_MAJOR: c_int = 101;
const NOT_TRANSPOSED: c_int = 111;

/// `cblas_sgemm`; `I` is `int` or a 64-bit integer.
type Sgemm<I> = unsafe extern "C" fn(c_int, c_int, c_int, I, I, I, f32, *const f32, I, *const f32, I, f32, *mut f32, I);

enum Function {
    Narrow(Sgemm<c_int>),
    Wide(Sgemm<i64>),
}

/// An open BLAS.
pub(crate) struct Blas {
    name: String,
    function: Function,
    /// The library that contains the function; it must outlive it.
    _library: Opened,
}

impl Blas {
    /// Opens the BLAS that the environment variable names, or else the first usable library among the usual names.
    ///
    /// # Errors
    /// [`Error::is_missing_driver`] with the names that were tried, and why the library named by the variable is
    /// unusable.
    pub(crate) fn find() -> Result<Self, Error> {
        match std::env::var_os(VARIABLE) {
            Some(named) => Self::open(named),
            None => NAMES.iter().find_map(|name| Self::open(OsString::from(*name)).ok()).ok_or_else(|| {
                Error::missing_driver(format!(
                    "no BLAS: none of {} opens and has cblas_sgemm; set {VARIABLE} to name one",
                    NAMES.join(", ")
                ))
            }),
        }
    }

    fn open(name: OsString) -> Result<Self, Error> {
        let shown = name.to_string_lossy().into_owned();
        // SAFETY: the initialisers of a BLAS start its threads and read its environment; a user who names another
        // library runs the initialisers of that library.
        let library = unsafe { Opened::new(&name) }
            .map_err(|error| Error::missing_driver(format!("no BLAS: `{shown}` does not open: {error}")))?;
        let function = SYMBOLS.into_iter().find_map(|(symbol, is_wide)| {
            // SAFETY: in every BLAS that has these symbols, they are this function with these types.
            unsafe {
                Some(if is_wide {
                    Function::Wide(*library.get::<Sgemm<i64>>(symbol).ok()?)
                } else {
                    Function::Narrow(*library.get::<Sgemm<c_int>>(symbol).ok()?)
                })
            }
        });
        let Some(function) = function else {
            let symbols = SYMBOLS.map(|(symbol, _)| symbol.to_string_lossy());
            return Err(Error::missing_driver(format!("no BLAS: `{shown}` has none of {}", symbols.join(", "))));
        };
        let configuration = CONFIGURATIONS.into_iter().find_map(|symbol| {
            // SAFETY: the function takes no arguments and returns a zero-terminated string that it owns.
            unsafe {
                let told = library.get::<unsafe extern "C" fn() -> *const c_char>(symbol).ok()?();
                (!told.is_null()).then(|| CStr::from_ptr(told).to_string_lossy().trim().to_owned())
            }
        });
        let file = std::path::Path::new(&name).file_name().map_or(shown.clone(), |file| file.display().to_string());
        let name = configuration.map_or(file.clone(), |told| format!("{told} ({file})"));
        Ok(Self { name, function, _library: library })
    }
}

impl Library for Blas {
    fn name(&self) -> &str {
        &self.name
    }

    fn multiply(&self, sizes: (usize, usize, usize), a: &Elements, b: &Elements) -> Result<Elements, Error> {
        let (m, n, k) = sizes;
        let mut d = Elements::zeros(Format::F32, m * n);
        if m == 0 || n == 0 || k == 0 {
            return Ok(d);
        }
        let unaligned = || Error::driver("the elements are not aligned for f32");
        let floats = |bytes: &[u8]| {
            let pointer = bytes.as_ptr().cast::<f32>();
            pointer.is_aligned().then_some(pointer).ok_or_else(unaligned)
        };
        let (a, b) = (floats(a.bytes())?, floats(b.bytes())?);
        floats(d.bytes())?;
        let d_floats = d.bytes_mut().as_mut_ptr().cast::<f32>();
        let (row, no) = (ROW_MAJOR, NOT_TRANSPOSED);
        let too_large = |_| Error::unsupported(format!("{m}×{n}×{k} is too large for the library's integers"));
        match self.function {
            Function::Narrow(sgemm) => {
                let [m, n, k] =
                    [c_int::try_from(m), c_int::try_from(n), c_int::try_from(k)].map(|it| it.map_err(too_large));
                let (m, n, k) = (m?, n?, k?);
                // SAFETY: A is m×k, B k×n and D m×n, all aligned, row-major and without gaps, none of them empty.
                unsafe { sgemm(row, no, no, m, n, k, 1.0, a, k, b, n, 0.0, d_floats, n) }
            }
            Function::Wide(sgemm) => {
                let [m, n, k] = [i64::try_from(m), i64::try_from(n), i64::try_from(k)].map(|it| it.map_err(too_large));
                let (m, n, k) = (m?, n?, k?);
                // SAFETY: as above.
                unsafe { sgemm(row, no, no, m, n, k, 1.0, a, k, b, n, 0.0, d_floats, n) }
            }
        }
        Ok(d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_open_is_named_with_the_variable() {
        let error = Blas::open("/nowhere/libblas.so".into()).err().expect("the file does not exist");
        assert!(error.is_missing_driver());
        assert!(error.to_string().contains("`/nowhere/libblas.so` does not open"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_library_without_the_function_is_refused_by_its_names() {
        let error = Blas::open("libc.so.6".into()).err().expect("it is not a BLAS");
        assert!(error.to_string().contains("has none of cblas_sgemm, cblas_sgemm64_, scipy_cblas_sgemm64_"), "{error}");
    }

    #[test]
    #[cfg_attr(not(blas), ignore = "this machine has no BLAS")]
    fn a_library_multiplies_row_major_matrices() {
        let blas = Blas::find().unwrap();
        let of =
            |values: &[f32]| Elements::from_bits(Format::F32, values.iter().map(|value| u64::from(value.to_bits())));
        let (a, b) =
            (of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), of(&[1.0, 0.0, -1.0, 2.0, 0.5, 0.0, 0.0, 1.0, 1.0, 0.0, 2.0, 0.0]));
        let d = blas.multiply((2, 4, 3), &a, &b).unwrap();
        assert_eq!(d, of(&[5.0, 0.0, 5.0, 4.0, 12.5, 0.0, 8.0, 13.0]), "{}", blas.name());
    }
}
