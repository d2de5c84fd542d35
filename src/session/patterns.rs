//! Operations and probes by their names and by patterns.

use crate::{
    glossary, probes,
    report::{ListedDevice, OperationRecord},
};
use mxprobe_api::Error;

use super::{glob, synonyms};

/// The matrix operations that patterns name; all, if there is no pattern. A pattern is an id, an alias or an instruction with `*`
/// and `?`, a format that is multiplied (`fp8`, `int8`), or formats with an arrow (`f16->f32`).
#[must_use]
pub fn operations<'a>(patterns: &[String], listed: &'a ListedDevice) -> Vec<&'a OperationRecord> {
    let meant = |operation: &OperationRecord| {
        patterns.is_empty() || patterns.iter().any(|pattern| is_called(pattern, operation))
    };
    listed.operations.iter().filter(|operation| meant(operation)).collect()
}

/// What a run asks of a device: its operations and its scalar arithmetic; of the latter, where nothing is named, only as
/// the device gives it without a mode.
#[must_use]
pub fn asked<'a>(patterns: &[String], listed: &'a ListedDevice) -> Vec<&'a OperationRecord> {
    let meant = |scalar: &&OperationRecord| match patterns {
        [] => scalar.id.qualifiers.is_empty(),
        patterns => patterns.iter().any(|pattern| is_meant(pattern, scalar)),
    };
    operations(patterns, listed).into_iter().chain(listed.scalars.iter().filter(meant)).collect()
}

/// Whether an operation is meant by a pattern: by its id, its instruction or another of its names.
#[must_use]
pub fn is_meant(pattern: &str, operation: &OperationRecord) -> bool {
    glob::matches(pattern, &operation.id.to_string())
        || operation.aliases.iter().chain(&operation.instruction).any(|name| glob::matches(pattern, name))
}

/// Whether a matrix operation is meant by a pattern or by one of its synonyms: `fp8`, `f16->f32`, PTX without its family.
fn is_called(pattern: &str, operation: &OperationRecord) -> bool {
    is_meant(pattern, operation)
        || synonyms::formats(pattern).is_some_and(|formats| formats.fits(&operation.id))
        || synonyms::is_ptx(pattern, &operation.id)
}

/// Whether a probe is meant by one of these: by a pattern, or by the words before one of its dots.
#[must_use]
pub fn is_wanted(patterns: &[String], probe: &str) -> bool {
    let is_part = |pattern: &str| probe.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'));
    patterns.iter().any(|pattern| glob::matches(pattern, probe) || is_part(pattern))
}

/// Checks that a pattern means a probe.
///
/// # Errors
/// If it means none; the text names those that there are.
pub fn check_probe(wanted: &str) -> Result<(), Error> {
    let is_probe = |entry: &glossary::Entry| entry.kind == glossary::Kind::Probe;
    if probes::all().any(|probe| is_wanted(&[wanted.to_owned()], probe.name))
        || glossary::explain(wanted).iter().any(is_probe)
    {
        return Ok(());
    }
    let names: Vec<&str> = probes::all().map(|probe| probe.name).collect();
    Err(Error::invalid(format!("there is no probe `{wanted}`; the probes are {}", names.join(", "))))
}
