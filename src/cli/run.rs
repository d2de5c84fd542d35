//! `run`: probe devices and report what was found.

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use mxprobe::{
    identify::EXPECTED,
    probes,
    report::{
        DeviceRecord, Host, Kind, OperationRecord, OperationReport, Outcome as Ending, Plan as Planned, Report, SCHEMA,
        Time, Tool, to_json,
    },
};
use mxprobe_api::OperationId;

use super::{
    Outcome,
    arguments::{Devices, Format, Run, Screen},
    catalog::{self, Found},
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO},
    isolation::{Ended, Interrupt, Worker},
    limits::Limits,
    list, output,
    registry::MODELS,
    resume,
    select::{self, Target},
    worker::{Answer, Request, probe_each},
};

/// After so many operations in a row whose process died or hung, the others of the device are not asked.
const PATIENCE: usize = 3;

/// The models that stand in for a device where there is none, the first that exists.
const STAND_INS: [&str; 2] = ["sim:v100", "sim:fma-chain"];

/// What will be probed, and what has to be said about it.
pub(crate) struct Plan {
    pub(crate) targets: Vec<Target>,
    pub(crate) found: Vec<Found>,
    /// For standard error.
    pub(crate) notes: Vec<String>,
    /// No device was found; a model stands in for one. For the report.
    pub(crate) stand_in: Option<String>,
}

/// A device, what is asked of it, and the report that this is written into.
pub(crate) struct Job {
    /// The device; `None` where nothing is left to ask.
    pub(crate) target: Option<Target>,
    pub(crate) operations: Vec<OperationRecord>,
    pub(crate) report: Report,
}

/// Probes devices.
pub(crate) fn run(arguments: &Run, screen: Screen) -> Outcome {
    let start = Instant::now();
    let jobs = match &arguments.resume {
        Some(file) => resume::jobs(file, &arguments.devices, screen)?,
        None => jobs(arguments, screen)?,
    };
    check_expected(arguments, &jobs)?;
    let mut sink = Sink::new(arguments, screen, &jobs)?;
    let limits = Limits::new(arguments, start, Interrupt::listen());
    let mut progress = Progress::new(screen, jobs.iter().map(|job| job.operations.len()).sum());
    for (at, job) in jobs.iter().enumerate() {
        sink.begin(at);
        if let Some(target) = &job.target {
            let mut each = |report: OperationReport| {
                progress.step(&target.selector, &report);
                sink.add(report);
                Ok(())
            };
            let asked = ask(target, job, arguments, &limits, &mut each);
            progress.clear();
            asked?;
        }
        sink.end(limits.interrupt.is_set())?;
        if limits.interrupt.is_set() {
            break;
        }
    }
    sink.close()?;
    if limits.interrupt.is_set() {
        return Ok(INTERRUPTED);
    }
    Ok(if sink.is_contradicted() {
        NO
    } else if sink.is_finished() {
        0
    } else {
        INCOMPLETE
    })
}

/// A model that is expected exists, and has an operation of every device.
fn check_expected(arguments: &Run, jobs: &[Job]) -> Result<(), Failure> {
    let Some(name) = &arguments.expect else { return Ok(()) };
    let model = mxprobe_sim::load(name).map_err(Failure::usage)?;
    let has = |job: &Job| job.operations.iter().any(|operation| model.operations.contains_key(&operation.id));
    match jobs.iter().filter(|job| !job.operations.is_empty()).find(|job| !has(job)) {
        None => Ok(()),
        Some(job) => {
            let selector = &job.report.device.selector;
            Err(Failure::usage(format!("the model `{name}` has none of the operations of {selector}"))
                .help("`mxprobe list -v` shows operations; `--op` chooses among them"))
        }
    }
}

/// What each operation is asked.
#[derive(Clone, Copy)]
struct Questions<'a> {
    /// Which probes; all, if none is named.
    wanted: &'a [String],
    /// The model that it is compared with.
    expect: Option<&'a str>,
}

fn ask(
    target: &Target,
    job: &Job,
    arguments: &Run,
    limits: &Limits,
    each: &mut dyn FnMut(OperationReport) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let operations: Vec<&OperationRecord> = job.operations.iter().collect();
    let wanted = job.report.plan.as_ref().map_or(&[][..], |plan| &plan.probes);
    let questions = Questions { wanted, expect: arguments.expect.as_deref() };
    if target.entry.isolated && !arguments.devices.no_isolation {
        probe_isolated(target, &operations, questions, limits, each)
    } else {
        probe_here(target, &operations, questions, limits, each)
    }
}

