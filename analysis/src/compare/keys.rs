//! The part of an answer that is a property of the arithmetic, and is compared.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{findings::Comparable, probes, record::Answer};

/// Returns the comparable parts of a report's measured answers to a probe that is compared in this way; empty if any
/// answer has no value.
pub(super) fn keys(compared: Comparable, answers: &[Answer]) -> BTreeSet<String> {
    let keys: Option<BTreeSet<String>> =
        answers.iter().map(|answer| answer.value.as_ref().map(|value| key(compared, value))).collect();
    keys.unwrap_or_default()
}

/// Returns the part of an answer that is a property of the arithmetic, rather than of how far the probe could see.
fn key(compared: Comparable, value: &Value) -> String {
    match compared {
        Comparable::By(part) => Value::from(&part(&value.into())).to_string(),
        _ => value.to_string(),
    }
}

/// Returns, as text, the part of an answer that is a property of the arithmetic; `None` if the answer is a property of
/// the driver, such as the instructions it chose.
#[must_use]
pub fn compared_answer(probe: &str, value: &Value) -> Option<String> {
    let compared = comparable(probe);
    (!matches!(compared, Comparable::WithinDevice)).then(|| key(compared, value))
}

/// Returns how the answers of a probe are compared; those of an unknown probe, such as one of another version, are
/// compared as they are.
pub(super) fn comparable(probe: &str) -> Comparable {
    probes::named(probe).map_or(Comparable::AsIs, |probe| probe.shown.compared)
}
