//! The forms in which reports and comparisons are shown. Each is made from the report types alone.

use super::{
    BenchReport, Comparison, Report, compare_screen, compare_view, csv, html, markdown,
    pages::{self, Detail},
    screen::Style,
    table, throughput_view, to_json,
};

/// A form of reports and of comparisons of reports.
pub trait View {
    /// One report, or several one after the other.
    fn reports(&self, reports: &[Report]) -> String;

    /// A comparison; what is equal too, if `all`.
    fn comparison(&self, comparison: &Comparison, all: bool) -> String;

    /// Measurements of throughput, one after the other.
    fn throughput(&self, reports: &[BenchReport]) -> String;
}

/// For a terminal or a pipe.
#[derive(Clone, Copy, Debug)]
pub struct Table(pub Style);

/// For programs: one report, or an array of several.
#[derive(Clone, Copy, Debug)]
pub struct Json;

/// For documents, with the bits behind the findings if `evidence`.
#[derive(Clone, Copy, Debug)]
pub struct Markdown {
    /// Show them.
    pub evidence: bool,
}

/// For spreadsheets: one row a finding, or a property compared.
#[derive(Clone, Copy, Debug)]
pub struct Csv;

/// For a browser: one page that needs nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Html;

impl View for Table {
    fn reports(&self, reports: &[Report]) -> String {
        let tables: Vec<String> = reports.iter().map(|report| table::render(report, self.0)).collect();
        tables.join("\n")
    }

    fn comparison(&self, comparison: &Comparison, all: bool) -> String {
        compare_screen::screen(comparison, all, self.0)
    }

    fn throughput(&self, reports: &[BenchReport]) -> String {
        throughput_view::screen(reports, self.0)
    }
}

impl View for Json {
    fn reports(&self, reports: &[Report]) -> String {
        match reports {
            [one] => to_json(one),
            several => to_json(&several),
        }
    }

    // Programs sort out themselves what they look at.
    fn comparison(&self, comparison: &Comparison, _: bool) -> String {
        to_json(comparison)
    }

    fn throughput(&self, reports: &[BenchReport]) -> String {
        match reports {
            [one] => to_json(one),
            several => to_json(&several),
        }
    }
}

impl View for Markdown {
    fn reports(&self, reports: &[Report]) -> String {
        markdown::text(&pages::document(reports, Detail { evidence: self.evidence, plots: false }))
    }

    fn comparison(&self, comparison: &Comparison, all: bool) -> String {
        markdown::text(&compare_view::document(comparison, all))
    }

    fn throughput(&self, reports: &[BenchReport]) -> String {
        markdown::text(&throughput_view::document(reports))
    }
}

impl View for Csv {
    fn reports(&self, reports: &[Report]) -> String {
        csv::findings(reports)
    }

    fn comparison(&self, comparison: &Comparison, all: bool) -> String {
        compare_view::rows(comparison, all)
    }

    fn throughput(&self, reports: &[BenchReport]) -> String {
        throughput_view::rows(reports)
    }
}

impl View for Html {
    fn reports(&self, reports: &[Report]) -> String {
        html::page(&pages::document(reports, Detail { evidence: true, plots: true }))
    }

    fn comparison(&self, comparison: &Comparison, all: bool) -> String {
        html::page(&compare_view::document(comparison, all))
    }

    fn throughput(&self, reports: &[BenchReport]) -> String {
        html::page(&throughput_view::document(reports))
    }
}
