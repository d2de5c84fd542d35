//! The subjects of the site's pages: units and their reports.

use crate::report::{Block, Report, SummaryRow};

/// A unit of the site: a device or a model, with its reports.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The name of its page's file, without `.html`: letters, digits, `-` and `_`.
    pub file: String,
    /// Its display name.
    pub name: String,
    /// Its vendor; empty if unknown.
    pub vendor: String,
    /// The name of its model, if it is one.
    pub model: Option<String>,
    /// Other names.
    pub aliases: Vec<String>,
    /// Its reports, oldest first, at least one: each from another driver or another day.
    pub reports: Vec<Report>,
}

impl Subject {
    /// The newest report.
    #[must_use]
    pub fn report(&self) -> &Report {
        self.reports.last().expect("a subject has a report")
    }

    /// The file of its page.
    pub(super) fn page(&self) -> String {
        format!("{}.html", self.file)
    }
}

/// A unit and its rows in a table of formats by units.
pub(super) struct Found<'a> {
    pub(super) subject: &'a Subject,
    pub(super) rows: Vec<SummaryRow>,
}

/// A link back to the table of all units.
pub(super) fn to_index() -> Block {
    Block::Links(vec![("All units".into(), "index.html".into())])
}

/// Capitalises a word for the beginning of a sentence.
pub(super) fn beginning(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Whether the values of a unit were measured or come from a model.
pub(super) fn is_measured(subject: &Subject) -> &'static str {
    if subject.model.is_some() { "modelled" } else { "measured" }
}
