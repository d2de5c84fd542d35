//! A journal beside a report that grows: what was learnt since the report was last written whole.
//!
//! A report of a device with many operations has tens of megabytes. To write it again after each operation would cost the
//! square of that, so what is new is appended to `REPORT.json.part`, a line of JSON an operation, and the report is written
//! whole each time that it has grown by half: three to four times its final size in all. A process that is killed leaves
//! both, and whoever reads the report reads the journal too. A report that ends in any other way has no journal.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::report::{OperationReport, Report, Time, check};
use serde::{Deserialize, Serialize};

/// A report that has no more bytes is written whole each time: it is one page of a disk or a few.
const SMALL_BYTES: u64 = 256 << 10;

/// What was learnt about an operation.
#[derive(Deserialize, Serialize)]
struct Line {
    /// Which report of the file it belongs to.
    report: usize,
    /// The start and the device of that report: a journal of another run is not read.
    start: String,
    selector: String,
    /// When this was learnt.
    time: Time,
    operation: OperationReport,
}

/// The journal of one file.
pub(crate) struct Journal {
    path: PathBuf,
    /// Opened when the first line is written.
    file: Option<File>,
    /// Its size, and that of the report when it was last written whole.
    bytes: u64,
    report_bytes: u64,
}

impl Journal {
    /// The journal of a report at this path.
    pub(crate) fn new(report: &Path) -> Self {
        Self { path: path_of(report), file: None, bytes: 0, report_bytes: 0 }
    }

    /// Whether the report is to be written whole instead.
    pub(crate) fn is_full(&self) -> bool {
        self.report_bytes <= SMALL_BYTES || self.bytes >= self.report_bytes / 2
    }

    /// Appends what was learnt about an operation of the report at this place of the file.
    ///
    /// # Errors
    /// Those of the system. What was written of the line is not read.
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

    /// The report was written whole, with so many bytes: the journal begins anew.
    pub(crate) fn folded(&mut self, bytes: u64) {
        self.file = None;
        self.bytes = 0;
        self.report_bytes = bytes;
        // Usually there is none. One that cannot be removed says nothing that the report does not.
        let _ = fs::remove_file(&self.path);
    }
}

/// `report.json.part`
fn path_of(report: &Path) -> PathBuf {
    let mut path = report.as_os_str().to_owned();
    path.push(".part");
    path.into()
}

/// Adds what the journal of a report says, if there is one. A line that was not written to its end is left out.
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
