//! How results are printed.

use crate::report::Form;
use clap::ValueEnum;

use super::Screen;

/// The form of a result that is a list of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    Table,
    /// For programs; of several reports, an array
    Json,
    /// A document; with -v the bits behind findings
    Markdown,
    /// Rows for spreadsheets
    Csv,
    /// One page that needs nothing else, with the bits behind findings
    Html,
}

/// The form of a result that has no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    /// Text for people
    #[value(alias = "text")]
    Table,
    /// For programs
    Json,
    /// A document
    Markdown,
    /// One page that needs nothing else
    Html,
}

impl From<PageFormat> for Format {
    fn from(format: PageFormat) -> Self {
        match format {
            PageFormat::Table => Self::Table,
            PageFormat::Json => Self::Json,
            PageFormat::Markdown => Self::Markdown,
            PageFormat::Html => Self::Html,
        }
    }
}

impl Format {
    /// Whether it takes a list of something.
    pub(crate) fn is_rows(self) -> bool {
        self == Self::Csv
    }

    /// What makes the text.
    pub(crate) fn form(self, screen: Screen) -> Form {
        match self {
            Self::Table => Form::Table(screen.style),
            Self::Json => Form::Json,
            Self::Markdown => Form::Markdown { evidence: screen.verbose },
            Self::Csv => Form::Csv,
            Self::Html => Form::Html,
        }
    }
}
