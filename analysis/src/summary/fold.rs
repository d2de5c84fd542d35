//! Folding of operations into rows.

use std::collections::BTreeMap;

use mxprobe_api::OperationId;

use super::{answers, class};
use crate::{
    in_order::InOrder,
    record::{OperationReport, SummaryRow},
    scalars::FAMILY,
};

/// Returns one row for each kind of inputs, format of results and family with the same answers.
pub(super) fn cells(operations: &[OperationReport]) -> Vec<SummaryRow> {
    let mut found: Vec<SummaryRow> =
        operations.iter().filter(|report| report.operation.id.family != FAMILY).map(answers::row).collect();
    let moded: Vec<SummaryRow> = take(&mut found, |row| !row.modes.is_empty());
    // Those with the most answers come first: an operation whose formats hide an answer joins one that shows it.
    found.order_by_key(|row| std::cmp::Reverse(row.known()));
    let mut cells: Vec<SummaryRow> = Vec::new();
    for row in found {
        match cells.iter_mut().find(|cell| is_alike(cell, &row) && cell.is_compatible(&row)) {
            Some(cell) => cell.absorb(row),
            None => cells.push(SummaryRow { modes: Vec::new(), ..row }),
        }
    }
    for row in moded {
        match cells.iter_mut().find(|cell| is_mode_of(&row.operations[0], cell)) {
            Some(cell) => {
                let SummaryRow { modes, operations, .. } = row;
                cell.modes.extend(modes.into_iter().filter(|mode| !cell.modes.contains(mode)).collect::<Vec<_>>());
                cell.operations.extend(operations);
            }
            None => match cells
                .iter_mut()
                .find(|cell| cell.modes == row.modes && is_alike(cell, &row) && cell.is_compatible(&row))
            {
                Some(cell) => cell.absorb(row),
                None => cells.push(row),
            },
        }
    }
    name_shapes(&mut cells);
    let place = |cell: &SummaryRow| (cell.unit, class::result_place(&cell.result), class::place(&cell.inputs[0]));
    cells.order_by_key(place);
    cells
}

/// Merges cells with the same inputs and answers, whatever their families.
pub(super) fn families(cells: Vec<SummaryRow>) -> Vec<SummaryRow> {
    joined(cells, |row, cell| {
        row.inputs == cell.inputs
            && row.shape == cell.shape
            && row.is_equal_but_for_grouping(cell)
            && row.is_grouped_alike(cell)
    })
}

/// Merges cells with the same answers into one row.
pub(super) fn rows(cells: Vec<SummaryRow>) -> Vec<SummaryRow> {
    let mut rows = joined(families(cells), |row, cell| {
        let same = row.families == cell.families && row.shape == cell.shape && is_scaled(row) == is_scaled(cell);
        let grouped = row.products_at_once == cell.products_at_once && row.is_equal_but_for_grouping(cell);
        let hidden = class::is_narrow(&row.inputs) && class::is_narrow(&cell.inputs) && row.is_compatible(cell);
        same && (grouped || hidden)
    });
    rows.order_by_key(|row| (row.unit, row.is_minor()));
    rows
}

fn is_scaled(row: &SummaryRow) -> bool {
    row.operations[0].block_scale().is_some()
}

fn joined(cells: Vec<SummaryRow>, same: impl Fn(&SummaryRow, &SummaryRow) -> bool) -> Vec<SummaryRow> {
    let mut rows: Vec<SummaryRow> = Vec::new();
    for cell in cells {
        let alike = |row: &&mut SummaryRow| row.unit == cell.unit && row.result == cell.result && same(row, &cell);
        match rows.iter_mut().find(alike) {
            Some(row) => row.absorb(cell),
            None => rows.push(cell),
        }
    }
    rows
}

fn is_alike(cell: &SummaryRow, row: &SummaryRow) -> bool {
    cell.inputs == row.inputs && cell.result == row.result && cell.families == row.families && cell.unit == row.unit
}

/// Whether an operation belongs to a cell except for its modes.
fn is_mode_of(id: &OperationId, cell: &SummaryRow) -> bool {
    let formats = |id: &OperationId| (id.family.clone(), id.d, id.a, id.b, id.c);
    cell.operations.iter().any(|other| formats(other) == formats(id) && class::modes(other).is_empty())
}

/// Names the shapes by which cells with the same inputs, result and family differ.
fn name_shapes(cells: &mut [SummaryRow]) {
    type Key = (Vec<String>, String, Vec<String>);
    let key = |cell: &SummaryRow| -> Key { (cell.inputs.clone(), cell.result.clone(), cell.families.clone()) };
    let mut counts: BTreeMap<Key, usize> = BTreeMap::new();
    cells.iter().for_each(|cell| *counts.entry(key(cell)).or_default() += 1);
    for cell in cells.iter_mut().filter(|cell| counts[&key(cell)] > 1) {
        let first = cell.operations[0].shape;
        let shapes = || cell.operations.iter().map(|id| id.shape);
        cell.shape = if shapes().all(|shape| shape == first) {
            Some(first.to_string())
        } else if shapes().all(|shape| shape.k == first.k) {
            Some(format!("k{}", first.k))
        } else {
            None
        };
    }
}

fn take<T>(all: &mut Vec<T>, is_taken: impl Fn(&T) -> bool) -> Vec<T> {
    let (taken, left) = std::mem::take(all).into_iter().partition(is_taken);
    *all = left;
    taken
}
