//! The page: the common structure of all command output. Each renderer escapes every text it is given.

use crate::plot::{Bars, Chart, Strips, Trees};

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The title, shown by browsers but not on a terminal.
    pub title: String,
    /// The blocks, from top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading.
    Heading {
        /// From 1 to 3.
        level: u8,
        /// The text of the heading.
        text: String,
        /// The anchor that links refer to.
        anchor: Option<String>,
    },
    /// A paragraph.
    Words(Tone, String),
    /// A paragraph in which backticks enclose code.
    Marked(String),
    /// Names with their descriptions.
    Facts(Vec<(String, String)>),
    /// A list of sentences.
    List(Vec<(Tone, String)>),
    /// A table.
    Table(Table),
    /// Lines of code or of bits, never wrapped.
    Lines(Vec<String>),
    /// Blocks that unfold below a summary.
    Details {
        /// The summary.
        summary: String,
        /// The blocks inside.
        blocks: Vec<Self>,
    },
    /// A bar chart; omitted on a terminal.
    Plot(Bars),
    /// A line chart; omitted on a terminal.
    Chart(Chart),
    /// Strips of bits that are kept and dropped; omitted on a terminal.
    Strips(Strips),
    /// Summation trees; omitted on a terminal.
    Trees(Trees),
    /// A matrix that compares things property by property, with a large number in each cell; omitted on a terminal.
    Matrix(Matrix),
    /// A legend of colours; browsers only.
    Shades(Vec<(Shade, String)>),
    /// Links to other pages, as text and address; browsers only.
    Links(Vec<(String, String)>),
    /// Links to the level-2 headings of the page, except folded ones; browsers only.
    Contents,
    /// Blocks that belong to the block before: indented by two columns on a terminal.
    Inset(Vec<Self>),
    /// An empty line on a terminal.
    Gap,
    /// Blocks for terminals only.
    Screen(Vec<Self>),
    /// Blocks for documents and browsers only.
    Paper(Vec<Self>),
}

/// Rows below a head. The first column names the subject of each row.
#[derive(Clone, Debug)]
pub struct Table {
    /// The columns from left to right.
    pub columns: Vec<Column>,
    /// The rows from top to bottom.
    pub rows: Vec<Row>,
    /// The layout on a terminal.
    pub layout: Layout,
}

/// A column of a table.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// The column's head.
    pub head: String,
    /// Whether a terminal aligns the cells to the right.
    pub is_number: bool,
    /// The minimum width on a terminal, in characters.
    pub least: usize,
}

/// The layout of a table on a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The head, then one line for each row.
    #[default]
    Rows,
    /// One line for each row, without the head.
    Bare,
    /// No head; the last column is wrapped.
    Hanging,
    /// The head; all columns but the first share the width and are wrapped, or follow each other if it is too narrow.
    Beside,
    /// The head; cells keep their line breaks. Columns that do not fit go below the others, with the first column
    /// repeated.
    Matrix,
}

/// Rows by columns, whose cells are read at a glance.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// The name of the row dimension.
    pub corner: String,
    /// Heads that span several columns each, with their spans; either empty, or with spans that add up to the number of
    /// columns.
    pub groups: Vec<(String, usize)>,
    /// The head of each column, and the address it links to, if any.
    pub columns: Vec<(String, Option<String>)>,
    /// The rows, from top to bottom.
    pub rows: Vec<GlimpseRow>,
}

/// A row of a matrix.
#[derive(Clone, Debug, Default)]
pub struct GlimpseRow {
    /// The subject of the row.
    pub head: String,
    /// The address that the head links to.
    pub link: Option<String>,
    /// One cell for each column, with everything found there; empty if there is nothing.
    pub cells: Vec<Vec<Glimpse>>,
}

/// A finding that can be read at a glance: a large number with words below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glimpse {
    /// The number, or a word in its place.
    pub large: String,
    /// Further findings.
    pub words: String,
    /// The subject of the finding.
    pub of: String,
    /// The cell's colour. The words carry the same information.
    pub shade: Shade,
}

