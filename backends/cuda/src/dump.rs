//! Keeps what was compiled, for those who want to look at it: `MXPROBE_DUMP=DIR`.

use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

use mxprobe_api::Error;

use crate::opcodes::sha256;

/// The environment variable that names the folder.
const VARIABLE: &str = "MXPROBE_DUMP";

/// The longest beginning of a file's name that comes from a kernel's.
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

/// Keeps a kernel's text, its machine code if there is any, and what the compiler said, in the folder that the environment
/// names.
///
/// The files are called `NAME.HASH.ptx`, `.cubin` and `.log`; the hash is of text and code together, so that a file that is
/// there already has the same content and is left as it is. A file that cannot be written is named on standard error, and
/// the measurement goes on.
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

/// A name that every file system takes: letters, digits, `.`, `-` and `_`.
fn file_name(name: &str) -> String {
    let safe = |letter: char| if letter.is_ascii_alphanumeric() || ".-_".contains(letter) { letter } else { '_' };
    name.trim_start_matches('.').chars().take(LONGEST_NAME).map(safe).collect()
}

/// Writes a file that is not there yet; another process that looks for it finds all of it or nothing.
fn store(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let part = path.with_extension(format!("part{}", process::id()));
    fs::write(&part, content)?;
    fs::rename(part, path)
}

/// No result has room for this, and it is no reason to lose one.
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
