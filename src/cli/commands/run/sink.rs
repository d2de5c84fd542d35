//! Destinations of the reports of a run: the screen, a growing file, or one file per device.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{
    identify::EXPECTED,
    plain,
    report::{DeviceRecord, Kind, OperationReport, Report, Reports, to_json},
};

use crate::cli::{
    arguments::{Format, Run, Screen},
    choose::plan::Job,
    failure::Failure,
    io::{journal::Journal, output},
};

/// The destination of reports.
pub(crate) struct Sink {
    format: Format,
    screen: Screen,
    out: Option<Out>,
    several: bool,
    /// Whether each operation is listed with its findings.
    listed: bool,
    reports: Vec<Report>,
    /// The results since each file was last written as a whole; one journal per file.
    journals: Vec<Journal>,
    /// The index of the growing report, when this run started it, and its duration in earlier runs.
    now: (usize, Instant, u64),
    /// Why the file lags behind the results, if it does.
    unsaved: Option<Failure>,
    /// Why standard output can no longer be written, if it cannot.
    unheard: Option<Failure>,
}

enum Out {
    File(PathBuf),
    /// The file of each report.
    Directory(Vec<PathBuf>),
}

impl Sink {
    /// Writes what is already known, so that an unwritable file is noticed before anything is asked.
    pub(crate) fn new(arguments: &Run, screen: Screen, jobs: &[Job]) -> Result<Self, Failure> {
        let out = match arguments.resume.as_ref().or(arguments.out.as_ref()) {
            None => None,
            Some(path) if path.is_dir() => {
                let names = file_names(jobs.iter().map(|job| &job.report.device));
                Some(Out::Directory(names.iter().map(|name| path.join(name)).collect()))
            }
            Some(path) => {
                output::is_for_json(path)?;
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                if !parent.is_dir() || path.as_os_str().to_string_lossy().ends_with('/') {
                    return Err(Failure::usage(format!("`{}` cannot be written: no such directory", path.display()))
                        .help("create the directory first"));
                }
                Some(Out::File(path.clone()))
            }
        };
        let format = arguments.format.unwrap_or(Format::Table);
        let reports: Vec<Report> = jobs.iter().map(|job| job.report.clone()).collect();
        let several = reports.len() > 1;
        let now = (0, Instant::now(), 0);
        let journals = match &out {
            None => Vec::new(),
            Some(Out::File(path)) => vec![Journal::new(path)],
            Some(Out::Directory(files)) => files.iter().map(|path| Journal::new(path)).collect(),
        };
        let (listed, screen) = detail(arguments, screen);
        let mut sink =
            Self { format, screen, out, several, listed, reports, journals, now, unsaved: None, unheard: None };
        if jobs.iter().any(|job| job.target.is_some()) {
            for at in 0..jobs.len() {
                sink.begin(at);
                sink.write()?;
            }
        }
        Ok(sink)
    }

    /// Makes the report at this index the growing one.
    pub(crate) fn begin(&mut self, at: usize) {
        self.now = (at, Instant::now(), self.reports[at].time.duration_ns);
    }

    /// Stores the readings of the system before the device was asked.
    pub(crate) fn before(&mut self, readings: BTreeMap<String, String>) {
        let conditions = &mut self.reports[self.now.0].conditions;
        if conditions.start.is_empty() {
            conditions.start = readings;
        }
    }

    /// Stores the readings of the system after the device was asked.
    pub(crate) fn after(&mut self, readings: BTreeMap<String, String>) {
        self.reports[self.now.0].conditions.end = readings;
    }

    pub(crate) fn add(&mut self, operation: OperationReport) {
        let (at, start, before_ns) = self.now;
        self.reports[at].time.elapsed_since(start, before_ns);
        let is_noted = self.note(Some(&operation));
        self.reports[at].put(operation);
        if !is_noted {
            self.save();
        }
    }

    pub(crate) fn end(&mut self, interrupted: bool) -> Result<(), Failure> {
        let at = self.now.0;
        if self.reports[at].time.interrupted != interrupted || self.reports[at].summary.is_none() {
            self.reports[at].time.interrupted = interrupted;
            self.reports[at].sum_up();
            // A file of several reports is written as a whole at the end.
            let is_noted = matches!(self.out, Some(Out::File(_))) && self.note(None);
            if !is_noted {
                self.save();
            }
        }
        if self.format == Format::Table {
            let shown = self.format.form(self.screen).text(&self.shown(std::slice::from_ref(&self.reports[at])));
            let text = format!("{}{shown}", if at > 0 { "\n" } else { "" });
            self.print(&text)?;
        }
        Ok(())
    }

    /// Whether the user gets the first screen rather than the list.
    pub(crate) fn is_summed_up(&self) -> bool {
        self.format == Format::Table && !self.listed
    }

    /// Returns the first screen with the results so far.
    pub(crate) fn so_far(&mut self) -> String {
        // A growing report counts as interrupted, in case nothing more is written; the user who watches it need not be
        // told.
        let at = self.now.0;
        let interrupted = std::mem::replace(&mut self.reports[at].time.interrupted, false);
        let text = self.format.form(self.screen).text(&self.shown(std::slice::from_ref(&self.reports[at])));
        self.reports[at].time.interrupted = interrupted;
        text
    }

