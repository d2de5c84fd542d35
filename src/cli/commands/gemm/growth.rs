//! `gemm --experiment growth`: measures how errors grow with the length of sums.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use crate::gemm::{Accumulation, Experiment, Growth, Unit, Variant, grow};
use crate::report::{GROWTH_SCHEMA, GrowthReport, Host, Time, growth_chart, this_tool, to_json};
use mxprobe_api::{Device, Error, OperationId};
use mxprobe_models::Model;

use super::{
    grown::{self, Grown},
    variants::drawn,
};
use crate::cli::{
    arguments::{Format, Gemm, Screen, given},
    choose::{limits::Limits, target::Target},
    failure::{Failure, INTERRUPTED, Outcome},
    io::{output, progress::Progress},
};

/// The default lengths of sums, as exponents of 2: those of the paper's figures.
const EXPONENTS: (u32, u32) = (9, 20);

/// The time between two checks for an interruption.
const TICK: Duration = Duration::from_millis(50);

/// A message of the computing thread.
enum Said {
    Point { growth: Growth, words: String, done: usize, total: usize },
    End(Result<Growth, Error>),
}

/// The experiment, and the device that computes it.
struct Work {
    experiment: Experiment,
    device: Arc<dyn Device>,
    blame: Option<(Model, Variant)>,
}

/// Computes every point, and saves the report after each.
pub(super) fn experiment(
    arguments: &Gemm,
    screen: Screen,
    limits: &Limits,
    target: &Target,
    device: &Arc<dyn Device>,
    variants: Vec<Variant>,
) -> Outcome {
    let places: Vec<&Path> = [&arguments.out, &arguments.svg].into_iter().flatten().map(PathBuf::as_path).collect();
    places.iter().try_for_each(|path| output::can_write(path))?;
    let (first, last) = arguments.exponents.unwrap_or(EXPONENTS);
    let lengths: Vec<usize> = (first..=last).map(|exponent| 1 << exponent).collect();
    let first_operation = variants.iter().find_map(|variant| variant.operation.as_ref());
    let drawn = first_operation.map(|id| drawn(arguments, id)).transpose()?.flatten();
    let blamed = variants.iter().find(|variant| variant.words == 2 && variant.accumulation == Accumulation::Unit);
    let blamed = blamed.or(variants.first()).cloned();
    let blame = target.model()?.zip(blamed);
    let mut report = GrowthReport {
        schema: GROWTH_SCHEMA.into(),
        tool: this_tool(&given()),
        time: Time::starting(),
        host: Host::this(),
        device: target.listed.device.clone(),
        shard: arguments.shard,
        growth: Growth::new(0, arguments.seed, drawn),
    };
    let start = Instant::now();
    let save = |report: &mut GrowthReport| -> Result<(), Failure> {
        report.time.elapsed_since(start, 0);
        arguments.out.as_ref().map_or(Ok(()), |path| output::replace(path, &to_json(report)))
    };
    let experiment = Experiment { lengths, variants, seed: arguments.seed, drawn, shard: arguments.shard };
    let mut progress: Option<Progress> = None;
    let said = computed(Work { experiment, device: device.clone(), blame });
    loop {
        let heard = said.recv_timeout(TICK);
        if limits.interrupt.is_set() {
            break;
        }
        match heard {
            Ok(Said::Point { growth, words, done, total }) => {
                let progress = progress.get_or_insert_with(|| {
                    let mut progress = Progress::new(screen, total);
                    progress.begin(vec![target.selector.clone(); total]);
                    progress
                });
                report.growth = growth;
                save(&mut report)?;
                progress.advance(done, &words);
            }
            Ok(Said::End(growth)) => {
                report.growth = growth.map_err(Failure::of_device)?;
                report.time.interrupted = false;
                break;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::incomplete("mxprobe panicked")),
        }
    }
    drop(progress);
    save(&mut report)?;
    if let Some(path) = &arguments.svg {
        output::replace(path, &growth_chart(&report.growth, &grown::title(&report.device.name)).svg())?;
    }
    let interrupted = report.time.interrupted;
    // Only the table, which is for people, names the file.
    let saved = arguments.out.as_deref().filter(|_| arguments.format == Format::Table);
    let reports = std::slice::from_ref(&report);
    output::show(&Grown { reports, saved }, arguments.format, screen)?;
    Ok(if interrupted { INTERRUPTED } else { 0 })
}

/// Computes on a separate thread, so that the caller can stop waiting at any time.
fn computed(work: Work) -> mpsc::Receiver<Said> {
    let (sender, said) = mpsc::channel();
    thread::spawn(move || {
        let Work { experiment, device, blame } = work;
        let unit = |id: &OperationId| Unit::new(device.clone(), id);
        let blame = blame.as_ref().map(|(model, variant)| (model, variant));
        let found = grow(&experiment, &unit, blame, &mut |step| {
            let words = format!("n = {}, elements in {}", step.n, step.interval.name());
            let (growth, done, total) = (step.growth.clone(), step.done, step.total);
            match sender.send(Said::Point { growth, words, done, total }) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        // The receiver may be gone.
        let _ = sender.send(Said::End(found));
    });
    said
}
