//! The first question: do small integers, exact in every format, come back right?

use mxprobe_api::{execute, self_test};

use super::{Ask, Probe, Subject};
use crate::findings::{AppliesTo, Finding, Shown, source};

pub(crate) const PROBE: Probe = Probe {
    name: "self_test",
    question: "Do small integers, exact in every format, come back right at every position?",
    how: "Tiles of small integers, whose sums every format holds exactly, in layouts that show a transposed or misplaced \
         element.",
    answers: &[
        ("true", "the tile is laid out as it is described; the other questions are meaningful"),
        ("failed", "wrong results before any question of rounding: nothing else was asked"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Every,
    shown: Shown::PLAIN,
    ask: Ask::First(ask),
};

fn ask(subject: &Subject<'_>) -> Finding {
    let (device, operation) = (subject.device(), subject.operation());
    match self_test(operation, |batch| execute(device, operation, batch)) {
        Ok(_) => Finding::measured(PROBE.name, true, "small integers come back right at every position"),
        Err(error) => Finding::failed(PROBE.name, error.to_string()),
    }
}
