//! Does the arithmetic do what its mode asks for, as its driver or its control word promises?

use mxprobe_api::{Rounding, ScalarFunction, Subnormals};

use super::{exact::Mode, functions::Found, subject::Subject};
use crate::report::Finding;

const PROBE: &str = "mode";

/// What a word of a mode asks of a reading.
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

/// A reading's mode as a word asks for it.
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

/// For each word of the mode, the functions that no reading of what they gave lets do as it asks.
pub(super) fn ask(subject: &Subject<'_>, found: &[Found]) -> Finding {
    let words: Vec<&str> = subject.scalar.id.mode.iter().map(String::as_str).collect();
    let mut against: Vec<(&str, Vec<ScalarFunction>)> = Vec::new();
    let mut checked = Vec::new();
    for word in words {
        let told = found.iter().filter(|found| !found.readings.is_empty());
        let met = |found: &Found| found.readings.iter().any(|(mode, _)| is_met(word, *mode) == Some(true));
        let Some((mode, _)) = found.iter().find_map(|found| found.readings.first()) else { continue };
        if is_met(word, *mode).is_none() {
            continue;
        }
        checked.push(word);
        let not: Vec<ScalarFunction> = told.filter(|found| !met(found)).map(|found| found.function).collect();
        if !not.is_empty() {
            against.push((word, not));
        }
    }
    if checked.is_empty() {
        return Finding::unsupported(PROBE, "nothing is asked of this arithmetic that a question here could check");
    }
    if against.is_empty() {
        return Finding::measured(PROBE, true.into(), format!("every function does as {} asks", checked.join(", ")));
    }
    // For each word a call of the first function that does not follow it.
    let shown = against.iter().filter_map(|(word, functions)| {
        let found = found.iter().find(|found| Some(&found.function) == functions.first())?;
        let (mode, steps) = *found.readings.first()?;
        found.against(subject, (asked_for(word, mode), steps), word)
    });
    let shown = shown.collect();
    let words: Vec<String> = against
        .iter()
        .map(|(word, functions)| {
            let names: Vec<String> = functions.iter().map(ToString::to_string).collect();
            format!("{word} is not followed by {}", names.join(", "))
        })
        .collect();
    Finding::measured(PROBE, false.into(), words.join("; ")).with(shown)
}
