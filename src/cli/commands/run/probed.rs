//! Probes devices for a command that needs their reports but prints none of them.

use std::{sync::Mutex, time::Instant};

use crate::{
    aside::{divided, locked},
    report::{OperationReport, Outcome as Ending, Report},
    session::probe,
};
use mxprobe_api::{Device, OperationId};

use super::REQUEST;
use crate::cli::{
    arguments::{Devices, Run, Screen},
    choose::{
        limits::Limits,
        plan::{Job, jobs},
        reach::{Isolation, reach},
    },
    commands::each::{self, Listener},
    failure::Failure,
    io::{interrupt::Interrupt, progress::Progress},
};

/// Returns the reports of devices, one list for each selector. Models are probed concurrently, hardware one device at a
/// time. When interrupted, the reports hold what was found so far, and say that they are unfinished.
///
/// # Errors
/// If a selector names no device.
pub(crate) fn reports(selectors: &[String], screen: Screen, interrupt: Interrupt) -> Result<Vec<Vec<Report>>, Failure> {
    let limits = Limits::new(REQUEST, None, interrupt);
    let mut asked: Vec<(usize, Job)> = Vec::new();
    for (at, selector) in selectors.iter().enumerate() {
        let devices = Devices { device: vec![selector.clone()], ..Devices::default() };
        asked.extend(jobs(&Run { devices, ..Run::default() }, screen)?.into_iter().map(|job| (at, job)));
    }
    let total = asked.iter().map(|(_, job)| job.operations.len()).sum();
    let progress = Mutex::new((Progress::new(screen, total), 0));
    let is_model = |job: &Job| job.target.as_ref().is_some_and(|target| target.is_model());
    let (models, others): (Vec<_>, Vec<_>) = (0..asked.len()).partition(|at| is_model(&asked[*at].1));
    let done: Vec<Mutex<Option<Report>>> = asked.iter().map(|_| Mutex::new(None)).collect();
    let probe_job = |at: usize| -> Result<(), Failure> {
        let report = probe_one(&asked[at].1, screen, &limits, &progress)?;
        *locked(&done[at]) = Some(report);
        Ok(())
    };
    let of_models = divided(models.len(), mxprobe_models::threads(), |places| {
        places.map(|place| models[place]).try_for_each(probe_job)
    });
    of_models.into_iter().collect::<Result<(), Failure>>()?;
    others.into_iter().try_for_each(probe_job)?;
    let mut found: Vec<Vec<Report>> = selectors.iter().map(|_| Vec::new()).collect();
    for ((at, _), report) in asked.iter().zip(&done) {
        found[*at].extend(locked(report).take());
    }
    Ok(found)
}

/// The progress of all devices, and the number of completed operations.
type Counted = (Progress, usize);

/// Probes every operation of one device.
fn probe_one(job: &Job, screen: Screen, limits: &Limits, progress: &Mutex<Counted>) -> Result<Report, Failure> {
    let mut report = job.report.clone();
    let Some(target) = &job.target else { return Ok(report) };
    let start = Instant::now();
    let isolation = Isolation { wanted: true, forward_stderr: screen.aloud };
    let ids: Vec<OperationId> = job.operations.iter().map(|operation| operation.id.clone()).collect();
    let ask = |device: &dyn Device, id: &OperationId, _: &dyn Fn(&str)| probe(device, id, &[], None);
    let mut grows = Grows { job, report: &mut report, progress };
    let interrupted = each::each(reach(target, isolation, limits), &ids, limits, ask, &mut grows)?;
    report.time.elapsed_since(start, 0);
    report.time.interrupted = interrupted;
    report.sum_up();
    Ok(report)
}

struct Grows<'a> {
    job: &'a Job,
    report: &'a mut Report,
    progress: &'a Mutex<Counted>,
}

impl Listener<Option<OperationReport>> for Grows<'_> {
    type Error = Failure;

    fn answered(&mut self, operation: Option<OperationReport>) -> Result<(), Failure> {
        let mut progress = locked(self.progress);
        progress.1 += 1;
        let done = progress.1;
        progress.0.advance(done, &self.job.report.device.selector);
        operation.into_iter().for_each(|operation| self.report.put(operation));
        Ok(())
    }

    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Failure> {
        let operation = self.job.operations.iter().find(|operation| operation.id == *id);
        self.answered(operation.map(|operation| OperationReport::without_answer(operation, ending, reason)))
    }
}
