//! Summaries of reports: operations with the same answers folded into rows, and the facts that rules derive.

mod answers;
mod class;
mod fold;
mod notable;

pub use class::is_layout;
pub use class::{place, result_place};
pub use notable::headline;

use std::collections::BTreeSet;

use crate::record::{OperationReport, Report, Summary, SummaryRow};

impl Summary {
    /// Summarises the findings of these operations.
    #[must_use]
    pub fn of(operations: &[OperationReport]) -> Self {
        let cells = fold::cells(operations);
        let rows = fold::rows(cells);
        let notable = notable::notable(operations, &rows);
        Self { rows, notable }
    }

    /// Returns one row for each kind of inputs and format of results whose operations have the same answers: the cells
    /// of a table of formats by devices.
    #[must_use]
    pub fn cells(operations: &[OperationReport]) -> Vec<SummaryRow> {
        fold::families(fold::cells(operations))
    }
}

impl Report {
    /// Replaces the summary of the report by one of its operations.
    pub fn sum_up(&mut self) {
        self.summary = Some(Summary::of(&self.operations));
    }
}

/// Returns the answer to a question, if all operations that were asked agree.
pub fn unanimous<'a>(
    operations: impl IntoIterator<Item = &'a OperationReport>,
    probe: &str,
) -> Option<&'a serde_json::Value> {
    let mut values = operations.into_iter().filter_map(|report| report.finding(probe)?.value.as_ref());
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// Returns one scalar operation for each format in a report.
pub fn scalars(operations: &[OperationReport]) -> Vec<&OperationReport> {
    let mut seen = BTreeSet::new();
    let scalar = |report: &&OperationReport| report.operation.id.family == crate::scalars::FAMILY;
    operations.iter().filter(scalar).filter(|report| seen.insert(report.operation.id.d.name())).collect()
}
