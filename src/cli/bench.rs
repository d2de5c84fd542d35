//! `bench`: how fast.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use mxprobe::{
    bench::{Settings, conclude, headline_first, measure},
    report::{
        BENCH_SCHEMA, BenchReport, BenchSettings, Data, Host, Outcome as Ending, Throughput, Time, Tool, to_json,
    },
};
use mxprobe_api::{Device, Error, OperationId};

use super::{
    Outcome,
    arguments::{Bench, BenchData, Screen, given},
    each::{self, Listener},
    failure::{Failure, INCOMPLETE, INTERRUPTED},
    isolation::Interrupt,
    output, plan,
    registry::MODELS,
    select::{self, Target},
    worker::{Answer, Request, Watched},
};

/// Measures the throughput of devices.
pub(crate) fn bench(arguments: &Bench, screen: Screen) -> Outcome {
    let plan = plan::plan(&arguments.devices)?;
    if plan.stand_in.is_some() {
        return Err(select::no_usable(&plan.found, "`bench`"));
    }
    if let Some(model) = plan.targets.iter().find(|target| target.entry.name == MODELS) {
        return Err(Failure::usage(format!("{} is a model: it has no throughput", model.selector))
            .help("`mxprobe list` shows the devices of this machine"));
    }
    if !screen.quiet {
        plan.notes.iter().for_each(output::note);
    }
    let listed: Vec<_> = plan.targets.iter().map(|target| &target.listed).collect();
    let chosen = |target: &Target| -> Vec<_> {
        let mut chosen: Vec<_> = select::operations(&arguments.op, &target.listed).into_iter().cloned().collect();
        headline_first(&mut chosen, |operation| &operation.id);
        chosen
    };
    if plan.targets.iter().all(|target| chosen(target).is_empty()) {
        return Err(select::no_operation(&arguments.op, &listed));
    }
    let places = places(arguments, &plan.targets)?;
    places.iter().flatten().try_for_each(|path| output::can_write(path))?;
    let interrupt = Interrupt::listen();
    let mut reports = Vec::new();
    for (target, place) in plan.targets.iter().zip(places) {
        let report = one_device(arguments, screen, target, &chosen(target), place, &interrupt)?;
        let interrupted = report.time.interrupted;
        reports.push(report);
        if interrupted {
            break;
        }
    }
    output::print(arguments.format.view(screen).throughput(&reports).as_bytes())?;
    let any = |test: fn(&Throughput) -> bool| reports.iter().flat_map(|report| &report.operations).any(test);
    Ok(if reports.iter().any(|report| report.time.interrupted) {
        INTERRUPTED
    } else if any(|found| !matches!(found.outcome, Ending::Measured | Ending::Unsupported)) {
        INCOMPLETE
    } else {
        0
    })
}

/// Where each device's JSON goes.
fn places(arguments: &Bench, targets: &[Target]) -> Result<Vec<Option<PathBuf>>, Failure> {
    let Some(out) = &arguments.out else { return Ok(vec![None; targets.len()]) };
    if out.is_dir() {
        let name = |target: &Target| {
            let safe = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
            out.join(target.selector.chars().map(safe).collect::<String>() + "-bench.json")
        };
        return Ok(targets.iter().map(|target| Some(name(target))).collect());
    }
    output::is_for_json(out)?;
    if targets.len() > 1 {
        return Err(Failure::usage(format!(
            "`{}` is one file, and there are {} devices",
            out.display(),
            targets.len()
        ))
        .help("give a directory that exists, or one device"));
    }
    Ok(vec![Some(out.clone())])
}

