//! The output of `verify`, operation by operation.

use super::{
    csv::Rows,
    form::Show,
    page::{Block, Cell, Page, Row, Tone},
    words,
};
use crate::{
    nan_bits::NanBits,
    report::{VerificationReport, VerifiedOperation, to_json},
};

/// The fields of the rows.
const COLUMNS: &str = "schema tool_version start backend fingerprint device model operation dots mismatches other_nan \
     failed duration_ns";

impl Show for VerificationReport {
    fn page(&self, _: bool) -> Page {
        let title = format!("{} against the model {}", self.device.selector, self.model);
        let mut facts = vec![("model".to_owned(), self.model.clone())];
        facts.extend(words::origin(&self.device, &self.host, &self.tool, &self.time));
        if self.nan == NanBits::Any {
            facts.push(("NaN".to_owned(), "any counts as equal".to_owned()));
        }
        let mut paper = vec![Block::heading(1, &title), Block::words(words::kind(&self.device)), Block::Facts(facts)];
        paper.extend(words::interrupted(&self.time));
        let head = ["operation", "dots", "that differ", "NaN of other bits", "time", "result"];
        paper.push(Block::table(head, self.operations.iter().map(row)));
        for found in self.operations.iter().filter(|found| !found.evidence.is_empty()) {
            paper.push(Block::heading(2, found.id.to_string()));
            paper.extend(found.evidence.iter().flat_map(|evidence| words::evidence(&found.id, evidence)));
        }
        let screen = self.operations.iter().flat_map(verified).collect();
        Page { title, blocks: vec![Block::Screen(screen), Block::Paper(paper)] }
    }

    fn rows(&self) -> Rows {
        let rows = self.operations.iter().map(|found| {
            let mut row = words::run_fields(&self.schema, &self.tool, &self.time, &self.device);
            row.extend([
                self.model.clone(),
                found.id.to_string(),
                found.dots.to_string(),
                found.mismatches.to_string(),
                found.other_nan.to_string(),
                found.failed.clone().unwrap_or_default(),
                found.duration_ns.to_string(),
            ]);
            row
        });
        Rows::new(COLUMNS, rows.collect())
    }

    fn json(&self) -> String {
        to_json(self)
    }
}

fn row(found: &VerifiedOperation) -> Row {
    let (tone, result) = match (&found.failed, found.mismatches) {
        (Some(reason), _) => (Tone::Failure, format!("failed: {reason}")),
        (None, 0) => (Tone::Plain, "no mismatch".to_owned()),
        (None, _) => (Tone::Warning, "the bits differ".to_owned()),
    };
    let numbers = [found.dots, found.mismatches, found.other_nan].map(|number| Cell::words(number.to_string()));
    let ends = [Cell::words(words::tenths(found.duration_ns)), Cell::words(result)];
    Row { tone, ..Row::plain(std::iter::once(Cell::code(found.id.to_string())).chain(numbers).chain(ends).collect()) }
}

/// Renders the results for one operation.
#[must_use]
pub fn verified(found: &VerifiedOperation) -> Vec<Block> {
    let line = match (&found.failed, found.mismatches) {
        (Some(reason), _) => format!("{}: failed: {reason}", found.id),
        (None, 0) => {
            let nan = match found.other_nan {
                0 => String::new(),
                count => format!(" ({count} NaN of other bits)"),
            };
            format!("{}: {} dots, no mismatch{nan}, {}", found.id, found.dots, words::tenths(found.duration_ns))
        }
        (None, wrong) => format!("{}: {wrong} of {} dots differ; the first, simplified:", found.id, found.dots),
    };
    let evidence = found.evidence.iter().flat_map(|evidence| words::evidence(&found.id, evidence)).collect();
    vec![Block::words(line), Block::Inset(evidence)]
}
