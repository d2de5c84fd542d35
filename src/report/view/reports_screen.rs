//! A report on a terminal: a head for the device, a block for each group of operations, a line for each finding.

use mxprobe_api::OperationId;

use super::{
    groups::{first_in_words, grouped, groups},
    page::{Block, Cell, Column, Layout, Row, Table, Tone},
    words,
};
use crate::report::{EvidenceRecord, Kind, OperationReport, Report};

/// The maximum width for names of probes.
const WIDEST_NAME: usize = 40;

/// Renders the report. Operations with the same answers share one block, unless evidence is shown.
pub(super) fn blocks(report: &Report, evidence: bool) -> Vec<Block> {
    let mut blocks = head(report);
    let findings = report.operations.iter().flat_map(|operation| &operation.findings);
    let names = findings.map(|finding| finding.probe.chars().count()).max().unwrap_or(0).min(WIDEST_NAME);
    for found in groups(&report.operations, evidence) {
        blocks.push(Block::Gap);
        group(&found, names, evidence, &mut blocks);
    }
    for (what, refusal) in grouped(&report.refusals) {
        let help = refusal.help.as_ref().map(|help| format!("\n{help}")).unwrap_or_default();
        let words = format!("{what}: {}{help}", refusal.reason);
        blocks.extend([Block::Gap, Block::Facts(vec![("not used".to_owned(), words)])]);
    }
    blocks.extend(words::resumed(&report.resumed).into_iter().flat_map(|words| [Block::Gap, Block::words(words)]));
    if report.time.interrupted {
        blocks.extend([Block::Gap, Block::words(words::INTERRUPTED)]);
    }
    blocks
}

fn head(report: &Report) -> Vec<Block> {
    let device = &report.device;
    let mut lines = vec![format!("{}; fingerprint {}", words::kind(device), device.fingerprint)];
    lines.extend(device.driver.as_ref().map(|driver| format!("driver {}", words::driver(driver))));
    let cpu = report.host.cpu.as_ref().filter(|_| device.kind != Kind::Model);
    lines.extend(cpu.map(|cpu| format!("on {cpu}, {}", report.host.os)));
    lines.extend(words::environment(&report.host).map(|variables| format!("environment {variables}")));
    lines.extend(words::conditions(&report.conditions).map(|readings| format!("conditions {readings}")));
    let duration = words::seconds(report.time.duration_ns);
    lines.push(format!("{} {}, {}, {duration}", report.tool.name, report.tool.version_and_commit(), report.time.start));
    let notes = report.notes.iter().map(|note| Block::Words(Tone::Warning, note.clone()));
    let inset = lines.into_iter().map(Block::words).chain(notes).collect();
    vec![Block::heading(1, format!("{}  {}", device.selector, device.name)), Block::Inset(inset)]
}

fn group(group: &[&OperationReport], names: usize, evidence: bool, blocks: &mut Vec<Block>) {
    let ids = group.iter().map(|report| {
        let instruction = report.operation.instruction.as_deref().unwrap_or_default();
        let id = Cell::code(report.operation.id.to_string()).tone(Tone::Strong);
        Row::plain(vec![id, Cell::words(instruction)])
    });
    blocks.push(Block::laid_out(Layout::Bare, ["operation", "instruction"], ids));
    let rows = group[0].findings.iter().map(|finding| {
        let mut answer = Cell::words(finding.words()).tone(words::tone(finding.outcome));
        if evidence {
            answer.more = finding.evidence.iter().flat_map(|evidence| dot(evidence, &group[0].operation.id)).collect();
        }
        Row::plain(vec![Cell::code(&finding.probe), answer])
    });
    let columns = vec![Column { least: names, ..Column::default() }, Column::default()];
    let findings = Block::Table(Table { columns, rows: rows.collect(), layout: Layout::Hanging });
    let summaries = [Some(words::group(group)), first_in_words(group)].into_iter().flatten();
    let summaries = summaries.map(|words| Block::Words(Tone::Muted, words));
    blocks.push(Block::Inset(std::iter::once(findings).chain(summaries).collect()));
}

/// Renders the purpose of a dot, and its bits.
fn dot(evidence: &EvidenceRecord, id: &OperationId) -> [Block; 2] {
    let muted = |lines: Vec<String>| Block::List(lines.into_iter().map(|line| (Tone::Muted, line)).collect());
    [muted(vec![words::about(evidence).to_owned()]), Block::Inset(vec![muted(words::dot(evidence, id))])]
}