/// What a run that is not resumed asks.
fn jobs(arguments: &Run, screen: Screen) -> Result<Vec<Job>, Failure> {
    arguments.probe.iter().try_for_each(|wanted| check_probe(wanted))?;
    let plan = plan(&arguments.devices)?;
    if !screen.quiet {
        for note in &plan.notes {
            output::note(format!("note: {note}"));
        }
    }
    let mut jobs = Vec::new();
    for target in &plan.targets {
        let operations: Vec<_> = select::asked(&arguments.op, &target.listed).into_iter().cloned().collect();
        if !operations.is_empty() {
            let report = begin(target, &plan, &operations, &arguments.probe);
            jobs.push(Job { target: Some(target.clone()), operations, report });
        } else if target.listed.operations.is_empty() && target.listed.scalars.is_empty() && !screen.quiet {
            let reasons = target.listed.refusals.iter().map(|refusal| refusal.reason.as_str());
            let reasons: Vec<&str> = reasons.collect();
            output::note(format!("note: {} has no operation: {}", target.selector, reasons.join("; ")));
        } else if plan.targets.len() > 1 && !screen.quiet {
            output::note(format!("note: {} has no operation {}", target.selector, arguments.op.join(", ")));
        }
    }
    if jobs.is_empty() {
        let listed: Vec<_> = plan.targets.iter().map(|target| &target.listed).collect();
        if arguments.op.is_empty() {
            return Err(select::no_usable(&refused(&listed, &plan.found), "this run"));
        }
        return Err(select::no_operation(&arguments.op, &listed));
    }
    Ok(jobs)
}

/// A probe that matches nothing is a mistake, not an empty report.
fn check_probe(wanted: &str) -> Result<(), Failure> {
    if probes::PROBES.iter().any(|(name, _)| select::is_wanted(&[wanted.to_owned()], name)) {
        return Ok(());
    }
    let names: Vec<&str> = probes::PROBES.iter().map(|(name, _)| *name).collect();
    Err(Failure::usage(format!("there is no probe `{wanted}`; the probes are {}", names.join(", ")))
        .help("`mxprobe explain` says what each of them asks"))
}

/// Which devices: those that are named; else every device of the backends that are named; else all hardware; else a
/// model.
pub(crate) fn plan(devices: &Devices) -> Result<Plan, Failure> {
    let isolate = !devices.no_isolation;
    let selectors = devices.selectors();
    if !selectors.is_empty() {
        let (targets, found) = select::named(&selectors, &devices.backend, isolate)?;
        return Ok(Plan { targets, found, notes: Vec::new(), stand_in: None });
    }
    let entries = select::entries(&devices.backend)?;
    let drivers: Vec<_> = entries.iter().copied().filter(|entry| entry.name != MODELS).collect();
    let found = catalog::discover(&drivers, isolate);
    let mut targets = Vec::new();
    let mut notes = Vec::new();
    for (entry, found) in drivers.iter().zip(&found) {
        for listed in &found.devices {
            let device = &listed.device;
            if !devices.backend.is_empty() || device.kind == Kind::Hardware {
                targets.push(Target { entry, selector: device.selector.clone(), listed: listed.clone() });
            } else {
                notes.push(format!(
                    "{} ({}) computes in software and is left out; `--device {}` probes it",
                    device.selector, device.name, device.selector
                ));
            }
        }
    }
    if devices.backend.is_empty() {
        if targets.iter().all(|target| target.listed.operations.is_empty()) {
            let mut plan = stand_in(isolate)?;
            let title = &plan.targets[0].listed.device.name;
            let words = format!("no matrix unit was found; this is the {title}, nothing was measured on silicon");
            let tried = if found.is_empty() { String::new() } else { format!(" ({})", list::tried(&found)) };
            plan.notes.push(format!("{words}{tried}"));
            plan.stand_in = Some(words);
            plan.notes.extend(notes);
            plan.found = found;
            // The scalar arithmetic of what is there is asked all the same.
            targets.retain(|target| !target.listed.scalars.is_empty());
            targets.append(&mut plan.targets);
            plan.targets = targets;
            return Ok(plan);
        }
    } else if entries.iter().any(|entry| entry.name == MODELS) {
        let plan = stand_in(isolate)?;
        notes.push(format!(
            "of the models, {} is probed; `--device sim:all` probes every one",
            plan.targets[0].selector
        ));
        targets.extend(plan.targets);
    }
    if targets.is_empty() {
        let names: Vec<String> = devices.backend.iter().map(|name| format!("`--backend {name}`")).collect();
        return Err(select::no_usable(&found, &names.join(" ")));
    }
    Ok(Plan { targets, found, notes, stand_in: None })
}

