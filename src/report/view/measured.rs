//! Comparisons of measurements: rates with their ratios, errors with their bounds.

use super::{
    comparisons_words::describe,
    csv::Rows,
    form::Show,
    page::{Block, Cell, Column, Layout, Page, Row, Table, Tone},
    throughput::{rate, short},
};
use crate::{
    gemm::{Interval, Point},
    plain::counted,
    report::{BenchComparison, ComparedCurve, ComparedRate, GrowthComparison, Rate, Side, Units, to_json},
};

/// Renders the sides, and the verdict on whether they differ.
fn head(title: &str, sides: &[Side], verdict: (bool, String)) -> Vec<Block> {
    let tone = if verdict.0 { Tone::Warning } else { Tone::Plain };
    vec![
        Block::Paper(vec![Block::heading(1, title)]),
        Block::Facts(sides.iter().map(|side| (side.label.clone(), describe(side))).collect()),
        Block::Words(tone, verdict.1),
    ]
}

/// Builds a table whose columns after the first are numbers.
fn numbers(heads: Vec<String>, rows: Vec<Row>) -> Block {
    let column = |(at, head)| Column { head, is_number: at > 0, least: 0 };
    Block::Table(Table { columns: heads.into_iter().enumerate().map(column).collect(), rows, layout: Layout::Rows })
}

fn names(sides: &[Side]) -> String {
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    names.join(", ")
}

impl Show for BenchComparison {
    fn page(&self, _: bool) -> Page {
        let title = format!("Throughput of {}", names(&self.sides));
        let differing = self.rates.iter().filter(|rate| rate.differ).count();
        let verdict = match (self.rates.len(), differing) {
            (0, _) => "no operation was measured on two sides".to_owned(),
            (all, 0) => format!("no difference: the samples of {} overlap", counted(all, "rate")),
            (all, some) => {
                format!("{some} of {} differ: no sample of one side is as fast as the other", counted(all, "rate"))
            }
        };
        let mut blocks = head(&title, &self.sides, (self.differ, verdict));
        let others = self.sides.iter().skip(1);
        let heads = ["operation".to_owned(), "units".to_owned()].into_iter();
        let heads = heads.chain(self.sides.iter().map(|side| side.label.clone()));
        let heads = heads.chain(others.map(|side| format!("{}/{} (samples)", side.label, self.sides[0].label)));
        let heads = heads.chain([String::new()]);
        let row = |compared: &ComparedRate| {
            let span = if compared.span == Units::One { "one" } else { "all" };
            let rates = compared
                .rates
                .iter()
                .map(|of| of.as_ref().map_or_else(|| "-".to_owned(), |of| rate(&compared.id, of.flop_per_s_median)));
            let ratios = compared.rates.iter().skip(1).map(|of| of.as_ref().map_or_else(|| "-".to_owned(), ratio));
            let cells = [Cell::code(compared.id.to_string()), Cell::words(span)].into_iter();
            let cells = cells.chain(rates.map(Cell::words)).chain(ratios.map(Cell::words));
            let cells = cells.chain([Cell::words(if compared.differ { "differs" } else { "" })]).collect();
            let (tone, mark) = if compared.differ { (Tone::Warning, Some('!')) } else { (Tone::Plain, None) };
            Row { tone, mark, cells }
        };
        if !self.rates.is_empty() {
            blocks.extend([Block::Gap, numbers(heads.collect(), self.rates.iter().map(row).collect())]);
        }
        for side in &self.sides {
            let own: Vec<String> =
                self.alone.iter().filter(|alone| alone.side == side.label).map(|alone| alone.id.to_string()).collect();
            if !own.is_empty() {
                let words = format!("{} measured by {} only", counted(own.len(), "operation"), side.label);
                blocks.push(Block::Screen(vec![Block::words(&words)]));
                blocks.push(Block::Paper(vec![Block::Details { summary: words, blocks: vec![Block::Lines(own)] }]));
            }
        }
        blocks.push(Block::words(
            "medians; in parentheses the slowest sample over the fastest of the first side, and the fastest over the slowest",
        ));
        Page { title, blocks }
    }

    fn rows(&self) -> Rows {
        let columns = "operation span side source fingerprint flop_per_s_median flop_per_s_low flop_per_s_high \
            spread_percent ratio ratio_low ratio_high differ";
        let mut rows = Vec::new();
        for compared in &self.rates {
            for (side, of) in self.sides.iter().zip(&compared.rates) {
                let Some(of) = of else { continue };
                let ratio = |field: fn(&crate::report::Ratio) -> f64| {
                    of.ratio.as_ref().map_or_else(String::new, |ratio| field(ratio).to_string())
                };
                rows.push(vec![
                    compared.id.to_string(),
                    if compared.span == Units::One { "one" } else { "all" }.to_owned(),
                    side.label.clone(),
                    side.source.clone(),
                    side.fingerprint.clone(),
                    of.flop_per_s_median.to_string(),
                    of.flop_per_s_low.to_string(),
                    of.flop_per_s_high.to_string(),
                    of.spread_percent.to_string(),
                    ratio(|ratio| ratio.median),
                    ratio(|ratio| ratio.low),
                    ratio(|ratio| ratio.high),
                    compared.differ.to_string(),
                ]);
            }
        }
        Rows::new(columns, rows)
    }

    fn json(&self) -> String {
        to_json(self)
    }
}

