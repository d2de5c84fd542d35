//! What stands in a view, whatever its form: headings, words, tables, plots. A form escapes every text it is given.

use crate::plot::Bars;

/// A page.
#[derive(Clone, Debug, Default)]
pub(super) struct Document {
    /// What the page is called.
    pub(super) title: String,
    /// From top to bottom.
    pub(super) blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub(super) enum Block {
    /// A heading of level 1 to 3, and the name by which links find it.
    Heading {
        level: u8,
        text: String,
        anchor: Option<String>,
    },
    /// A sentence or a few.
    Words(Tone, String),
    /// Names and what they stand for.
    Facts(Vec<(String, String)>),
    /// Rows below a head. The first column says what a row is about.
    Table {
        head: Vec<String>,
        rows: Vec<Row>,
    },
    /// Lines that stand as they are.
    Lines(Vec<String>),
    /// What unfolds under a summary.
    Details {
        summary: String,
        blocks: Vec<Self>,
    },
    Plot(Bars),
}

/// A row of a table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) tone: Tone,
    pub(super) cells: Vec<Cell>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    /// It is a name or a number of programs.
    pub(super) code: bool,
    /// What follows the name, as words.
    pub(super) after: String,
    pub(super) tone: Tone,
    /// The anchor of the heading that it leads to.
    pub(super) link: Option<String>,
    /// What unfolds below the text.
    pub(super) more: Vec<Block>,
}

/// What a text is to the reader. Never told by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    /// Beside the point.
    Muted,
    /// To be known before reading on.
    Warning,
    /// Something failed.
    Failure,
}

impl Block {
    pub(super) fn heading(level: u8, text: impl Into<String>) -> Self {
        Self::Heading { level, text: text.into(), anchor: None }
    }
}

impl Cell {
    pub(super) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(super) fn code(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: true, ..Self::default() }
    }

    pub(super) fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

impl Row {
    pub(super) fn plain(cells: Vec<Cell>) -> Self {
        Self { tone: Tone::Plain, cells }
    }
}
