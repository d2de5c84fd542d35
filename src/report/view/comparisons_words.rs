//! What every form of a comparison says in the same words.

use std::fmt::Write as _;

use mxprobe_api::OperationId;

use super::words;
use crate::{
    plain::counted,
    report::{
        record::{Answer, Compared, Comparison, DotCompared, Kind, Match, MatchedBy, Side, State},
        summary::is_layout,
    },
};

/// Dots with other bits that are shown for each match; the JSON has all.
pub(super) const DOTS_SHOWN: usize = 3;

/// The device, its driver, and where the report is from.
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

/// Which devices are compared: `a100, h100 and mi300x: how they add`.
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

/// The main point in one sentence.
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

/// What was compared: the first operation, or what the operations compute, and how many others.
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

/// `f32.f16.f16.f32`, and what else makes it compute something else.
fn formats(id: &OperationId) -> String {
    let mut text = format!("{}.{}.{}.{}", id.d, id.a, id.b, id.c);
    for word in id.qualifiers.iter().filter(|word| !is_layout(word)) {
        text.push('.');
        text.push_str(word);
    }
    text
}

/// Ids with commas between them.
pub(super) fn ids(operations: &[OperationId]) -> String {
    operations.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The sides that have operations in a match.
pub(super) fn sides<'a>(found: &'a Match, comparison: &'a Comparison) -> impl Iterator<Item = (usize, &'a Side)> {
    comparison.reports.iter().enumerate().filter(|(side, _)| !found.operations[*side].is_empty())
}

/// The questions that are shown: those whose answers differ, or all.
pub(super) fn shown(found: &Match, all: bool) -> impl Iterator<Item = &Compared> {
    found.rows.iter().filter(move |row| all || row.state == State::Differs)
}

/// The name of a state, as in the JSON.
pub(super) fn state(state: State) -> &'static str {
    match state {
        State::Differs => "differs",
        State::Open => "open",
        State::Equal => "equal",
    }
}

/// Operations that are named beside an answer; more are counted.
const NAMED: usize = 2;

/// What a report says; where its operations do not agree, which says what.
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

/// How many properties are how, and how many bits.
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

/// The input, then what each device returned.
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
