//! `run`: probes devices and reports what was found.

mod conditions;
mod probed;
mod resume;
mod sink;

use std::time::Duration;

use crate::{
    report::{OperationRecord, OperationReport, Outcome as Ending},
    scalars,
    session::{Expected, probe_at},
};
use mxprobe_api::{Device, OperationId};

use crate::cli::{
    arguments::{Run, Screen},
    choose::{
        limits::Limits,
        models,
        plan::{Job, jobs},
        reach::{Isolation, reach},
    },
    commands::each::{self, Listener},
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO, Outcome},
    io::{interrupt::Interrupt, progress::Progress},
};
pub(crate) use probed::reports;
use sink::Sink;

/// The time limit for a device to answer one request, without `--timeout`.
const REQUEST: Duration = Duration::from_secs(60);

/// Probes devices.
pub(crate) fn run(arguments: &Run, screen: Screen) -> Outcome {
    let limits = Limits::new(arguments.timeout.unwrap_or(REQUEST), arguments.budget, Interrupt::listen());
    let jobs = match &arguments.resume {
        Some(file) => resume::jobs(file, &arguments.devices, screen)?,
        None => jobs(arguments, screen)?,
    };
    let expected = expected(arguments, &jobs)?;
    let mut sink = Sink::new(arguments, screen, &jobs)?;
    let isolation = Isolation { wanted: !arguments.devices.no_isolation, forward_stderr: screen.aloud };
    let mut progress = Progress::new(screen, jobs.iter().map(|job| job.operations.len()).sum());
    for (at, job) in jobs.iter().enumerate() {
        sink.begin(at);
        if let Some(target) = &job.target {
            sink.before(conditions::now(&job.report.device));
            progress.begin(each::steps(&target.selector, job.operations.iter().map(|operation| &operation.id)));
            let ids: Vec<OperationId> = job.operations.iter().map(|operation| operation.id.clone()).collect();
            let wanted = job.report.plan.as_ref().map_or_else(Vec::new, |plan| plan.probes.clone());
            let points = job.report.plan.as_ref().and_then(|plan| plan.points).unwrap_or(scalars::POINTS);
            let expected = expected.clone();
            let ask = move |device: &dyn Device, id: &OperationId, _: &dyn Fn(&str)| {
                probe_at(device, id, &wanted, expected.as_ref(), points)
            };
            let mut grows = Grows { operations: &job.operations, sink: &mut sink, progress: &mut progress };
            each::each(reach(target, isolation, &limits), &ids, &limits, ask, &mut grows)?;
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

/// A report that grows with each operation.
struct Grows<'a> {
    operations: &'a [OperationRecord],
    sink: &'a mut Sink,
    progress: &'a mut Progress,
}

impl Listener<Option<OperationReport>> for Grows<'_> {
    type Error = Failure;

    fn answered(&mut self, report: Option<OperationReport>) -> Result<(), Failure> {
        if let Some(report) = report {
            self.sink.add(report);
        }
        self.progress.step();
        if self.sink.is_summed_up() {
            self.progress.result(|| self.sink.so_far());
        }
        Ok(())
    }

    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Failure> {
        let operation = self.operations.iter().find(|operation| operation.id == *id);
        self.answered(operation.map(|operation| OperationReport::without_answer(operation, ending, reason)))
    }
}

/// Loads the model named by `--expect`, and checks that it has an operation of every device.
fn expected(arguments: &Run, jobs: &[Job]) -> Result<Option<Expected>, Failure> {
    let Some(name) = &arguments.expect else { return Ok(None) };
    let model = models::load(name)?;
    let has = |job: &Job| job.operations.iter().any(|operation| model.operations.contains_key(&operation.id));
    match jobs.iter().filter(|job| !job.operations.is_empty()).find(|job| !has(job)) {
        None => Ok(Some((name.clone(), model))),
        Some(job) => {
            let selector = &job.report.device.selector;
            Err(Failure::usage(format!("the model `{name}` has none of the operations of {selector}"))
                .help("`mxprobe list -v` shows operations; `--op` chooses among them"))
        }
    }
}
