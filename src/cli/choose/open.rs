//! Opens the device of a selector in the same way as the commands.

use std::time::Duration;

use mxprobe_api::Error;

use super::{
    limits::Limits,
    reach::{Isolation, Reached, reach},
    select,
    target::Search,
};
use crate::{
    cli::{failure::Failure, io::interrupt::Interrupt},
    session::Asked,
};

/// Opens the device of a selector, such as `sim:h100` or `cpu:0`, as the commands do: hardware is reached from a
/// process of its own, in which one request may take up to `limit`. If operations of a program (`exec:COMMAND`) leave
/// their sizes open, they get the sizes of the ids among `operations`.
///
/// # Errors
/// If the selector names no device or several, or its process does not start; the message is that of the command.
pub fn open(selector: &str, operations: &[String], limit: Duration) -> Result<Asked, Error> {
    let invalid = |failure: Failure| Error::invalid(failure.to_string());
    let search = Search::new(true, None, operations);
    let (targets, _) = select::named(&[selector.to_owned()], &[], &search).map_err(invalid)?;
    let [target] = targets.as_slice() else {
        return Err(Error::invalid(format!("`{selector}` matches {} devices: name one of them", targets.len())));
    };
    let limits = Limits::new(limit, None, Interrupt::default());
    let isolation = Isolation { wanted: true, forward_stderr: false };
    reach(target, isolation, &limits).map(Reached::asked)
}
