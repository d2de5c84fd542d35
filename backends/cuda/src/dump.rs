//! Dumps compiled kernels for inspection: `MXPROBE_DUMP=DIR`.

use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

use mxprobe_api::Error;

use mxprobe_shaders::sha256;

/// The environment variable that names the folder.
const VARIABLE: &str = "MXPROBE_DUMP";

/// The maximum number of characters of a kernel's name in a file name.
const LONGEST_NAME: usize = 120;

fn folder() -> Option<PathBuf> {
    env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Creates the folder, if one is named.
///
/// # Errors
/// [`Error::is_invalid`] with the folder if it cannot be created or written to.
pub(crate) fn prepare() -> Result<(), Error> {
    let Some(folder) = folder() else { return Ok(()) };
    let created = fs::create_dir_all(&folder).and_then(|()| {
        let probe = folder.join(format!(".mxprobe-{}", process::id()));
        fs::write(&probe, [])?;
        fs::remove_file(probe)
    });
    created.map_err(|error| Error::invalid(format!("{VARIABLE}={}: {error}", folder.display())))
}

/// Writes a kernel's text, its machine code if there is any, and the compiler's log to the folder that the environment
/// variable names.
///
/// The files are called `NAME.HASH.ptx`, `.cubin` and `.log`. The hash covers text and code (or the log, without any
/// code), so an existing file is not rewritten. If a file cannot be written, a message on standard error names it and
/// the measurement continues.
pub(crate) fn keep(name: &str, ptx: &str, cubin: Option<&[u8]>, log: &str) {
    let Some(folder) = folder() else { return };
    let hash = sha256(&[ptx.as_bytes(), cubin.unwrap_or(log.as_bytes())].concat());
    let stem = format!("{}.{}", file_name(name), &hash[..12]);
    for (extension, content) in [("ptx", Some(ptx.as_bytes())), ("cubin", cubin), ("log", Some(log.as_bytes()))] {
        let path = folder.join(format!("{stem}.{extension}"));
        if let Some(Err(error)) = content.map(|content| store(&path, content)) {
            complain(&path, &error);
        }
    }
}

/// Converts a name to one that is valid on every file system: letters, digits, `.`, `-` and `_`.
fn file_name(name: &str) -> String {
    let safe = |letter: char| if letter.is_ascii_alphanumeric() || ".-_".contains(letter) { letter } else { '_' };
    name.trim_start_matches('.').chars().take(LONGEST_NAME).map(safe).collect()
}

/// Writes a file if it does not exist yet. It appears atomically: another process sees the whole file or none.
fn store(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let part = path.with_extension(format!("part{}", process::id()));
    fs::write(&part, content)?;
    fs::rename(part, path)
}

/// Reports a file that was not written; this must not fail the measurement.
#[expect(clippy::print_stderr, reason = "a note to the person who asked for the files")]
fn complain(path: &Path, error: &io::Error) {
    eprintln!("{VARIABLE}: {} was not written: {error}", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_safe() {
        assert_eq!(file_name("mma.m16n8k16.f32.f16.f16.f32"), "mma.m16n8k16.f32.f16.f16.f32");
        assert_eq!(file_name("../add of scalar.f32\0"), "_add_of_scalar.f32_");
        assert_eq!(file_name(&"x".repeat(500)).len(), LONGEST_NAME);
    }

    #[test]
    fn what_is_there_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ptx");
        store(&path, b"first").unwrap();
        store(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no part of a file is left");
    }
}
