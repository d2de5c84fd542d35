//! Comparisons as pages.

use super::{
    comparisons_rows, comparisons_screen,
    comparisons_words::{
        DOTS_SHOWN, answer_words, describe, dot_lines, ids, shown, sides, state, summary, title, verdict,
    },
    csv::Rows,
    form::Show,
    json::to_json,
    page::{Block, Cell, Page, Row, Tone},
    words,
};
use crate::{
    findings::Outcome,
    plain::counted,
    report::record::{Answer, Comparison, Match, MatchedBy, Side, State},
};

/// A comparison of reports; with what is equal or open too, if `all`.
#[derive(Clone, Copy, Debug)]
pub struct Comparisons<'a> {
    /// What was compared.
    pub found: &'a Comparison,
    /// Show all.
    pub all: bool,
}

impl Show for Comparisons<'_> {
    fn page(&self, _: bool) -> Page {
        let blocks = vec![
            Block::Screen(comparisons_screen::blocks(self.found, self.all)),
            Block::Paper(blocks(self.found, self.all)),
        ];
        Page { title: verdict(self.found), blocks }
    }

    fn rows(&self) -> Rows {
        comparisons_rows::rows(self.found, self.all)
    }

    // Programs sort out themselves what they look at.
    fn json(&self) -> String {
        to_json(self.found)
    }
}

fn blocks(comparison: &Comparison, all: bool) -> Vec<Block> {
    let mut blocks = vec![Block::heading(1, "Comparison")];
    let tone = if comparison.differ { Tone::Warning } else { Tone::Plain };
    blocks.push(Block::Words(tone, verdict(comparison)));
    blocks.extend(comparison.notes.iter().map(|note| Block::Words(Tone::Muted, note.clone())));
    blocks.push(Block::Facts(comparison.reports.iter().map(|side| (head(side), describe(side))).collect()));
    blocks.push(Block::Contents);
    let shown: Vec<&Match> = comparison.matches.iter().filter(|found| all || found.differs()).collect();
    if !shown.is_empty() {
        blocks.push(Block::heading(2, if all { "Every answer" } else { "What differs" }));
        blocks.extend(shown.into_iter().map(|found| matched(found, comparison, all)));
    }
    let same: Vec<&Match> = comparison.matches.iter().filter(|found| !found.differs()).collect();
    if !same.is_empty() && !all {
        blocks.push(Block::heading(2, "No difference"));
        let rows = same.iter().map(|found| Row::plain(vec![Cell::code(title(found)), Cell::words(summary(found))]));
        let summary = format!("{} of operations without a difference", counted(same.len(), "group"));
        blocks.push(Block::Details { summary, blocks: vec![Block::table(["operations", "found"], rows)] });
    }
    if !comparison.alone.is_empty() {
        blocks.push(Block::heading(2, "Without a counterpart"));
        for side in &comparison.reports {
            let alone = || comparison.alone.iter().filter(|alone| alone.report == side.label);
            let operations: Vec<_> = alone().flat_map(|alone| &alone.operations).map(ToString::to_string).collect();
            if operations.is_empty() {
                continue;
            }
            let of_device = if alone().any(|alone| alone.same_device) { ", which the other driver lacks" } else { "" };
            let summary = format!("{}: {}{of_device}", head(side), counted(operations.len(), "operation"));
            blocks.push(Block::Details { summary, blocks: vec![Block::Lines(operations)] });
        }
    }
    blocks
}

/// What stands at the head of a report's column.
fn head(side: &Side) -> String {
    format!("{}: {}", side.label, side.selector)
}

/// What was found of operations that are compared, folded.
fn matched(found: &Match, comparison: &Comparison, all: bool) -> Block {
    let mut blocks = vec![operations(found, comparison)];
    blocks.extend(properties(found, comparison, all));
    for dot in found.dots.iter().take(DOTS_SHOWN) {
        let lines = dot_lines(dot, comparison);
        let summary = format!("{}: {}", words::about(&dot.input), lines[lines.len() - 1]);
        blocks.push(Block::Details { summary, blocks: vec![Block::Lines(lines)] });
    }
    Block::Details { summary: format!("{}: {}", title(found), summary(found)), blocks }
}

fn operations(found: &Match, comparison: &Comparison) -> Block {
    let rows = sides(found, comparison)
        .map(|(at, side)| Row::plain(vec![Cell::words(&side.label), Cell::words(ids(&found.operations[at]))]));
    let summary = match found.by {
        MatchedBy::Id => "operations, by name",
        MatchedBy::Formats => "operations, by formats and k",
        MatchedBy::Terms => "operations, by formats alone",
    };
    Block::Details { summary: summary.into(), blocks: vec![Block::table(["report", "operations"], rows)] }
}

fn properties(found: &Match, comparison: &Comparison, all: bool) -> Option<Block> {
    let mut head = vec!["probe".to_owned()];
    if all {
        head.push("compared".to_owned());
    }
    head.extend(sides(found, comparison).map(|(_, side)| self::head(side)));
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
    (!rows.is_empty()).then(|| Block::table(head, rows))
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
