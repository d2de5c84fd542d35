//! The forms of results, and what can be shown in them.

use super::{
    csv::{self, Rows},
    html,
    json::to_json,
    markdown,
    page::Page,
    style::Style,
    terminal,
};

/// A result that has every form.
pub trait Show {
    /// What it says in words; with the bits behind that, if `evidence`.
    fn page(&self, evidence: bool) -> Page;

    /// The same as records of numbers and names. A result that is not a list of anything has none.
    fn rows(&self) -> Rows {
        Rows::default()
    }

    /// The same for programs, with a line end.
    fn json(&self) -> String;
}

/// A form in which results are shown.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// For a terminal or a pipe.
    Table(Style),
    /// For programs.
    Json,
    /// For documents, with the bits behind what is said if `evidence`.
    Markdown {
        /// Show them.
        evidence: bool,
    },
    /// For spreadsheets.
    Csv,
    /// For a browser: one page that needs nothing else, with the bits.
    Html,
}

impl Form {
    /// A result in this form.
    #[must_use]
    pub fn text(self, shown: &dyn Show) -> String {
        match self {
            Self::Table(style) => terminal::on_screen(&shown.page(style.evidence).blocks, style),
            Self::Json => shown.json(),
            Self::Markdown { evidence } => markdown::text(&shown.page(evidence)),
            Self::Csv => csv::text(&shown.rows()),
            Self::Html => html::text(&shown.page(true)),
        }
    }
}

/// JSON of one value itself, or of several as an array.
pub(super) fn one_or_array<T: serde::Serialize>(values: &[T]) -> String {
    match values {
        [one] => to_json(one),
        several => to_json(&several),
    }
}
