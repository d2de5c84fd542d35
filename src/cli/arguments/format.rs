//! How results are printed.

use clap::ValueEnum;

use super::Screen;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Table,
    /// The report; an array where there are several devices
    Json,
    /// A document; with -v the bits behind findings
    Markdown,
    /// One row a finding
    Csv,
    /// One page that needs nothing else, with the bits behind findings
    Html,
}

impl Format {
    /// What shows reports so.
    pub(crate) fn view(self, screen: Screen) -> Box<dyn mxprobe::report::View> {
        match self {
            Self::Table => Box::new(mxprobe::report::Table(screen.style)),
            Self::Json => Box::new(mxprobe::report::Json),
            Self::Markdown => Box::new(mxprobe::report::Markdown { evidence: screen.verbose }),
            Self::Csv => Box::new(mxprobe::report::Csv),
            Self::Html => Box::new(mxprobe::report::Html),
        }
    }
}

/// How a result that is no report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Printed {
    /// For people
    Table,
    /// For programs
    Json,
}
