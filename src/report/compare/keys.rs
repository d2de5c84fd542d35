//! The part of an answer that is a property of the arithmetic, and is compared.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{findings::Comparable, probes, report::record::Answer};

/// Returns the comparable parts of a report's measured answers; empty if any answer has no value.
pub(super) fn keys(probe: &str, answers: &[Answer]) -> BTreeSet<String> {
    let keys: Option<BTreeSet<String>> =
        answers.iter().map(|answer| answer.value.as_ref().map(|value| key(probe, value))).collect();
    keys.unwrap_or_default()
}

/// Returns the part of an answer that is a property of the arithmetic, rather than of how far the probe could see.
fn key(probe: &str, value: &Value) -> String {
    match comparable(probe) {
        Comparable::By(part) => Value::from(&part(&value.into())).to_string(),
        _ => value.to_string(),
    }
}

/// Returns, as text, the part of an answer that is a property of the arithmetic; `None` if the answer is a property of
/// the driver, such as the instructions it chose.
#[must_use]
pub fn compared_answer(probe: &str, value: &Value) -> Option<String> {
    (!matches!(comparable(probe), Comparable::WithinDevice)).then(|| key(probe, value))
}

/// Returns how the answers of a probe are compared; those of an unknown probe, such as one of another version, are
/// compared as they are.
pub(super) fn comparable(probe: &str) -> Comparable {
    probes::named(probe).map_or(Comparable::AsIs, |probe| probe.shown.compared)
}
