//! The device and the operations of a command, and the loop that asks about them.

use crate::{
    report::OperationRecord,
    session::{self, Stop},
};
use mxprobe_api::{Device, Error, OperationId};

use crate::cli::{
    choose::{
        limits::Limits,
        reach::Reached,
        select,
        target::{Search, Target},
    },
    failure::Failure,
};

pub(crate) use crate::session::{Listener, unanswered};

/// Returns the one device that a selector names.
pub(crate) fn one_target(selector: &str, search: &Search) -> Result<Target, Failure> {
    let (targets, _) = select::named(&[selector.to_owned()], &[], search)?;
    match targets.as_slice() {
        [target] => Ok(target.clone()),
        targets => {
            let mut failure = Failure::usage(format!("`{selector}` matches {} devices", targets.len()));
            for target in targets {
                failure = failure.cause(format!("{}  {}", target.selector, target.listed.device.name));
            }
            Err(failure.help("name one of them"))
        }
    }
}

/// Returns the operations of a device that `--op` selects, at least one.
pub(crate) fn operations(patterns: &[String], target: &Target) -> Result<Vec<OperationRecord>, Failure> {
    let found: Vec<OperationRecord> = select::operations(patterns, &target.listed).into_iter().cloned().collect();
    if found.is_empty() { Err(select::no_operation(patterns, &[&target.listed])) } else { Ok(found) }
}

/// Asks a device about operations in order, within these limits. Returns whether it was interrupted.
///
/// # Errors
/// Those of the listener; errors of the device are passed to the listener.
pub(crate) fn each<A: Send + 'static>(
    reached: Result<Reached, Error>,
    ids: &[OperationId],
    limits: &Limits,
    ask: impl Fn(&dyn Device, &OperationId, &dyn Fn(&str)) -> A + Send + Sync + 'static,
    listener: &mut dyn Listener<A, Error = Failure>,
) -> Result<bool, Failure> {
    let stop = || {
        if limits.interrupt.is_set() { Some(Stop::Interrupted) } else { limits.spent().map(Stop::Spent) }
    };
    session::each(reached.map(Reached::asked), ids, &stop, ask, listener)
}

/// Returns the steps of a device that is asked about these operations, for people.
pub(crate) fn steps<'a>(selector: &str, ids: impl IntoIterator<Item = &'a OperationId>) -> Vec<String> {
    ids.into_iter().map(|id| format!("{selector} {id}")).collect()
}
