//! `screen`: compares every bit that devices compute now with their models, and locates wrong bits.

use std::{
    fs,
    io::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    nan_bits::NanBits,
    plain::counted,
    report::{
        DeviceRecord, Health, Host, Kind, OperationRecord, Outcome as Ending, SCREEN_SCHEMA, ScreenReport, ScreenShard,
        ScreenedOperation, Screens, Time, this_tool,
    },
    screen::{self, Cache, Inputs, Reference, Settings, screen_one},
};
use mxprobe_api::{Device, OperationId};
use mxprobe_models::Model;

use crate::cli::{
    arguments::{Format, Screen, ScreenFormat, Screening, given},
    choose::{
        limits::Limits,
        models, plan,
        reach::{Isolation, reach},
        select,
        target::Target,
    },
    commands::each::{self, Listener},
    failure::{Failure, INTERRUPTED, NO, Outcome, USAGE},
    io::{interrupt::Interrupt, output, progress::Progress},
};

/// The exit code if a device could not be judged: nothing was compared, or an operation failed.
const UNKNOWN: u8 = USAGE;

/// The longest time that one request computes. A device that hangs is noticed after the time limit of a request.
const SLICE: Duration = Duration::from_secs(5);

/// Screens devices one after the other.
pub(crate) fn screen(arguments: &Screening, screen: Screen) -> Outcome {
    let interrupt = Interrupt::listen();
    let model = arguments.model.as_deref().map(models::load).transpose()?;
    let node = node(arguments)?;
    if let Some(path) = &arguments.out {
        output::is_for_json(path)?;
        output::can_write(path)?;
    }
    let plan = plan::plan(&arguments.devices, &arguments.op).map_err(Failure::unjudged)?;
    if plan.stand_in.is_some() {
        return Err(select::no_usable(&plan.found, "`screen`").unjudged());
    }
    if !screen.quiet {
        plan.notes.iter().for_each(output::note);
    }
    let (devices, shard) = own_devices(arguments, &plan.targets)?;
    let context =
        Context { arguments, screen, model: model.as_ref(), node: node.as_ref(), shard, interrupt: &interrupt };
    let mut reports = Vec::new();
    let mut interrupted = false;
    for (target, asked) in devices {
        let (report, stopped) = context.one_device(target, &asked)?;
        if let Some(path) = &arguments.log {
            append(path, &screen::log_line(&report))?;
        }
        reports.push(report);
        interrupted |= stopped;
        if interrupted {
            break;
        }
    }
    if let Some(path) = &arguments.out {
        output::replace(path, &crate::report::Show::json(&Screens(&reports)))?;
    }
    show(arguments.format, &reports, screen)?;
    let verdict = reports.iter().map(|report| report.verdict).max().unwrap_or(Health::Unknown);
    Ok(if interrupted && verdict != Health::Wrong { INTERRUPTED } else { code(verdict) })
}

/// The exit code of a verdict.
pub(super) fn code(verdict: Health) -> u8 {
    match verdict {
        Health::Healthy => 0,
        Health::Wrong => NO,
        Health::Unknown => UNKNOWN,
    }
}

/// Devices, each with the operations to screen.
type Own<'a> = Vec<(&'a Target, Vec<OperationRecord>)>;

/// The devices of this shard that have matching operations, and the shard with the number of all such devices.
fn own_devices<'a>(arguments: &Screening, targets: &'a [Target]) -> Result<(Own<'a>, Option<ScreenShard>), Failure> {
    let asked = |target: &Target| -> Vec<OperationRecord> {
        select::operations(&arguments.op, &target.listed).into_iter().cloned().collect()
    };
    let mut devices: Own<'a> = targets.iter().map(|target| (target, asked(target))).collect();
    devices.retain(|(_, asked)| !asked.is_empty());
    if devices.is_empty() {
        let listed: Vec<_> = targets.iter().map(|target| &target.listed).collect();
        return Err(select::no_operation(&arguments.op, &listed));
    }
    let Some(shard) = arguments.shard else { return Ok((devices, None)) };
    let all = devices.len() as u64;
    if shard.index() >= all {
        let reason = format!("`--shard {shard}` has no device: {} to screen", counted(all, "device"));
        return Err(
            Failure::usage(reason).help("shards of `screen` split its devices; use no more shards than devices")
        );
    }
    let mut at = 0;
    devices.retain(|_| {
        at += 1;
        shard.has(at - 1)
    });
    Ok((devices, Some(ScreenShard { shard, devices: all })))
}

