//! Selects operations by name.

use mxprobe_api::OperationId;

use crate::{
    report::{ListedDevice, OperationRecord},
    session::{patterns::operations, synonyms},
};

use crate::cli::{choose::similar, failure::Failure};

/// Returns the one operation that a name selects: by id, or else by alias, or else by pattern.
pub(crate) fn one_operation<'a>(name: &str, listed: &'a ListedDevice) -> Result<&'a OperationRecord, Failure> {
    if let Some(exact) = listed.operations.iter().find(|operation| operation.id.to_string() == name) {
        return Ok(exact);
    }
    match operations(&[name.to_owned()], listed).as_slice() {
        [one] => Ok(one),
        [] => Err(no_operation(&[name.to_owned()], &[listed])),
        several => Err(several_operations(name, several)),
    }
}

/// An operation in one line.
pub(crate) fn line(operation: &OperationRecord) -> String {
    let mut text = operation.id.to_string();
    for word in operation.instruction.iter().chain(&operation.aliases) {
        text.push_str("  ");
        text.push_str(word);
    }
    text
}

/// The error for a name that matches several operations when one is needed.
fn several_operations(name: &str, several: &[&OperationRecord]) -> Failure {
    let mut failure = Failure::usage(format!("`{name}` matches {} operations; name one", several.len()));
    for operation in several.iter().take(FEW) {
        failure = failure.cause(line(operation));
    }
    if several.len() > FEW {
        failure = failure.cause(format!("and {} more", several.len() - FEW));
    }
    failure.help("`--op` takes a whole id, as `mxprobe list -v` shows them")
}

/// The maximum number of operations that an error lists.
const FEW: usize = 6;

/// The error for names that no device has an operation for: why the name is wrong, or which operations there are. If there
/// are none at all, it is the devices that cannot be used.
pub(crate) fn no_operation(patterns: &[String], listed: &[&ListedDevice]) -> Failure {
    let selectors: Vec<&str> = listed.iter().map(|listed| listed.device.selector.as_str()).collect();
    let selectors = selectors.join(", ");
    let known: Vec<&OperationRecord> = listed.iter().flat_map(|listed| &listed.operations).collect();
    let names: Vec<String> = patterns.iter().map(|pattern| format!("`{pattern}`")).collect();
    let names = names.join(", ");
    if known.is_empty() {
        let none = Failure::no_device(format!("{selectors} has no operation that this machine can execute"));
        return with_refusals(none, listed).help("`mxprobe list` shows the devices");
    }
    let near = match patterns {
        [one] => nearest(&one.to_lowercase(), &known),
        _ => None,
    };
    let formats = match patterns {
        [one] => synonyms::formats(one),
        _ => None,
    };
    let mut failure = Failure::usage(match (&formats, near) {
        (Some(formats), _) => {
            let words: Vec<&str> = formats.operands().into_iter().map(mxprobe_api::Format::name).collect();
            let words = words.join(", ");
            let of = if patterns[0].eq_ignore_ascii_case(&words) { String::new() } else { format!(" ({words})") };
            format!("{selectors} has no operation of {names}{of}; it multiplies {}", multiplied(&known))
        }
        (None, Some(near)) => format!("{selectors} has no operation {names}; did you mean `{near}`?"),
        (None, None) => format!("{selectors} has no operation {names}"),
    });
    for pattern in patterns {
        // The reason why an id is malformed is more helpful than that the device lacks it.
        if pattern.split('.').count() >= 5
            && !pattern.contains(['*', '?'])
            && let Err(error) = pattern.parse::<OperationId>()
        {
            failure = failure.cause(error);
        }
    }
    if formats.is_none() {
        for operation in known.iter().take(FEW) {
            failure = failure.cause(format!("there is {}", line(operation)));
        }
        if known.len() > FEW {
            failure = failure.cause(format!("and {} more", known.len() - FEW));
        }
    }
    with_refusals(failure, listed).help(
        "`mxprobe list -v` shows every operation; `--op` takes ids, aliases, formats such as `fp8` or `f16->f32`, `*` and `?`",
    )
}

/// Adds what devices refuse, and why.
fn with_refusals(failure: Failure, listed: &[&ListedDevice]) -> Failure {
    let refusals = listed.iter().flat_map(|listed| &listed.refusals);
    refusals.fold(failure, |failure, refusal| failure.cause(format!("not used: {}: {}", refusal.what, refusal.reason)))
}

/// Returns the id or alias that is most similar to a name.
fn nearest(name: &str, known: &[&OperationRecord]) -> Option<String> {
    let ids: Vec<String> = known.iter().map(|operation| operation.id.to_string()).collect();
    let others = known.iter().flat_map(|operation| operation.aliases.iter().chain(&operation.instruction));
    let lower: Vec<String> = ids.iter().cloned().chain(others.cloned()).map(|name| name.to_lowercase()).collect();
    similar::nearest(name, lower.iter().map(String::as_str)).map(str::to_owned)
}

/// Lists the formats that operations multiply.
fn multiplied(known: &[&OperationRecord]) -> String {
    let formats: Vec<mxprobe_api::Format> =
        known.iter().flat_map(|operation| [operation.id.a, operation.id.b]).collect();
    let names = mxprobe_api::Format::ALL.into_iter().filter(|format| formats.contains(format));
    names.map(mxprobe_api::Format::name).collect::<Vec<_>>().join(", ")
}
