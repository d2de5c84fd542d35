//! Throughput: a table of rates, and the operations without one.

use std::collections::BTreeSet;

use mxprobe_api::OperationId;

use super::{
    csv::Rows,
    form::Show,
    page::{Block, Cell, Column, Layout, Page, Row, Table, Tone},
    throughput_rows, words,
};
use crate::{
    findings::Outcome,
    plain::counted,
    plot::{Bar, Bars, Length},
    report::{
        BenchReport, Data, Kind, Peak, SPREAD_LIMIT_PERCENT, Throughput, ThroughputRun, TimedBy, Units, one_or_array,
    },
};

/// Measurements of throughput, one device after the other.
#[derive(Clone, Copy, Debug)]
pub struct Throughputs<'a>(pub &'a [BenchReport]);

impl Show for Throughputs<'_> {
    /// On a terminal without `evidence`, shows the fastest operation of each kind if many were measured.
    fn page(&self, evidence: bool) -> Page {
        let title = match self.0 {
            [one] => format!("throughput of {} {}", one.device.selector, one.device.name),
            several => format!("throughput of {}", counted(several.len(), "device")),
        };
        let mut blocks = Vec::new();
        for (number, report) in self.0.iter().enumerate() {
            if number > 0 {
                blocks.push(Block::Gap);
            }
            blocks.extend(page(report, evidence));
        }
        Page { title, blocks }
    }

    fn rows(&self) -> Rows {
        throughput_rows::rows(self.0)
    }

    fn json(&self) -> String {
        one_or_array(self.0)
    }
}

/// The columns for people.
const COLUMNS: [&str; 8] =
    ["operation", "units", "best", "median", "spread", "per cycle and unit", "of peak", "remarks"];

fn tone(run: &ThroughputRun) -> Tone {
    if run.is_unsteady() { Tone::Warning } else { Tone::Plain }
}

fn cells(found: &Throughput, run: &ThroughputRun) -> Vec<Cell> {
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
    if run.is_unsteady() {
        remarks.push("unsteady".to_owned());
    }
    if run.clock == TimedBy::Host && run.unit != "core" {
        remarks.push("host's clock".to_owned());
    }
    let words = [
        match run.units {
            Some(units) => counted(units as usize, &run.unit),
            None if is_all => format!("all {}s", run.unit),
            None => format!("1 {}", run.unit),
        },
        rate(&found.id, run.flop_per_s_best),
        rate(&found.id, run.flop_per_s_median),
        format!("{:.1} %", run.spread_percent),
        per_cycle(found, run),
        found.peak.as_ref().filter(|_| is_all).map_or_else(String::new, |peak| format!("{:.1} %", peak.ratio * 100.0)),
        remarks.join(", "),
    ];
    std::iter::once(Cell::code(found.id.to_string())).chain(words.map(Cell::words)).collect()
}

/// The rate of one unit in a cycle, with its peak if that is known.
fn per_cycle(found: &Throughput, run: &ThroughputRun) -> String {
    let Some(rate) = run.flop_per_cycle_and_unit else { return String::new() };
    let peak = found.peak.as_ref().and_then(|peak| peak.per_cycle.as_ref()).filter(|_| run.span == Units::All);
    peak.map_or_else(|| short(rate), |peak| format!("{} of {}", short(rate), peak.flop_per_cycle_and_unit))
}

fn measured(report: &BenchReport) -> impl Iterator<Item = &Throughput> + Clone {
    report.operations.iter().filter(|found| found.outcome == Outcome::Measured)
}

/// Formats a rate with three digits and a prefix, in FLOP/s, or in OP/s for integers.
pub(super) fn rate(id: &OperationId, flop_per_s: f64) -> String {
    let name = if id.is_integer() { "OP/s" } else { "FLOP/s" };
    let prefixes = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (unit, prefix) = prefixes.into_iter().find(|(unit, _)| flop_per_s >= *unit).unwrap_or((1.0, ""));
    format!("{} {prefix}{name}", short(flop_per_s / unit))
}

