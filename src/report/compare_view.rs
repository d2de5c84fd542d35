//! Comparisons as pages and as rows.

use std::fmt::Write as _;

use mxprobe_api::OperationId;

use super::{
    Answer, Compared, Comparison, DotCompared, Match, MatchedBy, Outcome, Side, State, csv,
    document::{Block, Cell, Document, Row, Tone},
    matching::is_layout,
    words,
};

/// Dots with other bits that are shown for each match; the JSON has all.
pub(super) const DOTS_SHOWN: usize = 3;

/// The page of a comparison.
pub(super) fn document(comparison: &Comparison, all: bool) -> Document {
    let mut blocks = vec![Block::heading(1, "Comparison")];
    blocks.push(Block::Facts(comparison.reports.iter().map(|side| (side.label.clone(), describe(side))).collect()));
    let tone = if comparison.differ { Tone::Warning } else { Tone::Plain };
    blocks.push(Block::Words(tone, verdict(comparison)));
    blocks.extend(comparison.notes.iter().map(|note| Block::Words(Tone::Muted, note.clone())));
    for found in comparison.matches.iter().filter(|found| all || found.differs()) {
        blocks.push(Block::heading(2, title(found)));
        blocks.push(operations(found, comparison));
        if let Some(table) = properties(found, comparison, all) {
            blocks.push(table);
        }
        blocks.push(Block::Words(Tone::Muted, summary(found)));
        for dot in found.dots.iter().take(DOTS_SHOWN) {
            let lines = dot_lines(dot, comparison);
            let summary = format!("{}: {}", words::about(&dot.input), lines[lines.len() - 1]);
            blocks.push(Block::Details { summary, blocks: vec![Block::Lines(lines)] });
        }
    }
    let same: Vec<&Match> = comparison.matches.iter().filter(|found| !found.differs()).collect();
    if !same.is_empty() && !all {
        blocks.push(Block::heading(2, "No difference"));
        let rows = same.iter().map(|found| Row::plain(vec![Cell::code(title(found)), Cell::words(summary(found))]));
        let head = ["operations", "found"].map(str::to_owned).into();
        blocks.push(Block::Table { head, rows: rows.collect() });
    }
    if !comparison.alone.is_empty() {
        blocks.push(Block::heading(2, "Without a counterpart"));
        let rows = comparison.alone.iter().map(|alone| {
            let tone = if alone.same_device { Tone::Warning } else { Tone::Plain };
            Row { tone, cells: vec![Cell::words(&alone.report), Cell::words(ids(&alone.operations))] }
        });
        let head = ["report", "operations"].map(str::to_owned).into();
        blocks.push(Block::Table { head, rows: rows.collect() });
    }
    Document { title: verdict(comparison), blocks }
}

/// The device, its driver, and where the report is from.
pub(super) fn describe(side: &Side) -> String {
    let mut text = format!("{}  {}", side.selector, side.name);
    if let Some(driver) = &side.driver {
        let _ = write!(text, "; driver {} {}", driver.name, driver.version);
    }
    if side.emulated {
        text.push_str("; a double");
    } else if side.kind == super::Kind::Model {
        text.push_str("; nothing was measured on silicon");
    }
    let _ = write!(text, "; {}, {}", side.source, side.start);
    text
}

