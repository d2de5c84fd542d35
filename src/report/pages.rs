//! Reports as pages: who the device is, its operations at a glance, the answers with the evidence behind them.

use serde_json::Value;

use super::{
    Finding, Kind, OperationReport, Outcome, Report,
    document::{Block, Cell, Document, Row, Tone},
    groups::{first_in_words, grouped, groups},
    plot, words,
};
use crate::{findings::AppliesTo, probes};

/// What a page shows beside the answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail {
    /// The bits behind each finding.
    pub(super) evidence: bool,
    /// Plots.
    pub(super) plots: bool,
}

/// Reports, one after the other.
pub(super) fn document(reports: &[Report], detail: Detail) -> Document {
    let title = match reports {
        [one] => format!("{} {}", one.device.selector, one.device.name),
        several => format!("reports of {}", words::count(several.len(), "device")),
    };
    let mut blocks = Vec::new();
    for (number, report) in reports.iter().enumerate() {
        page(report, number + 1, detail, &mut blocks);
    }
    Document { title, blocks }
}

fn page(report: &Report, number: usize, detail: Detail, blocks: &mut Vec<Block>) {
    head(report, blocks);
    let groups = groups(&report.operations, false);
    let anchors: Vec<String> = (1..=groups.len()).map(|group| format!("device-{number}-group-{group}")).collect();
    if !groups.is_empty() {
        blocks.push(Block::heading(2, "At a glance"));
        blocks.extend(GLANCES.into_iter().filter_map(|of| glance(&groups, &anchors, &columns(of))));
    }
    if detail.plots {
        blocks.extend(plot::plots(&groups).into_iter().map(Block::Plot));
    }
    for (group, anchor) in groups.iter().zip(anchors) {
        section(group, anchor, detail, blocks);
    }
    if !report.refusals.is_empty() {
        blocks.push(Block::heading(2, "Not used"));
        let rows = grouped(&report.refusals).into_iter().map(|(what, refusal)| {
            let help = refusal.help.as_deref().unwrap_or_default();
            Row::plain(vec![Cell::words(what), Cell::words(&refusal.reason), Cell::words(help)])
        });
        blocks.push(Block::Table { head: ["what", "why not", "help"].map(str::to_owned).into(), rows: rows.collect() });
    }
}

fn head(report: &Report, blocks: &mut Vec<Block>) {
    let device = &report.device;
    blocks.push(Block::heading(1, format!("{}  {}", device.selector, device.name)));
    let kind = match device.kind {
        Kind::Hardware | Kind::Software if !device.emulated => Tone::Plain,
        _ => Tone::Warning,
    };
    blocks.push(Block::Words(kind, words::kind(device).to_owned()));
    blocks.extend(report.notes.iter().map(|note| Block::Words(Tone::Warning, note.clone())));
    if report.time.interrupted {
        let words = "interrupted: the operations that are missing here were not asked";
        blocks.push(Block::Words(Tone::Warning, words.to_owned()));
    }
    let mut facts = vec![("fingerprint".to_owned(), device.fingerprint.clone())];
    let mut fact = |name: &str, words: String| facts.push((name.to_owned(), words));
    if let Some(driver) = &device.driver {
        fact("driver", format!("{} {}; API {}", driver.name, driver.version, driver.api_version));
    }
    if let Some(cpu) = report.host.cpu.as_deref().filter(|_| device.kind != Kind::Model) {
        fact("on", format!("{cpu}, {}", report.host.os));
    }
    if let Some(variables) = words::environment(&report.host) {
        fact("environment", variables);
    }
    if let Some(readings) = words::conditions(&report.conditions) {
        fact("conditions", readings);
    }
    fact("by", format!("{} {}", report.tool.name, report.tool.version_and_commit()));
    fact("made", format!("{}, {}", report.time.start, words::seconds(report.time.duration_ns)));
    let findings = report.operations.iter().flat_map(|operation| &operation.findings);
    let operations = words::count(report.operations.len(), "operation");
    fact("findings", format!("{operations}: {}", words::tally(findings)));
    blocks.push(Block::Facts(facts));
}

/// The tables at a glance: of which questions.
const GLANCES: [AppliesTo; 2] = [AppliesTo::Floating, AppliesTo::Integers];

/// The columns of a table at a glance, from left to right: a probe's name, and the head.
fn columns(of: AppliesTo) -> Vec<(&'static str, &'static str)> {
    let of = probes::all().filter(|probe| probe.applies_to == of);
    let mut columns: Vec<_> = of.filter_map(|probe| Some((probe.name, probe.shown.glance?))).collect();
    columns.sort_by_key(|(_, glance)| glance.place);
    columns.into_iter().map(|(name, glance)| (name, glance.head)).collect()
}

