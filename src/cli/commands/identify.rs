//! `identify`: recovers the model of a device.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    identify::Effort,
    report::{
        Host, IDENTIFICATION_SCHEMA, IdentificationOutcome, IdentificationReport, IdentifiedOperation,
        Outcome as Ended, Request, Time, identification_summary, identified, this_tool, to_json,
    },
    session::{identify_one, unidentified},
};
use mxprobe_api::{Device, OperationId};

use crate::cli::{
    arguments::{Format, Identify, Screen, given},
    choose::{
        limits::Limits,
        reach::{Isolation, reach},
        target::{Search, Target},
    },
    commands::{
        each::{self, Listener},
        identified::ModelFile,
        identify_gemm::identify_shapes,
        resumed,
    },
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO, Outcome},
    io::{interrupt::Interrupt, output, progress::Progress},
};

/// Identifies operations of one device and writes their model.
pub(crate) fn identify(arguments: &Identify, screen: Screen) -> Outcome {
    if arguments.gemm {
        return identify_shapes(arguments, screen);
    }
    let limits = Limits::new(arguments.inputs.reach.timeout, None, Interrupt::listen());
    let job = match &arguments.resume {
        Some(file) => resumed_job(file, arguments, screen)?,
        None => new_job(arguments)?,
    };
    let Job { target, ids, out, saved, report } = job;
    output::can_write(&out)?;
    if let Some(path) = &saved {
        output::is_for_json(path)?;
        output::can_write(path)?;
    }
    let inputs = &arguments.inputs;
    let request = report.request.as_ref();
    let seed = request.map_or(inputs.seed, |request| request.seed);
    let effort = Effort { seed, nan: report.nan, ..Effort::default() };
    let list = screen.verbose || request.is_none_or(|request| request.operations.len() <= FEW);
    let mut file = ModelFile::new(&target, &out)?;
    file.restore(&report.operations)?;
    let mut progress = Progress::new(screen, ids.len());
    progress.begin(each::steps(&target.selector, &ids));
    let format = inputs.format;
    let before_ns = report.time.duration_ns;
    let mut grows =
        Grows { format, list, screen, start: (Instant::now(), before_ns), out, saved, file, report, progress };
    // A run that is interrupted at its first operation can be resumed, too.
    grows.save()?;
    let isolation = Isolation { wanted: !inputs.reach.no_isolation, forward_stderr: false };
    let reached = reach(&target, isolation, &limits);
    let threads = reached.as_ref().map_or(1, |reached| reached.threads_each(ids.len()));
    let effort = Effort { threads, ..effort };
    let ask = move |device: &dyn Device, id: &OperationId, progress: &dyn Fn(&str)| {
        identify_one(device, id, effort, progress)
    };
    let interrupted = !ids.is_empty() && each::each(reached, &ids, &limits, ask, &mut grows)?;
    grows.report.time.interrupted = interrupted;
    grows.save()?;
    let Grows { report, progress, saved, .. } = grows;
    drop(progress);
    match format {
        Format::Table => {
            let summary = identification_summary(&report, saved.as_deref().map(Path::display).as_ref());
            output::show_part(&summary, screen)?
        }
        format => output::show(&report, format, screen)?,
    };
    Ok(code(&report))
}

/// The most operations that are listed without `-v`.
const FEW: usize = 8;

/// The work of a run, and the files it writes.
struct Job {
    target: Target,
    ids: Vec<OperationId>,
    /// The model file.
    out: PathBuf,
    /// The JSON file, if one is written.
    saved: Option<PathBuf>,
    report: IdentificationReport,
}

