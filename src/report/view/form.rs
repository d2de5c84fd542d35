//! Output formats, and the trait of results that can be shown in them.

use super::{
    csv::{self, Rows},
    html, markdown,
    page::{Block, Page},
    style::Style,
    terminal,
};

/// A result that can be shown in every format.
pub trait Show {
    /// Describes the result for people; with the bits behind it, if `evidence` is set.
    fn page(&self, evidence: bool) -> Page;

    /// Returns the blocks of the page; those for documents and browsers may be missing.
    fn screen(&self, evidence: bool) -> Vec<Block> {
        self.page(evidence).blocks
    }

    /// Returns the result as records of numbers and names; empty for a result that is not a list.
    fn rows(&self) -> Rows {
        Rows::default()
    }

    /// Serializes the result for programs, with a newline at the end.
    fn json(&self) -> String;
}

/// An output format.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// For a terminal or a pipe.
    Table(Style),
    /// For programs.
    Json,
    /// For documents, with the bits behind the statements if `evidence` is set.
    Markdown {
        /// Whether to show them.
        evidence: bool,
    },
    /// For spreadsheets.
    Csv,
    /// For a browser: one self-contained page, with the bits.
    Html,
}

impl Form {
    /// Renders a result in this format.
    #[must_use]
    pub fn text(self, shown: &dyn Show) -> String {
        match self {
            Self::Table(style) => terminal::on_screen(&shown.screen(style.evidence), style),
            Self::Json => shown.json(),
            Self::Markdown { evidence } => markdown::text(&shown.page(evidence)),
            Self::Csv => csv::text(&shown.rows()),
            Self::Html => html::text(&shown.page(true)),
        }
    }
}
