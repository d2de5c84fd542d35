//! Wording that all views of a comparison share.

use std::fmt::Write as _;

use mxprobe_api::OperationId;

use super::words;
use crate::{
    plain::counted,
    report::{Answer, Compared, Comparison, DotCompared, Kind, Match, MatchedBy, Side, State, is_layout},
};

/// The maximum number of dots with different bits that are shown for each match; the JSON has all.
pub(super) const DOTS_SHOWN: usize = 3;

/// Describes the device, its driver, and the source of the report.
pub(super) fn describe(side: &Side) -> String {
    let mut text = format!("{}  {}", side.selector, side.name);
    if let Some(driver) = &side.driver {
        let _ = write!(text, "; driver {} {}", driver.name, driver.version);
    }
    if side.emulated {
        text.push_str("; a double");
    } else if side.kind == Kind::Model {
        text.push_str("; nothing was measured on silicon");
    }
    let _ = write!(text, "; {}, {}", side.source, side.start);
    text
}

/// Names the compared devices: `a100, h100 and mi300x: how they add`.
pub(super) fn heading(comparison: &Comparison) -> String {
    let titles: Vec<&str> = comparison.reports.iter().map(|side| side.title.as_str()).collect();
    let names = match titles.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => titles.join(", "),
    };
    let models = comparison.reports.iter().filter(|side| side.kind == Kind::Model && !side.emulated).count();
    let nothing = match models {
        0 => "",
        all if all == titles.len() => "; models, nothing was measured on silicon",
        _ => "; some are models, of which nothing was measured on silicon",
    };
    format!("{names}: how they add{nothing}")
}

/// Returns the verdict in one sentence.
#[must_use]
pub fn verdict(comparison: &Comparison) -> String {
    let matches = &comparison.matches;
    if matches.is_empty() {
        return "nothing can be compared: no operation of one report computes what one of another does".into();
    }
    if !matches.iter().any(Match::is_settled) {
        let open: usize = matches.iter().map(|found| found.count(State::Open)).sum();
        return format!(
            "nothing can be compared: {} left open, and no dot was asked of several",
            counted(open, "question")
        );
    }
    let differing = matches.iter().filter(|found| found.differs()).count();
    let dots: usize = matches.iter().map(|found| found.dots_in_common).sum();
    let open: usize = matches.iter().map(|found| found.count(State::Open)).sum();
    if differing > 0 {
        let properties: usize = matches.iter().map(|found| found.count(State::Differs)).sum();
        let bits: usize = matches.iter().map(|found| found.dots.len()).sum();
        let in_bits = match dots {
            0 => "no dot was asked of several".to_owned(),
            dots => format!("in the bits of {bits} of {} asked of several", counted(dots, "dot")),
        };
        return format!(
            "{differing} of {} of operations {}: in {}, and {in_bits}",
            counted(matches.len(), "group"),
            if differing == 1 { "differs" } else { "differ" },
            counted(properties, "answer"),
        );
    }
    let missing = if comparison.differ { "a driver lacks operations that another has; for the others " } else { "" };
    let bits = match dots {
        0 => "no dot was asked of several".to_owned(),
        dots => format!("the same bits for {} asked of several", counted(dots, "dot")),
    };
    format!("{missing}no difference was found: the same answers, with {} open, and {bits}", counted(open, "question"))
}

/// Names a match: the first operation, or what the operations compute, and how many others there are.
pub(super) fn title(found: &Match) -> String {
    let mut all: Vec<String> = Vec::new();
    for id in found.operations.iter().flatten() {
        let name = match found.by {
            MatchedBy::Id => id.to_string(),
            MatchedBy::Formats => format!("{} of k {}", formats(id), id.shape.k),
            MatchedBy::Terms => format!("{} of any k", formats(id)),
        };
        if !all.contains(&name) {
            all.push(name);
        }
    }
    match all.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// Formats of an operation, such as `f32.f16.f16.f32`, with the qualifiers that change the result.
fn formats(id: &OperationId) -> String {
    let mut text = format!("{}.{}.{}.{}", id.d, id.a, id.b, id.c);
    for word in id.qualifiers.iter().filter(|word| !is_layout(word)) {
        text.push('.');
        text.push_str(word);
    }
    text
}

/// Joins ids with commas.
pub(super) fn ids(operations: &[OperationId]) -> String {
    operations.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the sides that have operations in a match.
pub(super) fn sides<'a>(found: &'a Match, comparison: &'a Comparison) -> impl Iterator<Item = (usize, &'a Side)> {
    comparison.reports.iter().enumerate().filter(|(side, _)| !found.operations[*side].is_empty())
}

/// Returns the questions to show: those whose answers differ, or all.
pub(super) fn shown(found: &Match, all: bool) -> impl Iterator<Item = &Compared> {
    found.rows.iter().filter(move |row| all || row.state == State::Differs)
}

/// Returns the name of a state, as in the JSON.
pub(super) fn state(state: State) -> &'static str {
    match state {
        State::Differs => "differs",
        State::Open => "open",
        State::Equal => "equal",
    }
}

/// The maximum number of operations named with an answer; more are counted.
const NAMED: usize = 2;

/// Formats a report's answer; if its operations disagree, with the operations of each answer.
pub(super) fn answer_words(answers: &[Answer]) -> String {
    if answers.is_empty() {
        return "— not asked".into();
    }
    let words = answers.iter().map(|answer| match answer.operations.as_slice() {
        [] => answer.words.clone(),
        few if few.len() <= NAMED => format!("{}: {}", ids(few), answer.words),
        many => format!("{} and {} more: {}", ids(&many[..1]), many.len() - 1, answer.words),
    });
    words.collect::<Vec<_>>().join("\n")
}

/// Counts the properties by state, and the common dots by whether their bits differ.
pub(super) fn summary(found: &Match) -> String {
    let counts = [(State::Differs, "differ"), (State::Equal, "equal"), (State::Open, "open")];
    let counts = counts.map(|(state, name)| (found.count(state), name));
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    let dots = match (found.dots_in_common, found.dots.len()) {
        (0, _) => "no dot in common".to_owned(),
        (common, 0) => format!("the same bits for {}", counted(common, "common dot")),
        (common, other) => format!("other bits for {other} of {}", counted(common, "common dot")),
    };
    format!("{}; {dots}", counts.collect::<Vec<_>>().join(", "))
}

/// Renders the input, then the result of each device.
pub(super) fn dot_lines(dot: &DotCompared, comparison: &Comparison) -> Vec<String> {
    let Some(id) = dot.operations.iter().flatten().next() else { return vec![String::new()] };
    let mut lines = words::inputs(&dot.input, id);
    lines.push(format!("c = {}", words::number(id.c, &dot.input.c)));
    let results = comparison.reports.iter().zip(&dot.d).filter_map(|(side, d)| {
        let d = d.as_ref()?;
        Some(format!("{} {}", side.label, words::number(id.d, d)))
    });
    lines.push(format!("d = {}", results.collect::<Vec<_>>().join(", ")));
    lines
}