/// The groups that were asked any of these questions.
fn glance(groups: &[Vec<&OperationReport>], anchors: &[String], probes: &[(&str, &str)]) -> Option<Block> {
    let is_asked = |group: &[&OperationReport]| probes.iter().any(|(probe, _)| group[0].finding(probe).is_some());
    let rows: Vec<Row> = groups
        .iter()
        .zip(anchors)
        .filter(|(group, _)| is_asked(group))
        .map(|(group, anchor)| {
            let name = Cell { link: Some(anchor.clone()), after: more(group), ..Cell::code(first(group)) };
            let cells = probes.iter().map(|(probe, _)| brief(group[0].finding(probe)));
            Row::plain(std::iter::once(name).chain(cells).collect())
        })
        .collect();
    let head = std::iter::once("operations").chain(probes.iter().map(|(_, name)| *name)).map(str::to_owned);
    (!rows.is_empty()).then(|| Block::Table { head: head.collect(), rows })
}

/// The first id, and how many there are.
pub(super) fn title(group: &[&OperationReport]) -> String {
    format!("{}{}", first(group), more(group))
}

fn first(group: &[&OperationReport]) -> String {
    group[0].operation.id.to_string()
}

fn more(group: &[&OperationReport]) -> String {
    if group.len() == 1 { String::new() } else { format!(" and {} more", group.len() - 1) }
}

/// An answer in a word or two; a dash where there is none.
fn brief(finding: Option<&Finding>) -> Cell {
    let muted = |text: &str| Cell::words(text).tone(Tone::Muted);
    let Some(finding) = finding else { return muted("—") };
    match (&finding.value, finding.outcome) {
        (Some(Value::Bool(true)), _) => Cell::words("yes"),
        (Some(Value::Bool(false)), _) => Cell::words("no"),
        (Some(Value::String(text)), _) => Cell::words(text),
        (Some(Value::Number(number)), _) => Cell::words(number.to_string()),
        (Some(value), _) => match (value.get("rounded_to_bits"), value.get("exact_over")) {
            (Some(bits), _) => Cell::words(format!("exact, then {bits}")),
            (None, Some(bits)) => Cell::words(format!("{bits} or more")),
            (None, None) => muted("below"),
        },
        (None, Outcome::Failed) => Cell::words("failed").tone(Tone::Failure),
        (None, _) => muted("—"),
    }
}

fn section(group: &[&OperationReport], anchor: String, detail: Detail, blocks: &mut Vec<Block>) {
    blocks.push(Block::Heading { level: 2, text: title(group), anchor: Some(anchor) });
    let rows = group.iter().map(|report| {
        let operation = &report.operation;
        let instruction = operation.instruction.as_deref().unwrap_or_default();
        Row::plain(vec![Cell::code(operation.id.to_string()), Cell::words(&operation.scope), Cell::words(instruction)])
    });
    let head = ["operation", "scope", "instruction"].map(str::to_owned).into();
    let operations = Block::Table { head, rows: rows.collect() };
    if group.len() > 1 {
        let summary = format!("{} with these answers", words::count(group.len(), "operation"));
        blocks.push(Block::Details { summary, blocks: vec![operations] });
    } else if group[0].operation.instruction.is_some() {
        blocks.push(operations);
    }
    let rows = group[0].findings.iter().map(|finding| answer(finding, group[0], detail));
    blocks.push(Block::Table { head: ["probe", "answer"].map(str::to_owned).into(), rows: rows.collect() });
    let total = |value: fn(&OperationReport) -> u64| group.iter().map(|report| value(report)).sum::<u64>();
    let mut summary = format!(
        "{}; {} dots, {}",
        words::tally(group[0].findings.iter()),
        total(|report| report.dots),
        words::seconds(total(|report| report.duration_ns))
    );
    if let Some(words) = first_in_words(group) {
        summary.push_str("; ");
        summary.push_str(&words);
    }
    blocks.push(Block::Words(Tone::Muted, summary));
}

fn answer(finding: &Finding, report: &OperationReport, detail: Detail) -> Row {
    let tone = match finding.outcome {
        Outcome::Measured => Tone::Plain,
        Outcome::Unsupported | Outcome::Skipped => Tone::Muted,
        Outcome::Inconclusive => Tone::Warning,
        Outcome::Failed => Tone::Failure,
    };
    let mut cell = Cell::words(words::answer(finding)).tone(tone);
    if detail.evidence && !finding.evidence.is_empty() {
        let mut lines = Vec::new();
        for evidence in &finding.evidence {
            lines.push(words::about(evidence).to_owned());
            lines.extend(words::dot(evidence, &report.operation.id).iter().map(|line| format!("  {line}")));
        }
        let summary = words::count(finding.evidence.len(), "dot");
        cell.more.push(Block::Details { summary, blocks: vec![Block::Lines(lines)] });
    }
    Row::plain(vec![Cell::code(&finding.probe), cell])
}
