//! The first screen of a report: at most a screen of 80 columns. Rows of operations with the same answers, notable
//! facts, and where to look further.

use std::collections::BTreeSet;

use mxprobe_analysis::summary::{scalars, unanimous};
use serde_json::Value;

use super::{
    groups::grouped,
    page::{Block, Cell, Column, Layout, Row, Table, Tone},
    style::wrap,
    words,
};
use crate::{
    findings::Outcome,
    plain::{counted, one_line},
    report::{Kind, OperationReport, Report, Summary, SummaryRow, Unit},
};

/// The width of the screen in columns.
const WIDTH: usize = 80;
/// The gap between the columns of the table.
const GAP: usize = 2;
/// The heads of the table; the star refers to the footnote.
const HEADS: [&str; 6] = ["sums of", "by", "at once", "bits*", "dropped", "result"];

/// Renders the first screen of a report.
pub(super) fn blocks(report: &Report) -> Vec<Block> {
    let made = report.summary.is_none().then(|| Summary::of(&report.operations));
    let summary = report.summary.as_ref().or(made.as_ref()).expect("one of the two");
    let mut blocks = head(report);
    blocks.extend(table(summary));
    blocks.extend(summary.notable.iter().flat_map(|fact| lines(Tone::Warning, "! ", &fact.text)));
    let facts = [common(&report.operations), scalar_facts(&report.operations)];
    blocks.extend(facts.iter().flatten().flat_map(|fact| lines(Tone::Plain, "", fact)));
    blocks.extend(unfinished(report));
    blocks.push(Block::Words(Tone::Muted, more(summary)));
    blocks
}

/// Wraps words to the screen's width, indenting the lines after the first.
fn lines(tone: Tone, mark: &str, text: &str) -> Vec<Block> {
    let text = one_line(text);
    let is_one = mark.chars().count() + text.chars().count() <= WIDTH;
    let mut wrapped = wrap(&text, if is_one { WIDTH } else { WIDTH - 2 }).into_iter();
    let first = wrapped.next().map(|line| Block::Words(tone, format!("{mark}{line}")));
    let rest: Vec<Block> = wrapped.map(|line| Block::Words(tone, line)).collect();
    let rest = (!rest.is_empty()).then_some(Block::Inset(rest));
    first.into_iter().chain(rest).collect()
}

fn head(report: &Report) -> Vec<Block> {
    let device = &report.device;
    let name = one_line(&format!("{}  {}", device.selector, device.name)).into_owned();
    let counts =
        format!("{}, {}", counted(report.operations.len(), "operation"), words::seconds(report.time.duration_ns));
    let room = WIDTH.saturating_sub(name.chars().count());
    let is_beside = counts.chars().count() + GAP <= room;
    let first = if is_beside { format!("{name}{counts:>room$}") } else { name };
    let mut second = vec![match device.kind {
        Kind::Model if !device.emulated => "a model: nothing was measured on silicon".to_owned(),
        _ => words::kind(device).to_owned(),
    }];
    second.extend(device.driver.as_ref().map(|driver| format!("driver {}", words::driver(driver))));
    second.extend(
        report.host.cpu.clone().filter(|cpu| device.kind != Kind::Model && !device.name.contains(cpu.as_str())),
    );
    second.extend((!is_beside).then_some(counts));
    let notes = report.notes.iter().flat_map(|note| lines(Tone::Warning, "! ", note));
    lines(Tone::Strong, "", &first).into_iter().chain(lines(Tone::Muted, "", &second.join("; "))).chain(notes).collect()
}

