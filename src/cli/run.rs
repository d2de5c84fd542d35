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
        DeviceRecord, Finding, Host, Kind, OperationRecord, OperationReport, Outcome as Ending, Report, SCHEMA, Time,
        Tool, to_json,
    },
};
use mxprobe_api::OperationId;

use super::{
    Outcome,
    arguments::{Devices, Format, Run, Screen},
    catalog::{self, Found},
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO},
    isolation::{Ended, Interrupt, Worker},
    list, output,
    registry::MODELS,
    select::{self, Target},
    worker::{Answer, Request, probe_each},
};

/// How long one operation may take on a device that is no model.
const LIMIT: Duration = Duration::from_secs(60);

/// After so many operations in a row whose process died or hung, the others of the device are not asked.
const PATIENCE: usize = 3;

/// The models that stand in for a device where there is none, the first that exists.
const STAND_INS: [&str; 2] = ["sim:v100", "sim:fma-chain"];

/// What will be probed, and what has to be said about it.
struct Plan {
    targets: Vec<Target>,
    found: Vec<Found>,
    /// For standard error.
    notes: Vec<String>,
    /// No device was found; a model stands in for one. For the report.
    stand_in: Option<String>,
}

/// Probes devices.
pub(crate) fn run(arguments: &Run, screen: Screen) -> Outcome {
    arguments.probe.iter().try_for_each(|wanted| check_probe(wanted))?;
    let expected = arguments.expect.as_deref().map(mxprobe_sim::load).transpose().map_err(Failure::usage)?;
    let plan = plan(&arguments.devices)?;
    if !screen.quiet {
        for note in &plan.notes {
            output::note(format!("note: {note}"));
        }
    }
    let mut jobs = Vec::new();
    for target in &plan.targets {
        let operations = select::operations(&arguments.op, &target.listed);
        if !operations.is_empty() {
            jobs.push((target, operations));
        } else if target.listed.operations.is_empty() && !screen.quiet {
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
    if let (Some(model), Some(name)) = (&expected, &arguments.expect) {
        let has = |operations: &[&OperationRecord]| {
            operations.iter().any(|operation| model.operations.contains_key(&operation.id))
        };
        if let Some((target, _)) = jobs.iter().find(|(_, operations)| !has(operations)) {
            return Err(Failure::usage(format!(
                "the model `{name}` has none of the operations of {}",
                target.selector
            ))
            .help("`mxprobe list -v` shows operations; `--op` chooses among them"));
        }
    }
    let mut sink = Sink::new(arguments, screen, jobs.len() > 1)?;
    let interrupt = Interrupt::listen();
    let mut progress = Progress::new(screen, jobs.iter().map(|(_, operations)| operations.len()).sum());
    for (target, operations) in jobs {
        let start = Instant::now();
        sink.begin(begin(target, &plan), target)?;
        progress.show(&target.selector);
        let mut each = |report: OperationReport| {
            progress.step(&target.selector, &report);
            sink.add(report, start)
        };
        let outcome = if target.entry.isolated && !arguments.devices.no_isolation {
            let limit = arguments.timeout.unwrap_or(LIMIT);
            probe_isolated(target, &operations, arguments, limit, &interrupt, &mut each)
        } else {
            probe_here(target, &operations, arguments, &interrupt, &mut each)
        };
        progress.clear();
        outcome?;
        sink.end(start, interrupt.is_set())?;
        if interrupt.is_set() {
            break;
        }
    }
    sink.close()?;
    if interrupt.is_set() {
        return Ok(INTERRUPTED);
    }
    Ok(if sink.contradicted {
        NO
    } else if sink.failed {
        INCOMPLETE
    } else {
        0
    })
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
fn plan(devices: &Devices) -> Result<Plan, Failure> {
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

fn begin(target: &Target, plan: &Plan) -> Report {
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
        notes: plan.stand_in.iter().cloned().collect(),
        device,
        refusals: refusals.cloned().collect(),
        operations: Vec::new(),
    }
}

/// Probes a device in this process, where nothing can be stopped but by leaving it.
fn probe_here(
    target: &Target,
    operations: &[&OperationRecord],
    arguments: &Run,
    interrupt: &Interrupt,
    each: &mut dyn FnMut(OperationReport) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let device = match target.entry.open(&target.selector) {
        Ok(device) => device,
        Err(error) => return fill(operations, Ending::Failed, &error.to_string(), each),
    };
    let (sender, answers) = mpsc::channel();
    let ids: Vec<OperationId> = operations.iter().map(|operation| operation.id.clone()).collect();
    let (wanted, expect) = (arguments.probe.clone(), arguments.expect.clone());
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
            Err(RecvTimeoutError::Timeout) if interrupt.is_set() => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if worker.join().is_err()
        && let Some((first, rest)) = left.split_first()
    {
        each(without_answer(first, Ending::Failed, "the probes panicked"))?;
        return fill(rest, Ending::Skipped, "the probes panicked at an operation before", each);
    }
    Ok(())
}

/// Probes a device in child processes: one that dies or hangs takes one operation with it.
fn probe_isolated(
    target: &Target,
    operations: &[&OperationRecord],
    arguments: &Run,
    limit: Duration,
    interrupt: &Interrupt,
    each: &mut dyn FnMut(OperationReport) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut left = operations;
    let mut in_a_row = 0;
    while let Some((first, rest)) = left.split_first() {
        if in_a_row == PATIENCE {
            let reason = format!("{PATIENCE} operations before in a row ended the device's process or hung");
            return fill(left, Ending::Skipped, &reason, each);
        }
        let request = Request::Probe {
            backend: target.entry.name.to_owned(),
            device: target.selector.clone(),
            operations: left.iter().map(|operation| operation.id.clone()).collect(),
            wanted: arguments.probe.clone(),
            expect: arguments.expect.clone(),
        };
        let mut worker = match Worker::start(&request) {
            Ok(worker) => worker,
            Err(reason) => return fill(left, Ending::Failed, &reason, each),
        };
        let reason = loop {
            if left.is_empty() {
                return Ok(());
            }
            match worker.next(limit, interrupt) {
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
                Err(Ended::TimedOut(limit)) => break format!("timed out after {} s", limit.as_secs_f64()),
                Err(Ended::Died(how)) => break how,
            }
        };
        let (stuck, after) = left.split_first().unwrap_or((first, rest));
        each(without_answer(stuck, Ending::Failed, &reason))?;
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
    operations.iter().try_for_each(|operation| each(without_answer(operation, ending, reason)))
}

/// What is reported of an operation whose probes never came to an end.
fn without_answer(operation: &OperationRecord, outcome: Ending, reason: &str) -> OperationReport {
    OperationReport {
        operation: operation.clone(),
        kernel_sha256: None,
        findings: vec![Finding {
            probe: "execution".into(),
            outcome,
            reason: Some(reason.to_owned()),
            value: None,
            statement: String::new(),
            evidence: Vec::new(),
        }],
        dots: 0,
        duration_ns: 0,
    }
}

/// Where reports go.
struct Sink {
    format: Format,
    screen: Screen,
    out: Option<Out>,
    several: bool,
    reports: Vec<Report>,
    failed: bool,
    /// An operation has other bits than the model that was expected.
    contradicted: bool,
}

enum Out {
    File(PathBuf),
    Directory(PathBuf),
}

impl Sink {
    fn new(arguments: &Run, screen: Screen, several: bool) -> Result<Self, Failure> {
        let out = match &arguments.out {
            None => None,
            Some(path) if path.is_dir() => Some(Out::Directory(path.clone())),
            Some(path) => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                if !parent.is_dir() || path.as_os_str().to_string_lossy().ends_with('/') {
                    return Err(Failure::usage(format!("`{}` cannot be written: no such directory", path.display()))
                        .help("make the directory first"));
                }
                Some(Out::File(path.clone()))
            }
        };
        let format = arguments.format.unwrap_or(Format::Table);
        Ok(Self { format, screen, out, several, reports: Vec::new(), failed: false, contradicted: false })
    }

    fn begin(&mut self, report: Report, target: &Target) -> Result<(), Failure> {
        debug_assert_eq!(report.device.selector, target.selector);
        self.reports.push(report);
        self.save()
    }

    fn add(&mut self, operation: OperationReport, start: Instant) -> Result<(), Failure> {
        self.failed |= operation.findings.iter().any(|finding| finding.outcome == Ending::Failed);
        self.contradicted |= operation.finding(EXPECTED).is_some_and(|finding| finding.is(false));
        let report = self.reports.last_mut().expect("a device was begun");
        report.operations.push(operation);
        report.time.elapsed_since(start);
        self.save()
    }

    fn end(&mut self, start: Instant, interrupted: bool) -> Result<(), Failure> {
        let separate = self.reports.len() > 1;
        let report = self.reports.last_mut().expect("a device was begun");
        report.time.interrupted = interrupted;
        report.time.elapsed_since(start);
        self.save()?;
        if self.format == Format::Table {
            let report = self.reports.last().expect("a device was begun");
            let shown = self.format.view(self.screen).reports(std::slice::from_ref(report));
            let text = format!("{}{shown}", if separate { "\n" } else { "" });
            output::print(text.as_bytes())?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failure> {
        match self.format {
            // Shown device by device, as they ended.
            Format::Table => return Ok(()),
            Format::Json => output::print(self.text().as_bytes())?,
            format => output::print(format.view(self.screen).reports(&self.reports).as_bytes())?,
        };
        Ok(())
    }

    /// One report, or an array of them where the run has several devices.
    fn text(&self) -> String {
        match self.reports.as_slice() {
            [one] if !self.several => to_json(one),
            several => to_json(&several),
        }
    }

    fn save(&self) -> Result<(), Failure> {
        match &self.out {
            None => Ok(()),
            Some(Out::File(path)) => output::replace(path, &self.text()),
            Some(Out::Directory(directory)) => {
                let report = self.reports.last().expect("a device was begun");
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
