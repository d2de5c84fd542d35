//! One answer an operation, from this process or from a child that may die.

use std::time::Duration;

use mxprobe::report::{OperationRecord, Outcome as Ending};
use mxprobe_api::OperationId;

use super::{
    arguments::{Inputs, Screen},
    failure::Failure,
    isolation::{Ended, Interrupt, Worker},
    output,
    select::{self, Target},
    worker::{Answer, Request},
};

/// The one device that a selector means.
pub(crate) fn one_target(selector: &str, isolate: bool) -> Result<Target, Failure> {
    let (targets, _) = select::named(&[selector.to_owned()], &[], isolate)?;
    match targets.as_slice() {
        [target] => Ok(target.clone()),
        targets => {
            let mut failure = Failure::usage(format!("`{selector}` means {} devices", targets.len()));
            for target in targets {
                failure = failure.cause(format!("{}  {}", target.selector, target.listed.device.name));
            }
            Err(failure.help("name one of them"))
        }
    }
}

/// The operations of a device that `--op` names, at least one.
pub(crate) fn operations(patterns: &[String], target: &Target) -> Result<Vec<OperationRecord>, Failure> {
    let found: Vec<OperationRecord> = select::operations(patterns, &target.listed).into_iter().cloned().collect();
    if found.is_empty() { Err(select::no_operation(patterns, &[&target.listed])) } else { Ok(found) }
}

/// After so many operations in a row that lost the device, ended its process or hung, the others are not asked.
pub(crate) const PATIENCE: usize = 3;

/// Why operations are not asked once the patience has run out.
pub(crate) fn given_up() -> String {
    format!("{PATIENCE} operations before in a row lost the device, ended its process or hung")
}

/// Why an operation has no answer, in reports that know no other outcome for it than that it failed.
pub(crate) fn unanswered(ending: Ending, reason: &str) -> String {
    if ending == Ending::Skipped { format!("not asked: {reason}") } else { reason.to_owned() }
}

/// Who hears what a child process answers, and what it does not answer.
pub(crate) trait Listener {
    /// Takes an answer; returns whether it ends an operation.
    fn take(&mut self, answer: Answer) -> Result<bool, Failure>;

    /// Hears of an operation without an answer: `Failed` if it was asked, `Skipped` if not, and why.
    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Failure>;

    /// The request for what is left.
    fn request(&self, left: Vec<OperationId>) -> Request;
}

/// Asks child processes for answers about operations, one after the other. What loses the device, ends the process or
/// hangs costs the operation that was asked; the others are asked of another process, up to the [`PATIENCE`].
///
/// Returns whether the run was interrupted.
pub(crate) fn isolated(
    operations: &[OperationRecord],
    limit: Duration,
    listener: &mut dyn Listener,
    interrupt: &Interrupt,
) -> Result<bool, Failure> {
    let mut left = operations;
    let mut in_a_row = 0;
    while !left.is_empty() {
        let rest = |listener: &mut dyn Listener, ending, reason: &str| {
            left.iter().try_for_each(|operation| listener.missing(&operation.id, ending, reason))
        };
        if in_a_row == PATIENCE {
            rest(listener, Ending::Skipped, &given_up())?;
            break;
        }
        let request = listener.request(left.iter().map(|operation| operation.id.clone()).collect());
        let mut worker = match Worker::start(&request, false) {
            Ok(worker) => worker,
            Err(reason) => {
                rest(listener, Ending::Failed, &reason)?;
                break;
            }
        };
        // What is asked besides the operations of the list, until it is answered.
        let mut beside: Option<OperationId> = None;
        let reason = loop {
            if left.is_empty() {
                return Ok(false);
            }
            match worker.next(limit, interrupt) {
                Ok(Answer::Refused(reason)) => {
                    left.iter().try_for_each(|operation| listener.missing(&operation.id, Ending::Failed, &reason))?;
                    return Ok(false);
                }
                Ok(Answer::Asking(id)) => beside = Some(id),
                Ok(answer) => {
                    if !matches!(answer, Answer::Progress(_)) {
                        beside = None;
                    }
                    let device_lost = answer.is_last();
                    let ends = listener.take(answer)?;
                    if ends {
                        left = &left[1..];
                    }
                    if device_lost {
                        in_a_row += 1;
                        break None;
                    }
                    if ends {
                        in_a_row = 0;
                    }
                }
                Err(Ended::Interrupted) => return Ok(true),
                Err(Ended::TimedOut(limit)) => break Some(format!("nothing was heard for {} s", limit.as_secs_f64())),
                Err(Ended::Died(how)) => break Some(how),
            }
        };
        let Some(reason) = reason else { continue };
        in_a_row += 1;
        match (beside, left.split_first()) {
            (Some(beside), _) => listener.missing(&beside, Ending::Failed, &reason)?,
            (None, Some((stuck, after))) => {
                listener.missing(&stuck.id, Ending::Failed, &reason)?;
                left = after;
            }
            (None, None) => {}
        }
    }
    Ok(false)
}

/// Whether a device is reached through a child.
pub(crate) fn is_isolated(target: &Target, inputs: &Inputs) -> bool {
    target.entry.isolated && !inputs.no_isolation
}

/// Says on standard error what goes on, with `-v`.
pub(crate) fn progress(screen: Screen, words: &str) {
    if screen.verbose {
        output::note(words);
    }
}
