//! `verify`: compares a device with a model, bit for bit.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use crate::{
    identify::Comparison,
    report::{
        Host, Outcome as Ending, Request, Time, VERIFICATION_SCHEMA, VerificationReport, VerifiedOperation, this_tool,
        to_json, verification_summary, verified,
    },
    session::{unverified, verify_one},
};
use mxprobe_api::{Device, OperationId};
use mxprobe_models::Model;

use crate::cli::{
    arguments::{Format, Screen, Verify, given},
    choose::{
        limits::Limits,
        models,
        reach::{Isolation, reach},
        target::{Search, Target},
    },
    commands::{
        each::{self, Listener},
        resumed,
    },
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO, Outcome},
    io::{interrupt::Interrupt, output, progress::Progress},
};

/// Compares operations of one device with a model.
pub(crate) fn verify(arguments: &Verify, screen: Screen) -> Outcome {
    let limits = Limits::new(arguments.inputs.reach.timeout, None, Interrupt::listen());
    let job = match &arguments.resume {
        Some(file) => resumed_job(file, arguments, screen)?,
        None => new_job(arguments)?,
    };
    let Job { target, ids, model, comparison, saved, report } = job;
    if let Some(path) = &saved {
        output::is_for_json(path)?;
        output::can_write(path)?;
    }
    let inputs = &arguments.inputs;
    let list = screen.verbose || report.request.as_ref().is_none_or(|request| request.operations.len() <= FEW);
    let mut progress = Progress::new(screen, ids.len());
    progress.begin(each::steps(&target.selector, &ids));
    let format = inputs.format;
    let before_ns = report.time.duration_ns;
    let compared = Arc::new(AtomicU64::new(0));
    let of =
        (compared.clone(), comparison.shard.map_or(comparison.count, |shard| comparison.count.div_ceil(shard.of())));
    let mut grows = Grows { format, list, screen, start: (Instant::now(), before_ns), saved, report, progress, of };
    // A run that is interrupted at its first operation can be resumed, too.
    grows.save()?;
    let ask = move |device: &dyn Device, id: &OperationId, progress: &dyn Fn(&str)| {
        verify_one(device, id, &model, comparison, &|dots| {
            compared.store(dots, Ordering::Relaxed);
            progress(&format!("{dots} dots"));
        })
    };
    let isolation = Isolation { wanted: !inputs.reach.no_isolation, forward_stderr: false };
    let interrupted =
        !ids.is_empty() && each::each(reach(&target, isolation, &limits), &ids, &limits, ask, &mut grows)?;
    grows.report.time.interrupted = interrupted;
    grows.save()?;
    let Grows { report, progress, saved, .. } = grows;
    drop(progress);
    match format {
        Format::Table => {
            let summary = verification_summary(&report, saved.as_deref().map(Path::display).as_ref());
            output::show_part(&summary, screen)?
        }
        format => output::show(&report, format, screen)?,
    };
    Ok(if interrupted { INTERRUPTED } else { code(&report) })
}

/// The exit code of a finished verification.
pub(super) fn code(report: &VerificationReport) -> u8 {
    if report.operations.iter().any(|operation| operation.mismatches > 0) {
        NO
    } else if report.operations.iter().any(|operation| operation.failed.is_some()) {
        INCOMPLETE
    } else {
        0
    }
}

/// The most operations that are listed without `-v`.
const FEW: usize = 8;

/// The work of a run, and the files it writes.
struct Job {
    target: Target,
    ids: Vec<OperationId>,
    model: Model,
    comparison: Comparison,
    /// The JSON file, if one is written.
    saved: Option<PathBuf>,
    report: VerificationReport,
}

fn new_job(arguments: &Verify) -> Result<Job, Failure> {
    let inputs = &arguments.inputs;
    let name = arguments.model.clone().unwrap_or_default();
    let model = models::load(&name)?;
    let device = arguments.device.as_deref().unwrap_or_default();
    let target = each::one_target(device, &Search::by(&inputs.reach, &arguments.op))?;
    let ids = common(arguments, &target, &model)?;
    let comparison =
        Comparison { count: arguments.count, seed: inputs.seed, nan: arguments.nan, shard: arguments.shard };
    let request = Request {
        shard: arguments.shard,
        count: Some(arguments.count),
        model_sha256: Some(Request::digest(&model.to_toml())),
        ..Request::new(ids.clone(), inputs.seed)
    };
    let report = VerificationReport {
        schema: VERIFICATION_SCHEMA.into(),
        tool: this_tool(&given()),
        time: Time::starting(),
        host: Host::this(),
        device: target.listed.device.clone(),
        model: name,
        nan: arguments.nan,
        request: Some(request),
        resumed: Vec::new(),
        operations: Vec::new(),
    };
    Ok(Job { target, ids, model, comparison, saved: arguments.out.clone(), report })
}

