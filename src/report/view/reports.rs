//! Reports as pages: the device, a summary of its operations, and the answers with the evidence behind them.

use serde_json::Value;

use super::{
    csv::Rows,
    first_screen,
    form::Show,
    glance,
    groups::{first_in_words, grouped, groups, more, title},
    page::{Block, Cell, Page, Row, Tone},
    plot, reports_rows, reports_screen, words,
};
use crate::{
    findings::{AppliesTo, Outcome},
    in_order::InOrder,
    plain::counted,
    probes,
    report::{FindingRecord, Kind, OperationReport, Report, Summary, SummaryRow, reports_json},
};

/// Reports, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Reports<'a> {
    /// The reports.
    pub reports: &'a [Report],
    /// Whether a terminal lists each operation with its findings, instead of only the first screen.
    pub listed: bool,
}

impl Show for Reports<'_> {
    fn page(&self, evidence: bool) -> Page {
        let title = match self.reports {
            [one] => format!("{} {}", one.device.selector, one.device.name),
            several => format!("reports of {}", counted(several.len(), "device")),
        };
        let paper = self.reports.iter().enumerate().map(|(at, report)| Block::Paper(page(report, at + 1, evidence)));
        Page { title, blocks: self.screen(evidence).into_iter().chain(paper).collect() }
    }

    fn screen(&self, evidence: bool) -> Vec<Block> {
        let mut blocks = Vec::new();
        for (number, report) in self.reports.iter().enumerate() {
            if number > 0 {
                blocks.push(Block::Gap);
            }
            blocks.push(Block::Screen(if self.listed || evidence {
                reports_screen::blocks(report, evidence)
            } else {
                first_screen::blocks(report)
            }));
        }
        blocks
    }

    fn rows(&self) -> Rows {
        reports_rows::findings(self.reports)
    }

    fn json(&self) -> String {
        reports_json(self.reports)
    }
}

/// Renders a report in full: the device, a summary of its operations, drawings, and each group of operations, folded.
fn page(report: &Report, number: usize, evidence: bool) -> Vec<Block> {
    let mut blocks = head(report);
    blocks.push(Block::Contents);
    let groups = groups(&report.operations, false);
    let anchors: Vec<String> = (1..=groups.len()).map(|group| format!("device-{number}-group-{group}")).collect();
    let named = |name: &str| Some(format!("device-{number}-{name}"));
    let section = |name: &str, text: &str| Block::Heading { level: 2, text: text.into(), anchor: named(name) };
    let made = report.summary.is_none().then(|| Summary::of(&report.operations));
    let summary = report.summary.as_ref().or(made.as_ref()).expect("one of the two");
    if !summary.rows.is_empty() {
        blocks.push(section("glance", "At a glance"));
        blocks.extend(glance::table(summary));
    }
    let drawn = || summary.rows.iter().filter(|row| !row.is_minor());
    let label = |row: &SummaryRow| format!("{} {}", row.sums(), row.families.join(" "));
    if let Some(strips) = plot::drawn_strips(drawn().map(|row| (label(row), row))) {
        blocks.extend([section("bits", "What survives beside a large term"), strips]);
    }
    if let Some(trees) = plot::drawn_trees(drawn().map(|row| (label(row), row, report))) {
        blocks.extend([section("order", "In which order products and c are added"), trees]);
    }
    let tables: Vec<Block> =
        GLANCES.into_iter().filter_map(|of| operations_at_a_glance(&groups, &anchors, &columns(of))).collect();
    if !groups.is_empty() {
        blocks.push(section("operations", "Every operation"));
    }
    if !tables.is_empty() {
        blocks.push(Block::Details { summary: "at a glance, operation by operation".into(), blocks: tables });
    }
    for (group, anchor) in groups.iter().zip(anchors) {
        blocks.push(Block::Details { summary: title(group), blocks: operations(group, anchor, evidence) });
    }
    if !report.refusals.is_empty() {
        blocks.push(section("refusals", "Not used"));
        let rows = grouped(&report.refusals).into_iter().map(|(what, refusal)| {
            let help = refusal.help.as_deref().unwrap_or_default();
            Row::plain(vec![Cell::words(what), Cell::words(&refusal.reason), Cell::words(help)])
        });
        blocks.push(Block::table(["what", "why not", "help"], rows));
    }
    blocks
}