fn stand_in(isolate: bool) -> Result<Plan, Failure> {
    let mut result = Err(Failure::no_device("no model"));
    for name in STAND_INS {
        result = select::named(&[name.to_owned()], &[], isolate);
        if result.is_ok() {
            break;
        }
    }
    let (targets, found) = result?;
    Ok(Plan { targets, found, notes: Vec::new(), stand_in: None })
}

/// What was found, with the reasons of devices that have no operation.
fn refused(listed: &[&mxprobe::report::ListedDevice], found: &[Found]) -> Vec<Found> {
    let mut found = found.to_vec();
    for found in &mut found {
        let devices = listed.iter().filter(|listed| listed.device.backend == found.backend);
        found.refusals.extend(devices.flat_map(|listed| listed.refusals.clone()));
    }
    found
}

fn begin(target: &Target, plan: &Plan, operations: &[OperationRecord], probes: &[String]) -> Report {
    let mut device: DeviceRecord = target.listed.device.clone();
    device.selector.clone_from(&target.selector);
    let is_told = |found: &&Found| plan.stand_in.is_some() || found.backend == target.entry.name;
    let of_backend = plan.found.iter().filter(is_told);
    let refusals = target.listed.refusals.iter().chain(of_backend.flat_map(|found| &found.refusals));
    Report {
        schema: SCHEMA.into(),
        tool: Tool::this(std::env::args().skip(1).collect()),
        time: Time::starting(),
        host: Host::this(),
        notes: plan.stand_in.iter().filter(|_| target.entry.name == MODELS).cloned().collect(),
        device,
        plan: Some(Planned {
            operations: operations.iter().map(|operation| operation.id.clone()).collect(),
            probes: probes.to_vec(),
        }),
        resumed: Vec::new(),
        refusals: refusals.cloned().collect(),
        operations: Vec::new(),
    }
}

