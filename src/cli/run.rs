//! `run`: probe devices and report what was found.

use std::time::Instant;

use mxprobe::report::OperationReport;

use super::{
    Outcome,
    arguments::{Run, Screen},
    ask::ask,
    conditions,
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO},
    isolation::Interrupt,
    limits::Limits,
    plan::{Job, jobs},
    progress::Progress,
    resume,
    sink::Sink,
};
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
            sink.before(conditions::now(&job.report.device));
            progress.begin(&target.selector, &job.operations);
            let mut each = |report: OperationReport| {
                progress.clear();
                sink.add(report);
                progress.step();
                Ok(())
            };
            let asked = ask(target, job, arguments, screen, &limits, &mut each);
            progress.clear();
            asked?;
            if !limits.interrupt.is_set() {
                sink.after(conditions::now(&job.report.device));
            }
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