fn new_job(arguments: &Identify) -> Result<Job, Failure> {
    let (device, out) = (arguments.device.as_deref().unwrap_or_default(), arguments.out.clone().unwrap_or_default());
    let target = each::one_target(device, &Search::by(&arguments.inputs.reach, &arguments.op))?;
    let operations = each::operations(&arguments.op, &target)?;
    let ids: Vec<OperationId> = operations.iter().map(|operation| operation.id.clone()).collect();
    let request = Request {
        shard: arguments.shard,
        out: Some(out.display().to_string()),
        ..Request::new(ids, arguments.inputs.seed)
    };
    let ids = request.own_operations().cloned().collect();
    let report = IdentificationReport {
        schema: IDENTIFICATION_SCHEMA.into(),
        tool: this_tool(&given()),
        time: Time::starting(),
        host: Host::this(),
        device: target.listed.device.clone(),
        model: None,
        nan: arguments.nan,
        request: Some(request),
        resumed: Vec::new(),
        operations: Vec::new(),
    };
    Ok(Job { target, ids, out, saved: arguments.report.clone(), report })
}

fn resumed_job(file: &Path, arguments: &Identify, screen: Screen) -> Result<Job, Failure> {
    let mut report: IdentificationReport = resumed::read(file, IDENTIFICATION_SCHEMA)?;
    let mut ids = resumed::left(file, report.unfinished())?;
    let device = arguments.device.as_deref();
    let target = resumed::target(file, &report.device, device, &arguments.inputs.reach, &mut ids)?;
    let named = report.request.as_ref().and_then(|request| request.out.clone()).map(PathBuf::from);
    let out = arguments.out.clone().or(named).ok_or_else(|| {
        Failure::usage(format!("`{}` does not name a model file", file.display())).help("`--out MODEL.toml` names one")
    })?;
    if ids.is_empty() {
        resumed::note_finished(file, screen);
    } else {
        report.time.interrupted = true;
        report.resumed.push(resumed::resumption(ids.len()));
    }
    Ok(Job { target, ids, out, saved: Some(file.to_owned()), report })
}

/// A report and a model file that are saved after every operation.
struct Grows {
    format: Format,
    /// Whether each operation is shown when it is finished.
    list: bool,
    screen: Screen,
    /// The start of this run, and the nanoseconds of the runs that it continues.
    start: (Instant, u64),
    out: PathBuf,
    saved: Option<PathBuf>,
    file: ModelFile,
    report: IdentificationReport,
    progress: Progress,
}

impl Grows {
    fn save(&mut self) -> Result<(), Failure> {
        self.report.model = self.file.is_written().then(|| self.out.display().to_string());
        self.report.time.elapsed_since(self.start.0, self.start.1);
        self.saved.as_ref().map_or(Ok(()), |path| output::replace(path, &to_json(&self.report)))
    }

    fn add(&mut self, found: IdentifiedOperation) -> Result<(), Failure> {
        let is_identified = found.outcome == IdentificationOutcome::Identified;
        if self.format == Format::Table && (self.list || !is_identified) {
            output::show_part(&identified(&found, self.screen.verbose), self.screen.for_lines())?;
        }
        self.file.add(&found)?;
        self.report.put(found);
        self.progress.step();
        self.save()
    }
}

impl Listener<IdentifiedOperation> for Grows {
    type Error = Failure;

    fn answered(&mut self, found: IdentifiedOperation) -> Result<(), Failure> {
        self.add(found)
    }

    fn missing(&mut self, id: &OperationId, ending: Ended, reason: &str) -> Result<(), Failure> {
        self.add(unidentified(id, &each::unanswered(ending, reason), Duration::ZERO))
    }

    fn progress(&mut self, words: &str) {
        // A session reports the operation first, then its steps, which are indented by two spaces.
        if let Some(step) = words.strip_prefix("  ") {
            self.progress.part(step, 0.0);
        }
    }
}

/// The exit code of an identification.
pub(super) fn code(report: &IdentificationReport) -> u8 {
    let any = |outcome| report.operations.iter().any(|operation| operation.outcome == outcome);
    if report.time.interrupted {
        INTERRUPTED
    } else if any(IdentificationOutcome::Failed) {
        INCOMPLETE
    } else if any(IdentificationOutcome::Outside) || any(IdentificationOutcome::Unrepeatable) {
        NO
    } else {
        0
    }
}
