//! One page per kind of inputs: how many bits it keeps on which unit.

use super::subject::{Found, beginning, to_index};
use crate::report::{
    BitsKept, Block, Cell, Page, ROW_HEADS, Row, STAR, SummaryRow, Tone, drawn_strips, drawn_trees, row_cells,
};

/// The file name of the page of a kind of inputs: `format-fp8-fnuz.html`.
pub(super) fn file(kind: &str) -> String {
    let word: String = kind.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    format!("format-{word}.html")
}

pub(super) fn page(found: &[Found<'_>], kind: &str) -> Page {
    let is_of = |row: &&SummaryRow| row.inputs.iter().any(|input| input == kind);
    let rows: Vec<(&Found<'_>, &SummaryRow)> =
        found.iter().flat_map(|found| found.rows.iter().filter(is_of).map(move |row| (found, row))).collect();
    let is_integer = rows.iter().all(|(_, row)| row.is_integer());
    let title = match is_integer {
        true => format!("How are products of {kind} added?"),
        false => format!("How many bits does {kind} keep?"),
    };
    let mut blocks = vec![to_index(), Block::heading(1, &title), Block::words(answer(kind, &rows))];
    let head = ["unit"].into_iter().chain(ROW_HEADS);
    let table = rows.iter().map(|(found, row)| {
        let unit = Cell { link: Some(found.subject.page()), ..Cell::words(&found.subject.name) };
        Row::plain([unit].into_iter().chain(row_cells(row)).collect())
    });
    blocks.extend([Block::table(head, table), Block::Words(Tone::Muted, STAR.into())]);
    let drawn = || {
        rows.iter().filter(|(_, row)| !row.is_minor()).map(|(found, row)| {
            let label = format!("{} {}", found.subject.name, row.families.join(" "));
            (label, *row, found.subject.report())
        })
    };
    if let Some(strips) = drawn_strips(drawn().map(|(label, row, _)| (label, row))) {
        blocks.extend([Block::heading(2, "What survives beside a large term"), strips]);
    }
    if let Some(trees) = drawn_trees(drawn()) {
        blocks.extend([Block::heading(2, "In which order products and c are added"), trees]);
    }
    Page { title, blocks }
}

/// Answers the question in the title in a sentence: the fewest and the most bits, and the units that keep them.
fn answer(kind: &str, rows: &[(&Found<'_>, &SummaryRow)]) -> String {
    let kept = |bits: u32| -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (found, _) in rows.iter().filter(|(_, row)| dropping(row) == Some(bits)) {
            if !names.contains(&found.subject.name.as_str()) {
                names.push(&found.subject.name);
            }
        }
        names
    };
    let counts = rows.iter().filter_map(|(_, row)| dropping(row));
    let (Some(least), Some(most)) = (counts.clone().min(), counts.max()) else {
        return format!("{}: no unit is known to drop bits when terms are aligned.", beginning(kind));
    };
    let of = |bits: u32| format!("{bits} fraction bits below the largest term ({})", kept(bits).join("; "));
    if least == most {
        return format!("Where bits are dropped, {} are kept.", of(least));
    }
    format!("It depends on the unit: from {} to {}.", of(least), of(most))
}

/// The bits that a row keeps, if it drops any.
fn dropping(row: &SummaryRow) -> Option<u32> {
    match row.bits_kept {
        Some(BitsKept::Bits(bits)) => Some(bits),
        _ => None,
    }
}
