//! Where the reports of a run go: to the screen, to a file that grows, to a file a device.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use mxprobe::{
    identify::EXPECTED,
    report::{DeviceRecord, Kind, OperationReport, Report, to_json},
};

use super::{
    arguments::{Format, Run, Screen},
    failure::Failure,
    output,
    plan::Job,
};

/// Where reports go.
pub(crate) struct Sink {
    format: Format,
    screen: Screen,
    out: Option<Out>,
    several: bool,
    reports: Vec<Report>,
    /// Which report grows, since when, and what its run had taken before.
    now: (usize, Instant, u64),
    /// Why the file is not what is known here.
    unsaved: Option<Failure>,
}

enum Out {
    File(PathBuf),
    Directory(PathBuf),
}

impl Sink {
    /// Writes what is known already, so that a file that cannot be written is noticed before anything is asked.
    pub(crate) fn new(arguments: &Run, screen: Screen, jobs: &[Job]) -> Result<Self, Failure> {
        let out = match arguments.resume.as_ref().or(arguments.out.as_ref()) {
            None => None,
            Some(path) if path.is_dir() => Some(Out::Directory(path.clone())),
            Some(path) => {
                output::is_for_json(path)?;
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                if !parent.is_dir() || path.as_os_str().to_string_lossy().ends_with('/') {
                    return Err(Failure::usage(format!("`{}` cannot be written: no such directory", path.display()))
                        .help("make the directory first"));
                }
                Some(Out::File(path.clone()))
            }
        };
        let format = arguments.format.unwrap_or(Format::Table);
        let reports: Vec<Report> = jobs.iter().map(|job| job.report.clone()).collect();
        let several = reports.len() > 1;
        let mut sink = Self { format, screen, out, several, reports, now: (0, Instant::now(), 0), unsaved: None };
        if jobs.iter().any(|job| job.target.is_some()) {
            for at in 0..jobs.len() {
                sink.begin(at);
                sink.write()?;
            }
        }
        Ok(sink)
    }

    /// The report at this place grows from now on.
    pub(crate) fn begin(&mut self, at: usize) {
        self.now = (at, Instant::now(), self.reports[at].time.duration_ns);
    }

    pub(crate) fn add(&mut self, operation: OperationReport) {
        let (at, start, before_ns) = self.now;
        self.reports[at].put(operation);
        self.reports[at].time.elapsed_since(start, before_ns);
        self.save();
    }

    pub(crate) fn end(&mut self, interrupted: bool) -> Result<(), Failure> {
        let at = self.now.0;
        if self.reports[at].time.interrupted != interrupted {
            self.reports[at].time.interrupted = interrupted;
            self.save();
        }
        if self.format == Format::Table {
            let shown = self.format.view(self.screen).reports(std::slice::from_ref(&self.reports[at]));
            let text = format!("{}{shown}", if at > 0 { "\n" } else { "" });
            output::print(text.as_bytes())?;
        }
        Ok(())
    }

    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        match self.format {
            // Shown device by device, as they ended.
            Format::Table => {}
            Format::Json => {
                output::print(self.text().as_bytes())?;
            }
            format => {
                output::print(format.view(self.screen).reports(&self.reports).as_bytes())?;
            }
        }
        match self.unsaved.take() {
            Some(failure) => Err(failure.help("`mxprobe run --resume` with that file goes on from what it holds")),
            None => Ok(()),
        }
    }

    /// Whether everything that was to be asked was, and nothing failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.reports.iter().all(|report| report.unfinished().is_some_and(|left| left.is_empty()))
    }

    /// Whether an operation has other bits than the model that was expected.
    pub(crate) fn is_contradicted(&self) -> bool {
        let operations = || self.reports.iter().flat_map(|report| &report.operations);
        operations().any(|operation| operation.finding(EXPECTED).is_some_and(|finding| finding.is(false)))
    }

    /// One report, or an array of them where the run has several devices.
    fn text(&self) -> String {
        match self.reports.as_slice() {
            [one] if !self.several => to_json(one),
            several => to_json(&several),
        }
    }

    /// Writes; if that fails, the run goes on, and the next finding is another attempt.
    fn save(&mut self) {
        let before = self.unsaved.take();
        self.unsaved = self.write().err();
        if let (None, Some(failure)) = (before, &self.unsaved) {
            output::note(format!("note: {failure}; the run goes on, and tries again after each operation"));
        }
    }

    fn write(&self) -> Result<(), Failure> {
        match &self.out {
            None => Ok(()),
            Some(Out::File(path)) => output::replace(path, &self.text()),
            Some(Out::Directory(directory)) => {
                let report = &self.reports[self.now.0];
                output::replace(&directory.join(file_name(&report.device)), &to_json(report))
            }
        }
    }
}

/// `cpu-amx.json`: the backend and the fingerprint, so that the same device has the same file on every machine.
fn file_name(device: &DeviceRecord) -> String {
    let name = if device.kind == Kind::Model {
        device.selector.clone()
    } else {
        format!("{}-{}", device.backend, device.fingerprint)
    };
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_.@".contains(letter) { letter } else { '-' };
    format!("{}.json", name.chars().map(plain).collect::<String>())
}
