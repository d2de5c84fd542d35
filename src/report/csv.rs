//! The view for spreadsheets and data frames: RFC 4180, one row a finding, an empty cell where there is no value.

use serde_json::Value;

use super::{Finding, Kind, OperationReport, Outcome, Report, words};
use crate::plain;

/// The columns of reports.
const COLUMNS: [&str; 26] = [
    "schema",
    "tool_version",
    "start",
    "backend",
    "fingerprint",
    "device",
    "kind",
    "emulated",
    "driver",
    "driver_version",
    "operation",
    "family",
    "m",
    "n",
    "k",
    "d",
    "a",
    "b",
    "c",
    "instruction",
    "probe",
    "outcome",
    "value",
    "statement",
    "reason",
    "evidence_dots",
];

/// Every finding of every report.
pub(super) fn findings(reports: &[Report]) -> String {
    let mut out = String::new();
    row(&mut out, COLUMNS);
    for report in reports {
        for operation in &report.operations {
            for finding in &operation.findings {
                row(&mut out, cells(report, operation, finding).iter().map(String::as_str));
            }
        }
    }
    out
}

fn cells(report: &Report, operation: &OperationReport, finding: &Finding) -> [String; 26] {
    let (device, id) = (&report.device, &operation.operation.id);
    let driver = device.driver.as_ref();
    let kind = match device.kind {
        Kind::Hardware => "hardware",
        Kind::Software => "software",
        Kind::Model => "model",
    };
    [
        report.schema.clone(),
        report.tool.version.clone(),
        report.time.start.clone(),
        device.backend.clone(),
        device.fingerprint.clone(),
        device.name.clone(),
        kind.into(),
        device.emulated.to_string(),
        driver.map(|driver| driver.name.clone()).unwrap_or_default(),
        driver.map(|driver| driver.version.clone()).unwrap_or_default(),
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
        words::outcome(finding.outcome).into(),
        finding.value.as_ref().map(value).unwrap_or_default(),
        finding.statement.clone(),
        if finding.outcome == Outcome::Measured { String::new() } else { finding.reason.clone().unwrap_or_default() },
        finding.evidence.len().to_string(),
    ]
}

/// A value as it is; lists and objects as JSON.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// One record.
pub(super) fn row<'a>(out: &mut String, cells: impl IntoIterator<Item = &'a str>) {
    for (number, cell) in cells.into_iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        write_cell(out, cell);
    }
    out.push_str("\r\n");
}

fn write_cell(out: &mut String, text: &str) {
    let text = plain::lines(text);
    // A spreadsheet takes these for a formula; the apostrophe makes it text. Numbers are none.
    let formula = text.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '|', '%'])
        && text.parse::<f64>().is_err();
    let mark = if formula { "'" } else { "" };
    if text.contains(['"', ',', '\n', ';', ' ']) {
        out.push('"');
        out.push_str(mark);
        out.push_str(&text.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(mark);
        out.push_str(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_are_text() {
        let mut out = String::new();
        row(
            &mut out,
            ["", "a,b", "say \"x\"", "=1+1", "-131", "-2^3", "+cmd|'x'!A0", "@SUM(A1)", "two\nlines", "\t=1"],
        );
        let first = ",\"a,b\",\"say \"\"x\"\"\",'=1+1,-131,'-2^3,'+cmd|'x'!A0,'@SUM(A1),\"two\nlines\",\\u{9}=1\r\n";
        assert_eq!(out, first);
    }
}
