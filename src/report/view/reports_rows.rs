//! Reports as rows for spreadsheets, one per finding.

use super::csv::{self, Rows};
use crate::{
    findings::Outcome,
    report::{FindingRecord, OperationReport, Report},
};

/// The columns of reports.
const COLUMNS: &str = "schema tool_version start backend fingerprint device kind emulated driver driver_version operation \
     family m n k d a b c instruction probe outcome value statement reason evidence_dots";

/// Returns every finding of every report.
pub(super) fn findings(reports: &[Report]) -> Rows {
    let mut rows = Vec::new();
    for report in reports {
        for operation in &report.operations {
            rows.extend(operation.findings.iter().map(|finding| cells(report, operation, finding)));
        }
    }
    Rows::new(COLUMNS, rows)
}

fn cells(report: &Report, operation: &OperationReport, finding: &FindingRecord) -> Vec<String> {
    let id = &operation.operation.id;
    let mut cells = csv::of_run(&report.schema, &report.tool, &report.time, &report.device);
    cells.extend([
        id.to_string(),
        id.family.clone(),
        id.shape.m.to_string(),
        id.shape.n.to_string(),
        id.shape.k.to_string(),
        id.d.to_string(),
        id.a.to_string(),
        id.b.to_string(),
        id.c.to_string(),
        operation.operation.instruction.clone().unwrap_or_default(),
        finding.probe.clone(),
        finding.outcome.name().into(),
        finding.value.as_ref().map(csv::value).unwrap_or_default(),
        finding.statement.clone(),
        if finding.outcome == Outcome::Measured { String::new() } else { finding.reason.clone().unwrap_or_default() },
        finding.evidence.len().to_string(),
    ]);
    cells
}
