//! One operation after the other, on a thread, so that Ctrl-C and a budget end a wait for any device.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use crate::report::{OperationRecord, Outcome as Ending};
use mxprobe_api::{Device, Error, OperationId};

use crate::cli::{
    arguments::Screen,
    choose::{
        limits::Limits,
        reach::Reached,
        select,
        target::{Search, Target},
    },
    failure::Failure,
    io::output,
};

/// How often a wait looks at the limits.
const TICK: Duration = Duration::from_millis(50);

/// The one device that a selector means.
pub(crate) fn one_target(selector: &str, search: &Search) -> Result<Target, Failure> {
    let (targets, _) = select::named(&[selector.to_owned()], &[], search)?;
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

/// Why an operation has no answer, in reports that know no other outcome for it than that it failed.
pub(crate) fn unanswered(ending: Ending, reason: &str) -> String {
    if ending == Ending::Skipped { format!("not asked: {reason}") } else { reason.to_owned() }
}

/// Who hears what becomes of operations.
pub(crate) trait Listener<A> {
    /// Hears the answer of an operation.
    fn answered(&mut self, answer: A) -> Result<(), Failure>;

    /// Hears of an operation without an answer: `Failed` if it was asked, `Skipped` if not, and why.
    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Failure>;

    /// Hears how the operation in hand gets on.
    fn progress(&mut self, words: &str) {
        let _ = words;
    }
}

enum Said<A> {
    Progress(String),
    Answer(A),
    /// Nothing more is asked of the device.
    GaveUp(String),
}

/// Asks a device about operations in their order. Returns whether it was interrupted.
///
/// # Errors
/// Those of the listener; what the device does, the listener hears.
pub(crate) fn each<A: Send + 'static>(
    reached: Result<Reached, Error>,
    ids: &[OperationId],
    limits: &Limits,
    ask: impl Fn(&dyn Device, &OperationId, &dyn Fn(&str)) -> A + Send + 'static,
    listener: &mut dyn Listener<A>,
) -> Result<bool, Failure> {
    let rest = |listener: &mut dyn Listener<A>, left: &[OperationId], ending, reason: &str| {
        left.iter().try_for_each(|id| listener.missing(id, ending, reason))
    };
    let reached = match reached {
        _ if limits.interrupt.is_set() => return Ok(true),
        Ok(reached) => reached,
        Err(error) => return rest(listener, ids, Ending::Failed, &error.to_string()).map(|()| false),
    };
    let (sender, said) = mpsc::channel();
    let thread = {
        let (reached, ids) = (reached.share(), ids.to_vec());
        thread::spawn(move || {
            // Whoever stopped listening is noticed at the next answer.
            for id in ids {
                let progress = |words: &str| drop(sender.send(Said::Progress(words.to_owned())));
                let answer = ask(reached.device.as_ref(), &id, &progress);
                if sender.send(Said::Answer(answer)).is_err() {
                    return;
                }
                if let Some(reason) = reached.gave_up() {
                    let _ = sender.send(Said::GaveUp(reason));
                    return;
                }
            }
        })
    };
    let mut left = ids;
    while let Some((first, others)) = left.split_first() {
        let heard = said.recv_timeout(TICK);
        // An answer that was cut short by these is not one.
        if limits.interrupt.is_set() {
            return Ok(true);
        }
        if let Some(reason) = limits.spent() {
            return rest(listener, left, Ending::Skipped, &reason).map(|()| false);
        }
        match heard {
            Ok(Said::Progress(words)) => listener.progress(&words),
            Ok(Said::Answer(answer)) => {
                listener.answered(answer)?;
                left = others;
            }
            Ok(Said::GaveUp(reason)) => return rest(listener, left, Ending::Skipped, &reason).map(|()| false),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                listener.missing(first, Ending::Failed, "mxprobe panicked")?;
                rest(listener, others, Ending::Skipped, "mxprobe panicked at an operation before")?;
                break;
            }
        }
    }
    // It has ended, or is on its way out.
    let _ = thread.join();
    Ok(false)
}

/// Prints what goes on to standard error, with `-v`.
pub(crate) fn progress(screen: Screen, words: &str) {
    if screen.verbose {
        output::note(words);
    }
}
