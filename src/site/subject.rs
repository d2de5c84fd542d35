//! What the pages of a site are about: units, and what is known of them.

use crate::report::{Block, Report, SummaryRow};

/// A unit of the site: a device, with what is known of it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The name of its page's file, without `.html`: letters, digits, `-` and `_`.
    pub file: String,
    /// Its name for people.
    pub name: String,
    /// Its maker, empty if that is not known.
    pub vendor: String,
    /// The name of the model behind it, if it is one.
    pub model: Option<String>,
    /// Other names.
    pub aliases: Vec<String>,
    /// Its reports, oldest first, at least one: of another driver each, or of another day.
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

/// A unit, and its rows of a table of formats by units.
pub(super) struct Found<'a> {
    pub(super) subject: &'a Subject,
    pub(super) rows: Vec<SummaryRow>,
}

/// The way back to the matrix of all units.
pub(super) fn to_index() -> Block {
    Block::Links(vec![("All units".into(), "index.html".into())])
}

/// A word with a capital, as a sentence begins.
pub(super) fn beginning(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Where what is said of a unit comes from.
pub(super) fn is_measured(subject: &Subject) -> &'static str {
    if subject.model.is_some() { "modelled" } else { "measured" }
}
