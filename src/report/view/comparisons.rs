//! Comparisons as pages.

use super::{
    comparisons_rows, comparisons_screen,
    comparisons_words::{
        DOTS_SHOWN, answer_words, describe, dot_lines, heading, ids, shown, sides, state, summary, title, verdict,
    },
    csv::Rows,
    form::Show,
    glance::{glimpses, shades},
    page::{Block, Cell, GlimpseRow, Matrix, Page, Row, Tone},
    plot::{drawn_strips, drawn_trees},
    words,
};
use crate::{
    findings::Outcome,
    plain::counted,
    report::{Answer, Comparison, Match, MatchedBy, MatrixRow, Report, Side, State, SummaryRow, Unit, to_json},
};

/// A comparison of reports, with display options.
#[derive(Clone, Copy, Debug)]
pub struct Comparisons<'a> {
    /// The comparison.
    pub found: &'a Comparison,
    /// The compared reports in the order of the comparison, for the drawings of a page; empty for a page without
    /// drawings.
    pub reports: &'a [(String, Report)],
    /// Whether to show each difference instead of only the conclusion. Documents always do.
    pub listed: bool,
    /// Whether to also show answers that are equal or open.
    pub all: bool,
}

impl Show for Comparisons<'_> {
    fn page(&self, evidence: bool) -> Page {
        let mut blocks = self.screen(evidence);
        blocks.push(Block::Paper(self::blocks(self.found, self.reports, self.all)));
        Page { title: heading(self.found), blocks }
    }

    fn screen(&self, evidence: bool) -> Vec<Block> {
        let listed = self.listed || self.all || evidence;
        vec![Block::Screen(comparisons_screen::blocks(self.found, listed, self.all))]
    }

    fn rows(&self) -> Rows {
        comparisons_rows::rows(self.found, self.all)
    }

    // Programs filter the JSON themselves.
    fn json(&self) -> String {
        to_json(self.found)
    }
}

fn blocks(comparison: &Comparison, reports: &[(String, Report)], all: bool) -> Vec<Block> {
    let mut blocks = vec![Block::heading(1, heading(comparison))];
    let headline: Vec<_> = comparison.headline.iter().map(|sentence| (Tone::Plain, sentence.clone())).collect();
    blocks.extend((!headline.is_empty()).then_some(Block::List(headline)));
    let tone = if comparison.differ { Tone::Warning } else { Tone::Plain };
    blocks.push(Block::Words(tone, verdict(comparison)));
    blocks.push(Block::Contents);
    if !comparison.matrix.is_empty() {
        blocks.push(Block::heading(2, "At a glance"));
        blocks.push(Block::Words(Tone::Muted, GLANCE.into()));
        let (of_matrices, of_dots): (Vec<&MatrixRow>, Vec<&MatrixRow>) =
            comparison.matrix.iter().partition(|row| row.unit == Unit::Matrix);
        blocks.push(shades());
        if !of_matrices.is_empty() {
            blocks.push(Block::Matrix(matrix(&of_matrices, comparison, reports)));
        }
        if !of_dots.is_empty() {
            let summary = format!("{} of sums by dot-product instructions", counted(of_dots.len(), "kind"));
            blocks.push(Block::Details { summary, blocks: vec![Block::Matrix(matrix(&of_dots, comparison, reports))] });
        }
        blocks.extend(drawings(comparison, reports));
    }
    blocks.push(Block::heading(2, "Reports"));
    blocks.push(Block::Facts(comparison.reports.iter().map(|side| (head(side), describe(side))).collect()));
    blocks.extend(comparison.notes.iter().map(|note| Block::Words(Tone::Muted, note.clone())));
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

/// The legend for the cells of a matrix.
const GLANCE: &str = "Large: fraction bits kept below the largest term when terms are aligned; f32 itself has 23. Below: products added \
                      at once, what becomes of lower bits, how the result is rounded.";

/// Builds the matrix of kinds of sums by devices.
fn matrix(rows: &[&MatrixRow], comparison: &Comparison, reports: &[(String, Report)]) -> Matrix {
    let rows = rows.iter().map(|row| GlimpseRow {
        head: row.sums.clone(),
        link: None,
        cells: row.cells.iter().map(glimpses).collect(),
    });
    let columns = comparison.reports.iter().map(|side| (head(side), None)).collect();
    Matrix { corner: "sums of".into(), groups: makers(reports), columns, rows: rows.collect() }
}

/// Groups adjacent devices by maker, with their counts; empty if a maker is unknown.
fn makers(reports: &[(String, Report)]) -> Vec<(String, usize)> {
    let mut makers: Vec<(String, usize)> = Vec::new();
    for (_, report) in reports {
        let Some(maker) = report.device.properties.get("vendor") else { return Vec::new() };
        match makers.last_mut().filter(|(last, _)| last == maker) {
            Some((_, count)) => *count += 1,
            None => makers.push((maker.clone(), 1)),
        }
    }
    makers
}

/// Draws strips and trees for the kind of sum that most devices have, and folded ones for the other kinds.
fn drawings(comparison: &Comparison, reports: &[(String, Report)]) -> Vec<Block> {
    let drawn = |row: &MatrixRow| -> (Option<Block>, Option<Block>) {
        let cells = || {
            row.cells.iter().enumerate().flat_map(|(at, cells)| {
                let name =
                    move |cell: &SummaryRow| format!("{} {}", head(&comparison.reports[at]), cell.families.join(" "));
                cells.iter().filter(|cell| !cell.is_minor()).map(move |cell| (at, name(cell), cell))
            })
        };
        let strips = drawn_strips(cells().map(|(_, name, cell)| (name, cell)));
        let of_reports = cells().filter_map(|(at, name, cell)| Some((name, cell, &reports.get(at)?.1)));
        (strips, drawn_trees(of_reports))
    };
    // The first of the kinds that most devices have.
    let devices = |row: &MatrixRow| row.cells.iter().filter(|cells| !cells.is_empty()).count();
    let mut figures: Vec<(&MatrixRow, Option<Block>, Option<Block>)> = Vec::new();
    for row in &comparison.matrix {
        let (strips, trees) = drawn(row);
        if strips.is_some() || trees.is_some() {
            figures.push((row, strips, trees));
        }
    }
    let Some(first) = (0..figures.len()).rev().max_by_key(|at| devices(figures[*at].0)) else { return Vec::new() };
    let (row, strips, trees) = figures.remove(first);
    let mut blocks = Vec::new();
    for (words, figure) in [("What survives beside a large term", strips), ("In which order they are added", trees)] {
        blocks.extend(
            figure.into_iter().flat_map(|figure| [Block::heading(2, format!("{words}: {}", row.sums)), figure]),
        );
    }
    blocks.extend(figures.into_iter().map(|(row, strips, trees)| Block::Details {
        summary: format!("the same of {}", row.sums),
        blocks: strips.into_iter().chain(trees).collect(),
    }));
    blocks
}

/// The head of a report's column.
fn head(side: &Side) -> String {
    if side.title.is_empty() { format!("{}: {}", side.label, side.selector) } else { side.title.clone() }
}

/// The results for compared operations, folded.
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
