//! The journal of a growing report: the results since the report was last written as a whole.
//!
//! The report of a device with many operations has tens of megabytes. Rewriting it after each operation would have
//! quadratic cost, so new results are appended to `REPORT.json.part`, one line of JSON per operation, and the report is
//! rewritten each time that it has grown by half: three to four times its final size in all. A process that is killed
//! leaves both files, and readers of the report also read the journal. A report whose run ends in any other way has no
//! journal.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::report::{OperationReport, Report, Time, check};
use serde::{Deserialize, Serialize};

/// A report of at most this size is written as a whole each time: it fits in a few disk pages.
const SMALL_BYTES: u64 = 256 << 10;

/// The results for one operation.
#[derive(Deserialize, Serialize)]
struct Line {
    /// The index of the report in the file.
    report: usize,
    /// The start and the device of that report: lines of another run are ignored.
    start: String,
    selector: String,
    /// The time information of the report after this operation.
    time: Time,
    operation: OperationReport,
}

/// The journal of one file.
pub(crate) struct Journal {
    path: PathBuf,
    /// Opened when the first line is written.
    file: Option<File>,
    /// The size of the journal, and that of the report when it was last written as a whole.
    bytes: u64,
    report_bytes: u64,
}

impl Journal {
    /// Creates the journal of the report at this path.
    pub(crate) fn new(report: &Path) -> Self {
        Self { path: path_of(report), file: None, bytes: 0, report_bytes: 0 }
    }

    /// Whether the report should be written as a whole instead.
    pub(crate) fn is_full(&self) -> bool {
        self.report_bytes <= SMALL_BYTES || self.bytes >= self.report_bytes / 2
    }

    /// Appends the results of an operation of the report at this index of the file.
    ///
    /// # Errors
    /// Those of the system. A partially written line is ignored by readers.
    pub(crate) fn append(&mut self, at: usize, report: &Report, operation: &OperationReport) -> io::Result<()> {
        let line = Line {
            report: at,
            start: report.time.start.clone(),
            selector: report.device.selector.clone(),
            time: report.time.clone(),
            operation: operation.clone(),
        };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::create(&self.path)?),
        };
        file.write_all(&text)?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Starts the journal again after the report was written as a whole with this number of bytes.
    pub(crate) fn folded(&mut self, bytes: u64) {
        self.file = None;
        self.bytes = 0;
        self.report_bytes = bytes;
        // Usually no journal exists. One that cannot be removed contains nothing that the report lacks.
        let _ = fs::remove_file(&self.path);
    }
}

/// `report.json.part`
fn path_of(report: &Path) -> PathBuf {
    let mut path = report.as_os_str().to_owned();
    path.push(".part");
    path.into()
}

/// Adds the contents of a report's journal, if there is one. A partially written line is ignored.
pub(crate) fn replay(path: &Path, reports: &mut [Report]) {
    let Ok(text) = fs::read_to_string(path_of(path)) else { return };
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let Ok(line) = check::from_json::<Line>(line) else { continue };
        let Some(report) = reports.get_mut(line.report) else { continue };
        if report.time.start == line.start && report.device.selector == line.selector {
            report.put(line.operation);
            if report.time.duration_ns < line.time.duration_ns {
                report.time = line.time;
            }
        }
    }
}
