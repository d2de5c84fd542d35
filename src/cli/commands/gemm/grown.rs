//! The page of `gemm --experiment growth`.

use std::{path::Path, time::Duration};

use crate::{
    gemm::{Curve, Fit, Interval},
    report::{Block, Cell, Column, GrowthReport, Layout, Page, Row, Rows, Show, Table, Tone, growth_chart, to_json},
};

/// The growth of errors on one or more devices.
pub(in crate::cli::commands) struct Grown<'a> {
    pub(in crate::cli::commands) reports: &'a [GrowthReport],
    /// The file that it was saved to, if the page names it.
    pub(in crate::cli::commands) saved: Option<&'a Path>,
}

/// The title of the experiment.
pub(super) fn title(device: &str) -> String {
    format!("{device}: error against n")
}

const INTERVALS: [Interval; 2] = [Interval::Positive, Interval::Centred];

/// The name of a curve, with the change of the unit if there is one.
fn curve_name(curve: &Curve) -> String {
    let what_if = curve.what_if.map_or(String::new(), |cause| format!(", if {}", cause.words()));
    format!("{}{what_if}", curve.name)
}

impl Show for Grown<'_> {
    /// On a terminal, the errors at the greatest n. With `evidence`, and on paper, also a table for each interval with
    /// a column for each curve.
    fn page(&self, evidence: bool) -> Page {
        let mut blocks = Vec::new();
        for report in self.reports {
            let title = title(&report.device.name);
            let paper = vec![Block::heading(1, &title), Block::Chart(growth_chart(&report.growth, &title))];
            blocks.push(Block::Paper(paper));
            blocks.extend(longest(report));
            blocks.extend(bounds(report, evidence));
            if evidence {
                blocks.extend(tables(report));
            } else {
                blocks.push(Block::Paper(tables(report)));
            }
            let growth = &report.growth;
            blocks.extend(
                growth
                    .cause
                    .iter()
                    .map(|cause| Block::Words(Tone::Strong, format!("what makes the error grow on (0, 1]: {cause}"))),
            );
            let seconds = Duration::from_nanos(report.time.duration_ns).as_secs_f64();
            let missing =
                if report.time.interrupted { "; interrupted, the other points were not computed" } else { "" };
            blocks
                .push(Block::words(format!("{} multiply-adds on the unit, {seconds:.1} s{missing}", growth.products)));
        }
        if let Some(path) = self.saved {
            let lines =
                [("saved", path.display().to_string()), ("next", format!("mxprobe compare {} OTHER", path.display()))];
            let lines = lines.into_iter().map(|(name, words)| (name.to_owned(), words)).collect();
            blocks.push(Block::Screen(vec![Block::Facts(lines)]));
        }
        let title = match self.reports {
            [one] => title(&one.device.name),
            several => format!("error against n of {} devices", several.len()),
        };
        Page { title, blocks }
    }

    fn rows(&self) -> Rows {
        let columns = "curve operation what_if interval n componentwise normwise bound bound_any bound_probable \
                       published published_probable device fingerprint";
        let mut rows = Vec::new();
        for report in self.reports {
            for curve in &report.growth.curves {
                rows.extend(curve.points.iter().map(|point| {
                    let number = |of: Option<f64>| of.map_or_else(String::new, |of| of.to_string());
                    let bounds = point.bounds.as_ref();
                    vec![
                        curve.name.clone(),
                        curve.operation.clone().unwrap_or_default(),
                        curve.what_if.map_or_else(String::new, |cause| cause.words().to_owned()),
                        curve.interval.name().to_owned(),
                        point.n.to_string(),
                        point.componentwise.to_string(),
                        point.normwise.to_string(),
                        number(point.bound),
                        number(bounds.and_then(|bounds| bounds.any)),
                        number(bounds.and_then(|bounds| bounds.probable)),
                        number(bounds.map(|bounds| bounds.published.dominant)),
                        number(bounds.map(|bounds| bounds.published.dominant_probable)),
                        report.device.name.clone(),
                        report.device.fingerprint.clone(),
                    ]
                }));
            }
        }
        Rows::new(columns, rows)
    }

    fn json(&self) -> String {
        match self.reports {
            [one] => to_json(one),
            several => to_json(&several),
        }
    }
}

/// A row for each curve: its error at the greatest n and the bound, on both intervals.
fn longest(report: &GrowthReport) -> Vec<Block> {
    let curves = &report.growth.curves;
    let named: Vec<&Curve> =
        curves.iter().filter(|curve| curve.interval == INTERVALS[0] && curve.what_if.is_none()).collect();
    let mut lengths: Vec<u64> = named.iter().filter_map(|curve| curve.points.last()).map(|point| point.n).collect();
    lengths.dedup();
    let rows = named.iter().map(|curve| {
        let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| format!("{number:.2e}"));
        let numbers = INTERVALS.iter().flat_map(|interval| {
            let same = |other: &&Curve| other.interval == *interval && curve_name(other) == curve_name(curve);
            let point = curves.iter().find(same).and_then(|curve| curve.points.last());
            [number(point.map(|point| point.componentwise)), number(point.and_then(|point| point.bound))]
        });
        Row::plain(std::iter::once(curve_name(curve)).chain(numbers).map(Cell::words).collect())
    });
    let heads = ["", "(0, 1]", "at most", "(-0.5, 0.5]", "at most"];
    let column = |(at, head): (usize, &str)| Column { head: head.to_owned(), is_number: at > 0, least: 0 };
    let columns = heads.into_iter().enumerate().map(column).collect();
    let at = match lengths.as_slice() {
        [n] => format!(" at n = {n}"),
        _ => String::new(),
    };
    vec![
        Block::words(format!("{}: largest error{at}, of |A|·|B|; every n: -v", report.device.name)),
        Block::Table(Table { columns, rows: rows.collect(), layout: Layout::Rows }),
    ]
}

