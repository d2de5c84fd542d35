//! One answer an operation, from this process or from a child that may die.

use std::time::Duration;

use mxprobe::report::OperationRecord;
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

/// Asks a child for answers about operations, one after the other; whatever takes it down takes one operation with it.
///
/// `request` makes a request for what is left; `take` handles an answer, and says whether it ends an operation; `lost`
/// hears of an operation that got none, and why. Returns whether the run was interrupted.
pub(crate) fn isolated(
    operations: &[OperationRecord],
    limit: Duration,
    request: &dyn Fn(Vec<OperationId>) -> Request,
    take: &mut dyn FnMut(Answer) -> Result<bool, Failure>,
    lost: &mut dyn FnMut(&OperationId, &str) -> Result<(), Failure>,
    interrupt: &Interrupt,
) -> Result<bool, Failure> {
    let mut left = operations;
    while let Some((first, rest)) = left.split_first() {
        let ids = left.iter().map(|operation| operation.id.clone()).collect();
        let mut worker = match Worker::start(&request(ids), false) {
            Ok(worker) => worker,
            Err(reason) => {
                left.iter().try_for_each(|operation| lost(&operation.id, &reason))?;
                return Ok(false);
            }
        };
        let reason = loop {
            if left.is_empty() {
                return Ok(false);
            }
            match worker.next(limit, interrupt) {
                Ok(Answer::Refused(reason)) => break reason,
                Ok(answer) => {
                    if take(answer)? {
                        left = &left[1..];
                    }
                }
                Err(Ended::Interrupted) => return Ok(true),
                Err(Ended::TimedOut(limit)) => break format!("nothing was heard for {} s", limit.as_secs_f64()),
                Err(Ended::Died(how)) => break how,
            }
        };
        let (stuck, after) = left.split_first().unwrap_or((first, rest));
        lost(&stuck.id, &reason)?;
        left = after;
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