/// Renders the rows, and the footnote for the star.
fn table(summary: &Summary) -> Vec<Block> {
    if summary.rows.is_empty() {
        return Vec::new();
    }
    let cells: Vec<[String; 6]> = summary.rows.iter().map(cells).collect();
    let width = |at: usize| {
        let longest = cells.iter().map(|cells| cells[at].chars().count()).max().unwrap_or(0);
        longest.max(HEADS[at].chars().count())
    };
    let used: usize = (0..HEADS.len()).filter(|at| *at != 1).map(|at| width(at) + GAP).sum();
    let room = WIDTH.saturating_sub(used).max(HEADS[1].len());
    let rows = cells.into_iter().zip(&summary.rows).map(|(mut cells, row)| {
        cells[1] = fitted(&row.families, row.shape.as_deref(), room);
        Row {
            tone: if row.is_short() { Tone::Warning } else { Tone::Plain },
            ..Row::plain(cells.into_iter().map(Cell::words).collect())
        }
    });
    let column =
        |head: &str| Column { head: head.to_owned(), is_number: head == "at once" || head == "bits*", least: 0 };
    let table =
        Table { columns: HEADS.iter().map(|head| column(head)).collect(), rows: rows.collect(), layout: Layout::Rows };
    let is_float = summary.rows.iter().any(|row| !row.is_integer());
    let note = "* fraction bits kept below the largest term; f32 has 23, exact loses none";
    let note = is_float.then(|| Block::Words(Tone::Muted, note.to_owned()));
    std::iter::once(Block::Table(table)).chain(note).collect()
}

/// Formats a row as the cells of the table.
fn cells(row: &SummaryRow) -> [String; 6] {
    let unknown = || "?".to_owned();
    let by = fitted(&row.families, row.shape.as_deref(), WIDTH);
    [
        row.sums(),
        by,
        row.products_at_once.map_or_else(unknown, words::at_once),
        row.bits_kept.map_or_else(unknown, words::bits_kept),
        words::dropped(row).to_owned(),
        words::result(row),
    ]
}

/// Lists families, with the shape if the row is for one shape; families that do not fit are counted.
fn fitted(families: &[String], shape: Option<&str>, room: usize) -> String {
    let tail = shape.map_or_else(String::new, |shape| format!(" {shape}"));
    for shown in (1..=families.len()).rev() {
        let more = if shown < families.len() { format!(" +{}", families.len() - shown) } else { String::new() };
        let text = format!("{}{more}{tail}", families[..shown].join(" "));
        if text.chars().count() <= room || shown == 1 {
            return text;
        }
    }
    tail
}

/// Describes unsurprising facts that hold for every operation: subnormals kept, one NaN.
fn common(operations: &[OperationReport]) -> Option<String> {
    let matrix = || operations.iter().filter(|report| report.operation.id.family != crate::scalars::FAMILY);
    let is_kept = |probe: &str| unanimous(matrix(), probe).is_some_and(|value| value == "kept");
    let mut facts = Vec::new();
    if ["subnormals.a", "subnormals.b", "subnormals.c", "subnormals.d"].into_iter().all(is_kept) {
        facts.push("subnormals kept".to_owned());
    }
    let of_f32 = matrix().filter(|report| report.operation.id.d.name() == "f32");
    let nans: BTreeSet<&str> = of_f32
        .filter_map(|report| report.finding("specials.nan")?.value.as_ref()?.as_object())
        .flat_map(|parts| parts.values().filter_map(Value::as_str))
        .collect();
    if let [nan] = Vec::from_iter(nans)[..] {
        facts.push(format!("every NaN of f32 becomes {nan}"));
    }
    (!facts.is_empty()).then(|| facts.join("; "))
}