/// Formats a ratio, such as `1.08 (1.01–1.15)`.
fn ratio(of: &Rate) -> String {
    of.ratio.map_or_else(String::new, |ratio| {
        format!("{} ({}–{})", short(ratio.median), short(ratio.low), short(ratio.high))
    })
}

impl Show for GrowthComparison {
    /// Renders the errors at the greatest length that all sides have; with `evidence`, and on paper, at every length.
    fn page(&self, evidence: bool) -> Page {
        let title = format!("Error against n: {}", names(&self.sides));
        let differing =
            self.curves.iter().filter(|curve| curve.points.iter().any(|row| ComparedCurve::differs(row))).count();
        let verdict = match (self.curves.len(), differing) {
            (0, _) => "no curve is common to two sides".to_owned(),
            (all, 0) => format!("no difference: {} have the same errors", counted(all, "curve")),
            (all, some) => format!("{some} of {} differ", counted(all, "curve")),
        };
        let mut blocks = head(&title, &self.sides, (self.differ, verdict));
        blocks.extend(self.notes.iter().map(|note| Block::Words(Tone::Warning, note.clone())));
        for interval in [Interval::Positive, Interval::Centred] {
            let curves: Vec<&ComparedCurve> = self.curves.iter().filter(|curve| curve.interval == interval).collect();
            if curves.is_empty() {
                continue;
            }
            let words =
                format!("elements in {}: largest error, componentwise, of |A|·|B|, and its bound", interval.name());
            blocks.push(Block::Gap);
            blocks.extend(Block::titled(2, words));
            let whole = table(self, curves.iter().copied(), |_| true);
            if evidence {
                blocks.push(whole);
            } else {
                let units = curves.iter().copied().filter(|curve| curve.what_if.is_none());
                blocks.push(Block::Screen(vec![table(self, units, |row| row.is_last)]));
                blocks.push(Block::Paper(vec![whole]));
            }
        }
        if !self.alone.is_empty() {
            let words = format!("{} on one side only", counted(self.alone.len(), "curve"));
            blocks.push(Block::Screen(vec![Block::words(&words)]));
            blocks.push(Block::Paper(vec![Block::Details { summary: words, blocks: vec![Block::list(&self.alone)] }]));
        }
        if !evidence {
            blocks.push(Block::Screen(vec![Block::words("each at the greatest n that all have; every n: -v")]));
        }
        Page { title, blocks }
    }

    fn rows(&self) -> Rows {
        let columns = "curve what_if interval n side source fingerprint operation componentwise normwise bound";
        let mut rows = Vec::new();
        for curve in &self.curves {
            for points in &curve.points {
                for ((side, point), operation) in self.sides.iter().zip(points).zip(&curve.operations) {
                    let Some(point) = point else { continue };
                    rows.push(vec![
                        curve.name.clone(),
                        curve.what_if.map_or_else(String::new, |cause| cause.words().to_owned()),
                        curve.interval.name().to_owned(),
                        point.n.to_string(),
                        side.label.clone(),
                        side.source.clone(),
                        side.fingerprint.clone(),
                        operation.clone().unwrap_or_default(),
                        point.componentwise.to_string(),
                        point.normwise.to_string(),
                        point.bound.map_or_else(String::new, |bound| bound.to_string()),
                    ]);
                }
            }
        }
        Rows::new(columns, rows)
    }

    fn json(&self) -> String {
        to_json(self)
    }
}

/// The position of a row of points in a curve.
struct At {
    /// Whether this is the greatest length that all sides have.
    is_last: bool,
}

fn table<'a>(
    compared: &GrowthComparison,
    curves: impl Iterator<Item = &'a ComparedCurve>,
    wanted: fn(&At) -> bool,
) -> Block {
    let sides = compared.sides.iter().flat_map(|side| [side.label.clone(), format!("≤ {}", side.label)]);
    let ratios = compared.sides.iter().skip(1).map(|side| format!("{}/{}", side.label, compared.sides[0].label));
    let heads = ["curve", "n"].map(str::to_owned).into_iter().chain(sides).chain(ratios).collect();
    let mut rows = Vec::new();
    for curve in curves {
        let shared = |row: &Vec<Option<Point>>| row.iter().flatten().count() >= 2;
        let most = curve.points.iter().map(|row| row.iter().flatten().count()).max().unwrap_or(0);
        let last = curve.points.iter().rposition(|row| row.iter().flatten().count() == most);
        for (at, points) in curve.points.iter().enumerate().filter(|(_, row)| shared(row)) {
            if !wanted(&At { is_last: last == Some(at) }) {
                continue;
            }
            let what_if = curve.what_if.map_or_else(String::new, |cause| format!(", if {}", cause.words()));
            let mut cells = vec![format!("{}{what_if}", curve.name), ComparedCurve::n(points).to_string()];
            let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| format!("{number:.2e}"));
            for point in points {
                cells.push(number(point.map(|point| point.componentwise)));
                cells.push(number(point.and_then(|point| point.bound)));
            }
            let first = points.first().copied().flatten();
            cells.extend(points.iter().skip(1).map(|point| {
                let ratio = point.zip(first).map(|(own, first)| own.componentwise / first.componentwise);
                ratio.filter(|ratio| ratio.is_finite()).map_or_else(|| "-".to_owned(), short)
            }));
            let mark = ComparedCurve::differs(points).then_some('!');
            rows.push(Row { mark, ..Row::plain(cells.into_iter().map(Cell::words).collect()) });
        }
    }
    numbers(heads, rows)
}