fn head(report: &Report) -> Vec<Block> {
    let device = &report.device;
    let mut blocks = vec![Block::heading(1, format!("{}  {}", device.selector, device.name))];
    let kind = match device.kind {
        Kind::Hardware | Kind::Software if !device.emulated => Tone::Plain,
        _ => Tone::Warning,
    };
    blocks.push(Block::Words(kind, words::kind(device).to_owned()));
    blocks.extend(report.notes.iter().map(|note| Block::Words(Tone::Warning, note.clone())));
    if report.time.interrupted {
        blocks.push(Block::Words(Tone::Warning, words::INTERRUPTED.to_owned()));
    }
    let mut facts = words::origin(device, &report.host, &report.tool, &report.time);
    let made = facts.len() - 2;
    let more =
        [("environment", words::environment(&report.host)), ("conditions", words::conditions(&report.conditions))];
    let more = more.into_iter().filter_map(|(name, words)| Some((name.to_owned(), words?)));
    facts.splice(made..made, more);
    let findings = report.operations.iter().flat_map(|operation| &operation.findings);
    let operations = counted(report.operations.len(), "operation");
    facts.push(("findings".to_owned(), format!("{operations}: {}", words::tally(findings))));
    blocks.push(Block::Facts(facts));
    blocks
}

/// The tables at a glance, by the kind of operations that their questions apply to.
const GLANCES: [AppliesTo; 2] = [AppliesTo::Floating, AppliesTo::Integers];

/// Returns the columns of a table at a glance, from left to right: a probe's name, and the head.
fn columns(of: AppliesTo) -> Vec<(&'static str, &'static str)> {
    let of = probes::all().filter(|probe| probe.applies_to == of);
    let mut columns: Vec<_> = of.filter_map(|probe| Some((probe.name, probe.shown.glance?))).collect();
    columns.order_by_key(|(_, glance)| glance.place);
    columns.into_iter().map(|(name, glance)| (name, glance.head)).collect()
}

/// Builds a table of the groups that were asked any of these questions.
fn operations_at_a_glance(
    groups: &[Vec<&OperationReport>],
    anchors: &[String],
    probes: &[(&str, &str)],
) -> Option<Block> {
    let is_asked = |group: &[&OperationReport]| probes.iter().any(|(probe, _)| group[0].finding(probe).is_some());
    let rows: Vec<Row> = groups
        .iter()
        .zip(anchors)
        .filter(|(group, _)| is_asked(group))
        .map(|(group, anchor)| {
            let name = Cell {
                link: Some(format!("#{anchor}")),
                after: more(group),
                ..Cell::code(group[0].operation.id.to_string())
            };
            let cells = probes.iter().map(|(probe, _)| brief(group[0].finding(probe)));
            Row::plain(std::iter::once(name).chain(cells).collect())
        })
        .collect();
    let head = std::iter::once("operations").chain(probes.iter().map(|(_, name)| *name));
    (!rows.is_empty()).then(|| Block::table(head, rows))
}

/// Formats an answer in a word or two; a dash if there is none.
fn brief(finding: Option<&FindingRecord>) -> Cell {
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

/// Renders the results for operations with the same answers.
fn operations(group: &[&OperationReport], anchor: String, evidence: bool) -> Vec<Block> {
    let mut blocks = vec![Block::Heading { level: 3, text: title(group), anchor: Some(anchor) }];
    let rows = group.iter().map(|report| {
        let operation = &report.operation;
        let instruction = operation.instruction.as_deref().unwrap_or_default();
        Row::plain(vec![Cell::code(operation.id.to_string()), Cell::words(&operation.scope), Cell::words(instruction)])
    });
    let operations = Block::table(["operation", "scope", "instruction"], rows);
    if group.len() > 1 {
        let summary = format!("{} with these answers", counted(group.len(), "operation"));
        blocks.push(Block::Details { summary, blocks: vec![operations] });
    } else if group[0].operation.instruction.is_some() {
        blocks.push(operations);
    }
    let rows = group[0].findings.iter().map(|finding| answer(finding, group[0], evidence));
    blocks.push(Block::table(["probe", "answer"], rows));
    let summary =
        [Some(words::group(group)), first_in_words(group)].into_iter().flatten().collect::<Vec<_>>().join("; ");
    blocks.push(Block::Words(Tone::Muted, summary));
    blocks
}

fn answer(finding: &FindingRecord, report: &OperationReport, evidence: bool) -> Row {
    let mut cell = Cell::words(finding.words()).tone(words::tone(finding.outcome));
    if evidence && !finding.evidence.is_empty() {
        let mut lines = Vec::new();
        for evidence in &finding.evidence {
            lines.push(words::about(evidence).to_owned());
            lines.extend(words::dot(evidence, &report.operation.id).iter().map(|line| format!("  {line}")));
        }
        let summary = counted(finding.evidence.len(), "dot");
        cell.more.push(Block::Details { summary, blocks: vec![Block::Lines(lines)] });
    }
    Row::plain(vec![Cell::code(&finding.probe), cell])
}