/// Formats a number with three digits, and more if it has more before the point.
pub(super) fn short(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// Remarks on the whole measurement.
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
    if measured(report).flat_map(|found| &found.runs).any(ThroughputRun::is_unsteady) {
        let words = format!(
            "unsteady: samples that differ by more than {SPREAD_LIMIT_PERCENT} % (longest less shortest, of the median)"
        );
        remarks.push((Tone::Warning, words));
    }
    if report.time.interrupted {
        remarks.push((Tone::Warning, "interrupted: the operations that are missing here were not measured".to_owned()));
    }
    remarks
}

/// The head, a table of rates, and the operations without one.
fn page(report: &BenchReport, evidence: bool) -> Vec<Block> {
    let device = &report.device;
    let name = format!("{}  {}", device.selector, device.name);
    let remarks = remarks(report);
    let on_screen = remarks.iter().map(|(tone, words)| match tone {
        Tone::Plain => Block::words(words),
        _ => Block::Facts(vec![("note".to_owned(), words.clone())]),
    });
    let screen = vec![Block::words(&name), Block::Inset(on_screen.collect())];
    let mut paper = vec![Block::heading(1, format!("Throughput of {name}"))];
    paper.extend(remarks.iter().map(|(tone, words)| Block::Words(*tone, words.clone())));
    paper.push(Block::Facts(words::origin(device, &report.host, &report.tool, &report.time)));
    paper.extend(plot(report).map(Block::Plot));
    let mut blocks = vec![Block::Screen(screen), Block::Paper(paper)];
    let rows: Vec<Row> = measured(report)
        .flat_map(|found| {
            found.runs.iter().map(|run| Row {
                tone: tone(run),
                mark: run.is_unsteady().then_some('!'),
                ..Row::plain(cells(found, run))
            })
        })
        .collect();
    if !rows.is_empty() {
        let last = COLUMNS.len() - 1;
        let column = |(at, head): (usize, &&str)| Column {
            head: (*head).to_owned(),
            is_number: at > 0 && at < last,
            ..Column::default()
        };
        let columns = COLUMNS.iter().enumerate().map(column).collect();
        let table = Block::Table(Table { columns, rows, layout: Layout::Rows });
        if evidence || measured(report).count() <= FEW {
            blocks.extend([Block::Gap, table]);
        } else {
            blocks.push(Block::Screen(vec![Block::Gap, fastest(report), Block::words(MORE)]));
            blocks.push(Block::Paper(vec![table]));
        }
    }
    let sources: BTreeSet<&str> =
        measured(report).filter_map(|found| found.peak.as_ref()).flat_map(Peak::sources).collect();
    if !sources.is_empty() {
        let lines = Block::Lines(sources.into_iter().map(str::to_owned).collect());
        blocks.push(Block::Paper(vec![Block::heading(2, "Peaks"), lines]));
    }
    let without = report.operations.iter().filter(|found| found.outcome != Outcome::Measured);
    let rows: Vec<Row> = without.clone().map(unmeasured).collect();
    if !rows.is_empty() {
        blocks.push(Block::Screen(vec![Block::list(on_terminal(without, evidence))]));
        let table = Block::table(["operation", "outcome", "reason"], rows);
        blocks.push(Block::Paper(vec![Block::heading(2, "Not measured"), table]));
    }
    blocks
}

/// The operations without a rate, a sentence for each; without `evidence`, one for all that have the same outcome and
/// reason if they are many.
fn on_terminal<'a>(without: impl Iterator<Item = &'a Throughput>, evidence: bool) -> Vec<String> {
    let mut alike: Vec<(Outcome, &str, Vec<&OperationId>)> = Vec::new();
    for found in without {
        let reason = found.reason.as_deref().unwrap_or("no reason");
        match alike.iter_mut().find(|(outcome, other, _)| *outcome == found.outcome && *other == reason) {
            Some((.., ids)) => ids.push(&found.id),
            None => alike.push((found.outcome, reason, vec![&found.id])),
        }
    }
    let sentences = alike.into_iter().flat_map(|(outcome, reason, ids)| {
        let names: Vec<String> = if evidence || ids.len() <= FEW {
            ids.iter().map(ToString::to_string).collect()
        } else {
            vec![counted(ids.len(), "operation")]
        };
        names.into_iter().map(move |name| format!("— {name}: {}: {reason}", outcome.name()))
    });
    sentences.collect()
}

