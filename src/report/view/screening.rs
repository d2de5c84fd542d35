//! The output of `screen`, for people.

use super::{
    csv::Rows,
    form::Show,
    page::{Block, Cell, Column, Layout, Page, Row, Table, Tone},
    words,
};
use crate::{
    nan_bits::NanBits,
    plain::counted,
    report::{Health, ScreenReport, ScreenedOperation, Tally, WrongRecord, one_or_array, unit_noun},
};

/// Screens, one per device.
#[derive(Clone, Copy, Debug)]
pub struct Screens<'a>(pub &'a [ScreenReport]);

/// The fields of the rows.
const COLUMNS: &str = "schema tool_version start backend fingerprint device operation model unit pinned dots wrong_blocks \
     elapsed_ns failed";

impl Show for Screens<'_> {
    fn page(&self, _: bool) -> Page {
        let mut blocks = Vec::new();
        for report in self.0 {
            if !blocks.is_empty() {
                blocks.push(Block::Gap);
            }
            blocks.extend(one(report));
        }
        let title = match self.0 {
            [report] => title(report),
            reports => counted(reports.len() as u64, "screen"),
        };
        Page { title, blocks }
    }

    fn rows(&self) -> Rows {
        let mut rows = Vec::new();
        for report in self.0 {
            for found in &report.operations {
                let begin = || {
                    let mut row = words::run_fields(&report.schema, &report.tool, &report.time, &report.device);
                    row.extend([found.id.to_string(), found.model.clone().unwrap_or_default()]);
                    row
                };
                let failed = found.failed.clone().unwrap_or_default();
                for unit in &found.units {
                    let mut row = begin();
                    row.extend([
                        unit.unit.map(|unit| unit.to_string()).unwrap_or_default(),
                        unit.pinned.to_string(),
                        unit.dots.to_string(),
                        unit.wrong_blocks.to_string(),
                        unit.elapsed_ns.to_string(),
                        failed.clone(),
                    ]);
                    rows.push(row);
                }
                if found.units.is_empty() {
                    let mut row = begin();
                    row.extend(std::iter::repeat_n(String::new(), 5).chain([failed]));
                    rows.push(row);
                }
            }
        }
        Rows::new(COLUMNS, rows)
    }

    fn json(&self) -> String {
        one_or_array(self.0)
    }
}

fn title(report: &ScreenReport) -> String {
    format!("{}  {}: {}", report.device.selector, report.device.name, report.verdict)
}

fn one(report: &ScreenReport) -> Vec<Block> {
    let mut blocks: Vec<Block> = Block::titled(1, title(report)).into();
    if report.injected.is_some() {
        let words = "bits were inverted on purpose (`--error-inject`): this says nothing about the device";
        blocks.push(Block::Words(Tone::Warning, words.to_owned()));
    }
    if report.nan == NanBits::Any && report.operations.iter().any(|found| found.dots > 0) {
        let words = "without NaN, as `--nan any` asks, or by default for a driver that computes in software";
        blocks.push(Block::Words(Tone::Muted, words.to_owned()));
    }
    let mut facts = words::origin(&report.device, &report.host, &report.tool, &report.time);
    facts.extend(report.node.iter().map(|node| ("node".to_owned(), node.clone())));
    blocks.push(Block::Paper(vec![Block::Facts(facts)]));
    let number = |head: &str| Column { head: head.to_owned(), is_number: true, least: 0 };
    let text = |head: &str| Column { head: head.to_owned(), ..Column::default() };
    let columns = vec![text("operation"), text("model"), number("results"), number("a second a unit"), text("result")];
    let noun = unit_noun(&report.device.properties);
    let rows = report.operations.iter().map(|found| row(found, noun)).collect();
    blocks.push(Block::Inset(vec![Block::Table(Table { columns, rows, layout: Layout::Rows })]));
    let moved = |found: &&ScreenedOperation| found.units.iter().any(|unit| unit.unit.is_some() && !unit.pinned);
    if report.operations.iter().any(|found| moved(&found)) {
        let words = format!("work did not stay on its {noun}: a {noun} that is named may be another one");
        blocks.push(Block::Words(Tone::Warning, words));
    }
    for found in &report.operations {
        if let Some(wrong) = &found.wrong {
            blocks.push(Block::Gap);
            blocks.extend(Block::titled(2, format!("{}: {}", found.id, wrong.place.join(", "))));
            blocks.push(Block::Inset(map(wrong, noun)));
        }
    }
    blocks
}

