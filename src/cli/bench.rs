//! `bench`: how fast.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use mxprobe::{
    bench::{Settings, conclude, measure},
    report::{
        BENCH_SCHEMA, BenchReport, BenchSettings, Data, Host, Outcome as Ending, Throughput, Time, Tool, to_json,
    },
};
use mxprobe_api::{Device, Error, OperationId};

use super::{
    Outcome,
    arguments::{Bench, BenchData, Screen, given},
    each,
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
        select::operations(&arguments.op, &target.listed).into_iter().cloned().collect()
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
    let save = |report: &BenchReport| -> Result<(), Failure> {
        place.as_ref().map_or(Ok(()), |path| output::replace(path, &to_json(report)))
    };
    let settings = report.settings.clone();
    let left = || arguments.budget.map(|budget| nanoseconds(budget.saturating_sub(start.elapsed())));
    let mut take = |found: Throughput| -> Result<(), Failure> {
        each::progress(screen, &format!("{}: {}", found.id, ending(&found)));
        // A worker that starts anew measures its yardsticks again: the first measurement stays.
        if !found.yardstick || report.operations.iter().all(|known| known.id != found.id) {
            report.operations.push(found);
            conclude(&mut report);
            report.time.elapsed_since(start, 0);
            save(&report)?;
        }
        Ok(())
    };
    let interrupted = if target.entry.isolated && !arguments.devices.no_isolation {
        let request = |operations| Request::Bench {
            backend: target.entry.name.to_owned(),
            device: target.selector.clone(),
            operations,
            settings: settings.clone(),
            budget_ns: left(),
        };
        let taken = std::cell::RefCell::new(&mut take);
        let mut hear = |answer: Answer| -> Result<bool, Failure> {
            let Answer::Benched(found) = answer else { return Ok(false) };
            let ends = !found.yardstick;
            (taken.borrow_mut())(*found)?;
            Ok(ends)
        };
        let mut lost = |id: &OperationId, reason: &str| {
            (taken.borrow_mut())(Throughput::without(id.clone(), Ending::Failed, reason))
        };
        each::isolated(operations, arguments.timeout, &request, &mut hear, &mut lost, interrupt)?
    } else {
        let device = target.entry.open(&target.selector).map_err(Failure::no_device)?;
        let ids: Vec<OperationId> = operations.iter().map(|operation| operation.id.clone()).collect();
        bench_each(device, &ids, &settings, left(), &mut |answer| match answer {
            Answer::Benched(found) => take(found.as_ref().clone()),
            Answer::Refused(reason) => Err(Failure::incomplete(reason)),
            _ => Ok(()),
        })?;
        false
    };
    report.time.interrupted = interrupted;
    report.time.elapsed_since(start, 0);
    save(&report)?;
    Ok(report)
}

fn ending(found: &Throughput) -> String {
    match (&found.reason, found.best()) {
        (Some(reason), _) => reason.clone(),
        (None, Some(run)) => format!("{:.3e} FLOP/s", run.flop_per_s_best),
        (None, None) => "nothing was measured".to_owned(),
    }
}

/// Measures yardsticks, then operations in their order.
pub(crate) fn bench_each(
    device: Box<dyn Device>,
    operations: &[OperationId],
    settings: &BenchSettings,
    budget_ns: Option<u64>,
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
    for yardstick in yardsticks {
        answer(&Answer::Benched(Box::new(measure(&device, &yardstick, &how))))?;
    }
    for id in operations {
        let is_spent = budget_ns.is_some_and(|budget| nanoseconds(start.elapsed()) >= budget);
        let missing = || Error::invalid(format!("{} has no operation {id} any more", device.info().selector));
        let found = match device.operations().get(id).ok_or_else(missing) {
            _ if is_spent => Throughput::without(id.clone(), Ending::Skipped, "the budget was spent"),
            Ok(operation) => measure(&device, operation, &how),
            Err(error) => Throughput::without(id.clone(), Ending::Failed, error.to_string()),
        };
        answer(&Answer::Benched(Box::new(found)))?;
        if device.is_lost() {
            return answer(&Answer::Refused("the device was lost".into()));
        }
    }
    Ok(())
}
