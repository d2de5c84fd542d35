//! Finding NVIDIA's libraries, which are opened at run time and never linked.

use std::ffi::{OsStr, OsString, c_int};
use std::path::PathBuf;

use libloading::Library;
use mxprobe_api::Error;

/// A library and the places where it is looked for.
pub(crate) struct Named {
    /// Its name, for people.
    pub(crate) name: &'static str,
    /// The environment variable that names its file, by path or by soname.
    pub(crate) variable: &'static str,
    /// Common file names, the latest version first.
    pub(crate) files: &'static [&'static str],
}

/// Opens the library that the environment variable names, or else the first of the usual names that opens, found by the
/// dynamic loader or in a folder where toolkits and Python packages install it. Also returns the name that opened.
///
/// # Errors
/// [`Error::is_missing_driver`] with the names that were tried.
pub(crate) fn open(named: &Named) -> Result<(String, Library), Error> {
    let Named { name: title, variable, files: names } = *named;
    if let Some(chosen) = std::env::var_os(variable) {
        return opened(&chosen)
            .map(|library| (chosen.to_string_lossy().into_owned(), library))
            .map_err(|error| Error::missing_driver(format!("no {title}: {error}")));
    }
    names
        .iter()
        .map(|name| OsString::from(*name))
        .chain(folders(|name| std::env::var_os(name)).into_iter().flat_map(|folder| files(folder, names)))
        .find_map(|name| Some((name.to_string_lossy().into_owned(), opened(&name).ok()?)))
        .ok_or_else(|| {
            let names = names.join(", ");
            Error::missing_driver(format!(
                "no {title}: none of {names} opens, nor is one in the toolkit or among Python's packages; set \
                 {variable} to name one"
            ))
        })
}

/// Folders with a library that the dynamic loader does not search: the toolkit's, and those of the wheels
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

/// The libraries with one of these names in a folder.
fn files(folder: PathBuf, names: &'static [&'static str]) -> impl Iterator<Item = OsString> {
    names.iter().map(move |name| folder.join(name)).filter(|path| path.exists()).map(PathBuf::into_os_string)
}

fn opened(name: &OsString) -> Result<Library, String> {
    // SAFETY: the library's initialisers are meant to run on loading; a user who names another library runs the
    // initialisers of that library.
    unsafe { Library::new(name) }.map_err(|error| format!("`{}` does not open: {error}", name.to_string_lossy()))
}

/// Formats a version number: 120301 as 12.3.1, and 11402 as 11.4.2 (cublas_api.h).
pub(crate) fn release(number: c_int) -> String {
    let major = if number < 100_000 { 1_000 } else { 10_000 };
    format!("{}.{}.{}", number / major, number % major / 100, number % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["libcublas.so.13", "libcublas.so.12"];

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
            let found: Vec<OsString> = found.into_iter().flat_map(|folder| files(folder, NAMES)).collect();
            assert!(found.contains(&library.into_os_string()), "{variable}: {found:?}");
        }
    }

    #[test]
    fn releases_are_written_as_people_write_them() {
        assert_eq!([120_301, 130_000, 11_402].map(release), ["12.3.1", "13.0.0", "11.4.2"]);
    }
}
