//! Arguments of every command: verbosity and colours.

use std::io::IsTerminal;

use crate::report::Style;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ScreenArguments {
    /// Print only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Show more: the evidence behind findings, every operation of a listing; -vv also forwards the standard
    /// error of drivers during a run
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// When to use colours; `NO_COLOR` is respected
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub(crate) color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    pub(crate) fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// Verbosity and appearance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    /// Whether to forward what drivers print.
    pub(crate) aloud: bool,
    pub(crate) style: Style,
}

impl Screen {
    /// Returns the same without wrapping, unless results go to a terminal: one line for each sentence, for tools that
    /// read lines.
    pub(crate) fn for_lines(self) -> Self {
        if std::io::stdout().is_terminal() { self } else { Self { style: self.style.unwrapped(), ..self } }
    }

    /// How many times more output was requested: 0, 1 or 2.
    pub(crate) fn steps(self) -> u8 {
        u8::from(self.verbose) + u8::from(self.aloud)
    }

    /// Returns the same with or without the bits behind each finding.
    pub(crate) fn with_evidence(self, evidence: bool) -> Self {
        Self { style: Style { evidence, ..self.style }, ..self }
    }
}

impl ScreenArguments {
    pub(crate) fn screen(&self) -> Screen {
        let stdout = std::io::stdout();
        let color = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        let columns = stdout.is_terminal().then(terminal_size::terminal_size).flatten();
        let default = Style::default();
        let width = columns.map_or(default.width, |(terminal_size::Width(width), _)| usize::from(width).max(60));
        let verbose = self.verbose > 0;
        Screen { quiet: self.quiet, verbose, aloud: self.verbose > 1, style: Style { width, evidence: verbose, color } }
    }
}