/// A row for each curve: its other bounds at the greatest n, and the exponents with which errors and bounds grow with
/// n. Covers (0, 1], and with `evidence` also the other interval.
fn bounds(report: &GrowthReport, evidence: bool) -> Vec<Block> {
    let curves = |interval: Interval| {
        let of = move |curve: &&Curve| curve.interval == interval && curve.what_if.is_none();
        report.growth.curves.iter().filter(of).filter_map(|curve| Some((curve, curve.points.last()?.bounds?)))
    };
    let mut blocks = Vec::new();
    for interval in INTERVALS {
        let rows: Vec<Row> = curves(interval)
            .map(|(curve, bounds)| {
                let number = |of: Option<f64>| of.map_or_else(|| "-".to_owned(), |of| format!("{of:.2e}"));
                let power = |of: Option<Fit>| of.map_or_else(|| "-".to_owned(), |of| exponent(of.exponent));
                let (published, fits) = (bounds.published, curve.fits);
                let cells = [
                    curve_name(curve),
                    number(bounds.any),
                    number(bounds.probable),
                    number(Some(published.dominant)),
                    power(fits.error),
                    power(fits.any),
                ];
                Row::plain(cells.map(Cell::words).to_vec())
            })
            .collect();
        if rows.is_empty() {
            continue;
        }
        let heads = ["", "any A, B", "mean 0", "paper", "n^x", "at most"];
        let column = |(at, head): (usize, &str)| Column { head: head.to_owned(), is_number: at > 0, least: 0 };
        let columns = heads.into_iter().enumerate().map(column).collect();
        let fitted = curves(interval).find_map(|(curve, _)| curve.fits.error);
        let fitted = fitted
            .map_or_else(String::new, |fit| format!(", fitted to {} n from {} to {}", fit.points, fit.from, fit.to));
        let words = format!(
            "bounds for elements in {}: for any A and B; if errors had mean zero, with probability {}; as published for a unit \
             that rounds each sum to f32; x of error ~ n^x{fitted}, and of the bound for any A and B",
            interval.name(),
            report.growth.probability.unwrap_or(0.99),
        );
        let table = Block::Table(Table { columns, rows, layout: Layout::Rows });
        let both = vec![Block::words(words), table];
        if interval == Interval::Positive || evidence {
            blocks.extend(both);
        } else {
            blocks.push(Block::Paper(both));
        }
    }
    blocks
}

/// Formats an exponent with three digits.
fn exponent(value: f64) -> String {
    if value.abs() < 0.1 { format!("{value:.2e}") } else { format!("{value:.3}") }
}

/// A table for each interval, a column for each curve.
fn tables(report: &GrowthReport) -> Vec<Block> {
    let mut blocks = Vec::new();
    for interval in INTERVALS {
        let curves: Vec<&Curve> = report.growth.curves.iter().filter(|curve| curve.interval == interval).collect();
        let head = format!("elements in {}: largest error, componentwise, of |A|·|B|", interval.name());
        blocks.extend(Block::titled(2, head));
        let names = curves.iter().enumerate().map(|(at, curve)| {
            let operation = curve.operation.as_deref().unwrap_or("every product and sum rounded to f32");
            let name = format!("{} ({operation})", curve_name(curve));
            Row::plain(vec![Cell::words(letter(at)), Cell::words(name)])
        });
        let names = Block::laid_out(Layout::Bare, ["column", "curve"], names);
        blocks.extend([Block::Inset(vec![names, errors(&curves)]), Block::Gap]);
    }
    blocks
}

/// A row for each length and a column for each curve, with a dash after the end of a curve.
fn errors(curves: &[&Curve]) -> Block {
    let lengths = curves.first().map_or(&[][..], |curve| &curve.points).iter().enumerate();
    let rows = lengths.map(|(row, point)| {
        let error = |curve: &&Curve| curve.points.get(row).map(|point| format!("{:.2e}", point.componentwise));
        let errors = curves.iter().map(|curve| Cell::words(error(curve).unwrap_or_else(|| "-".to_owned())));
        Row::plain(std::iter::once(Cell::words(point.n.to_string())).chain(errors).collect())
    });
    let heads = std::iter::once("n".to_owned()).chain((0..curves.len()).map(letter));
    let columns = heads.map(|head| Column { head, is_number: true, least: 8 }).collect();
    Block::Table(Table { columns, rows: rows.collect(), layout: Layout::Rows })
}

/// The letter of a column: A, B, C, …
fn letter(at: usize) -> String {
    char::from(b'A' + u8::try_from(at % 26).expect("a letter")).to_string()
}
