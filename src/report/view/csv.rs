//! The format for spreadsheets and data frames: RFC 4180, with an empty cell for a missing value.

use serde_json::Value;

use super::words;
use crate::{
    plain,
    report::{DeviceRecord, Time, Tool},
};

/// Records with the same fields.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The names of the fields.
    pub columns: Vec<&'static str>,
    /// The records, with one cell per field.
    pub rows: Vec<Vec<String>>,
}

impl Rows {
    /// Builds records from the names of their fields, separated by blanks.
    #[must_use]
    pub fn new(columns: &'static str, rows: Vec<Vec<String>>) -> Self {
        Self { columns: columns.split_whitespace().collect(), rows }
    }
}

/// Renders the names, and a line for each record.
pub(super) fn text(rows: &Rows) -> String {
    let mut out = String::new();
    row(&mut out, rows.columns.iter().copied());
    rows.rows.iter().for_each(|cells| row(&mut out, cells.iter().map(String::as_str)));
    out
}

/// Returns the first ten cells of a row about a device: `schema` to `driver_version`.
pub(super) fn of_run(schema: &str, tool: &Tool, time: &Time, device: &DeviceRecord) -> Vec<String> {
    let driver = device.driver.as_ref();
    vec![
        schema.to_owned(),
        tool.version.clone(),
        time.start.clone(),
        device.backend.clone(),
        device.fingerprint.clone(),
        device.name.clone(),
        words::kind_name(device.kind).to_owned(),
        device.emulated.to_string(),
        driver.map(|driver| driver.name.clone()).unwrap_or_default(),
        driver.map(|driver| driver.version.clone()).unwrap_or_default(),
    ]
}

/// Formats a value: text as it is, everything else as JSON.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Writes one record.
fn row<'a>(out: &mut String, cells: impl IntoIterator<Item = &'a str>) {
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
    // A spreadsheet would evaluate these as formulas; the apostrophe makes them text. Numbers are left as they are.
    let formula = text.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '|', '%'])
        && text.parse::<f64>().is_err();
    let mark = if formula { "'" } else { "" };
    if text.bytes().any(|byte| matches!(byte, b'"' | b',' | b'\n' | b';' | b' ')) {
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

    #[test]
    fn what_separates_cells_in_any_spreadsheet_is_quoted() {
        let mut out = String::new();
        row(&mut out, ["a;b", "a b", "a_b"]);
        assert_eq!(out, "\"a;b\",\"a b\",a_b\r\n");
    }
}
