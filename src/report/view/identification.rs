//! The output of `identify`, operation by operation.

use super::{
    csv::Rows,
    form::Show,
    page::{Block, Page},
    words,
};
use crate::{
    nan_bits::NanBits,
    plain::counted,
    report::{IdentificationOutcome, IdentificationReport, IdentifiedOperation, to_json},
};

/// The fields of the rows.
const COLUMNS: &str = "schema tool_version start backend fingerprint device operation outcome reason order tree parameters \
     rounds dots tested explained readings equals disagreements duration_ns";

impl Show for IdentificationReport {
    fn page(&self, evidence: bool) -> Page {
        let title = format!("Identification of {}  {}", self.device.selector, self.device.name);
        let mut facts = words::origin(&self.device, &self.host, &self.tool, &self.time);
        if self.nan == NanBits::Any {
            facts.push(("NaN".to_owned(), "any counts as equal".to_owned()));
        }
        let mut head = vec![Block::heading(1, &title), Block::words(words::kind(&self.device)), Block::Facts(facts)];
        head.extend(words::interrupted(&self.time));
        let operations = self.operations.iter().flat_map(|operation| identified(operation, evidence));
        let summary = Block::words(identified_of(self));
        Page { title, blocks: std::iter::once(Block::Paper(head)).chain(operations).chain([summary]).collect() }
    }

    fn rows(&self) -> Rows {
        let rows = self.operations.iter().map(|found| {
            let mut row = words::run_fields(&self.schema, &self.tool, &self.time, &self.device);
            row.extend([
                found.id.to_string(),
                outcome(found.outcome).to_owned(),
                found.reason.clone().unwrap_or_default(),
                found.order.clone().unwrap_or_default(),
                found.tree.clone().unwrap_or_default(),
                found.parameters.join("\n"),
                found.rounds.to_string(),
                found.dots.to_string(),
                found.tested.to_string(),
                found.explained.map(|dots| dots.to_string()).unwrap_or_default(),
                found.readings.to_string(),
                found.equals.join("\n"),
                found.disagreements.join("\n"),
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

/// The name of an outcome, as in the JSON.
fn outcome(outcome: IdentificationOutcome) -> &'static str {
    match outcome {
        IdentificationOutcome::Identified => "identified",
        IdentificationOutcome::Outside => "outside",
        IdentificationOutcome::Unrepeatable => "unrepeatable",
        IdentificationOutcome::Failed => "failed",
    }
}

/// Counts the identified operations, and names the file with their model.
#[must_use]
pub(super) fn identified_of(report: &IdentificationReport) -> String {
    let is_identified = |operation: &&IdentifiedOperation| operation.outcome == IdentificationOutcome::Identified;
    let count = report.operations.iter().filter(is_identified).count();
    let written = report.model.as_ref().map(|model| format!("; the model is in {model}")).unwrap_or_default();
    format!("{count} of {} operations identified{written}", report.operations.len())
}

/// Renders the results for one operation. The dots behind them are shown if `evidence` is set, and always if the
/// operation was not identified.
#[must_use]
pub fn identified(found: &IdentifiedOperation, evidence: bool) -> Vec<Block> {
    let is_identified = found.outcome == IdentificationOutcome::Identified;
    let mut blocks = vec![Block::words(ending(found))];
    let tree = if is_identified { "tree" } else { "nearest tree" };
    let facts = [("order", &found.order), (tree, &found.tree)];
    let facts: Vec<_> = facts.into_iter().filter_map(|(name, words)| Some((name.to_owned(), words.clone()?))).collect();
    if !facts.is_empty() {
        blocks.push(Block::Facts(facts));
    }
    if !found.parameters.is_empty() {
        blocks.push(Block::Inset(vec![Block::list(&found.parameters)]));
    }
    if found.dots > 0 {
        blocks.push(Block::words(format!(
            "{} after the tree, {} asked, {} of the tree tried, {}",
            counted(found.rounds, "round"),
            counted(found.dots, "dot"),
            counted(found.readings, "reading"),
            words::tenths(found.duration_ns)
        )));
    }
    if is_identified {
        blocks.push(Block::words(format!("tested, not proved: {} dots, no mismatch", found.tested)));
        blocks.push(Block::words(match found.equals.as_slice() {
            [] => "no shipped model gives the same bits".to_owned(),
            equals => format!("gives the same bits as {}", equals.join(", ")),
        }));
    }
    blocks.extend(found.disagreements.iter().map(|words| Block::words(format!("the probes differ: {words}"))));
    if evidence || !is_identified {
        blocks.extend(found.evidence.iter().flat_map(|evidence| words::evidence(&found.id, evidence)));
    }
    blocks.extend(found.model.as_ref().map(|model| {
        Block::Paper(vec![Block::Details { summary: "the model file".to_owned(), blocks: vec![Block::text(model)] }])
    }));
    Block::titled(2, found.id.to_string()).into_iter().chain([Block::Inset(blocks)]).collect()
}

/// The outcome, in words.
fn ending(found: &IdentifiedOperation) -> String {
    let reason = found.reason.as_deref().unwrap_or_default();
    match found.outcome {
        IdentificationOutcome::Identified => "identified".to_owned(),
        IdentificationOutcome::Outside => format!(
            "outside of what a model can express: the nearest candidate explains {} of {} dots{}",
            found.explained.unwrap_or(0),
            found.tested,
            reason.find(';').map_or("", |at| &reason[at..])
        ),
        IdentificationOutcome::Unrepeatable => format!("not repeatable: {reason}"),
        IdentificationOutcome::Failed => format!("failed: {reason}"),
    }
}
