//! How a device is asked one operation after the other: here, or in child processes that may die.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use mxprobe::report::{OperationRecord, OperationReport, Outcome as Ending};
use mxprobe_api::OperationId;

use super::{
    arguments::{Run, Screen},
    each::{PATIENCE, given_up},
    failure::Failure,
    isolation::{Ended, Worker},
    limits::Limits,
    plan::Job,
    select::Target,
    worker::{Answer, Request, probe_each},
};

/// What each operation is asked.
#[derive(Clone, Copy)]
struct Questions<'a> {
    /// Which probes; all, if none is named.
    wanted: &'a [String],
    /// The model that it is compared with.
    expect: Option<&'a str>,
}

/// Asks a device what its job says, and gives each operation to `each` as it ends.
///
/// # Errors
/// Those of `each`; what the device does is in the reports.
pub(crate) fn ask(
    target: &Target,
    job: &Job,
    arguments: &Run,
    screen: Screen,
    limits: &Limits,
    each: &mut dyn FnMut(OperationReport) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let operations: Vec<&OperationRecord> = job.operations.iter().collect();
    let wanted = job.report.plan.as_ref().map_or(&[][..], |plan| &plan.probes);
    let questions = Questions { wanted, expect: arguments.expect.as_deref() };
    if target.entry.isolated && !arguments.devices.no_isolation {
        probe_isolated(target, &operations, questions, screen.aloud, limits, each)
    } else {
        probe_here(target, &operations, questions, limits, each)
    }
}

/// Probes a device in this process, where nothing can be stopped but by leaving it.
fn probe_here(
    target: &Target,
    operations: &[&OperationRecord],
    questions: Questions<'_>,
    limits: &Limits,
    each: &mut dyn FnMut(OperationReport) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let Some(reason) = limits.spent() {
        return fill(operations, Ending::Skipped, &reason, each);
    }
    let device = match target.entry.open(&target.selector) {
        Ok(device) => device,
        Err(error) => return fill(operations, Ending::Failed, &error.to_string(), each),
    };
    let (sender, answers) = mpsc::channel();
    let ids: Vec<OperationId> = operations.iter().map(|operation| operation.id.clone()).collect();
    let (wanted, expect) = (questions.wanted.to_vec(), questions.expect.map(str::to_owned));
    let worker = thread::spawn(move || {
        probe_each(device, &ids, &wanted, expect.as_deref(), |answer| {
            let Answer::Probed { report, device_lost } = answer else { return Ok(()) };
            sender.send((report.clone(), *device_lost)).map_err(|_| Failure::incomplete("nobody listens"))
        })
    });
    let mut left = operations;
    loop {
        match answers.recv_timeout(Duration::from_millis(50)) {
            Ok((report, device_lost)) => {
                each(*report)?;
                left = &left[1..];
                if device_lost {
                    return fill(left, Ending::Skipped, "the device was lost", each);
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if limits.interrupt.is_set() {
            return Ok(());
        }
        if let Some(reason) = limits.spent() {
            return fill(left, Ending::Skipped, &reason, each);
        }
    }
    if worker.join().is_err()
        && let Some((first, rest)) = left.split_first()
    {
        each(OperationReport::without_answer(first, Ending::Failed, "the probes panicked"))?;
        return fill(rest, Ending::Skipped, "the probes panicked at an operation before", each);
    }
    Ok(())
}

/// Probes a device in child processes: one that dies, hangs or loses the device takes one operation with it. What is lost
/// is the context of its process; the next process has a new one.
fn probe_isolated(
    target: &Target,
    operations: &[&OperationRecord],
    questions: Questions<'_>,
    aloud: bool,
    limits: &Limits,
    each: &mut dyn FnMut(OperationReport) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut left = operations;
    let mut in_a_row = 0;
    while !left.is_empty() {
        if let Some(reason) = limits.spent() {
            return fill(left, Ending::Skipped, &reason, each);
        }
        if in_a_row == PATIENCE {
            return fill(left, Ending::Skipped, &given_up(), each);
        }
        let request = Request::Probe {
            backend: target.entry.name.to_owned(),
            device: target.selector.clone(),
            operations: left.iter().map(|operation| operation.id.clone()).collect(),
            wanted: questions.wanted.to_vec(),
            expect: questions.expect.map(str::to_owned),
        };
        let mut worker = match Worker::start(&request, aloud) {
            Ok(worker) => worker,
            Err(reason) => return fill(left, Ending::Failed, &reason, each),
        };
        let reason = loop {
            if left.is_empty() {
                return Ok(());
            }
            match worker.next(limits.operation(), &limits.interrupt) {
                Ok(Answer::Probed { report, device_lost }) => {
                    each(*report)?;
                    left = &left[1..];
                    if device_lost {
                        in_a_row += 1;
                        break None;
                    }
                    in_a_row = 0;
                }
                Ok(Answer::Refused(reason)) => return fill(left, Ending::Failed, &reason, each),
                Ok(_) => break Some("the device's process answered something else".to_owned()),
                Err(Ended::Interrupted) => return Ok(()),
                Err(Ended::TimedOut(limit)) => match limits.spent() {
                    Some(reason) => return fill(left, Ending::Skipped, &reason, each),
                    None => break Some(format!("timed out after {} s{}", limit.as_secs_f64(), worker.last_words())),
                },
                Err(Ended::Died(how)) => break Some(how),
            }
        };
        if let (Some(reason), Some((stuck, after))) = (reason, left.split_first()) {
            each(OperationReport::without_answer(stuck, Ending::Failed, &reason))?;
            in_a_row += 1;
            left = after;
        }
    }
    Ok(())
}

/// The same end for every operation that is left.
fn fill(
    operations: &[&OperationRecord],
    ending: Ending,
    reason: &str,
    each: &mut dyn FnMut(OperationReport) -> Result<(), Failure>,
) -> Result<(), Failure> {
    operations.iter().try_for_each(|operation| each(OperationReport::without_answer(operation, ending, reason)))
}