/// The maximum number of operations listed one by one on a terminal.
const FEW: usize = 8;
/// The note below the fastest operations.
const MORE: &str = "the fastest of each; all: -v";

/// The fastest operation of each family and formats.
fn fastest(report: &BenchReport) -> Block {
    let mut best: Vec<(&Throughput, &ThroughputRun, usize)> = Vec::new();
    for (found, run) in measured(report).filter_map(|found| Some((found, found.best()?))) {
        let kind = |id: &OperationId| (id.family.clone(), id.a, id.b, id.d);
        match best.iter_mut().find(|(other, ..)| kind(&other.id) == kind(&found.id)) {
            Some((_, known, count)) if known.flop_per_s_best >= run.flop_per_s_best => *count += 1,
            Some(known) => *known = (found, run, known.2 + 1),
            None => best.push((found, run, 1)),
        }
    }
    let rows = best.into_iter().map(|(found, run, count)| {
        let peak = found.peak.as_ref().map_or_else(String::new, |peak| format!("{:.0} %", peak.ratio * 100.0));
        let ratio = found.ratio_to_yardstick.map_or_else(String::new, short);
        let words = [rate(&found.id, run.flop_per_s_best), ratio, peak, count.to_string()];
        let cells = std::iter::once(Cell::code(found.id.to_string())).chain(words.map(Cell::words)).collect();
        Row { tone: tone(run), mark: run.is_unsteady().then_some('!'), cells }
    });
    let heads = ["operation", "best", "× scalar", "of peak", "of"];
    let column = |(at, head): (usize, &str)| Column { head: head.to_owned(), is_number: at > 0, least: 0 };
    let columns = heads.into_iter().enumerate().map(column).collect();
    Block::Table(Table { columns, rows: rows.collect(), layout: Layout::Rows })
}

/// An operation without a rate.
fn unmeasured(found: &Throughput) -> Row {
    let tone = if found.outcome == Outcome::Failed { Tone::Failure } else { Tone::Muted };
    let reason = Cell::words(found.reason.clone().unwrap_or_default());
    Row { tone, ..Row::plain(vec![Cell::code(found.id.to_string()), Cell::words(found.outcome.name()), reason]) }
}

/// Plots the best rate of each operation; the mark is the vendor's peak.
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
    // Integers are not floating point, and one axis has one unit.
    let name = if measured(report).any(|found| found.id.is_integer()) { "OP/s" } else { "FLOP/s" };
    let title = "Best rate with operands in registers; the mark is the vendor's dense peak".into();
    (!bars.is_empty()).then(|| Bars { title, unit: format!("{prefix}{name}"), bars })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_operations_without_a_rate_for_one_reason_are_one_sentence_unless_all_is_wanted() {
        let without = |k: usize, outcome, reason: &str| {
            let id = format!("mma.m16n8k{k}.f32.f16.f16.f32").parse().unwrap();
            Throughput::without(id, outcome, reason)
        };
        let mut found: Vec<Throughput> =
            (1..=9).map(|k| without(k, Outcome::Skipped, "the budget was spent")).collect();
        found.insert(4, without(16, Outcome::Failed, "no answer"));
        let shown = on_terminal(found.iter(), false);
        assert_eq!(
            shown,
            ["— 9 operations: skipped: the budget was spent", "— mma.m16n8k16.f32.f16.f16.f32: failed: no answer"]
        );
        assert_eq!(on_terminal(found.iter(), true).len(), 10);
        assert_eq!(on_terminal(found[1..].iter(), false).len(), 9);
    }
}