/// Colours of cells, from the best arithmetic to the worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shade {
    /// As IEEE 754 rounds each operation.
    Good,
    /// Nothing visible is lost, and results are rounded to nearest.
    Fair,
    /// Bits are cut off.
    Lossy,
    /// Fewer bits than the result has.
    Poor,
    /// Not judged.
    #[default]
    Unknown,
}

/// A row of a table.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The tone of the whole row.
    pub tone: Tone,
    /// A mark in a terminal's margin, for readers who see no colours.
    pub mark: Option<char>,
    /// As many cells as there are columns.
    pub cells: Vec<Cell>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The cell's text.
    pub text: String,
    /// The interpretation of the text.
    pub kind: CellKind,
    /// Words that follow a name.
    pub after: String,
    /// The tone of the text.
    pub tone: Tone,
    /// The address that the cell links to: `#` and the anchor of a heading, or another page.
    pub link: Option<String>,
    /// Blocks that unfold below the text; on a terminal, below the row.
    pub more: Vec<Block>,
}

/// The interpretation of a cell's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CellKind {
    /// Words.
    #[default]
    Words,
    /// An identifier, or a number meant for programs.
    Code,
    /// Words in which backticks enclose code.
    Marked,
}

/// The role of a text for the reader. Never conveyed by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// A name that the reader searches for, or the main point: bold on a terminal.
    Strong,
    /// Secondary information.
    Muted,
    /// Something to know before reading on.
    Warning,
    /// Something failed.
    Failure,
}

impl Block {
    /// A heading without an anchor.
    pub fn heading(level: u8, text: impl Into<String>) -> Self {
        Self::Heading { level, text: text.into(), anchor: None }
    }

    /// An ordinary paragraph.
    pub fn words(text: impl Into<String>) -> Self {
        Self::Words(Tone::Plain, text.into())
    }

    /// A heading on paper, and a line in regular weight on a terminal.
    pub fn titled(level: u8, text: impl Into<String>) -> [Self; 2] {
        let text = text.into();
        [Self::Paper(vec![Self::heading(level, text.clone())]), Self::Screen(vec![Self::words(text)])]
    }

    /// A list of ordinary sentences.
    pub fn list(sentences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::List(sentences.into_iter().map(|text| (Tone::Plain, text.into())).collect())
    }

    /// The lines of a text, unchanged.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Lines(text.lines().map(str::to_owned).collect())
    }

    /// A table with text columns.
    pub fn table(head: impl IntoIterator<Item = impl Into<String>>, rows: impl IntoIterator<Item = Row>) -> Self {
        Self::laid_out(Layout::Rows, head, rows)
    }

    /// Like [`Block::table`], with another layout on a terminal.
    pub fn laid_out(
        layout: Layout,
        head: impl IntoIterator<Item = impl Into<String>>,
        rows: impl IntoIterator<Item = Row>,
    ) -> Self {
        let columns = head.into_iter().map(|head| Column { head: head.into(), ..Column::default() }).collect();
        Self::Table(Table { columns, rows: rows.into_iter().collect(), layout })
    }
}

impl Cell {
    /// A cell of words.
    pub fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A cell with an identifier, or a number meant for programs.
    pub fn code(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: CellKind::Code, ..Self::default() }
    }

    /// A cell of words in which backticks enclose code.
    pub fn marked(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: CellKind::Marked, ..Self::default() }
    }

    /// Sets the tone.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

impl Row {
    /// An ordinary row.
    #[must_use]
    pub fn plain(cells: Vec<Cell>) -> Self {
        Self { cells, ..Self::default() }
    }
}

/// Splits a text in which backticks enclose code: words first, then code and words in turn. An unpaired backtick is an
/// ordinary character.
pub(super) fn marked(text: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        let last = parts.pop().unwrap_or_default();
        let before = parts.pop().unwrap_or_default();
        parts.push(&text[text.len() - last.len() - before.len() - 1..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_enclose_code_and_one_alone_is_a_letter() {
        assert_eq!(marked("a `b` c"), ["a ", "b", " c"]);
        assert_eq!(marked("`b`"), ["", "b", ""]);
        assert_eq!(marked("a `b` c ` d"), ["a ", "b", " c ` d"]);
        assert_eq!(marked("none"), ["none"]);
        assert_eq!(marked(""), [""]);
    }
}
