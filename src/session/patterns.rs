//! Selects operations and probes by name and pattern.

use crate::{
    glossary, probes,
    report::{ListedDevice, OperationRecord},
};
use mxprobe_api::Error;

use super::{glob, synonyms};

/// The matrix operations that match any of the patterns; all operations if there is none. A pattern is an id, an alias
/// or an instruction with `*` and `?`, an operand format (`fp8`, `int8`), or formats with an arrow (`f16->f32`).
#[must_use]
pub fn operations<'a>(patterns: &[String], listed: &'a ListedDevice) -> Vec<&'a OperationRecord> {
    let meant = |operation: &OperationRecord| {
        patterns.is_empty() || patterns.iter().any(|pattern| is_called(pattern, operation))
    };
    listed.operations.iter().filter(|operation| meant(operation)).collect()
}

/// The operations and scalar modes that a run probes. Without patterns, only the device's default scalar modes are
/// included.
#[must_use]
pub fn asked<'a>(patterns: &[String], listed: &'a ListedDevice) -> Vec<&'a OperationRecord> {
    let meant = |scalar: &&OperationRecord| match patterns {
        [] => scalar.id.qualifiers.is_empty(),
        patterns => patterns.iter().any(|pattern| is_meant(pattern, scalar)),
    };
    operations(patterns, listed).into_iter().chain(listed.scalars.iter().filter(meant)).collect()
}

/// Whether a pattern matches an operation by its id, its instruction or another of its names.
#[must_use]
pub fn is_meant(pattern: &str, operation: &OperationRecord) -> bool {
    glob::matches(pattern, &operation.id.to_string())
        || operation.aliases.iter().chain(&operation.instruction).any(|name| glob::matches(pattern, name))
}

/// Whether a pattern or one of its synonyms matches a matrix operation: `fp8`, `f16->f32`, PTX without its family.
fn is_called(pattern: &str, operation: &OperationRecord) -> bool {
    is_meant(pattern, operation)
        || synonyms::formats(pattern).is_some_and(|formats| formats.fits(&operation.id))
        || synonyms::is_ptx(pattern, &operation.id)
}

/// Whether any of these patterns matches a probe, or is a prefix of its name up to a dot.
#[must_use]
pub fn is_wanted(patterns: &[String], probe: &str) -> bool {
    let is_part = |pattern: &str| probe.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'));
    patterns.iter().any(|pattern| glob::matches(pattern, probe) || is_part(pattern))
}

/// The most groups of probes that an error lists.
const SHOWN: usize = 10;

/// Checks that a pattern matches a probe.
///
/// # Errors
/// If it does not; the message lists the first groups of probes.
pub fn check_probe(wanted: &str) -> Result<(), Error> {
    let is_probe = |entry: &glossary::Entry| entry.kind == glossary::Kind::Probe;
    if probes::all().any(|probe| is_wanted(&[wanted.to_owned()], probe.name))
        || glossary::explain(wanted).iter().any(is_probe)
    {
        return Ok(());
    }
    let group = |name: &str| name.split_once('.').map_or_else(|| name.to_owned(), |(group, _)| format!("{group}.*"));
    let mut names: Vec<String> = Vec::new();
    for name in probes::all().map(|probe| group(probe.name)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    Err(Error::invalid(format!("unknown probe `{wanted}`; the probes are {} and {more} more", names.join(", "))))
}
