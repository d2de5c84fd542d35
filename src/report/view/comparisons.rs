//! Comparisons as pages.

use super::{
    comparisons_rows, comparisons_screen,
    comparisons_words::{
        DOTS_SHOWN, answer_words, describe, dot_lines, heading, ids, shown, sides, state, summary, title, verdict,
    },
    csv::Rows,
    form::Show,
    json::to_json,
    page::{Block, Cell, Page, Row, Tone},
    words,
};
use crate::{
    findings::Outcome,
    report::record::{Answer, Comparison, Match, MatchedBy, State},
};

/// A comparison of reports; with what is equal or open too, if `all`.
#[derive(Clone, Copy, Debug)]
pub struct Comparisons<'a> {
    /// What was compared.
    pub found: &'a Comparison,
    /// Show each difference, and not only what it comes to. Documents always do.
    pub listed: bool,
    /// Show what is equal or open too.
    pub all: bool,
}

impl Show for Comparisons<'_> {
    fn page(&self, evidence: bool) -> Page {
        let listed = self.listed || self.all || evidence;
        let blocks = vec![
            Block::Screen(comparisons_screen::blocks(self.found, listed, self.all)),
            Block::Paper(blocks(self.found, self.all)),
        ];
        Page { title: heading(self.found), blocks }
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
        blocks.push(Block::table(["operations", "found"], rows));
    }
    if !comparison.alone.is_empty() {
        blocks.push(Block::heading(2, "Without a counterpart"));
        let rows = comparison.alone.iter().map(|alone| {
            let tone = if alone.same_device { Tone::Warning } else { Tone::Plain };
            let cells = vec![Cell::words(&alone.report), Cell::words(ids(&alone.operations))];
            Row { tone, ..Row::plain(cells) }
        });
        blocks.push(Block::table(["report", "operations"], rows));
    }
    blocks
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
