//! Which part of an answer is a property of the arithmetic, and is compared.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{findings::Comparable, probes, report::record::Answer};

/// The measured answers of a report; empty if any is missing.
pub(super) fn keys(probe: &str, answers: &[Answer]) -> BTreeSet<String> {
    let keys: Option<BTreeSet<String>> =
        answers.iter().map(|answer| answer.value.as_ref().map(|value| key(probe, value))).collect();
    keys.unwrap_or_default()
}

/// What of an answer is a property of the arithmetic, and not of how far the probe could see.
fn key(probe: &str, value: &Value) -> String {
    match comparable(probe) {
        Comparable::By(part) => Value::from(&part(&value.into())).to_string(),
        _ => value.to_string(),
    }
}

/// What of an answer is a property of the arithmetic, as text; `None` if it is one of the driver, such as the instructions it chose.
#[must_use]
pub fn compared_answer(probe: &str, value: &Value) -> Option<String> {
    (!matches!(comparable(probe), Comparable::WithinDevice)).then(|| key(probe, value))
}

/// What to make of the answers of a probe; those of a probe that is not known here, as of another version, are compared as they
/// are.
pub(super) fn comparable(probe: &str) -> Comparable {
    probes::named(probe).map_or(Comparable::AsIs, |probe| probe.shown.compared)
}
