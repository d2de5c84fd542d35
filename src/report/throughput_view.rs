//! Throughput as text, as a page and as rows.

use std::fmt::Write as _;

use crate::plain::one_line;

use super::{
    BenchReport, Data, Kind, Outcome, Peak, Throughput, ThroughputRun, TimedBy, Units, csv,
    document::{Block, Cell, Document, Row, Tone},
    screen::{Style, hang},
    words,
};
use crate::plot::{Bar, Bars, Length};

/// For a terminal or a pipe: the head, a table of rates, and what was not measured.
pub(super) fn screen(reports: &[BenchReport], style: Style) -> String {
    let texts: Vec<String> = reports.iter().map(|report| screen_of(report, style)).collect();
    texts.join("\n")
}

fn screen_of(report: &BenchReport, style: Style) -> String {
    let device = &report.device;
    let mut text = format!("{}  {}\n", one_line(&device.selector), one_line(&device.name));
    for (tone, words) in remarks(report) {
        text.push_str(if tone == Tone::Plain { "  " } else { "  note: " });
        hang(&mut text, &words, if tone == Tone::Plain { 2 } else { 8 }, style.width);
    }
    let rows: Vec<[String; COLUMNS.len()]> =
        measured(report).flat_map(|found| found.runs.iter().map(|run| cells(found, run))).collect();
    if !rows.is_empty() {
        text.push('\n');
        let width = |column: usize| {
            rows.iter()
                .map(|row| &row[column])
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
                .max(COLUMNS[column].chars().count())
        };
        let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
        let mut line = |cells: &[&str]| {
            let padded = cells.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
                // Names to the left, numbers to the right.
                if at == 0 || at == COLUMNS.len() - 1 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            let _ = writeln!(text, "{}", padded.collect::<Vec<_>>().join("  ").trim_end());
        };
        line(&COLUMNS);
        for row in &rows {
            line(&row.each_ref().map(String::as_str));
        }
    }
    for found in report.operations.iter().filter(|found| found.outcome != Outcome::Measured) {
        text.push_str("— ");
        hang(&mut text, &unmeasured(found), 2, style.width);
    }
    text
}

/// The columns for people.
const COLUMNS: [&str; 8] =
    ["operation", "units", "best", "median", "spread", "per cycle and unit", "of peak", "remarks"];

fn cells(found: &Throughput, run: &ThroughputRun) -> [String; COLUMNS.len()] {
    let is_all = run.span == Units::All;
    let mut remarks = Vec::new();
    if found.yardstick {
        remarks.push("scalar units".to_owned());
    }
    if found.emulated == Some(true) {
        remarks.push("emulated".to_owned());
    }
    if let Some(ratio) = found.ratio_to_yardstick.filter(|_| is_all) {
        remarks.push(format!("{} × scalar units", short(ratio)));
    }
    if run.clock == TimedBy::Host && run.unit != "core" {
        remarks.push("host's clock".to_owned());
    }
    [
        one_line(&found.id.to_string()).into_owned(),
        match run.units {
            Some(units) => format!("{units} {}{}", one_line(&run.unit), if units == 1 { "" } else { "s" }),
            None if is_all => format!("all {}s", one_line(&run.unit)),
            None => format!("1 {}", one_line(&run.unit)),
        },
        rate(found, run.flop_per_s_best),
        rate(found, run.flop_per_s_median),
        format!("{:.1} %", run.spread_percent),
        per_cycle(found, run),
        found.peak.as_ref().filter(|_| is_all).map_or_else(String::new, |peak| format!("{:.1} %", peak.ratio * 100.0)),
        remarks.join(", "),
    ]
}

/// What one unit did in a cycle, beside what it could do where that is known.
fn per_cycle(found: &Throughput, run: &ThroughputRun) -> String {
    let Some(rate) = run.flop_per_cycle_and_unit else { return String::new() };
    let peak = found.peak.as_ref().and_then(|peak| peak.per_cycle.as_ref()).filter(|_| run.span == Units::All);
    peak.map_or_else(|| short(rate), |peak| format!("{} of {}", short(rate), peak.flop_per_cycle_and_unit))
}

fn measured(report: &BenchReport) -> impl Iterator<Item = &Throughput> + Clone {
    report.operations.iter().filter(|found| found.outcome == Outcome::Measured)
}

fn unmeasured(found: &Throughput) -> String {
    format!("{}: {}: {}", found.id, words::outcome(found.outcome), found.reason.as_deref().unwrap_or("no reason"))
}

