//! Output formats.

use crate::report::Form;
use clap::ValueEnum;

use super::Screen;

/// The output format of a result that is a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    Table,
    /// For programs; an array for several reports
    Json,
    /// A document; with -v including the bits behind findings
    Markdown,
    /// Rows for spreadsheets
    Csv,
    /// One self-contained page, including the bits behind findings
    Html,
}

/// The output format of a result that has no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    /// Text for people
    #[value(alias = "text")]
    Table,
    /// For programs
    Json,
    /// A document
    Markdown,
    /// One self-contained page
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
    /// Whether the format needs a result that is a list.
    pub(crate) fn is_rows(self) -> bool {
        self == Self::Csv
    }

    /// Returns the renderer of this format.
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
