//! The journal of a growing report: the results since the report was last written as a whole.
//!
//! The report of a device with many operations has tens of megabytes. Rewriting it after each operation would have
//! quadratic cost, so new results are appended to `REPORT.json.part`, one line of JSON per operation, and the report is
//! rewritten each time that it has grown by half: three to four times its final size in all. If a file has the reports of
//! several devices, a line also ends each of them. A process that is killed leaves both files, and readers of the report
//! also read the journal. A report whose run ends in any other way has no journal.

use std::{
    borrow::Cow,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::report::{Conditions, OperationReport, Report, Time, check};

/// A report of at most this size is written as a whole each time: it fits in a few disk pages.
const SMALL_BYTES: u64 = 256 << 10;

/// The results for one operation, or the end of a report.
#[derive(Deserialize, Serialize)]
struct Line<'a> {
    /// The index of the report in the file.
    report: usize,
    /// The start and the device of that report: lines of another run are ignored.
    start: Cow<'a, str>,
    selector: Cow<'a, str>,
    /// The time information of the report after this operation.
    time: Cow<'a, Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<Cow<'a, OperationReport>>,
    /// The readings of the system, if the report has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conditions: Option<Cow<'a, Conditions>>,
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

    /// Whether the report lacks what is in the journal, of this run or of one before.
    pub(crate) fn is_open(&self) -> bool {
        self.file.is_some() || self.path.exists()
    }

    /// Appends the results of an operation of the report at this index of the file, or its end.
    ///
    /// # Errors
    /// Those of the system. A partially written line is ignored by readers.
    pub(crate) fn append(&mut self, at: usize, report: &Report, operation: Option<&OperationReport>) -> io::Result<()> {
        let line = Line {
            report: at,
            start: Cow::from(&report.time.start),
            selector: Cow::from(&report.device.selector),
            time: Cow::Borrowed(&report.time),
            operation: operation.map(Cow::Borrowed),
            conditions: operation.is_none().then_some(Cow::Borrowed(&report.conditions)),
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
        if report.time.start != line.start || report.device.selector != line.selector {
            continue;
        }
        if let Some(operation) = line.operation {
            report.put(operation.into_owned());
        }
        if report.time.duration_ns <= line.time.duration_ns {
            report.time = line.time.into_owned();
        }
        if let Some(conditions) = line.conditions {
            report.conditions = conditions.into_owned();
            report.sum_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_completes_a_report_up_to_its_last_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        let text = include_str!("../../../results/cpu-amd-zen4-avx512.json");
        let whole: Report = serde_json::from_str(text).unwrap();
        let mut begun = whole.clone();
        begun.operations.clear();
        (begun.summary, begun.conditions, begun.time.interrupted, begun.time.duration_ns) =
            (None, Conditions::default(), true, 0);
        let mut journal = Journal::new(&path);
        assert!(journal.is_full() && !journal.is_open());
        let mut growing = begun.clone();
        for operation in &whole.operations {
            growing.time.duration_ns += 1;
            journal.append(1, &growing, Some(operation)).unwrap();
        }
        let value = |report: &Report| serde_json::to_value(report).unwrap();
        let replayed = || {
            let mut reports = [whole.clone(), begun.clone()];
            replay(&path, &mut reports);
            assert_eq!(value(&reports[0]), value(&whole));
            reports[1].clone()
        };
        let before = replayed();
        assert_eq!((&before.operations, &before.summary), (&whole.operations, &None));
        assert_eq!((before.time.interrupted, before.time.duration_ns), (true, whole.operations.len() as u64));
        journal.append(1, &whole, None).unwrap();
        assert!(journal.is_open() && Journal::new(&path).is_open());
        let mut ended = whole.clone();
        ended.sum_up();
        assert_eq!(value(&replayed()), value(&ended));
        journal.folded(1 << 20);
        assert!(!journal.is_open() && !journal.is_full());
        assert_eq!(value(&replayed()), value(&begun));
    }
}
