//! The summaries that `identify` and `verify` end with: the answer, where it was saved, and the next step.

use std::{collections::BTreeMap, fmt::Display};

use mxprobe_api::OperationId;

use super::page::{Block, Cell, Column, Layout, Row, Table, Tone};
use crate::{
    plain::{counted, shell_word},
    report::{IdentificationOutcome, IdentificationReport, IdentifiedOperation, Time, VerificationReport},
};

/// Formats of an operation: `f16 → f32`, or `bf16·e4m3 → f32` if A and B differ.
fn formats(id: &OperationId) -> String {
    if id.a == id.b { format!("{} → {}", id.a, id.d) } else { format!("{}·{} → {}", id.a, id.b, id.d) }
}

/// The first line, such as `3 of 178 operations identified, 12.3 s`, with a note if operations are missing.
fn head(words: String, time: &Time) -> Block {
    let missing = if time.interrupted { "; interrupted, the others were not asked" } else { "" };
    Block::words(format!("{words}, {}{missing}", super::words::tenths(time.duration_ns)))
}

/// Renders names with their values, one per line.
fn facts(lines: Vec<(&str, String)>) -> Block {
    Block::Facts(lines.into_iter().map(|(name, words)| (name.to_owned(), words)).collect())
}

fn table(rows: Vec<Vec<String>>) -> Block {
    let columns = vec![Column::default(); rows.first().map_or(0, Vec::len)];
    let rows = rows.into_iter().map(|cells| Row::plain(cells.into_iter().map(Cell::words).collect())).collect();
    Block::Inset(vec![Block::Table(Table { columns, rows, layout: Layout::Bare })])
}

/// Summarises an identification: operations with the same arithmetic in one row, where the result was saved, and the
/// next step.
#[must_use]
pub fn identification_summary(report: &IdentificationReport, saved: Option<&impl Display>) -> Vec<Block> {
    let is_identified = |operation: &&IdentifiedOperation| operation.outcome == IdentificationOutcome::Identified;
    let count = report.operations.iter().filter(is_identified).count();
    let asked = report.request.as_ref().map_or(report.operations.len(), |request| request.operations.len());
    let mut blocks = vec![head(format!("{count} of {} identified", counted(asked, "operation")), &report.time)];
    blocks.push(table(identified_rows(report)));
    let mut lines = Vec::new();
    if let Some(model) = &report.model {
        lines.push(("model", model.clone()));
    }
    lines.extend(saved.map(|path| ("saved", path.to_string())));
    let selector = &report.device.selector;
    match (report.time.interrupted, saved, &report.model) {
        (true, Some(path), _) => {
            lines.push(("next", format!("mxprobe identify --resume {}", shell_word(&path.to_string()))))
        }
        (true, None, _) => {
            lines.push(("next", "--report FILE.json keeps an identification that can be resumed".into()))
        }
        (false, _, Some(model)) => {
            let (selector, model) = (shell_word(selector), shell_word(model));
            lines.push(("next", format!("mxprobe verify --device {selector} --model {model}")));
        }
        (false, ..) => {}
    }
    blocks.push(facts(lines));
    blocks
}

/// Returns a row for each arithmetic: formats, number of operations, outcome, and models with the same bits.
fn identified_rows(report: &IdentificationReport) -> Vec<Vec<String>> {
    let mut order = Vec::new();
    let mut folded: BTreeMap<_, usize> = BTreeMap::new();
    for found in &report.operations {
        let result = match found.outcome {
            IdentificationOutcome::Identified => match found.equals.as_slice() {
                [] => "identified; no shipped model has these bits".to_owned(),
                equals => format!("identified; same bits as {}", model_names(equals)),
            },
            IdentificationOutcome::Outside => {
                format!("not explained: {} of {} dots by the nearest", found.explained.unwrap_or(0), found.tested)
            }
            IdentificationOutcome::Unrepeatable => "not repeatable".to_owned(),
            IdentificationOutcome::Failed => "failed".to_owned(),
        };
        let key = (formats(&found.id), found.id.family.clone(), result);
        *folded.entry(key.clone()).or_insert_with(|| {
            order.push(key);
            0
        }) += 1;
    }
    let row = |key: (String, String, String)| {
        let count = folded[&key];
        let (formats, family, result) = key;
        vec![formats, family, count.to_string(), result]
    };
    order.into_iter().map(row).collect()
}

/// The maximum number of models that are named.
const NAMED: usize = 3;

/// Returns the models of `h100 mma.…` without duplicates: `a100, h100 and 4 more`.
fn model_names(equals: &[String]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in equals.iter().filter_map(|equal| equal.split(' ').next()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}

/// Summarises a verification: the answer, where it was saved, and the next step.
#[must_use]
pub fn verification_summary(report: &VerificationReport, saved: Option<&impl Display>) -> Vec<Block> {
    let count = report.operations.iter().filter(|found| found.agrees()).count();
    let asked = report.request.as_ref().map_or(report.operations.len(), |request| request.operations.len());
    let words = format!("{count} of {} gave the bits of the model {}", counted(asked, "operation"), report.model);
    let mut blocks = vec![head(words, &report.time)];
    let differ = report.operations.iter().filter(|found| found.mismatches > 0).count();
    let failed = report.operations.iter().filter(|found| found.failed.is_some()).count();
    let dots: u64 = report.operations.iter().map(|found| found.dots).sum();
    blocks.extend((differ > 0).then(|| {
        Block::Words(Tone::Warning, format!("! {} differ: `-v` lists every operation", counted(differ, "operation")))
    }));
    blocks.extend(
        (failed > 0).then(|| {
            Block::Words(Tone::Failure, format!("! {} failed and can be resumed", counted(failed, "operation")))
        }),
    );
    let mut lines = vec![("dots", format!("{dots} compared, bit for bit"))];
    lines.extend(saved.map(|path| ("saved", path.to_string())));
    match (report.time.interrupted, saved) {
        (true, Some(path)) => {
            lines.push(("next", format!("mxprobe verify --resume {}", shell_word(&path.to_string()))))
        }
        (true, None) => lines.push(("next", "--out FILE.json keeps a verification that can be resumed".into())),
        (false, _) => {}
    }
    blocks.push(facts(lines));
    blocks
}
