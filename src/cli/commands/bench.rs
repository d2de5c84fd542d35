//! `bench`: measures throughput.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::{
    bench::{Settings, conclude, headline_first, measure},
    report::{
        BENCH_SCHEMA, BenchReport, BenchSettings, Block, Data, Host, Outcome as Ending, Throughput, Throughputs, Time,
        this_tool, to_json,
    },
};
use mxprobe_api::{Device, OperationId};

use crate::cli::{
    arguments::{Bench, BenchData, Format, Screen, given},
    choose::{
        limits::Limits,
        plan,
        reach::{Isolation, reach},
        select,
        target::Target,
    },
    commands::each::{self, Listener},
    failure::{Failure, INCOMPLETE, INTERRUPTED, Outcome},
    io::{interrupt::Interrupt, output, progress::Progress},
};

/// Measures the throughput of devices.
pub(crate) fn bench(arguments: &Bench, screen: Screen) -> Outcome {
    let interrupt = Interrupt::listen();
    let plan = plan::plan(&arguments.devices, &arguments.op)?;
    if plan.stand_in.is_some() {
        return Err(select::no_usable(&plan.found, "`bench`"));
    }
    if let Some(model) = plan.targets.iter().find(|target| target.is_model()) {
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
    let saved: Vec<String> = places.iter().flatten().map(|path| path.display().to_string()).collect();
    places.iter().flatten().try_for_each(|path| output::can_write(path))?;
    let mut reports = Vec::new();
    for (target, place) in plan.targets.iter().zip(places) {
        let report = one_device(arguments, screen, target, &chosen(target), place, &interrupt)?;
        let interrupted = report.time.interrupted;
        reports.push(report);
        if interrupted {
            break;
        }
    }
    output::show(&Throughputs(&reports), arguments.format, screen)?;
    if arguments.format == Format::Table && !saved.is_empty() {
        let next = format!("mxprobe compare {} OTHER.json", saved[0]);
        let facts = [("saved", saved.join(", ")), ("next", next)].map(|(name, words)| (name.to_owned(), words));
        output::show_part(&[Block::Facts(facts.into())], screen.for_lines())?;
    }
    let any = |test: fn(&Throughput) -> bool| reports.iter().flat_map(|report| &report.operations).any(test);
    Ok(if reports.iter().any(|report| report.time.interrupted) {
        INTERRUPTED
    } else if any(|found| !matches!(found.outcome, Ending::Measured | Ending::Unsupported)) {
        INCOMPLETE
    } else {
        0
    })
}

/// Returns the file for each device's JSON, if any.
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
            "`{}` is one file, but there are {} devices",
            out.display(),
            targets.len()
        ))
        .help("give an existing directory, or one device"));
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
    operations: &[crate::report::OperationRecord],
    place: Option<PathBuf>,
    interrupt: &Interrupt,
) -> Result<BenchReport, Failure> {
    let start = Instant::now();
    let mut report = BenchReport {
        schema: BENCH_SCHEMA.into(),
        tool: this_tool(&given()),
        time: Time::starting(),
        host: Host::this(),
        device: target.listed.device.clone(),
        settings: settings(arguments),
        warnings: Vec::new(),
        operations: Vec::new(),
    };
    report.time.interrupted = true;
    let limits = Limits::new(arguments.timeout, arguments.budget, interrupt.clone());
    let isolation = Isolation { wanted: !arguments.devices.no_isolation, forward_stderr: screen.aloud };
    let reached = reach(target, isolation, &limits);
    let yardsticks = match &reached {
        Ok(reached) => reached.device.timing().map_or_else(Vec::new, |timing| timing.yardsticks().to_vec()),
        Err(_) => Vec::new(),
    };
    let ids = yardsticks.iter().map(|yardstick| &yardstick.id).chain(operations.iter().map(|operation| &operation.id));
    let ids: Vec<OperationId> = ids.cloned().collect();
    let how = Settings {
        data: report.settings.data,
        sample: Duration::from_nanos(report.settings.sample_ns),
        samples: report.settings.samples,
        seed: report.settings.seed,
    };
    let ask = move |device: &dyn Device, id: &OperationId, _: &dyn Fn(&str)| bench_one(device, id, &how);
    let mut progress = Progress::new(screen, ids.len());
    progress.begin(each::steps(&target.selector, &ids));
    let mut grows = Grows { target, place, start, report, progress };
    grows.save()?;
    let interrupted = each::each(reached, &ids, &limits, ask, &mut grows)?;
    grows.report.time.interrupted = interrupted;
    grows.report.time.elapsed_since(start, 0);
    grows.save()?;
    Ok(grows.report)
}

/// A report that is saved after every measurement.
struct Grows<'a> {
    target: &'a Target,
    place: Option<PathBuf>,
    start: Instant,
    report: BenchReport,
    progress: Progress,
}

impl Grows<'_> {
    fn save(&self) -> Result<(), Failure> {
        self.place.as_ref().map_or(Ok(()), |path| output::replace(path, &to_json(&self.report)))
    }

    fn add(&mut self, found: Throughput) -> Result<(), Failure> {
        self.report.operations.push(found);
        conclude(&mut self.report);
        self.report.time.elapsed_since(self.start, 0);
        self.progress.step();
        self.save()
    }
}

impl Listener<Throughput> for Grows<'_> {
    type Error = Failure;

    fn answered(&mut self, found: Throughput) -> Result<(), Failure> {
        self.add(found)
    }

    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Failure> {
        let yardstick = !self.target.listed.operations.iter().any(|operation| operation.id == *id);
        self.add(Throughput { yardstick, ..Throughput::without(id.clone(), ending, reason) })
    }
}

/// Measures one operation, or a yardstick.
fn bench_one(device: &dyn Device, id: &OperationId, how: &Settings) -> Throughput {
    let yardsticks = device.timing().map_or(&[][..], |timing| timing.yardsticks());
    let known = yardsticks.iter().find(|known| known.id == *id).or_else(|| device.operations().get(id));
    match known {
        Some(operation) => measure(device, operation, how),
        None => {
            let reason = format!("{} has no operation {id} any more", device.info().selector);
            Throughput::without(id.clone(), Ending::Failed, reason)
        }
    }
}
