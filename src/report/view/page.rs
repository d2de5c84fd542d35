//! The page: what every command shows, whatever the form. A form escapes every text that it is given.

use crate::plot::{Bars, Chart, Strips, Trees};

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Its title, which a browser shows; a terminal does not.
    pub title: String,
    /// From top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading.
    Heading {
        /// From 1 to 3.
        level: u8,
        /// What it says.
        text: String,
        /// The name by which links find it.
        anchor: Option<String>,
    },
    /// A paragraph.
    Words(Tone, String),
    /// A paragraph in which backticks enclose code.
    Marked(String),
    /// Names, and what is to be said of each.
    Facts(Vec<(String, String)>),
    /// Sentences below each other.
    List(Vec<(Tone, String)>),
    /// Rows and columns.
    Table(Table),
    /// Lines of code or of bits, never wrapped.
    Lines(Vec<String>),
    /// Blocks that unfold below a summary.
    Details {
        /// The summary.
        summary: String,
        /// What unfolds.
        blocks: Vec<Self>,
    },
    /// Bars; not on a terminal.
    Plot(Bars),
    /// Curves; not on a terminal.
    Chart(Chart),
    /// Bits that are kept and dropped; not on a terminal.
    Strips(Strips),
    /// Summation trees; not on a terminal.
    Trees(Trees),
    /// Things side by side, property by property, a large number in each cell; not on a terminal.
    Matrix(Matrix),
    /// Colours, and what each says; in a browser alone.
    Shades(Vec<(Shade, String)>),
    /// Links to other pages: what each says, and its address; in a browser alone.
    Links(Vec<(String, String)>),
    /// Links to the headings of level 2 of the page, but those that are folded; in a browser alone.
    Contents,
    /// Blocks that belong to the block before: two columns further to the right on a terminal.
    Inset(Vec<Self>),
    /// An empty line on a terminal.
    Gap,
    /// Blocks for a terminal alone.
    Screen(Vec<Self>),
    /// Blocks for documents and browsers alone.
    Paper(Vec<Self>),
}

/// Rows below a head. The first column says what a row is about.
#[derive(Clone, Debug)]
pub struct Table {
    /// The columns from left to right.
    pub columns: Vec<Column>,
    /// The rows from top to bottom.
    pub rows: Vec<Row>,
    /// How a terminal lays it out.
    pub layout: Layout,
}

/// A column of a table.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// Its head.
    pub head: String,
    /// A terminal moves its cells to the right.
    pub is_number: bool,
    /// The fewest characters that it has on a terminal.
    pub least: usize,
}

/// How a terminal lays out a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The head, and a line for each row.
    #[default]
    Rows,
    /// A line for each row, without the head.
    Bare,
    /// Without the head; the last column is wrapped.
    Hanging,
    /// The head; all columns but the first share the width and are wrapped, or follow each other if that is too narrow.
    Beside,
    /// The head; cells have the lines that they are given. Columns that do not fit go below the others, with the first column
    /// again.
    Matrix,
}

/// Rows by columns, whose cells are read at a glance.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// What the rows are about.
    pub corner: String,
    /// Heads above the heads: how many columns each spans; none, or as many in all as there are columns.
    pub groups: Vec<(String, usize)>,
    /// What stands at the head of each column, and the address it leads to, if any.
    pub columns: Vec<(String, Option<String>)>,
    /// From top to bottom.
    pub rows: Vec<GlimpseRow>,
}

/// A row of a matrix.
#[derive(Clone, Debug, Default)]
pub struct GlimpseRow {
    /// What it is about.
    pub head: String,
    /// The address that its head leads to.
    pub link: Option<String>,
    /// A cell for each column: what is found there, nothing if there is nothing to be found.
    pub cells: Vec<Vec<Glimpse>>,
}

/// What is read at a glance: a large number, and words below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glimpse {
    /// The number, or a word in its place.
    pub large: String,
    /// What else is found.
    pub words: String,
    /// What it is found of.
    pub of: String,
    /// Its colour. The words say the same.
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
    /// What all of it is to the reader.
    pub tone: Tone,
    /// A sign in a terminal's margin, for those who see no colours.
    pub mark: Option<char>,
    /// As many as there are columns.
    pub cells: Vec<Cell>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// How that is to be read.
    pub kind: CellKind,
    /// What follows a name, as words.
    pub after: String,
    /// What it is to the reader.
    pub tone: Tone,
    /// The address that it leads to: `#` and the anchor of a heading, or another page.
    pub link: Option<String>,
    /// What unfolds below the text; on a terminal, below the row.
    pub more: Vec<Block>,
}

/// How the text of a cell is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CellKind {
    /// Words.
    #[default]
    Words,
    /// A name or a number of programs.
    Code,
    /// Words in which backticks enclose code.
    Marked,
}

/// What a text is to the reader. Never told by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// A text like any other.
    #[default]
    Plain,
    /// A name that is looked for, or the main point: bold on a terminal.
    Strong,
    /// Beside the point.
    Muted,
    /// To be known before reading on.
    Warning,
    /// Something failed.
    Failure,
}

impl Block {
    /// A heading without an anchor.
    pub fn heading(level: u8, text: impl Into<String>) -> Self {
        Self::Heading { level, text: text.into(), anchor: None }
    }

    /// A paragraph like any other.
    pub fn words(text: impl Into<String>) -> Self {
        Self::Words(Tone::Plain, text.into())
    }

    /// A heading on paper, and a line that is not bold on a terminal.
    pub fn titled(level: u8, text: impl Into<String>) -> [Self; 2] {
        let text = text.into();
        [Self::Paper(vec![Self::heading(level, text.clone())]), Self::Screen(vec![Self::words(text)])]
    }

    /// A list of sentences like any other.
    pub fn list(sentences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::List(sentences.into_iter().map(|text| (Tone::Plain, text.into())).collect())
    }

    /// The lines of a text, as they are.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Lines(text.lines().map(str::to_owned).collect())
    }

    /// A table of columns of text.
    pub fn table(head: impl IntoIterator<Item = impl Into<String>>, rows: impl IntoIterator<Item = Row>) -> Self {
        Self::laid_out(Layout::Rows, head, rows)
    }

    /// The same, laid out in another way on a terminal.
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
    /// Words.
    pub fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A name or a number of programs.
    pub fn code(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: CellKind::Code, ..Self::default() }
    }

    /// Words in which backticks enclose code.
    pub fn marked(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: CellKind::Marked, ..Self::default() }
    }

    /// The same in another tone.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

impl Row {
    /// A row like any other.
    #[must_use]
    pub fn plain(cells: Vec<Cell>) -> Self {
        Self { cells, ..Self::default() }
    }
}

/// Text in which backticks enclose code: the parts, words first, then code and words in turn. A backtick without another is a
/// letter.
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