/// Three digits and a prefix: operations a second, of floating point where they are.
fn rate(found: &Throughput, flop_per_s: f64) -> String {
    let name = if found.id.is_integer() { "OP/s" } else { "FLOP/s" };
    let prefixes = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (unit, prefix) = prefixes.into_iter().find(|(unit, _)| flop_per_s >= *unit).unwrap_or((1.0, ""));
    format!("{} {prefix}{name}", short(flop_per_s / unit))
}

/// Three digits, all of those before the point.
fn short(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// What is to be known of the whole.
fn remarks(report: &BenchReport) -> Vec<(Tone, String)> {
    let settings = &report.settings;
    let data = match settings.data {
        Data::Random => "random elements",
        Data::Small => "elements −1, 0 and 1",
        Data::Zeros => "zeros, which flatter",
    };
    let sample = words::seconds(settings.sample_ns);
    let mut remarks = vec![(
        Tone::Plain,
        format!(
            "operands in registers, {data}; best and median of {} samples of {sample}; a multiplication and an addition are two operations",
            settings.samples
        ),
    )];
    if report.device.emulated || report.device.kind != Kind::Hardware {
        remarks.push((Tone::Warning, format!("{}: these rates are not of a matrix unit", words::kind(&report.device))));
    }
    if report.time.interrupted {
        remarks.push((Tone::Warning, "interrupted: the operations that are missing here were not measured".to_owned()));
    }
    remarks
}

/// A page, or a document.
pub(super) fn document(reports: &[BenchReport]) -> Document {
    let title = match reports {
        [one] => format!("throughput of {} {}", one.device.selector, one.device.name),
        several => format!("throughput of {}", words::count(several.len(), "device")),
    };
    let mut blocks = Vec::new();
    for report in reports {
        page(report, &mut blocks);
    }
    Document { title, blocks }
}

fn page(report: &BenchReport, blocks: &mut Vec<Block>) {
    let device = &report.device;
    blocks.push(Block::heading(1, format!("Throughput of {}  {}", device.selector, device.name)));
    blocks.extend(remarks(report).into_iter().map(|(tone, text)| Block::Words(tone, text)));
    let mut facts = vec![("fingerprint".to_owned(), device.fingerprint.clone())];
    if let Some(driver) = &device.driver {
        facts.push(("driver".into(), format!("{} {}; API {}", driver.name, driver.version, driver.api_version)));
    }
    facts.extend(report.host.cpu.as_ref().map(|cpu| ("on".to_owned(), format!("{cpu}, {}", report.host.os))));
    facts.push(("by".into(), format!("{} {}", report.tool.name, report.tool.version_and_commit())));
    facts.push(("made".into(), format!("{}, {}", report.time.start, words::seconds(report.time.duration_ns))));
    blocks.push(Block::Facts(facts));
    blocks.extend(plot(report).map(Block::Plot));
    let rows: Vec<Row> = measured(report)
        .flat_map(|found| found.runs.iter().map(|run| cells(found, run)))
        .map(|cells| {
            let mut cells = cells.into_iter();
            let name = Cell::code(cells.next().unwrap_or_default());
            Row::plain(std::iter::once(name).chain(cells.map(Cell::words)).collect())
        })
        .collect();
    if !rows.is_empty() {
        blocks.push(Block::Table { head: COLUMNS.map(str::to_owned).into(), rows });
    }
    let sources: std::collections::BTreeSet<&str> =
        measured(report).filter_map(|found| found.peak.as_ref()).flat_map(Peak::sources).collect();
    if !sources.is_empty() {
        blocks.push(Block::heading(2, "Peaks"));
        blocks.push(Block::Lines(sources.into_iter().map(str::to_owned).collect()));
    }
    let without: Vec<Row> = report
        .operations
        .iter()
        .filter(|found| found.outcome != Outcome::Measured)
        .map(|found| {
            let reason = found.reason.clone().unwrap_or_default();
            let tone = if found.outcome == Outcome::Failed { Tone::Failure } else { Tone::Muted };
            let cells =
                vec![Cell::code(found.id.to_string()), Cell::words(words::outcome(found.outcome)), Cell::words(reason)];
            Row { tone, cells }
        })
        .collect();
    if !without.is_empty() {
        blocks.push(Block::heading(2, "Not measured"));
        blocks.push(Block::Table { head: ["operation", "outcome", "reason"].map(str::to_owned).into(), rows: without });
    }
}

/// The best rate of each operation; the mark is the vendor's peak.
fn plot(report: &BenchReport) -> Option<Bars> {
    let rates: Vec<(&Throughput, f64)> =
        measured(report).filter_map(|found| Some((found, found.best()?.flop_per_s_best))).collect();
    let largest = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let (unit, prefix) = if largest >= 1e12 { (1e12, "T") } else { (1e9, "G") };
    let digits = |rate: f64| (rate / unit * 1000.0).round() / 1000.0;
    let bars: Vec<Bar> = rates
        .into_iter()
        .map(|(found, rate)| Bar {
            label: found.id.to_string(),
            length: Length::Of(digits(rate)),
            mark: found.peak.as_ref().map(|peak: &Peak| digits(peak.flop_per_s)),
        })
        .collect();
    // Integers have no floating point, and one axis has one unit.
    let name = if measured(report).any(|found| found.id.is_integer()) { "OP/s" } else { "FLOP/s" };
    let title = "Best rate with operands in registers; the mark is the vendor's dense peak".into();
    (!bars.is_empty()).then(|| Bars { title, unit: format!("{prefix}{name}"), bars })
}

/// The columns for programs.
const FIELDS: [&str; 33] = [
    "schema",
    "tool_version",
    "start",
    "backend",
    "fingerprint",
    "device",
    "kind",
    "device_emulated",
    "driver",
    "driver_version",
    "data",
    "operation",
    "yardstick",
    "outcome",
    "reason",
    "span",
    "units",
    "unit",
    "clock",
    "chains",
    "steps",
    "samples",
    "best_ns",
    "median_ns",
    "spread_percent",
    "flop_per_s_best",
    "flop_per_s_median",
    "frequency_hz",
    "flop_per_cycle_and_unit",
    "emulated",
    "ratio_to_yardstick",
    "peak_flop_per_s",
    "peak_flop_per_cycle_and_unit",
];

/// Rows for spreadsheets, one a run; an operation that was not measured has one row without numbers.
pub(super) fn rows(reports: &[BenchReport]) -> String {
    let mut out = String::new();
    csv::row(&mut out, FIELDS);
    for report in reports {
        for found in &report.operations {
            let runs: Vec<Option<&ThroughputRun>> =
                if found.runs.is_empty() { vec![None] } else { found.runs.iter().map(Some).collect() };
            for run in runs {
                csv::row(&mut out, fields(report, found, run).iter().map(String::as_str));
            }
        }
    }
    out
}

fn fields(report: &BenchReport, found: &Throughput, run: Option<&ThroughputRun>) -> [String; FIELDS.len()] {
    let device = &report.device;
    let of = |field: &dyn Fn(&ThroughputRun) -> Option<String>| run.and_then(field).unwrap_or_default();
    let is_all = run.is_some_and(|run| run.span == Units::All);
    [
        report.schema.clone(),
        report.tool.version.clone(),
        report.time.start.clone(),
        device.backend.clone(),
        device.fingerprint.clone(),
        device.name.clone(),
        word(device.kind),
        device.emulated.to_string(),
        device.driver.as_ref().map(|driver| driver.name.clone()).unwrap_or_default(),
        device.driver.as_ref().map(|driver| driver.version.clone()).unwrap_or_default(),
        word(report.settings.data),
        found.id.to_string(),
        found.yardstick.to_string(),
        words::outcome(found.outcome).to_owned(),
        found.reason.clone().unwrap_or_default(),
        of(&|run| Some(word(run.span))),
        of(&|run| run.units.map(|units| units.to_string())),
        of(&|run| Some(run.unit.clone())),
        of(&|run| Some(word(run.clock))),
        of(&|run| Some(run.chains.to_string())),
        of(&|run| Some(run.steps.to_string())),
        of(&|run| Some(run.samples.to_string())),
        of(&|run| Some(run.best_ns.to_string())),
        of(&|run| Some(run.median_ns.to_string())),
        of(&|run| Some(run.spread_percent.to_string())),
        of(&|run| Some(run.flop_per_s_best.to_string())),
        of(&|run| Some(run.flop_per_s_median.to_string())),
        of(&|run| run.frequency_hz.map(|hz| hz.to_string())),
        of(&|run| run.flop_per_cycle_and_unit.map(|rate| rate.to_string())),
        found.emulated.map(|emulated| emulated.to_string()).unwrap_or_default(),
        found.ratio_to_yardstick.filter(|_| is_all).map(|ratio| ratio.to_string()).unwrap_or_default(),
        found.peak.as_ref().filter(|_| is_all).map(|peak| peak.flop_per_s.to_string()).unwrap_or_default(),
        found
            .peak
            .as_ref()
            .and_then(|peak| peak.per_cycle.as_ref())
            .filter(|_| is_all)
            .map(|peak| peak.flop_per_cycle_and_unit.to_string())
            .unwrap_or_default(),
    ]
}

/// The word that a value is in the JSON.
fn word(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