fn show(format: ScreenFormat, reports: &[ScreenReport], screen: Screen) -> Outcome {
    let form = match format {
        ScreenFormat::Npd => {
            let text: String = reports.iter().map(screen::problem_line).collect();
            return output::print(text.as_bytes());
        }
        ScreenFormat::Prometheus => return output::print(screen::prometheus(reports).as_bytes()),
        ScreenFormat::Table => Format::Table,
        ScreenFormat::Json => Format::Json,
        ScreenFormat::Csv => Format::Csv,
        ScreenFormat::Html => Format::Html,
    };
    output::show(&Screens(reports), form, screen.for_lines())
}

/// The name of this machine, if `--node` or `--host` asks for one.
fn node(arguments: &Screening) -> Result<Option<String>, Failure> {
    if !arguments.host {
        return Ok(arguments.node.clone());
    }
    let name = fs::read_to_string("/proc/sys/kernel/hostname").map_err(|error| {
        Failure::usage(format!("the system does not tell its host name: {error}")).help("`--node NAME` gives one")
    })?;
    Ok(Some(name.trim().to_owned()))
}

/// Appends a line in one write to a file that everyone may read and only its user may write.
fn append(path: &Path, line: &str) -> Result<(), Failure> {
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
    let written = options.open(path).and_then(|mut file| file.write_all(line.as_bytes()));
    written.map_err(|error| Failure::usage(format!("`{}` cannot be written: {error}", path.display())))
}

/// The model of each operation: `model` if there is one, else the shipped model that fits the device.
fn references(model: Option<Model>, device: &DeviceRecord, asked: &[OperationRecord]) -> Vec<Option<Arc<Reference>>> {
    let given = model.map(|model| Arc::new(Reference::new(model)));
    let mut shipped: Vec<Arc<Reference>> = Vec::new();
    let mut known = |operation: &OperationRecord| {
        let model = screen::model_of(device, operation)?;
        let is_same = |reference: &&Arc<Reference>| reference.model().name == model.name;
        if let Some(reference) = shipped.iter().find(is_same) {
            return Some(Arc::clone(reference));
        }
        shipped.push(Arc::new(Reference::new(model.clone())));
        shipped.last().cloned()
    };
    let of = |operation: &OperationRecord| {
        let reference = given.clone().or_else(|| known(operation))?;
        reference.model().operations.contains_key(&operation.id).then_some(reference)
    };
    asked.iter().map(of).collect()
}

/// The settings of all devices.
struct Context<'a> {
    arguments: &'a Screening,
    screen: Screen,
    /// The model that `--model` names.
    model: Option<&'a Model>,
    /// The name of this machine.
    node: Option<&'a String>,
    shard: Option<ScreenShard>,
    interrupt: &'a Interrupt,
}