pub(super) fn verdict(comparison: &Comparison) -> String {
    let matches = &comparison.matches;
    if matches.is_empty() {
        return "nothing can be compared: no operation of one report computes what one of another does".into();
    }
    if !matches.iter().any(Match::is_settled) {
        let open: usize = matches.iter().map(|found| found.count(State::Open)).sum();
        return format!(
            "nothing can be compared: {} left open, and no dot was asked of several",
            words::count(open, "question")
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
            dots => format!("in the bits of {bits} of {} asked of several", words::count(dots, "dot")),
        };
        return format!(
            "{differing} of {} of operations {}: in {}, and {in_bits}",
            words::count(matches.len(), "group"),
            if differing == 1 { "differs" } else { "differ" },
            words::count(properties, "answer"),
        );
    }
    let missing = if comparison.differ { "a driver lacks operations that another has; for the others " } else { "" };
    let bits = match dots {
        0 => "no dot was asked of several".to_owned(),
        dots => format!("the same bits for {} asked of several", words::count(dots, "dot")),
    };
    format!(
        "{missing}no difference was found: the same answers, with {} open, and {bits}",
        words::count(open, "question")
    )
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

pub(super) fn ids(operations: &[OperationId]) -> String {
    operations.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The sides that have operations in a match.
pub(super) fn sides<'a>(found: &'a Match, comparison: &'a Comparison) -> impl Iterator<Item = (usize, &'a Side)> {
    comparison.reports.iter().enumerate().filter(|(side, _)| !found.operations[*side].is_empty())
}

fn operations(found: &Match, comparison: &Comparison) -> Block {
    let rows = sides(found, comparison)
        .map(|(at, side)| Row::plain(vec![Cell::words(&side.label), Cell::words(ids(&found.operations[at]))]));
    let summary = match found.by {
        MatchedBy::Id => "operations, by name",
        MatchedBy::Formats => "operations, by formats and k",
        MatchedBy::Terms => "operations, by formats alone",
    };
    let table = Block::Table { head: ["report", "operations"].map(str::to_owned).into(), rows: rows.collect() };
    Block::Details { summary: summary.into(), blocks: vec![table] }
}

pub(super) fn shown(found: &Match, all: bool) -> impl Iterator<Item = &Compared> {
    found.rows.iter().filter(move |row| all || row.state == State::Differs)
}

fn properties(found: &Match, comparison: &Comparison, all: bool) -> Option<Block> {
    let mut head = vec!["probe".to_owned()];
    if all {
        head.push("compared".to_owned());
    }
    head.extend(sides(found, comparison).map(|(_, side)| side.label.clone()));
    let rows: Vec<Row> = shown(found, all)
        .map(|row| {
            let mut cells = vec![Cell::code(&row.probe)];
            if all {
                let tone = if row.state == State::Differs { Tone::Warning } else { Tone::Muted };
                cells.push(Cell::words(state(row.state)).tone(tone));
            }
            cells.extend(sides(found, comparison).map(|(side, _)| answer_cell(&row.answers[side])));
            Row::plain(cells)
        })
        .collect();
    (!rows.is_empty()).then_some(Block::Table { head, rows })
}

fn state(state: State) -> &'static str {
    match state {
        State::Differs => "differs",
        State::Open => "open",
        State::Equal => "equal",
    }
}

fn answer_cell(answers: &[Answer]) -> Cell {
    let failed = answers.iter().any(|answer| answer.outcome == Outcome::Failed);
    let measured = answers.iter().any(|answer| answer.outcome == Outcome::Measured);
    let tone = match (failed, measured) {
        (true, _) => Tone::Failure,
        (false, true) => Tone::Plain,
        (false, false) => Tone::Muted,
    };
    Cell::words(answer_words(answers)).tone(tone)
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
        (common, 0) => format!("the same bits for {}", words::count(common, "common dot")),
        (common, other) => format!("other bits for {other} of {}", words::count(common, "common dot")),
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

/// The columns of comparisons.
const COLUMNS: [&str; 19] = [
    "schema",
    "state",
    "matched_by",
    "probe",
    "report",
    "source",
    "backend",
    "fingerprint",
    "device",
    "driver",
    "driver_version",
    "operations",
    "outcome",
    "value",
    "words",
    "a",
    "b",
    "c",
    "d",
];

/// One row a property and report, then one a dot and report.
pub(super) fn rows(comparison: &Comparison, all: bool) -> String {
    let mut out = String::new();
    csv::row(&mut out, COLUMNS);
    for found in &comparison.matches {
        for (at, side) in sides(found, comparison) {
            let own = |state: State, probe: &str, operations: &str, rest: [&str; 7]| {
                let by = match found.by {
                    MatchedBy::Id => "id",
                    MatchedBy::Formats => "formats",
                    MatchedBy::Terms => "terms",
                };
                let driver = side.driver.as_ref().map_or(["", ""], |driver| [&driver.name, &driver.version]);
                let head =
                    [&comparison.schema, self::state(state), by, probe, &side.label, &side.source, &side.backend];
                let device = [&side.fingerprint, &side.name, driver[0], driver[1], operations];
                let mut line = String::new();
                csv::row(&mut line, head.into_iter().chain(device).chain(rest));
                line
            };
            for row in shown(found, all) {
                for answer in &row.answers[at] {
                    let operations =
                        if answer.operations.is_empty() { &found.operations[at] } else { &answer.operations };
                    let value = answer.value.as_ref().map(csv::value).unwrap_or_default();
                    let outcome = words::outcome(answer.outcome);
                    let rest = [outcome, value.as_str(), &answer.words, "", "", "", ""];
                    out += &own(row.state, &row.probe, &ids(operations), rest);
                }
            }
            for dot in &found.dots {
                if let (Some(d), Some(id)) = (&dot.d[at], &dot.operations[at]) {
                    let (a, b) = (dot.input.a.join(" "), dot.input.b.join(" "));
                    let rest = ["measured", "", &dot.input.about, &a, &b, &dot.input.c, d];
                    out += &own(State::Differs, "", &id.to_string(), rest);
                }
            }
        }
    }
    out
}