    fn shown<'r>(&self, reports: &'r [Report]) -> Reports<'r> {
        Reports { reports, listed: self.listed }
    }

    /// Prints to standard output. A run that is saved to a file continues even if standard output was closed.
    fn print(&mut self, text: &str) -> Result<(), Failure> {
        if self.unheard.is_some() {
            return Ok(());
        }
        match output::print(text.as_bytes()) {
            Err(failure) if self.out.is_some() => self.unheard = Some(failure),
            said => {
                said?;
            }
        }
        Ok(())
    }

    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        if matches!(self.out, Some(Out::File(_))) && self.journals[0].is_open() {
            self.save();
        }
        match self.format {
            // These were shown device by device, as each finished.
            Format::Table => {
                let saved = match &self.out {
                    Some(Out::File(path)) => vec![path.clone()],
                    Some(Out::Directory(files)) => files.clone(),
                    None => Vec::new(),
                };
                if self.unsaved.is_none() && !self.listed {
                    let lines =
                        saved.iter().map(|path| format!("saved: {}\n", plain::one_line(&path.display().to_string())));
                    self.print(&lines.collect::<String>())?;
                }
            }
            Format::Json => self.print(&self.text())?,
            format => self.print(&format.form(self.screen).text(&self.shown(&self.reports)))?,
        }
        match (self.unsaved.take(), self.unheard.take()) {
            (Some(failure), _) => Err(failure.help("`mxprobe run --resume` with that file continues from there")),
            (None, Some(failure)) if !failure.is_silent() => {
                Err(failure.help("the file given with `--out` is complete"))
            }
            _ => Ok(()),
        }
    }

    /// Whether everything that was planned was asked, and nothing failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.reports.iter().all(|report| report.unfinished().is_some_and(|left| left.is_empty()))
    }

    /// Whether the bits of an operation differ from those of the expected model.
    pub(crate) fn is_contradicted(&self) -> bool {
        let operations = || self.reports.iter().flat_map(|report| &report.operations);
        operations().any(|operation| operation.finding(EXPECTED).is_some_and(|finding| finding.is(false)))
    }

    /// Serializes one report, or an array of them if the run has several devices.
    fn text(&self) -> String {
        match self.reports.as_slice() {
            [one] if !self.several => to_json(one),
            several => to_json(&several),
        }
    }

    /// Appends an operation, or the end of the growing report, to the journal of the file, and returns whether that is
    /// sufficient for now.
    fn note(&mut self, operation: Option<&OperationReport>) -> bool {
        let at = self.now.0;
        let file = if matches!(self.out, Some(Out::File(_))) { 0 } else { at };
        let Some(journal) = self.journals.get_mut(file).filter(|journal| !journal.is_full()) else { return false };
        self.unsaved.is_none() && journal.append(at, &self.reports[at], operation).is_ok()
    }

    /// Writes the file; if that fails, the run continues and tries again after the next operation.
    fn save(&mut self) {
        let before = self.unsaved.take();
        self.unsaved = self.write().err();
        if let (None, Some(failure)) = (before, &self.unsaved) {
            output::note(format!("note: {failure}; the run continues, and tries again after each operation"));
        }
    }

    fn write(&mut self) -> Result<(), Failure> {
        let at = self.now.0;
        let (file, path, text) = match &self.out {
            None => return Ok(()),
            Some(Out::File(path)) => (0, path, self.text()),
            Some(Out::Directory(files)) => (at, &files[at], to_json(&self.reports[at])),
        };
        output::replace(path, &text)?;
        // A pipe or /dev/null gets the whole text each time.
        self.journals[file].folded(if path.is_file() { text.len() as u64 } else { 0 });
        Ok(())
    }
}

/// Returns whether each operation is listed with its findings, and the screen with or without the evidence: a run of
/// selected operations or probes lists them, `-v` goes one step further, `-vv` two.
fn detail(arguments: &Run, screen: Screen) -> (bool, Screen) {
    let steps = u8::from(!arguments.op.is_empty() || !arguments.probe.is_empty()) + screen.steps();
    (steps > 0, screen.with_evidence(steps > 1))
}

/// Names the files `cpu-amx.json`: from backend and fingerprint, so that the same device has the same file name on
/// every machine. If several names collide, the second becomes `cuda-sm_90a-2.json`.
fn file_names<'a>(devices: impl Iterator<Item = &'a DeviceRecord>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for device in devices {
        let stem = file_stem(device);
        // Some file systems are case-insensitive.
        let is_new = |name: &String| !names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let more = (2..).map(|number| format!("{stem}-{number}.json"));
        let name = std::iter::once(format!("{stem}.json")).chain(more).find(is_new);
        names.push(name.expect("numbers do not end"));
    }
    names
}

fn file_stem(device: &DeviceRecord) -> String {
    let name = if device.kind == Kind::Model {
        device.selector.clone()
    } else {
        format!("{}-{}", device.backend, device.fingerprint)
    };
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_.@".contains(letter) { letter } else { '-' };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(selector: &str, fingerprint: &str) -> DeviceRecord {
        DeviceRecord {
            backend: "cuda".into(),
            selector: selector.into(),
            name: "NVIDIA H100".into(),
            fingerprint: fingerprint.into(),
            kind: Kind::Hardware,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: BTreeMap::new(),
        }
    }

    #[test]
    fn each_of_two_equal_devices_has_a_file_of_its_own() {
        let devices =
            [gpu("cuda:0", "sm_90a"), gpu("cuda:1", "SM_90a"), gpu("cuda:2", "sm_90a-2"), gpu("cuda:3", "x/y")];
        let names = ["cuda-sm_90a.json", "cuda-SM_90a-2.json", "cuda-sm_90a-2-2.json", "cuda-x-y.json"];
        assert_eq!(file_names(devices.iter()), names);
    }
}