fn row(found: &ScreenedOperation, noun: &str) -> Row {
    let (tone, result) = match found.health() {
        Some(Health::Wrong) => (Tone::Failure, found.wrong.as_ref().map(|wrong| wrong.place.join(", "))),
        Some(Health::Unknown) => (Tone::Failure, found.failed.clone()),
        Some(Health::Healthy) => (Tone::Plain, Some(healthy(found, noun))),
        None => (Tone::Muted, found.failed.clone()),
    };
    let rate = rate(found).map(|rate| format!("{:.0} M", rate / 1e6)).unwrap_or_default();
    let cells = vec![
        Cell::code(found.id.to_string()),
        Cell::code(found.model.clone().unwrap_or_default()),
        Cell::words(if found.dots > 0 { found.dots.to_string() } else { String::new() }),
        Cell::words(rate),
        Cell::words(result.unwrap_or_default()),
    ];
    Row { tone, ..Row::plain(cells) }
}

fn healthy(found: &ScreenedOperation, noun: &str) -> String {
    match found.units.as_slice() {
        [unit] if unit.unit.is_none() => "right".to_owned(),
        units => format!("right on {}", counted(units.len() as u64, noun)),
    }
}

/// Returns the results per second of a unit; with several units, those of the slowest.
fn rate(found: &ScreenedOperation) -> Option<f64> {
    let rates = found.units.iter().filter(|unit| unit.elapsed_ns > 0);
    rates.map(|unit| unit.dots as f64 / unit.elapsed_ns as f64 * 1e9).min_by(f64::total_cmp)
}

/// The maximum number of places that a terminal shows; the JSON has all.
const SHOWN: usize = 16;

fn map(wrong: &WrongRecord, noun: &str) -> Vec<Block> {
    let mut facts = vec![
        ("blocks".to_owned(), format!("{} with a wrong digest", wrong.blocks)),
        ("words".to_owned(), format!("{} wrong of {} that were looked at", wrong.words, wrong.looked_at)),
    ];
    if let Some(steps) = wrong.steps {
        let words = format!("words are the last of {steps} results, each of which the next instruction adds to");
        facts.push(("chain".to_owned(), words));
    }
    let mut tally = |name: &str, tallies: &[Tally]| {
        if tallies.is_empty() {
            return;
        }
        let shown = tallies.iter().take(SHOWN).map(|tally| format!("{} ({})", tally.at, tally.words));
        let mut text = shown.collect::<Vec<_>>().join(", ");
        if tallies.len() > SHOWN {
            text += &format!(", and {} more", tallies.len() - SHOWN);
        }
        facts.push((name.to_owned(), text));
    };
    tally(&format!("by {noun}"), &wrong.units);
    tally("by lane", &wrong.lanes);
    tally("by tile", &wrong.tiles);
    tally("by bit", &wrong.bits);
    tally("by exponent", &wrong.exponents);
    if let Some(again) = wrong.again {
        let words = match (again.wrong, again.blocks) {
            (0, _) => "right".to_owned(),
            (wrong, all) if wrong == all => "wrong each time".to_owned(),
            (wrong, all) => format!("wrong {wrong} times of {all}"),
        };
        let same = if again.same_bits { ", in the same bits" } else { "" };
        facts.push(("asked again".to_owned(), words + same));
    }
    let head = [noun, "pass", "block", "tile", "row", "column", "lane", "expected", "got", "mask"];
    let rows = wrong.first.iter().take(SHOWN).map(|word| {
        let place = [word.pass, word.block, word.tile, word.row, word.column, word.lane].map(|at| at.to_string());
        let unit = word.unit.map(|unit| unit.to_string()).unwrap_or_default();
        let words = [unit].into_iter().chain(place).map(Cell::words);
        let bits = [&word.expected, &word.got, &word.mask].map(Cell::code);
        Row::plain(words.chain(bits).collect())
    });
    vec![Block::Facts(facts), Block::table(head, rows)]
}
