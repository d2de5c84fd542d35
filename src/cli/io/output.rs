//! Output: results to standard output, notes to standard error, files renamed into place.

use std::{
    fmt::Display,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::plain;
use crate::report::{Block, Show, on_screen, to_json};
use serde::Serialize;

use crate::cli::{
    arguments::{Format, Screen},
    failure::{Failure, Outcome},
    io::shown,
};

/// Writes bytes to standard output.
pub(crate) fn print(bytes: &[u8]) -> Outcome {
    let written = shown::aside(|| {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush())
    });
    written.map_err(|error| Failure::output(&error))?;
    Ok(0)
}

/// Writes a result in the requested format.
pub(crate) fn show(result: &dyn Show, format: Format, screen: Screen) -> Outcome {
    print(format.form(screen).text(result).as_bytes())
}

/// Writes a part of a result that is shown as it grows.
pub(crate) fn show_part(blocks: &[Block], screen: Screen) -> Outcome {
    print(on_screen(blocks, screen.style).as_bytes())
}

/// Writes JSON for programs that people can read.
pub(crate) fn print_json(value: &impl Serialize) -> Outcome {
    print(to_json(value).as_bytes())
}

/// Writes a note to standard error.
pub(crate) fn note(words: impl Display) {
    // If standard error is closed, there is nowhere left to report the error.
    let _ = shown::aside(|| writeln!(anstream::stderr(), "{}", plain::lines(&words.to_string())));
}

/// Replaces a file atomically: a reader sees either the old text or the new one, never a part.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    replace_bytes(path, text.as_bytes())
}

/// Checks that a file can be written, so that the error appears before the work rather than after it.
pub(crate) fn can_write(path: &Path) -> Result<(), Failure> {
    if is_folder(path) {
        return Err(unwritable(path, &"it is a directory"));
    }
    if fs::metadata(path).is_ok_and(|existing| !existing.is_file()) {
        return Ok(()); // a pipe or /dev/null
    }
    let file = tempfile::Builder::new().prefix(".mxprobe-").tempfile_in(folder(path));
    file.map(drop).map_err(|error| unwritable(path, &without_path(&error)))
}

/// Refuses to overwrite an input: a view of a report is not the report.
pub(crate) fn is_none_of(out: &Path, read: &[PathBuf]) -> Result<(), Failure> {
    let Ok(out_now) = fs::canonicalize(out) else { return Ok(()) };
    match read.iter().find(|path| out_now.is_file() && fs::canonicalize(path).is_ok_and(|path| path == out_now)) {
        Some(_) => Err(Failure::usage(format!("`{}` is an input file, and would be overwritten", out.display()))
            .help("give `--out` another name")),
        None => Ok(()),
    }
}

/// Refuses file names of other views: the file gets JSON, whatever `--format` prints.
pub(crate) fn is_for_json(path: &Path) -> Result<(), Failure> {
    let views = [("html", "html"), ("htm", "html"), ("md", "markdown"), ("csv", "csv")];
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match views.into_iter().find(|(name, _)| extension.eq_ignore_ascii_case(name)) {
        Some((_, format)) => {
            Err(Failure::usage(format!("`{}` is not a file name for a report: --out writes JSON", path.display()))
                .help(format!("`--format {format}` prints that view, and `mxprobe report` converts a saved report")))
        }
        None => Ok(()),
    }
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().to_string_lossy().ends_with('/')
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn unwritable(path: &Path, why: &dyn Display) -> Failure {
    Failure::usage(format!("`{}` cannot be written: {why}", path.display()))
        .help("choose a file that you may write; `--out` also takes an existing directory")
}

/// Like [`replace`], with bytes.
pub(crate) fn replace_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut replacement = Replacement::begin(path)?;
    replacement.write(bytes)?;
    replacement.finish()
}

/// A file that takes the place of another one once it is complete. If the path is a link, its target is replaced; an
/// existing file keeps its permissions. An incomplete one is removed.
pub(crate) struct Replacement<'a> {
    path: &'a Path,
    file: Unfinished,
}

/// A file that is being written.
enum Unfinished {
    /// Under another name, with the one that it gets.
    Temporary(tempfile::NamedTempFile, PathBuf),
    /// A pipe or a device: there is nothing to rename over.
    Direct(fs::File),
}

impl<'a> Replacement<'a> {
    /// Begins a file, so that an error appears before the work.
    pub(crate) fn begin(path: &'a Path) -> Result<Self, Failure> {
        if is_folder(path) {
            return Err(unwritable(path, &"it is a directory"));
        }
        let begin = || -> io::Result<Unfinished> {
            if fs::metadata(path).is_ok_and(|existing| !existing.is_file()) {
                return fs::File::create(path).map(Unfinished::Direct);
            }
            let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let mut builder = tempfile::Builder::new();
            ordinary(builder.prefix(".mxprobe-"));
            Ok(Unfinished::Temporary(builder.tempfile_in(folder(&real))?, real))
        };
        let file = begin().map_err(|error| unwritable(path, &without_path(&error)))?;
        Ok(Self { path, file })
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match &mut self.file {
            Unfinished::Temporary(file, _) => file.write_all(bytes),
            Unfinished::Direct(file) => file.write_all(bytes),
        };
        written.map_err(|error| unwritable(self.path, &without_path(&error)))
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Unfinished::Temporary(file, real) = self.file else { return Ok(()) };
        let finish = || -> io::Result<()> {
            if let Ok(existing) = fs::metadata(&real) {
                file.as_file().set_permissions(existing.permissions())?;
            }
            file.persist(&real).map(drop).map_err(|error| error.error)
        };
        finish().map_err(|error| unwritable(self.path, &without_path(&error)))
    }
}

/// Returns the message of an error without the name of the temporary file, which the user never asked for.
fn without_path(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" at path ").map_or(text.clone(), |(what, _)| what.to_owned())
}

/// Gives a temporary file the permissions of an ordinary one: temporary files are private, but a report honours the
/// umask.
#[cfg(unix)]
fn ordinary(builder: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn ordinary(_: &mut tempfile::Builder<'_, '_>) {}