/// Describes the scalar arithmetic next to the matrix unit, in a sentence.
fn scalar_facts(operations: &[OperationReport]) -> Option<String> {
    let scalars = scalars(operations);
    let formats: Vec<&str> = scalars.iter().map(|report| report.operation.id.d.name()).collect();
    let word = |report: &OperationReport, probe: &str| {
        report
            .finding(probe)
            .and_then(|finding| finding.value.as_ref()?.as_str().map(str::to_owned))
            .unwrap_or_default()
    };
    let mut odd: Vec<(String, Vec<&str>)> = Vec::new();
    for report in &scalars {
        let mut facts = Vec::new();
        for finding in &report.findings {
            let Some(function) = finding.probe.strip_prefix("function.") else { continue };
            let value = word(report, &finding.probe);
            if !["RNE", "RZ", "exact"].iter().any(|right| value.starts_with(right))
                && finding.outcome == Outcome::Measured
            {
                facts.push(format!("{function} not correctly rounded"));
            }
        }
        if word(report, "function.fma").contains("separate") {
            facts.push("fma not fused".to_owned());
        }
        if word(report, "function.multiply_add").contains("fused") {
            facts.push("a·b + c contracted".to_owned());
        }
        if word(report, "subnormals.inputs") == "zero" {
            facts.push("subnormals read as zero".to_owned());
        }
        for fact in facts {
            let format = report.operation.id.d.name();
            match odd.iter_mut().find(|(known, _)| *known == fact) {
                Some((_, formats)) => formats.push(format),
                None => odd.push((fact, vec![format])),
            }
        }
    }
    if formats.is_empty() {
        return None;
    }
    let mut facts: Vec<String> = odd
        .into_iter()
        .map(|(fact, of)| if of.len() == formats.len() { fact } else { format!("{fact} ({})", of.join(" ")) })
        .collect();
    if !facts.iter().any(|fact| fact.contains("not correctly rounded")) {
        facts.insert(0, "correctly rounded".to_owned());
    }
    Some(format!("scalar {}: {}", formats.join(" "), facts.join(", ")))
}

/// Lists what was not asked, or ended without an answer: one line for each reason.
fn unfinished(report: &Report) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for operation in &report.operations {
        let ended = operation.findings.iter().find(|finding| finding.outcome == Outcome::Failed);
        if let Some(reason) = ended.and_then(|finding| finding.reason.as_deref()) {
            let id = operation.operation.id.to_string();
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, ids)) => ids.push(id),
                None => reasons.push((reason, vec![id])),
            }
        }
    }
    for (reason, ids) in reasons {
        let more = if ids.len() > 1 { format!(" and {} more", ids.len() - 1) } else { String::new() };
        blocks.extend(lines(Tone::Failure, "! ", &format!("failed: {}{more}: {reason}", ids[0])));
    }
    for (what, refusal) in grouped(&report.refusals) {
        let names: Vec<&str> = what.split(", ").collect();
        let more = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
        blocks.extend(lines(Tone::Muted, "- ", &format!("not used: {}{more}: {}", names[0], refusal.reason)));
    }
    blocks.extend(words::resumed(&report.resumed).into_iter().flat_map(|words| lines(Tone::Muted, "- ", &words)));
    if report.time.interrupted {
        blocks.extend(lines(Tone::Warning, "! ", words::INTERRUPTED));
    }
    blocks
}

/// The glossary's entries about the column of bits.
const WHY: &str = "alignment";

/// Returns the hint on where to look further.
fn more(summary: &Summary) -> String {
    let example = summary.rows.iter().find(|row| row.is_short()).or(summary.rows.first());
    let example = example.and_then(|row| row.operations.first()).map_or_else(String::new, |id| {
        let matrix = summary.rows.iter().any(|row| row.unit == Unit::Matrix);
        let family = if matrix { &id.family } else { "dot" };
        format!("   one: --op '{family}*{}*'", id.a)
    });
    format!("more: -v{example}   why: mxprobe explain {WHY}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{AtOnce, BitsKept};

    #[test]
    fn families_that_do_not_fit_are_counted() {
        let families: Vec<String> = ["mma", "wgmma", "wmma"].map(str::to_owned).into();
        assert_eq!(fitted(&families, None, 14), "mma wgmma wmma");
        assert_eq!(fitted(&families, None, 13), "mma wgmma +1");
        assert_eq!(fitted(&families[..1], Some("m8n8k4"), 80), "mma m8n8k4");
        assert_eq!(words::at_once(AtOnce::All), "all");
        assert_eq!(words::bits_kept(BitsKept::AtLeast(20)), "≥20");
    }

    #[test]
    fn the_hint_names_an_entry_of_the_glossary() {
        assert!(!crate::glossary::explain(WHY).is_empty(), "{WHY}");
        assert!(crate::glossary::explain("no such word").is_empty());
    }
}
