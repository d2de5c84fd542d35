//! Comparisons on a terminal.

use super::{
    comparisons_words::{DOTS_SHOWN, answer_words, describe, dot_lines, ids, shown, sides, summary, title, verdict},
    page::{Block, Cell, Layout, Row, Tone},
    words,
};
use crate::report::record::{Comparison, Match, State};

/// The comparison: first what it comes to, then each group of operations that differs.
pub(super) fn blocks(comparison: &Comparison, all: bool) -> Vec<Block> {
    let labelled = comparison.reports.iter().map(|side| {
        let label = Cell::words(&side.label).tone(Tone::Strong);
        Row::plain(vec![label, Cell::words(describe(side))])
    });
    let mut blocks = vec![Block::laid_out(Layout::Hanging, ["label", "report"], labelled), Block::Gap];
    let tone = if comparison.differ { Tone::Warning } else { Tone::Strong };
    blocks.push(Block::Words(tone, verdict(comparison)));
    blocks.extend(comparison.notes.iter().map(|note| Block::Words(Tone::Muted, note.clone())));
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
    // One operation that all have stands in the title.
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

/// A mark for those who read no colours.
fn sign(state: State) -> char {
    match state {
        State::Differs => '≠',
        State::Open => '?',
        State::Equal => '=',
    }
}