fn resumed_job(file: &Path, arguments: &Verify, screen: Screen) -> Result<Job, Failure> {
    let mut report: VerificationReport = resumed::read(file, VERIFICATION_SCHEMA)?;
    let mut ids = resumed::left(file, report.unfinished())?;
    let model = models::load(&report.model)?;
    let request = report.request.as_ref();
    let digest = Request::digest(&model.to_toml());
    if let Some(was) = request.and_then(|request| request.model_sha256.as_ref()).filter(|was| **was != digest) {
        return Err(Failure::usage(format!("the model `{}` has changed since `{}`", report.model, file.display()))
            .cause(format!("its SHA-256 was {was} and is {digest}"))
            .help("compare every operation again, without `--resume`"));
    }
    let count = request.and_then(|request| request.count).unwrap_or(arguments.count);
    let seed = request.map_or(arguments.inputs.seed, |request| request.seed);
    let shard = request.and_then(|request| request.shard);
    let comparison = Comparison { count, seed, nan: report.nan, shard };
    let device = arguments.device.as_deref();
    let target = resumed::target(file, &report.device, device, &arguments.inputs.reach, &mut ids)?;
    if ids.is_empty() {
        resumed::note_finished(file, screen);
    } else {
        report.time.interrupted = true;
        report.resumed.push(resumed::resumption(ids.len()));
    }
    Ok(Job { target, ids, model, comparison, saved: Some(file.to_owned()), report })
}

/// A report that is saved after every operation.
struct Grows {
    format: Format,
    /// Whether each operation is shown when it is finished.
    list: bool,
    screen: Screen,
    /// The start of this run, and the nanoseconds of the runs that it continues.
    start: (Instant, u64),
    saved: Option<PathBuf>,
    report: VerificationReport,
    progress: Progress,
    /// The dots of the current operation that were compared so far, and their number in the end.
    of: (Arc<AtomicU64>, u64),
}

impl Grows {
    fn save(&mut self) -> Result<(), Failure> {
        self.report.time.elapsed_since(self.start.0, self.start.1);
        self.saved.as_ref().map_or(Ok(()), |path| output::replace(path, &to_json(&self.report)))
    }

    fn add(&mut self, found: VerifiedOperation) -> Result<(), Failure> {
        if self.format == Format::Table && (self.list || !found.agrees()) {
            output::show_part(&verified(&found), self.screen.for_lines())?;
        }
        self.report.put(found);
        self.progress.step();
        self.save()
    }
}

impl Listener<VerifiedOperation> for Grows {
    type Error = Failure;

    fn answered(&mut self, found: VerifiedOperation) -> Result<(), Failure> {
        self.add(found)
    }

    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Failure> {
        self.add(unverified(id, &each::unanswered(ending, reason)))
    }

    fn progress(&mut self, words: &str) {
        let (compared, count) = &self.of;
        self.progress.part(words, compared.load(Ordering::Relaxed) as f64 / *count as f64);
    }
}

/// The most operations of a model that an error lists.
const SHOWN: usize = 12;

/// The requested operations that the device and the model have; without `--op`, all that both have.
fn common(arguments: &Verify, target: &Target, model: &Model) -> Result<Vec<OperationId>, Failure> {
    let asked = each::operations(&arguments.op, target)?;
    let both: Vec<OperationId> = asked
        .iter()
        .filter(|operation| model.operations.contains_key(&operation.id))
        .map(|operation| operation.id.clone())
        .collect();
    if !both.is_empty() && (arguments.op.is_empty() || both.len() == asked.len()) {
        return Ok(both);
    }
    let missing = asked.iter().find(|operation| !model.operations.contains_key(&operation.id));
    let Some(missing) = missing.map(|operation| &operation.id) else {
        return Err(Failure::usage(format!("{} has no operations", target.selector)));
    };
    let name = arguments.model.as_deref().unwrap_or_default();
    let mut failure = Failure::usage(format!("the model `{name}` has no operation {missing}"));
    let formats = |id: &OperationId| (id.shape.k, id.d, id.a, id.b, id.c, id.qualifiers.clone());
    let alike: Vec<&OperationId> = model.operations.keys().filter(|id| formats(id) == formats(missing)).collect();
    if !alike.is_empty() {
        for id in alike.iter().take(SHOWN) {
            failure = failure.cause(format!("of the same formats and k it has {id}"));
        }
        return Err(failure.help(format!(
            "`verify` compares operations of the same id; `mxprobe compare` also compares those of the same \
             formats and k: `mxprobe compare {} {name}`",
            crate::plain::shell_word(&target.selector)
        )));
    }
    for id in model.operations.keys().take(SHOWN) {
        failure = failure.cause(format!("it has {id}"));
    }
    let others = model.operations.len().saturating_sub(SHOWN);
    if others > 0 {
        failure = failure.cause(format!("and {others} more"));
    }
    Err(failure.help("`mxprobe list -v --backend sim` shows the operations of every model"))
}
