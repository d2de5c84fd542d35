//! Does the arithmetic do what its mode requests, as its driver or its control word promises?

use mxprobe_api::{Rounding, Subnormals};

use super::{Ask, Probe, found::Found, once::Mode, subject::Subject};
use crate::findings::{AppliesTo, Finding, Shown, source};

pub(crate) const PROBE: Probe = Probe {
    name: "mode",
    question: "Does the arithmetic do what its mode asks for?",
    how: "Compares the measured behaviour of every function with the words of the mode: a control word's bits, an execution mode, an \
         instruction's modifiers.",
    answers: &[
        ("true", "the mode can be relied on"),
        ("false", "some functions ignore a part of it; the statement names them"),
    ],
    source: source::IEEE,
    applies_to: AppliesTo::Scalars,
    shown: Shown::PLAIN,
    ask: Ask::Question(|subject, found, findings| {
        findings.push(ask(subject, found));
        Ok(())
    }),
};

/// The mode words for rounding directions.
const DIRECTIONS: [&str; 4] = ["rne", "rz", "rd", "ru"];

/// Whether a reading satisfies a word of a mode; `None` if the word does not concern it.
fn is_met(word: &str, mode: Mode) -> Option<bool> {
    Some(match word {
        "rne" => mode.rounding == Rounding::NearestEven,
        "rz" => mode.rounding == Rounding::TowardZero,
        "rd" => mode.rounding == Rounding::Down,
        "ru" => mode.rounding == Rounding::Up,
        "ftz" => mode.results != Subnormals::Keep,
        "daz" => mode.daz,
        "preserve" => !mode.daz && mode.results == Subnormals::Keep,
        _ => return None,
    })
}

/// A reading's mode, changed to what a word requests.
fn asked_for(word: &str, mode: Mode) -> Mode {
    match word {
        "rne" => Mode { rounding: Rounding::NearestEven, ..mode },
        "rz" => Mode { rounding: Rounding::TowardZero, ..mode },
        "rd" => Mode { rounding: Rounding::Down, ..mode },
        "ru" => Mode { rounding: Rounding::Up, ..mode },
        "ftz" => Mode { results: Subnormals::FlushAfterRounding, ..mode },
        "daz" => Mode { daz: true, ..mode },
        _ => Mode { daz: false, results: Subnormals::Keep, ..mode },
    }
}

/// Lists, for each word of the mode, the functions whose results no reading can reconcile with it. If no reading
/// explains a function, it is not rounded in any direction that a word may request; nothing is known about its
/// subnormals.
pub(super) fn ask(subject: &Subject<'_>, found: &[Found]) -> Finding {
    let words = subject.scalar.id.mode.iter().map(String::as_str);
    let any = |word: &&str| found.first().is_some_and(|found| is_met(word, found.nearest.0).is_some());
    let checked: Vec<&str> = words.filter(any).collect();
    let met = |word: &str, found: &Found| found.readings.iter().any(|(mode, _)| is_met(word, *mode) == Some(true));
    let is_against = |word: &str, found: &Found| {
        if found.readings.is_empty() { DIRECTIONS.contains(&word) } else { !met(word, found) }
    };
    let against = checked.iter().map(|word| (*word, found.iter().filter(|found| is_against(word, found)).collect()));
    let against: Vec<(&str, Vec<&Found>)> = against.filter(|(_, found): &(_, Vec<_>)| !found.is_empty()).collect();
    if checked.is_empty() {
        return Finding::unsupported(
            PROBE.name,
            "nothing is asked of this arithmetic that a question here could check",
        );
    }
    if against.is_empty() {
        return Finding::measured(PROBE.name, true, format!("every function does as {} asks", checked.join(", ")));
    }
    // For each word, a call of the first function that does not follow it.
    let shown = against.iter().filter_map(|(word, functions)| {
        let first = functions.first()?;
        let (mode, steps) = first.nearest;
        first.against(subject, (asked_for(word, mode), steps), word)
    });
    let shown = shown.collect();
    let names = |functions: &[&Found]| {
        let name = |found: &&Found| {
            let not = if found.readings.is_empty() { " (not correctly rounded in any direction)" } else { "" };
            format!("{}{not}", found.function)
        };
        functions.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let words = against.iter().map(|(word, functions)| format!("{word} is not followed by {}", names(functions)));
    Finding::measured(PROBE.name, false, words.collect::<Vec<_>>().join("; ")).with(shown)
}