fn settings(arguments: &Bench) -> BenchSettings {
    BenchSettings {
        data: match arguments.data {
            _ if arguments.zeros => Data::Zeros,
            BenchData::Random => Data::Random,
            BenchData::Small => Data::Small,
            BenchData::Zeros => Data::Zeros,
        },
        sample_ns: nanoseconds(arguments.time),
        samples: arguments.samples,
        seed: arguments.seed,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn one_device(
    arguments: &Bench,
    screen: Screen,
    target: &Target,
    operations: &[mxprobe::report::OperationRecord],
    place: Option<PathBuf>,
    interrupt: &Interrupt,
) -> Result<BenchReport, Failure> {
    let start = Instant::now();
    let mut report = BenchReport {
        schema: BENCH_SCHEMA.into(),
        tool: Tool::this(given()),
        time: Time::starting(),
        host: Host::this(),
        device: target.listed.device.clone(),
        settings: settings(arguments),
        operations: Vec::new(),
    };
    report.time.interrupted = true;
    let budget = arguments.budget.map(|budget| (budget, start));
    let mut grows = Grows { target, screen, place, start, budget, report };
    let interrupted = if target.entry.isolated && !arguments.devices.no_isolation {
        each::isolated(operations, arguments.timeout, &mut grows, interrupt)?
    } else {
        let device = target.entry.open(&target.selector).map_err(Failure::no_device)?;
        let ids: Vec<OperationId> = operations.iter().map(|operation| operation.id.clone()).collect();
        let (settings, left) = (grows.report.settings.clone(), grows.left_ns());
        bench_each(device, &ids, &settings, left, &[], &mut |answer| grows.take(answer.clone()).map(drop))?;
        let reached = |id: &&OperationId| grows.report.operations.iter().any(|found| found.id == **id);
        let skipped: Vec<&OperationId> = ids.iter().skip_while(reached).collect();
        skipped.into_iter().try_for_each(|id| grows.missing(id, Ending::Skipped, "the device was lost"))?;
        false
    };
    grows.report.time.interrupted = interrupted;
    grows.report.time.elapsed_since(start, 0);
    grows.save()?;
    Ok(grows.report)
}

/// A report that is saved after every measurement.
struct Grows<'a> {
    target: &'a Target,
    screen: Screen,
    place: Option<PathBuf>,
    start: Instant,
    budget: Option<(Duration, Instant)>,
    report: BenchReport,
}

impl Grows<'_> {
    fn save(&self) -> Result<(), Failure> {
        self.place.as_ref().map_or(Ok(()), |path| output::replace(path, &to_json(&self.report)))
    }

    /// What is left of the budget, in nanoseconds.
    fn left_ns(&self) -> Option<u64> {
        self.budget.map(|(budget, start)| nanoseconds(budget.saturating_sub(start.elapsed())))
    }

    fn add(&mut self, found: Throughput) -> Result<(), Failure> {
        each::progress(self.screen, &format!("{}: {}", found.id, ending(&found)));
        self.report.operations.push(found);
        conclude(&mut self.report);
        self.report.time.elapsed_since(self.start, 0);
        self.save()
    }
}

impl Listener for Grows<'_> {
    fn take(&mut self, answer: Answer) -> Result<bool, Failure> {
        let Answer::Benched { found, .. } = answer else { return Ok(false) };
        let ends = !found.yardstick;
        self.add(*found)?;
        Ok(ends)
    }

    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Failure> {
        let yardstick = !self.target.listed.operations.iter().any(|operation| operation.id == *id);
        self.add(Throughput { yardstick, ..Throughput::without(id.clone(), ending, reason) })
    }

    fn request(&self, operations: Vec<OperationId>) -> Request {
        let yardsticks = self.report.operations.iter().filter(|found| found.yardstick);
        Request::Bench {
            backend: self.target.entry.name.to_owned(),
            device: self.target.selector.clone(),
            operations,
            settings: self.report.settings.clone(),
            budget_ns: self.left_ns(),
            known: yardsticks.map(|found| found.id.clone()).collect(),
        }
    }
}

fn ending(found: &Throughput) -> String {
    match (&found.reason, found.best()) {
        (Some(reason), _) => reason.clone(),
        (None, Some(run)) => format!("{:.3e} FLOP/s", run.flop_per_s_best),
        (None, None) => "nothing was measured".to_owned(),
    }
}

/// Measures the yardsticks that are not known, then operations in their order, until the device is lost.
pub(crate) fn bench_each(
    device: Box<dyn Device>,
    operations: &[OperationId],
    settings: &BenchSettings,
    budget_ns: Option<u64>,
    known: &[OperationId],
    answer: &mut dyn FnMut(&Answer) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let start = Instant::now();
    let device = Watched::new(device);
    let how = Settings {
        data: settings.data,
        sample: Duration::from_nanos(settings.sample_ns),
        samples: settings.samples,
        seed: settings.seed,
    };
    let yardsticks = device.timing().map_or_else(Vec::new, |timing| timing.yardsticks().to_vec());
    for yardstick in yardsticks.iter().filter(|yardstick| !known.contains(&yardstick.id)) {
        answer(&Answer::Asking(yardstick.id.clone()))?;
        let found = Box::new(measure(&device, yardstick, &how));
        answer(&Answer::Benched { found, device_lost: device.is_lost() })?;
        if device.is_lost() {
            return Ok(());
        }
    }
    for id in operations {
        let is_spent = budget_ns.is_some_and(|budget| nanoseconds(start.elapsed()) >= budget);
        let missing = || Error::invalid(format!("{} has no operation {id} any more", device.info().selector));
        let found = match device.operations().get(id).ok_or_else(missing) {
            _ if is_spent => Throughput::without(id.clone(), Ending::Skipped, "the budget was spent"),
            Ok(operation) => measure(&device, operation, &how),
            Err(error) => Throughput::without(id.clone(), Ending::Failed, error.to_string()),
        };
        answer(&Answer::Benched { found: Box::new(found), device_lost: device.is_lost() })?;
        if device.is_lost() {
            return Ok(());
        }
    }
    Ok(())
}
