//! Reading of input files.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use mxprobe_models::threads;

use crate::{
    aside::aside,
    report::{Report, check},
};

use crate::cli::{failure::Failure, io::journal};

/// Reads the text of a file, or of standard input for `-`. A UTF-8 byte order mark is removed.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let mut bytes = bytes.map_err(|error| Failure::usage(format!("`{}` cannot be read: {error}", path.display())))?;
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|error| Failure::usage(format!("`{}` is not UTF-8 text: {error}", path.display())))
}

/// The reports of one file.
pub(crate) struct Saved {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its place among the paths that were given: a directory has several files.
    pub(crate) given: usize,
    /// One report, or the elements of an array.
    pub(crate) reports: Vec<Report>,
}

/// Refuses to read standard input twice.
pub(crate) fn reads_once(paths: &[PathBuf]) -> Result<(), Failure> {
    if paths.iter().filter(|path| *path == Path::new("-")).count() > 1 {
        return Err(Failure::usage("`-` is given twice, but standard input can only be read once")
            .help("save one of the reports, and name its file"));
    }
    Ok(())
}

/// Reads reports: from files, from the `.json` files of directories in the order of their names, or from standard input
/// for `-`.
pub(crate) fn reports(paths: &[PathBuf]) -> Result<Vec<Saved>, Failure> {
    reads_once(paths)?;
    let (mut found, mut failure) = (Vec::new(), None);
    for (given, path) in paths.iter().enumerate() {
        match files(path) {
            Ok(files) => found.extend(files.into_iter().map(|path| (path, given))),
            Err(other) => {
                failure = Some(other);
                break;
            }
        }
    }
    // The first failure in the order of the files is reported.
    let read = aside(found.len(), threads(), |at| Some(found[at].clone()), saved);
    let all = read.into_iter().flatten().collect::<Result<Vec<Saved>, Failure>>()?;
    failure.map_or(Ok(all), Err)
}

/// Reads the reports of one file.
fn saved((path, given): (PathBuf, usize)) -> Result<Saved, Failure> {
    let text = Arc::new(read(&path)?);
    let mut reports = check::read_shared(&text).map_err(|problem| {
        let is = match check::kind(&text).filter(|kind| *kind != "a report") {
            Some(kind) => format!("is {kind}, not a report"),
            None => format!("is not a report: {problem}"),
        };
        Failure::usage(format!("`{}` {is}", path.display()))
            .help("`mxprobe validate FILE` checks a report; `mxprobe schema` prints its schema")
    })?;
    journal::replay(&path, &mut reports);
    Ok(Saved { path, given, reports })
}

/// Whether files start as reports do. A file that cannot be read does not, nor does one that can only be read once.
pub(crate) fn start_as_reports<'a>(paths: impl IntoIterator<Item = &'a Path>) -> bool {
    let starts = |path: &PathBuf| -> io::Result<bool> {
        let mut start = Vec::new();
        let is_file = fs::metadata(path)?.is_file();
        if is_file {
            fs::File::open(path)?.take(START_BYTES).read_to_end(&mut start)?;
        }
        Ok(is_file && check::starts_as_report(&start))
    };
    paths.into_iter().all(|path| files(path).is_ok_and(|files| files.iter().all(|path| starts(path).unwrap_or(false))))
}

/// Enough to see a document's schema.
const START_BYTES: u64 = 256;

/// Returns the file itself or, for a directory, the files in it that may be reports.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error| Failure::usage(format!("`{}` cannot be read: {error}", path.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file.is_file() && file.extension().is_some_and(|extension| extension == "json") {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(Failure::usage(format!("`{}` contains no report: no file ends in .json", path.display())));
    }
    files.sort();
    Ok(files)
}
