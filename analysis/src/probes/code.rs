//! Question 11: which instruction does the driver's code issue, and does it belong to the matrix unit?

use std::collections::BTreeMap;

use mxprobe_api::Issued;

use super::{Ask, Probe, Subject};
use crate::findings::{AppliesTo, Comparable, Finding, Shown, Value, source};

pub(crate) const INSTRUCTION: Probe = Probe {
    name: "instruction",
    question: "Which instruction does the driver's code issue?",
    how: "Read from the code that the driver made, where it shows it.",
    answers: &[
        ("names and counts", "the matrix instructions of the loop"),
        ("none", "no matrix instruction: see emulation"),
        ("unsupported", "the driver does not show its code"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Every,
    shown: Shown::PLAIN.compared(Comparable::WithinDevice),
    ask: Ask::Code(ask),
};

pub(crate) const EMULATION: Probe = Probe {
    name: "emulation",
    question: "Is it the matrix unit at all, or an emulation on other units?",
    how: "The instructions in the driver's code in place of the matrix instruction.",
    answers: &[
        ("false", "the matrix unit runs the operation"),
        ("true", "other instructions do: expect another speed, and other bits than from the unit"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Every,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

/// Finds which instruction runs, and whether it belongs to the matrix unit.
fn ask(subject: &Subject<'_>) -> Vec<Finding> {
    let (device, operation) = (subject.device(), subject.operation());
    let both = |finding: &dyn Fn(&str) -> Finding| [INSTRUCTION.name, EMULATION.name].map(finding).into();
    match (device.code().map_or(Ok(None), |code| code.issued(operation)), &operation.instruction) {
        (Ok(Some(issued)), _) => vec![issued_instructions(&issued), emulation(&issued)],
        (Ok(None), Some(instruction)) => {
            both(&|name| Finding::skipped(name, format!("not read from the device; the backend issues {instruction}")))
        }
        (Ok(None), None) => both(&|name| Finding::unsupported(name, "the driver does not show its code")),
        (Err(error), _) if error.is_unsupported() => both(&|name| Finding::unsupported(name, error.to_string())),
        (Err(error), _) => both(&|name| Finding::failed(name, error.to_string())),
    }
}

fn counted(instructions: &BTreeMap<String, usize>) -> String {
    instructions.iter().map(|(name, count)| format!("{count} × {name}")).collect::<Vec<_>>().join(", ")
}

fn issued_instructions(issued: &Issued) -> Finding {
    let words = if issued.matrix.is_empty() {
        "the driver's code has no matrix instruction".to_owned()
    } else {
        counted(&issued.matrix)
    };
    let value = Value::parts(issued.matrix.iter().map(|(name, count)| (name.clone(), (*count).into())));
    Finding::measured(INSTRUCTION.name, value, words)
}

/// Reports whether the operation is emulated, with the instructions that replace the matrix instruction.
fn emulation(issued: &Issued) -> Finding {
    let is_emulated = issued.is_emulated();
    let unit = issued.unit.as_deref().map_or_else(String::new, |unit| format!(" {unit}"));
    let mut words = match (is_emulated, issued.matrix.is_empty()) {
        (false, _) => format!("the matrix unit{unit} runs it"),
        (true, true) => format!("an emulation: the matrix instruction{unit} is not in the code"),
        (true, false) => format!("an emulation: {} in place of one{unit}", counted(&issued.matrix)),
    };
    if is_emulated && !issued.others.is_empty() {
        words.push_str(&format!(", beside {}", counted(&issued.others)));
    }
    if !issued.routines.is_empty() {
        words.push_str(&format!("; it calls {}", issued.routines.join(", ")));
    }
    if let Some(digest) = &issued.code_sha256 {
        words.push_str(&format!("; machine code of SHA-256 {digest}"));
    }
    Finding::measured(EMULATION.name, is_emulated, words)
}
