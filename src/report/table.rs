//! The view for the screen: a head for the device, a block for each operation, a line for each finding.

use std::fmt::Write as _;

use anstyle::Style as Ansi;
use mxprobe_api::OperationId;

use crate::plain::one_line;

use super::{
    Evidence, Finding, Kind, OperationReport, Outcome, Report,
    groups::{first_in_words, grouped, groups},
    screen::{BOLD, DIM, FAILURE, Style, WARNING, hang},
    words,
};

/// Renders a report for the screen. What was not measured is a dash with its outcome and its reason.
///
/// Operations with the same answers to every question share one block, unless evidence is shown.
pub(super) fn render(report: &Report, style: Style) -> String {
    let mut text = head(report, style);
    let width = report
        .operations
        .iter()
        .flat_map(|operation| &operation.findings)
        .map(|finding| finding.probe.chars().count())
        .max()
        .unwrap_or(0)
        .min(WIDEST_NAME);
    for group in groups(&report.operations, style.evidence) {
        text.push('\n');
        block(&mut text, &group, width, style);
    }
    for (what, refusal) in grouped(&report.refusals) {
        text.push_str("\nnot used: ");
        hang(&mut text, &format!("{what}: {}", refusal.reason), 10, style.width);
        if let Some(help) = &refusal.help {
            text.push_str("          ");
            hang(&mut text, help, 10, style.width);
        }
    }
    if let Some(last) = report.resumed.last() {
        let times = match report.resumed.len() {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        let _ = writeln!(text, "\nresumed {times}, last at {}", last.time);
    }
    if report.time.interrupted {
        text.push_str("\ninterrupted: the operations that are missing here were not asked\n");
    }
    text
}

/// Names of probes have this much room.
const WIDEST_NAME: usize = 40;

fn head(report: &Report, style: Style) -> String {
    let device = &report.device;
    let (selector, name) = (one_line(&device.selector), one_line(&device.name));
    let mut text = format!("{}  {}\n", style.paint(BOLD, &selector), style.paint(BOLD, &name));
    let mut line = |words: String| {
        text.push_str("  ");
        hang(&mut text, &one_line(&words), 2, style.width);
    };
    line(format!("{}; fingerprint {}", words::kind(device), device.fingerprint));
    if let Some(driver) = &device.driver {
        line(format!("driver {} {}; API {}", driver.name, driver.version, driver.api_version));
    }
    if let Some(cpu) = report.host.cpu.as_deref().filter(|_| device.kind != Kind::Model) {
        line(format!("on {cpu}, {}", report.host.os));
    }
    if let Some(variables) = words::environment(&report.host) {
        line(format!("environment {variables}"));
    }
    if let Some(readings) = words::conditions(&report.conditions) {
        line(format!("conditions {readings}"));
    }
    let duration = words::seconds(report.time.duration_ns);
    line(format!("{} {}, {}, {duration}", report.tool.name, report.tool.version_and_commit(), report.time.start));
    for note in &report.notes {
        text.push_str("  ");
        let mut wrapped = String::new();
        hang(&mut wrapped, note, 2, style.width);
        text.push_str(&style.paint(WARNING, wrapped.trim_end()));
        text.push('\n');
    }
    text
}

fn block(text: &mut String, group: &[&OperationReport], names: usize, style: Style) {
    let ids = group.iter().map(|operation| id(operation).chars().count()).max().unwrap_or(0);
    for report in group {
        let operation = &report.operation;
        let name = id(report);
        let mut line = style.paint(BOLD, &name);
        if let Some(instruction) = &operation.instruction {
            line.push_str(&" ".repeat(ids - name.chars().count() + 2));
            line.push_str(&one_line(instruction));
        }
        let _ = writeln!(text, "{line}");
    }
    let indent = names + 4;
    for finding in &group[0].findings {
        let _ = write!(text, "  {:names$}  ", one_line(&finding.probe));
        hang_painted(text, finding, indent, style);
        if style.evidence {
            for evidence in &finding.evidence {
                show(text, evidence, &group[0].operation.id, style);
            }
        }
    }
    let total = |value: fn(&OperationReport) -> u64| group.iter().map(|report| value(report)).sum::<u64>();
    let summary = format!(
        "{}; {} dots, {}",
        words::tally(group[0].findings.iter()),
        total(|report| report.dots),
        words::seconds(total(|report| report.duration_ns))
    );
    let _ = writeln!(text, "  {}", style.paint(DIM, &summary));
    if let Some(words) = first_in_words(group) {
        let _ = writeln!(text, "  {}", style.paint(DIM, &one_line(&words)));
    }
}

/// The id of an operation; its family and its qualifiers may be any words.
fn id(report: &OperationReport) -> String {
    one_line(&report.operation.id.to_string()).into_owned()
}

fn hang_painted(text: &mut String, finding: &Finding, indent: usize, style: Style) {
    let mut wrapped = String::new();
    hang(&mut wrapped, &words::answer(finding), indent, style.width);
    let ansi = match finding.outcome {
        Outcome::Measured => Ansi::new(),
        Outcome::Unsupported | Outcome::Skipped => DIM,
        Outcome::Inconclusive => WARNING,
        Outcome::Failed => FAILURE,
    };
    if finding.outcome == Outcome::Measured {
        text.push_str(&wrapped);
    } else {
        text.push_str(&style.paint(ansi, wrapped.trim_end()));
        text.push('\n');
    }
}

fn show(text: &mut String, evidence: &Evidence, id: &OperationId, style: Style) {
    let mut line = |indent: usize, words: &str| {
        let mut wrapped = " ".repeat(indent);
        hang(&mut wrapped, words, indent + 2, style.width);
        text.push_str(&style.paint(DIM, wrapped.trim_end_matches('\n')));
        text.push('\n');
    };
    line(4, words::about(evidence));
    words::dot(evidence, id).iter().for_each(|words| line(6, words));
}
