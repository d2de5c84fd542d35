//! Comparisons on a terminal.

use super::{
    comparisons_words::{
        DOTS_SHOWN, answer_words, describe, dot_lines, heading, ids, shown, sides, summary, title, verdict,
    },
    page::{Block, Cell, Layout, Row, Tone},
    words,
};
use crate::{
    plain::counted,
    report::{Comparison, Match, State, SummaryRow, Unit},
};

/// Renders the comparison: how the devices differ in a few sentences, the table of sums by devices, then the groups of
/// operations that differ: one line each, or in full with `listed`.
pub(super) fn blocks(comparison: &Comparison, listed: bool, all: bool) -> Vec<Block> {
    let mut blocks = vec![Block::Words(Tone::Strong, heading(comparison))];
    let marked = |sentence: &String| (Tone::Warning, format!("! {sentence}"));
    blocks.push(Block::List(comparison.headline.iter().map(marked).collect()));
    blocks.extend(matrix(comparison));
    let tone = if comparison.differ { Tone::Warning } else { Tone::Strong };
    blocks.extend([Block::Gap, Block::Words(tone, verdict(comparison))]);
    blocks.extend(comparison.notes.iter().map(|note| Block::Words(Tone::Muted, note.clone())));
    if !listed {
        blocks.extend(folded(comparison));
        return blocks;
    }
    let labelled = comparison.reports.iter().map(|side| {
        let label = Cell::words(&side.label).tone(Tone::Strong);
        Row::plain(vec![label, Cell::words(describe(side))])
    });
    blocks.extend([Block::Gap, Block::laid_out(Layout::Hanging, ["label", "report"], labelled)]);
    for found in comparison.matches.iter().filter(|found| all || found.differs()) {
        blocks.push(Block::Gap);
        show_match(found, comparison, all, &mut blocks);
    }
    let same = || comparison.matches.iter().filter(|found| !found.differs());
    if !all && same().next().is_some() {
        let sentences = same().map(|found| format!("{}: {}", title(found), summary(found)));
        blocks.extend([Block::Gap, Block::heading(2, "no difference")]);
        blocks.push(Block::Inset(vec![Block::list(sentences)]));
    }
    for alone in &comparison.alone {
        let why = if alone.same_device { ", and the same device has them with another driver" } else { "" };
        blocks.extend([Block::Gap, Block::heading(2, format!("only in {}{why}", alone.report))]);
        blocks.push(Block::Inset(vec![Block::words(ids(&alone.operations))]));
    }
    blocks
}

/// Builds the table of sums by devices.
fn matrix(comparison: &Comparison) -> Vec<Block> {
    if comparison.matrix.is_empty() {
        return Vec::new();
    }
    let rows = comparison.matrix.iter().map(|row| {
        let vector = if row.unit == Unit::Vector { " dot" } else { "" };
        let name = Cell::words(format!("{}{vector}", row.sums));
        Row::plain(std::iter::once(name).chain(row.cells.iter().map(|cells| answers(cells))).collect())
    });
    let head = std::iter::once("sums of").chain(comparison.reports.iter().map(|side| side.title.as_str()));
    let note = Block::Words(Tone::Muted, words::BRIEF.to_owned());
    vec![Block::laid_out(Layout::Matrix, head, rows), note]
}

/// Formats the answers of one device; by family, if there are several.
fn answers(cells: &[SummaryRow]) -> Cell {
    let tone = match cells {
        [] => Tone::Muted,
        cells if cells.iter().any(SummaryRow::is_short) => Tone::Failure,
        cells if cells.iter().any(|cell| cell.rounding.as_deref() == Some("RZ")) => Tone::Warning,
        _ => Tone::Plain,
    };
    let lines: Vec<String> = match cells {
        [] => vec!["-".to_owned()],
        [one] => vec![words::brief(one)],
        several => several
            .iter()
            .flat_map(|cell| {
                let shape = cell.shape.iter().map(|shape| format!(" {shape}")).collect::<String>();
                [format!("{}{shape}:", cell.families.join(" ")), words::brief(cell)]
            })
            .collect(),
    };
    Cell::words(lines.join("\n")).tone(tone)
}

/// Renders one line for each group of operations that differs, and counts those that are the same or without a
/// counterpart.
fn folded(comparison: &Comparison) -> Vec<Block> {
    let (differing, same): (Vec<&Match>, Vec<&Match>) = comparison.matches.iter().partition(|found| found.differs());
    let mut lines: Vec<String> =
        differing.iter().map(|found| format!("{}: {}", title(found), summary(found))).collect();
    if !same.is_empty() {
        lines.push(format!("{} without a difference", counted(same.len(), "group")));
    }
    for alone in &comparison.alone {
        let title = comparison.reports.iter().find(|side| side.label == alone.report).map(|side| side.title.as_str());
        let why = if alone.same_device { ", although the same device has them with another driver" } else { "" };
        let count = counted(alone.operations.len(), "operation");
        lines.push(format!("{count} of {} without a counterpart{why}", title.unwrap_or(&alone.report)));
    }
    let more = "more: -v   all: --all   a page: --format html --out FILE.html";
    vec![Block::Gap, Block::list(lines), Block::Words(Tone::Muted, more.to_owned())]
}

fn show_match(found: &Match, comparison: &Comparison, all: bool, blocks: &mut Vec<Block>) {
    blocks.push(Block::heading(2, title(found)));
    let mut listed: Vec<(String, String)> = Vec::new();
    for (at, side) in sides(found, comparison) {
        let ids = ids(&found.operations[at]);
        match listed.iter_mut().find(|(_, known)| *known == ids) {
            Some((labels, _)) => labels.push_str(&format!(", {}", side.label)),
            None => listed.push((side.label.clone(), ids)),
        }
    }
    let mut inset = Vec::new();
    // An operation that all sides share is already in the title.
    if listed.len() > 1 || found.operations.iter().any(|operations| operations.len() > 1) {
        inset.push(Block::Facts(listed));
    }
    let rows: Vec<Row> = shown(found, all)
        .map(|row| {
            let answers = sides(found, comparison).map(|(side, _)| Cell::words(answer_words(&row.answers[side])));
            let cells = std::iter::once(Cell::code(&row.probe)).chain(answers).collect();
            Row { mark: all.then(|| sign(row.state)), ..Row::plain(cells) }
        })
        .collect();
    if !rows.is_empty() {
        let head = std::iter::once("probe").chain(sides(found, comparison).map(|(_, side)| side.label.as_str()));
        inset.push(Block::laid_out(Layout::Beside, head, rows));
    }
    inset.push(Block::Words(Tone::Muted, summary(found)));
    for dot in found.dots.iter().take(DOTS_SHOWN) {
        inset.push(Block::list([words::about(&dot.input)]));
        let mut lines: Vec<_> = dot_lines(dot, comparison).into_iter().map(|line| (Tone::Muted, line)).collect();
        if let Some((tone, _)) = lines.last_mut() {
            *tone = Tone::Failure;
        }
        inset.push(Block::Inset(vec![Block::List(lines)]));
    }
    if found.dots.len() > DOTS_SHOWN {
        let rest = found.dots.len() - DOTS_SHOWN;
        inset.push(Block::Words(Tone::Muted, format!("{rest} more with other bits: `--format json`")));
    }
    blocks.push(Block::Inset(inset));
}

/// Returns a mark for readers who see no colours.
fn sign(state: State) -> char {
    match state {
        State::Differs => '≠',
        State::Open => '?',
        State::Equal => '=',
    }
}
