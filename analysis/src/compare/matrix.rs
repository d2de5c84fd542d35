//! Kinds of sums by devices: the main table of a comparison.

use crate::{
    in_order::InOrder,
    record::{MatrixRow, Report, Side, Summary, SummaryRow, Unit},
    summary::{headline, place, result_place},
};

/// Builds the table: one row for each kind of sum in any report, in the order of summaries.
pub(super) fn matrix(reports: &[&Report]) -> Vec<MatrixRow> {
    let mut rows: Vec<(Key, Vec<String>, MatrixRow)> = Vec::new();
    for (side, report) in reports.iter().enumerate() {
        for cell in Summary::cells(&report.operations) {
            // Mixes of two kinds are shown among the details.
            let [kind] = cell.inputs.as_slice() else { continue };
            let key = Key::of(&cell, kind);
            let at = rows.iter().position(|(known, ..)| *known == key).unwrap_or_else(|| {
                let row = MatrixRow { sums: String::new(), unit: cell.unit, cells: vec![Vec::new(); reports.len()] };
                rows.push((key, Vec::new(), row));
                rows.len() - 1
            });
            let (_, kinds, row) = &mut rows[at];
            if !kinds.contains(kind) {
                kinds.push(kind.clone());
            }
            row.cells[side].push(cell);
        }
    }
    for (key, kinds, row) in &mut rows {
        // `fp8` covers both of its variants; each cell says which one it is.
        kinds.retain(|kind| !kind.ends_with(FNUZ));
        if kinds.is_empty() {
            kinds.push(key.kind.clone());
        }
        kinds.order_by_key(|kind| place(kind));
        row.sums = format!("{}→{}", kinds.join(" "), key.result);
        for cells in &mut row.cells {
            if cells.iter().any(|cell| !cell.is_minor()) {
                cells.retain(|cell| !cell.is_minor());
            }
        }
    }
    rows.order_by_key(|(key, ..)| (key.unit, result_place(&key.result), place(&key.kind)));
    rows.into_iter().map(|(.., row)| row).collect()
}

/// The suffix of the names of AMD's fp8 variants.
const FNUZ: &str = " fnuz";

/// The key of a row: variants of a format share one.
#[derive(PartialEq, Eq)]
struct Key {
    kind: String,
    result: String,
    unit: Unit,
}

impl Key {
    fn of(cell: &SummaryRow, kind: &str) -> Self {
        let kind = match kind {
            "xf32" => "tf32",
            other => other.strip_suffix(FNUZ).unwrap_or(other),
        };
        Self { kind: kind.to_owned(), result: cell.result.clone(), unit: cell.unit }
    }
}

/// Says in a few sentences how the devices differ.
pub(super) fn sentences(reports: &[&Report], sides: &[Side]) -> Vec<String> {
    let made: Vec<Summary> = reports
        .iter()
        .map(|report| report.summary.clone().unwrap_or_else(|| Summary::of(&report.operations)))
        .collect();
    let devices: Vec<(&str, &Summary)> = sides.iter().map(|side| side.title.as_str()).zip(&made).collect();
    headline(&devices)
}

/// Gives each side a name that distinguishes it: a model's name or the device's own; sides with the same name also get
/// their labels.
pub(super) fn entitle(sides: &mut [Side]) {
    let short = |side: &Side| {
        if !side.title.is_empty() {
            return side.title.clone();
        }
        let name = side.selector.strip_prefix("sim:").unwrap_or(&side.name);
        // The part in brackets is not part of the name.
        name.split(" (").next().unwrap_or(name).to_owned()
    };
    let titles: Vec<String> = sides.iter().map(short).collect();
    for (at, side) in sides.iter_mut().enumerate() {
        let is_one = titles.iter().filter(|title| **title == titles[at]).count() == 1;
        side.title = if is_one { titles[at].clone() } else { format!("{} {}", side.label, titles[at]) };
    }
}