/// Probes a device in this process, where nothing can be stopped but by leaving it.
fn probe_here(
    target: &Target,
    operations: &[&OperationRecord],
    questions: Questions<'_>,
    limits: &Limits,
    each: &mut dyn FnMut(OperationReport) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let Some(reason) = limits.spent() {
        return fill(operations, Ending::Skipped, &reason, each);
    }
    let device = match target.entry.open(&target.selector) {
        Ok(device) => device,
        Err(error) => return fill(operations, Ending::Failed, &error.to_string(), each),
    };
    let (sender, answers) = mpsc::channel();
    let ids: Vec<OperationId> = operations.iter().map(|operation| operation.id.clone()).collect();
    let (wanted, expect) = (questions.wanted.to_vec(), questions.expect.map(str::to_owned));
    let worker = thread::spawn(move || {
        probe_each(device, &ids, &wanted, expect.as_deref(), |answer| {
            let Answer::Probed { report, device_lost } = answer else { return Ok(()) };
            sender.send((report.clone(), *device_lost)).map_err(|_| Failure::incomplete("nobody listens"))
        })
    });
    let mut left = operations;
    loop {
        match answers.recv_timeout(Duration::from_millis(50)) {
            Ok((report, device_lost)) => {
                each(*report)?;
                left = &left[1..];
                if device_lost {
                    return fill(left, Ending::Skipped, "the device was lost", each);
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if limits.interrupt.is_set() {
            return Ok(());
        }
        if let Some(reason) = limits.spent() {
            return fill(left, Ending::Skipped, &reason, each);
        }
    }
    if worker.join().is_err()
        && let Some((first, rest)) = left.split_first()
    {
        each(OperationReport::without_answer(first, Ending::Failed, "the probes panicked"))?;
        return fill(rest, Ending::Skipped, "the probes panicked at an operation before", each);
    }
    Ok(())
}

/// Probes a device in child processes: one that dies or hangs takes one operation with it.
fn probe_isolated(
    target: &Target,
    operations: &[&OperationRecord],
    questions: Questions<'_>,
    limits: &Limits,
    each: &mut dyn FnMut(OperationReport) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut left = operations;
    let mut in_a_row = 0;
    while let Some((first, rest)) = left.split_first() {
        if let Some(reason) = limits.spent() {
            return fill(left, Ending::Skipped, &reason, each);
        }
        if in_a_row == PATIENCE {
            let reason = format!("{PATIENCE} operations before in a row ended the device's process or hung");
            return fill(left, Ending::Skipped, &reason, each);
        }
        let request = Request::Probe {
            backend: target.entry.name.to_owned(),
            device: target.selector.clone(),
            operations: left.iter().map(|operation| operation.id.clone()).collect(),
            wanted: questions.wanted.to_vec(),
            expect: questions.expect.map(str::to_owned),
        };
        let mut worker = match Worker::start(&request) {
            Ok(worker) => worker,
            Err(reason) => return fill(left, Ending::Failed, &reason, each),
        };
        let reason = loop {
            if left.is_empty() {
                return Ok(());
            }
            match worker.next(limits.operation(), &limits.interrupt) {
                Ok(Answer::Probed { report, device_lost }) => {
                    each(*report)?;
                    in_a_row = 0;
                    left = &left[1..];
                    if device_lost {
                        return fill(left, Ending::Skipped, "the device was lost", each);
                    }
                }
                Ok(Answer::Refused(reason)) => return fill(left, Ending::Failed, &reason, each),
                Ok(_) => break "the device's process answered something else".to_owned(),
                Err(Ended::Interrupted) => return Ok(()),
                Err(Ended::TimedOut(limit)) => match limits.spent() {
                    Some(reason) => return fill(left, Ending::Skipped, &reason, each),
                    None => break format!("timed out after {} s{}", limit.as_secs_f64(), worker.last_words()),
                },
                Err(Ended::Died(how)) => break how,
            }
        };
        let (stuck, after) = left.split_first().unwrap_or((first, rest));
        each(OperationReport::without_answer(stuck, Ending::Failed, &reason))?;
        in_a_row += 1;
        left = after;
    }
    Ok(())
}

/// The same end for every operation that is left.
fn fill(
    operations: &[&OperationRecord],
    ending: Ending,
    reason: &str,
    each: &mut dyn FnMut(OperationReport) -> Result<(), Failure>,
) -> Result<(), Failure> {
    operations.iter().try_for_each(|operation| each(OperationReport::without_answer(operation, ending, reason)))
}

/// Where reports go.
struct Sink {
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
    fn new(arguments: &Run, screen: Screen, jobs: &[Job]) -> Result<Self, Failure> {
        let out = match arguments.resume.as_ref().or(arguments.out.as_ref()) {
            None => None,
            Some(path) if path.is_dir() => Some(Out::Directory(path.clone())),
            Some(path) => {
                refuse_views(path)?;
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
    fn begin(&mut self, at: usize) {
        self.now = (at, Instant::now(), self.reports[at].time.duration_ns);
    }

    fn add(&mut self, operation: OperationReport) {
        let (at, start, before_ns) = self.now;
        self.reports[at].put(operation);
        self.reports[at].time.elapsed_since(start, before_ns);
        self.save();
    }

    fn end(&mut self, interrupted: bool) -> Result<(), Failure> {
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

    fn close(&mut self) -> Result<(), Failure> {
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
    fn is_finished(&self) -> bool {
        self.reports.iter().all(|report| report.unfinished().is_some_and(|left| left.is_empty()))
    }

    /// Whether an operation has other bits than the model that was expected.
    fn is_contradicted(&self) -> bool {
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

/// Refuses names of views: what is written is JSON, whatever `--format` prints.
fn refuse_views(path: &Path) -> Result<(), Failure> {
    let views = [("html", "html"), ("htm", "html"), ("md", "markdown"), ("csv", "csv")];
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match views.into_iter().find(|(name, _)| extension.eq_ignore_ascii_case(name)) {
        Some((_, format)) => {
            Err(Failure::usage(format!("`{}` is no name for a report: --out writes JSON", path.display())).help(
                format!("`--format {format}` prints that view, and `mxprobe report` shows a saved report as one"),
            ))
        }
        None => Ok(()),
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

/// Says on standard error how far a run is: in place on a terminal, else a line an operation with `-v`.
struct Progress {
    in_place: bool,
    lines: bool,
    done: usize,
    total: usize,
}

impl Progress {
    fn new(screen: Screen, total: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { in_place: terminal && !screen.quiet, lines: !terminal && screen.verbose, done: 0, total }
    }

    fn step(&mut self, selector: &str, report: &OperationReport) {
        self.done += 1;
        if self.lines {
            output::note(format!("[{}/{}] {selector} {}", self.done, self.total, report.operation.id));
        }
        self.show(&format!("{selector} {}", report.operation.id));
    }

    fn show(&self, words: &str) {
        if self.in_place {
            let _ = write!(std::io::stderr(), "\r\x1b[K[{}/{}] {words}", self.done, self.total);
        }
    }

    fn clear(&self) {
        if self.in_place {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
