//! The view for the screen: a head for the device, a block for each operation, a line for each finding.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style as Ansi};
use mxprobe_api::{Decoded, Format, OperationId};

use super::{Evidence, Finding, Kind, OperationReport, Outcome, RefusalRecord, Report};

/// How a view looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns to wrap at.
    pub width: usize,
    /// With the bits behind each finding. Operations are then listed one by one.
    pub evidence: bool,
    /// With ANSI escapes.
    pub color: bool,
}

impl Default for Style {
    /// 100 columns, no evidence, no colour: what a pipe or a file gets.
    fn default() -> Self {
        Self { width: 100, evidence: false, color: false }
    }
}

impl Style {
    fn paint(self, ansi: Ansi, text: &str) -> String {
        if self.color { format!("{ansi}{text}{ansi:#}") } else { text.to_owned() }
    }
}

const BOLD: Ansi = Ansi::new().bold();
const DIM: Ansi = Ansi::new().dimmed();
const WARNING: Ansi = AnsiColor::Yellow.on_default();
const FAILURE: Ansi = AnsiColor::Red.on_default();

/// Renders a report for the screen. What was not measured is a dash with its outcome and its reason.
///
/// Operations with the same answers to every question share one block, unless evidence is shown.
#[must_use]
pub fn render(report: &Report, style: Style) -> String {
    let mut text = head(report, style);
    let width = report
        .operations
        .iter()
        .flat_map(|operation| &operation.findings)
        .map(|finding| finding.probe.chars().count())
        .max()
        .unwrap_or(0);
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

/// Refusals with the same reason as one: what they refuse, and the first of them.
#[must_use]
pub fn grouped(refusals: &[RefusalRecord]) -> Vec<(String, &RefusalRecord)> {
    let mut groups: Vec<(String, &RefusalRecord)> = Vec::new();
    for refusal in refusals {
        let same =
            |(_, first): &&mut (String, &RefusalRecord)| first.reason == refusal.reason && first.help == refusal.help;
        match groups.iter_mut().find(same) {
            Some((what, _)) => {
                what.push_str(", ");
                what.push_str(&refusal.what);
            }
            None => groups.push((refusal.what.clone(), refusal)),
        }
    }
    groups
}

fn head(report: &Report, style: Style) -> String {
    let device = &report.device;
    let kind = match device.kind {
        _ if device.emulated => "a double made for tests: nothing was measured on a device",
        Kind::Hardware => "hardware",
        Kind::Software => "driver that computes in software",
        Kind::Model => "model: nothing was measured on silicon",
    };
    let mut text = format!("{}  {}\n", style.paint(BOLD, &device.selector), style.paint(BOLD, &device.name));
    let _ = writeln!(text, "  {kind}; fingerprint {}", device.fingerprint);
    if let Some(driver) = &device.driver {
        let _ = writeln!(text, "  driver {} {}; API {}", driver.name, driver.version, driver.api_version);
    }
    if let Some(cpu) = report.host.cpu.as_deref().filter(|_| device.kind != Kind::Model) {
        let _ = writeln!(text, "  on {cpu}, {}", report.host.os);
    }
    let _ = writeln!(
        text,
        "  {} {}, {}, {}",
        report.tool.name,
        report.tool.version_and_commit(),
        report.time.start,
        seconds(report.time.duration_ns)
    );
    for note in &report.notes {
        text.push_str("  ");
        let mut wrapped = String::new();
        hang(&mut wrapped, note, 2, style.width);
        text.push_str(&style.paint(WARNING, wrapped.trim_end()));
        text.push('\n');
    }
    text
}

/// Operations in their order, those with equal answers together.
fn groups(operations: &[OperationReport], apart: bool) -> Vec<Vec<&OperationReport>> {
    let mut groups: Vec<Vec<&OperationReport>> = Vec::new();
    for operation in operations {
        let same = groups.iter_mut().find(|group| !apart && same_answers(group[0], operation));
        match same {
            Some(group) => group.push(operation),
            None => groups.push(vec![operation]),
        }
    }
    groups
}

fn same_answers(left: &OperationReport, right: &OperationReport) -> bool {
    let answer =
        |finding: &Finding| (finding.probe.clone(), finding.outcome, finding.reason.clone(), finding.statement.clone());
    left.findings.iter().map(answer).eq(right.findings.iter().map(answer))
}

fn block(text: &mut String, group: &[&OperationReport], names: usize, style: Style) {
    let ids = group.iter().map(|operation| operation.operation.id.to_string().len()).max().unwrap_or(0);
    for report in group {
        let operation = &report.operation;
        let id = format!("{:ids$}", operation.id.to_string());
        let mut line = style.paint(BOLD, id.trim_end());
        if let Some(instruction) = &operation.instruction {
            line.push_str(&" ".repeat(id.len() - id.trim_end().len() + 2));
            line.push_str(instruction);
        }
        let _ = writeln!(text, "{line}");
    }
    let indent = names + 4;
    for finding in &group[0].findings {
        let _ = write!(text, "  {:names$}  ", finding.probe);
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
        tally(&group[0].findings),
        total(|report| report.dots),
        seconds(total(|report| report.duration_ns))
    );
    let _ = writeln!(text, "  {}", style.paint(DIM, &summary));
}

fn hang_painted(text: &mut String, finding: &Finding, indent: usize, style: Style) {
    let mut wrapped = String::new();
    hang(&mut wrapped, &answer(finding), indent, style.width);
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

fn answer(finding: &Finding) -> String {
    let outcome = match finding.outcome {
        Outcome::Measured => return finding.statement.clone(),
        Outcome::Unsupported => "unsupported",
        Outcome::Skipped => "skipped",
        Outcome::Failed => "failed",
        Outcome::Inconclusive => "inconclusive",
    };
    match (&finding.reason, finding.statement.as_str()) {
        (Some(reason), _) => format!("— {outcome}: {reason}"),
        (None, "") => format!("— {outcome}"),
        (None, statement) => format!("— {outcome}: {statement}"),
    }
}

/// How many findings ended in which way; ways that did not occur are left out.
fn tally(findings: &[Finding]) -> String {
    let ways = [
        (Outcome::Measured, "measured"),
        (Outcome::Unsupported, "unsupported"),
        (Outcome::Skipped, "skipped"),
        (Outcome::Inconclusive, "inconclusive"),
        (Outcome::Failed, "failed"),
    ];
    let counts = ways.map(|(way, name)| (findings.iter().filter(|finding| finding.outcome == way).count(), name));
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// The inputs that are not +0, c, d, and what the rivals predict.
fn show(text: &mut String, evidence: &Evidence, id: &OperationId, style: Style) {
    let about = if evidence.about.is_empty() { "evidence" } else { &evidence.about };
    let mut line = |indent: usize, words: &str| {
        let mut wrapped = " ".repeat(indent);
        hang(&mut wrapped, words, indent + 2, style.width);
        text.push_str(&style.paint(DIM, wrapped.trim_end_matches('\n')));
        text.push('\n');
    };
    line(4, about);
    let mut products = Vec::new();
    for (index, (a, b)) in evidence.a.iter().zip(&evidence.b).enumerate() {
        if !(is_zero(id.a, a) && is_zero(id.b, b)) {
            products.push(format!("{index}: {} × {}", number(id.a, a), number(id.b, b)));
        }
    }
    if products.len() <= 8 {
        products.iter().for_each(|product| line(6, product));
    } else {
        line(6, &products.join(", "));
    }
    for (name, scales) in [("scale_a", &evidence.scale_a), ("scale_b", &evidence.scale_b)] {
        if let (Some(scales), Some(scale)) = (scales, id.block_scale()) {
            let scales: Vec<String> = scales.iter().map(|bits| number(scale.format, bits)).collect();
            line(6, &format!("{name} = {}", scales.join(", ")));
        }
    }
    line(6, &format!("c = {}  →  d = {}", number(id.c, &evidence.c), number(id.d, &evidence.d)));
    for rival in &evidence.rivals {
        line(6, &format!("{} would return {}", rival.answer, number(id.d, &rival.d)));
    }
}

fn is_zero(format: Format, hex: &str) -> bool {
    format.parse_hex(hex).is_ok_and(|bits| bits == 0)
}

/// Bits and, beside them, the value for people. Text that is no number of the format is shown as it is.
fn number(format: Format, hex: &str) -> String {
    match format.parse_hex(hex) {
        Ok(bits) => format!("{hex} ({})", decimal(format, bits)),
        Err(_) => hex.to_owned(),
    }
}

/// The value for people: a decimal that reads back as the same value, or, where that is long, a multiple of a power of
/// two; `NaN`, `inf`, `-0`.
fn decimal(format: Format, bits: u64) -> String {
    let value = format.to_f64(bits);
    let Decoded::Finite { negative, significand, exponent } = format.decode(bits) else { return value.to_string() };
    let top = 63 - significand.leading_zeros().cast_signed();
    let exponent = exponent - format.fraction_bits().cast_signed() + top;
    if format.is_integer() || (-10..24).contains(&exponent) {
        return match u32::try_from(bits) {
            Ok(bits) if format == Format::F32 => f32::from_bits(bits).to_string(),
            _ => value.to_string(),
        };
    }
    let sign = if negative { "-" } else { "" };
    let fraction = Format::F64.to_f64((significand << (63 - top) << 1 >> 12) | 1023 << 52);
    if significand.is_power_of_two() {
        format!("{sign}2^{exponent}")
    } else {
        format!("{sign}{fraction}·2^{exponent}")
    }
}

fn seconds(nanoseconds: u64) -> String {
    let tenths_of_ms = nanoseconds / 100_000;
    if tenths_of_ms < 10_000 {
        format!("{}.{} ms", tenths_of_ms / 10, tenths_of_ms % 10)
    } else {
        format!("{}.{:02} s", tenths_of_ms / 10_000, tenths_of_ms % 10_000 / 100)
    }
}

/// Appends words, wrapped at `width`, lines after the first indented, and a line end.
fn hang(text: &mut String, words: &str, indent: usize, width: usize) {
    let room = width.saturating_sub(indent).max(30);
    for (number, paragraph) in words.split('\n').enumerate() {
        if number > 0 {
            text.push_str(&" ".repeat(indent));
        }
        let mut column = 0;
        for word in paragraph.split(' ') {
            let length = word.chars().count();
            if column > 0 && column + 1 + length > room {
                while text.ends_with(' ') {
                    text.pop();
                }
                text.push('\n');
                text.push_str(&" ".repeat(indent));
                column = 0;
            } else if column > 0 {
                text.push(' ');
                column += 1;
            }
            text.push_str(word);
            column += length;
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_stand_for_their_bits() {
        for (format, bits, text) in [
            (Format::F32, 0x3f80_0001, "1.0000001"),
            (Format::F32, 0x0000_0001, "2^-149"),
            (Format::F32, 0xf200_0001, "-1.0000001192092896·2^101"),
            (Format::BF16, 0x5e81, "1.0078125·2^62"),
            (Format::F32, 0x8000_0000, "-0"),
            (Format::F32, 0x7fc0_0000, "NaN"),
            (Format::F32, 0xff80_0000, "-inf"),
            (Format::F16, 0x0001, "2^-24"),
            (Format::F16, 0x0003, "1.5·2^-23"),
            (Format::F32, 0x4980_0000, "1048576"),
            (Format::E4M3, 0x7e, "448"),
            (Format::S32, 0xffff_ffff, "-1"),
            (Format::F64, 0x3ff0_0000_0000_0001, "1.0000000000000002"),
        ] {
            assert_eq!(decimal(format, bits), text, "{format} {bits:#x}");
        }
    }

    #[test]
    fn long_statements_hang_below_their_beginning() {
        let mut text = String::from("  probe  ");
        hang(&mut text, "one two three four five six seven eight nine ten", 9, 40);
        assert_eq!(text, "  probe  one two three four five six\n         seven eight nine ten\n");
    }

    #[test]
    fn durations_keep_their_unit() {
        assert_eq!(seconds(1_250_000), "1.2 ms");
        assert_eq!(seconds(12_345_000_000), "12.34 s");
    }
}