impl Context<'_> {
    /// Screens one device. Also returns whether it was interrupted.
    fn one_device(&self, target: &Target, asked: &[OperationRecord]) -> Result<(ScreenReport, bool), Failure> {
        let Self { arguments, screen, model: named, node, shard, interrupt } = *self;
        let start = Instant::now();
        let limits = Limits::new(arguments.timeout, None, interrupt.clone());
        let own = named.cloned().map_or_else(|| target.model(), |named| Ok(Some(named)))?;
        let models = references(own, &target.listed.device, asked);
        let ids: Vec<OperationId> = asked.iter().map(|operation| operation.id.clone()).collect();
        let nan = arguments.nan.unwrap_or(match target.listed.device.kind {
            // Compilers choose which NaN of several an instruction returns.
            Kind::Software => NanBits::Any,
            Kind::Hardware | Kind::Model => NanBits::Bits,
        });
        let mut report = ScreenReport {
            schema: SCREEN_SCHEMA.into(),
            tool: this_tool(&without_node(given())),
            time: Time::starting(),
            host: Host::this(),
            node: node.cloned(),
            device: target.listed.device.clone(),
            shard,
            seed: arguments.seed,
            nan,
            passes: arguments.passes,
            injected: arguments.error_inject,
            verdict: Health::Unknown,
            operations: Vec::new(),
        };
        let isolation = Isolation { wanted: !arguments.devices.no_isolation, forward_stderr: screen.aloud };
        let cache = match &arguments.cache {
            _ if arguments.no_cache => None,
            Some(folder) => Some(Cache::new(folder.clone())),
            None => Cache::of_user(),
        };
        let slice = SLICE.min(arguments.timeout / 2);
        let inputs = Inputs { seed: arguments.seed, nan };
        let settings = Settings { inputs, cache, inject: arguments.error_inject, slice, passes: arguments.passes };
        let share = Share::new(arguments.budget, start, models.iter().flatten().count());
        let known: Known = ids.iter().cloned().zip(models).collect();
        let of_thread = Arc::clone(&known);
        let ask = move |device: &dyn Device, id: &OperationId, _: &dyn Fn(&str)| {
            let model = of(&of_thread, id);
            let found = screen_one(device, id, model, &settings, || share.next());
            if model.is_some() {
                share.is_done();
            }
            found
        };
        let mut progress = Progress::new(screen, ids.len());
        progress.begin(each::steps(&target.selector, &ids));
        let mut heard = Heard { report: &mut report, progress, models: &known };
        let interrupted = each::each(reach(target, isolation, &limits), &ids, &limits, ask, &mut heard)?;
        drop(heard);
        report.time.interrupted = interrupted;
        report.time.elapsed_since(start, 0);
        report.verdict = report.judged();
        Ok((report, interrupted))
    }
}

/// The arguments without the name of the machine, which the report has in a field of its own.
fn without_node(arguments: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for argument in arguments {
        if kept.last().is_some_and(|last| last == "--node") {
            kept.push("…".to_owned());
        } else if argument.starts_with("--node=") {
            kept.push("--node=…".to_owned());
        } else {
            kept.push(argument);
        }
    }
    kept
}

/// The rest of a device's time, shared by the operations that are left.
#[derive(Clone)]
struct Share {
    end: Instant,
    /// The number of operations that are not finished.
    left: Arc<AtomicUsize>,
}

impl Share {
    fn new(budget: Duration, start: Instant, operations: usize) -> Self {
        Self { end: start + budget, left: Arc::new(AtomicUsize::new(operations)) }
    }

    /// How long the current operation may compute.
    fn next(&self) -> Duration {
        let left = u32::try_from(self.left.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        self.end.saturating_duration_since(Instant::now()) / left.max(1)
    }

    fn is_done(&self) {
        self.left.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Operations, each with its model if one is known.
type Known = Arc<[(OperationId, Option<Arc<Reference>>)]>;

fn of<'a>(known: &'a Known, id: &OperationId) -> Option<&'a Reference> {
    known.iter().find(|(known, _)| known == id)?.1.as_deref()
}

struct Heard<'a> {
    report: &'a mut ScreenReport,
    progress: Progress,
    models: &'a Known,
}

impl Listener<ScreenedOperation> for Heard<'_> {
    type Error = Failure;

    fn answered(&mut self, found: ScreenedOperation) -> Result<(), Failure> {
        self.report.operations.push(found);
        self.progress.step();
        Ok(())
    }

    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Failure> {
        let model = of(self.models, id).map(Reference::name);
        self.answered(ScreenedOperation::failed(id, model, each::unanswered(ending, reason)))
    }
}
