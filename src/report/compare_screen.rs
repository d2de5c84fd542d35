//! Comparisons on a terminal.

use std::fmt::Write as _;

use crate::plain::one_line;

use super::{
    Compared, Comparison, Match, Side, State,
    compare_view::{DOTS_SHOWN, answer_words, describe, dot_lines, ids, shown, sides, summary, title, verdict},
    screen::{BOLD, DIM, FAILURE, Style, WARNING, hang, wrap},
    words,
};

/// Columns narrower than this are not drawn side by side.
const NARROWEST_COLUMN: usize = 20;

/// The comparison for a terminal.
pub(super) fn screen(comparison: &Comparison, all: bool, style: Style) -> String {
    let mut text = String::new();
    for side in &comparison.reports {
        let label = format!("{:2}", side.label);
        text.push_str(&style.paint(BOLD, &label));
        text.push(' ');
        hang(&mut text, &one_line(&describe(side)), 3, style.width);
    }
    text.push('\n');
    let mut painted = |ansi, words: &str| {
        let mut wrapped = String::new();
        hang(&mut wrapped, &one_line(words), 0, style.width);
        text.push_str(&style.paint(ansi, wrapped.trim_end()));
        text.push('\n');
    };
    painted(if comparison.differ { WARNING } else { BOLD }, &verdict(comparison));
    comparison.notes.iter().for_each(|note| painted(DIM, note));
    for found in comparison.matches.iter().filter(|found| all || found.differs()) {
        text.push('\n');
        show_match(&mut text, found, comparison, all, style);
    }
    let same = || comparison.matches.iter().filter(|found| !found.differs());
    if !all && same().next().is_some() {
        let _ = writeln!(text, "\n{}", style.paint(BOLD, "no difference"));
        for found in same() {
            text.push_str("  ");
            hang(&mut text, &one_line(&format!("{}: {}", title(found), summary(found))), 4, style.width);
        }
    }
    for alone in &comparison.alone {
        let why = if alone.same_device { ", and the same device has them with another driver" } else { "" };
        let _ = writeln!(text, "\n{}", style.paint(BOLD, &format!("only in {}{why}", alone.report)));
        text.push_str("  ");
        hang(&mut text, &one_line(&ids(&alone.operations)), 2, style.width);
    }
    text
}

fn show_match(text: &mut String, found: &Match, comparison: &Comparison, all: bool, style: Style) {
    let _ = writeln!(text, "{}", style.paint(BOLD, &one_line(&title(found))));
    let mut listed: Vec<(String, String)> = Vec::new();
    for (at, side) in sides(found, comparison) {
        let ids = ids(&found.operations[at]);
        match listed.iter_mut().find(|(_, known)| *known == ids) {
            Some((labels, _)) => labels.push_str(&format!(", {}", side.label)),
            None => listed.push((side.label.clone(), ids)),
        }
    }
    // One operation that all have stands in the title.
    if listed.len() > 1 || found.operations.iter().any(|operations| operations.len() > 1) {
        for (labels, ids) in listed {
            let _ = write!(text, "  {labels}: ");
            hang(text, &one_line(&ids), 4 + labels.len(), style.width);
        }
    }
    let rows: Vec<&Compared> = shown(found, all).collect();
    let names = rows.iter().map(|row| row.probe.chars().count()).max().unwrap_or(0).min(style.width / 3);
    let columns: Vec<(usize, &Side)> = sides(found, comparison).collect();
    let room = (style.width.saturating_sub(names + 4) / columns.len().max(1)).saturating_sub(2);
    if room >= NARROWEST_COLUMN && !rows.is_empty() {
        let labels: Vec<Vec<String>> = columns.iter().map(|(_, side)| vec![side.label.clone()]).collect();
        beside(text, "", &labels, names, room, style);
    }
    for row in rows {
        let mark = if all { sign(row.state) } else { ' ' };
        let probe = format!("{mark} {}", one_line(&row.probe));
        let answers = columns.iter().map(|(side, _)| answer_words(&row.answers[*side]));
        if room >= NARROWEST_COLUMN {
            let cells: Vec<Vec<String>> = answers.map(|answer| wrap(&answer, room)).collect();
            beside(text, &probe, &cells, names, room, style);
        } else {
            let _ = writeln!(text, "{probe}");
            for ((_, side), answer) in columns.iter().zip(answers) {
                let _ = write!(text, "    {}  ", side.label);
                hang(text, &answer, 6 + side.label.len(), style.width);
            }
        }
    }
    let _ = writeln!(text, "  {}", style.paint(DIM, &summary(found)));
    for dot in found.dots.iter().take(DOTS_SHOWN) {
        text.push_str("  ");
        hang(text, words::about(&dot.input), 4, style.width);
        let lines = dot_lines(dot, comparison);
        for (number, line) in lines.iter().enumerate() {
            let mut wrapped = String::from("    ");
            hang(&mut wrapped, line, 6, style.width);
            let last = number + 1 == lines.len();
            text.push_str(&style.paint(if last { FAILURE } else { DIM }, wrapped.trim_end_matches('\n')));
            text.push('\n');
        }
    }
    if found.dots.len() > DOTS_SHOWN {
        let rest = found.dots.len() - DOTS_SHOWN;
        let _ = writeln!(text, "  {}", style.paint(DIM, &format!("{rest} more with other bits: `--format json`")));
    }
}

/// A mark for those who read no colours.
fn sign(state: State) -> char {
    match state {
        State::Differs => '≠',
        State::Open => '?',
        State::Equal => '=',
    }
}

/// Cells side by side, below a name's right.
fn beside(text: &mut String, name: &str, cells: &[Vec<String>], names: usize, room: usize, style: Style) {
    let mut name_lines = wrap(name, names + 2);
    if name.starts_with("  ") {
        name_lines = wrap(name.trim_start(), names).iter().map(|line| format!("  {line}")).collect();
    }
    let height = cells.iter().map(Vec::len).chain([name_lines.len()]).max().unwrap_or(0);
    for number in 0..height {
        let mut line = format!("{:1$}", name_lines.get(number).map_or("", String::as_str), names + 2);
        for cell in cells {
            let part = cell.get(number).map_or("", String::as_str);
            let _ = write!(line, "  {part:room$}");
        }
        text.push_str(
            if name.is_empty() { style.paint(BOLD, line.trim_end()) } else { line.trim_end().to_owned() }.as_str(),
        );
        text.push('\n');
    }
}
