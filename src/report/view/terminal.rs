//! The view for a terminal or a pipe.

use super::{
    page::{Block, Cell, Column, Layout, Row, Table, Tone},
    style::{Style, hang, wrap},
};
use crate::plain::one_line;

/// Renders blocks as lines, for a result that is shown part by part.
#[must_use]
pub fn on_screen(blocks: &[Block], style: Style) -> String {
    let mut screen = Screen { text: String::new(), style };
    screen.blocks(blocks, 0);
    screen.text
}

/// The maximum width of each column before the last in a hanging table.
const WIDEST_NAME: usize = 40;
/// The minimum width of columns side by side.
const NARROWEST_COLUMN: usize = 20;
/// Their maximum width.
const WIDEST_COLUMN: usize = 1000;
/// The gap between columns.
const GAP: &str = "  ";

struct Screen {
    text: String,
    style: Style,
}

impl Screen {
    fn blocks(&mut self, blocks: &[Block], indent: usize) {
        blocks.iter().for_each(|block| self.block(block, indent));
    }

    fn block(&mut self, block: &Block, indent: usize) {
        match block {
            Block::Heading { text, .. } => self.line(Tone::Strong, &one_line(text), indent),
            Block::Words(tone, text) => self.paragraph(*tone, text, indent, indent),
            Block::Marked(text) => self.paragraph(Tone::Plain, text, indent, indent),
            Block::Facts(facts) => {
                for (name, words) in facts {
                    let name = one_line(name);
                    let after = indent + name.chars().count() + 2;
                    self.text.push_str(&format!("{:indent$}{name}: ", ""));
                    hang(&mut self.text, words, after, self.style.width);
                }
            }
            Block::List(sentences) => {
                sentences.iter().for_each(|(tone, text)| self.paragraph(*tone, text, indent, indent + 2));
            }
            Block::Table(table) => match table.layout {
                Layout::Beside => self.beside(table, indent),
                Layout::Matrix => self.matrix(table, indent),
                _ => self.table(table, indent),
            },
            Block::Lines(lines) => lines.iter().for_each(|line| self.line(Tone::Plain, &one_line(line), indent)),
            Block::Details { summary, blocks } => {
                self.paragraph(Tone::Plain, summary, indent, indent + 2);
                self.blocks(blocks, indent + 2);
            }
            Block::Inset(blocks) => self.blocks(blocks, indent + 2),
            Block::Screen(blocks) => self.blocks(blocks, indent),
            Block::Gap => self.text.push('\n'),
            Block::Plot(_)
            | Block::Chart(_)
            | Block::Strips(_)
            | Block::Trees(_)
            | Block::Matrix(_)
            | Block::Shades(_)
            | Block::Links(_)
            | Block::Contents
            | Block::Paper(_) => {}
        }
    }

    /// Writes a line without wrapping it.
    fn line(&mut self, tone: Tone, line: &str, indent: usize) {
        let indent = if line.is_empty() { 0 } else { indent };
        self.text.push_str(&format!("{:indent$}{}\n", "", self.style.paint(tone, line)));
    }

    /// Writes wrapped words; the lines after the first have another indent.
    fn paragraph(&mut self, tone: Tone, words: &str, indent: usize, after: usize) {
        let mut wrapped = String::new();
        hang(&mut wrapped, words, after, self.style.width);
        self.text.push_str(&format!("{:indent$}{}\n", "", self.style.paint(tone, wrapped.trim_end())));
    }

    /// Writes one line for each row; the last cell of a hanging table is wrapped.
    fn table(&mut self, table: &Table, indent: usize) {
        let Some((last, names)) = table.columns.split_last() else { return };
        let has_head = table.layout == Layout::Rows;
        let width = |at: usize, column: &Column| {
            let head = if has_head { column.head.chars().count() } else { 0 };
            let cells = table.rows.iter().filter_map(|row| row.cells.get(at)).map(length);
            let widest = cells.max().unwrap_or(0);
            let widest = if table.layout == Layout::Hanging { widest.min(WIDEST_NAME) } else { widest };
            widest.max(head).max(column.least)
        };
        let widths: Vec<usize> = names.iter().enumerate().map(|(at, column)| width(at, column)).collect();
        let hangs_at = indent + widths.iter().map(|width| width + GAP.len()).sum::<usize>();
        let last_width = if last.is_number { width(widths.len(), last) } else { 0 };
        if has_head {
            let head: Vec<String> = table.columns.iter().map(|column| column.head.clone()).collect();
            let cells = head.into_iter().map(Cell::words).collect();
            self.row(table, &Row::plain(cells), &widths, last_width, (indent, hangs_at));
        }
        for row in &table.rows {
            self.row(table, row, &widths, last_width, (indent, hangs_at));
            row.cells.iter().for_each(|cell| self.blocks(&cell.more, indent + 2));
        }
    }

    fn row(
        &mut self,
        table: &Table,
        row: &Row,
        widths: &[usize],
        last_width: usize,
        (indent, hangs_at): (usize, usize),
    ) {
        let mut line = " ".repeat(indent);
        for (at, cell) in row.cells.iter().enumerate() {
            let tone = if cell.tone == Tone::Plain { row.tone } else { cell.tone };
            let is_number = table.columns.get(at).is_some_and(|column| column.is_number);
            let Some(width) = widths.get(at) else {
                if table.layout == Layout::Hanging {
                    let mut wrapped = String::new();
                    hang(&mut wrapped, &whole(cell), hangs_at, self.style.width);
                    line.push_str(&self.style.paint(tone, wrapped.trim_end()));
                } else {
                    let text = one_line(&whole(cell)).into_owned();
                    line.push_str(&self.style.paint(tone, &format!("{text:>last_width$}")));
                }
                break;
            };
            let text = one_line(&whole(cell)).into_owned();
            let room = " ".repeat(width.saturating_sub(text.chars().count()));
            let text = self.style.paint(tone, &text);
            line.push_str(&if is_number { format!("{room}{text}{GAP}") } else { format!("{text}{room}{GAP}") });
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Writes cells that share the width, or follow each other if it is too narrow.
    fn beside(&mut self, table: &Table, indent: usize) {
        let Some((_, columns)) = table.columns.split_first() else { return };
        let widest = table.rows.iter().filter_map(|row| row.cells.first()).map(length).max().unwrap_or(0);
        let names = widest.min(self.style.width / 3);
        let taken = indent + names + GAP.len();
        let room = (self.style.width.saturating_sub(taken) / columns.len().max(1)).saturating_sub(GAP.len());
        let room = room.min(WIDEST_COLUMN);
        if room < NARROWEST_COLUMN {
            return self.below(table, indent);
        }
        let heads: Vec<Vec<String>> = columns.iter().map(|column| vec![column.head.clone()]).collect();
        self.cells(Tone::Strong, &[String::new()], &heads, (names + indent, room));
        for row in &table.rows {
            let Some((name, cells)) = row.cells.split_first() else { continue };
            let lines = wrap(&name.text, names).into_iter().enumerate();
            let lines: Vec<String> = lines.map(|(at, line)| margin(row.mark, at, indent) + &line).collect();
            let cells: Vec<Vec<String>> = cells.iter().map(|cell| wrap(&cell.text, room)).collect();
            self.cells(Tone::Plain, &lines, &cells, (names + indent, room));
        }
    }

    fn cells(&mut self, tone: Tone, name: &[String], cells: &[Vec<String>], (names, room): (usize, usize)) {
        let height = cells.iter().map(Vec::len).chain([name.len()]).max().unwrap_or(0);
        for number in 0..height {
            let part = |lines: &[String]| lines.get(number).cloned().unwrap_or_default();
            let mut line = format!("{:names$}", part(name));
            for cell in cells {
                line.push_str(&format!("{GAP}{:room$}", part(cell)));
            }
            self.text.push_str(&self.style.paint(tone, line.trim_end()));
            self.text.push('\n');
        }
    }

    /// Writes multi-line cells side by side, as many columns at a time as fit.
    fn matrix(&mut self, table: &Table, indent: usize) {
        let lines = |cell: &Cell| cell.text.lines().map(|line| one_line(line).into_owned()).collect::<Vec<_>>();
        let width = |at: usize| {
            let head = Cell::words(one_line(&table.columns[at].head));
            let cells = table.rows.iter().filter_map(|row| row.cells.get(at)).chain([&head]);
            cells.flat_map(lines).map(|line| line.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
        let Some((names, columns)) = widths.split_first() else { return };
        let mut start = 0;
        while start < columns.len() {
            let mut used = indent + names;
            let fits = |column: &&usize| {
                used = used.saturating_add(**column + GAP.len());
                used <= self.style.width
            };
            let count = columns[start..].iter().take_while(fits).count().max(1);
            let shown: Vec<usize> = std::iter::once(0).chain(start + 1..=start + count).collect();
            if start > 0 {
                self.text.push('\n');
            }
            let head: Vec<Cell> =
                table.columns.iter().map(|column| Cell::words(one_line(&column.head)).tone(Tone::Strong)).collect();
            for row in std::iter::once(&Row::plain(head)).chain(&table.rows) {
                let cells: Vec<(Tone, Vec<String>)> = shown
                    .iter()
                    .map(|at| row.cells.get(*at).map_or_else(Default::default, |cell| (cell.tone, lines(cell))))
                    .collect();
                let height = cells.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
                for number in 0..height {
                    let mut line = " ".repeat(indent);
                    let mut blanks = String::new();
                    for ((tone, lines), at) in cells.iter().zip(&shown) {
                        let text = lines.get(number).map_or("", String::as_str);
                        if !text.is_empty() {
                            line.push_str(&std::mem::take(&mut blanks));
                            line.push_str(&self.style.paint(*tone, text));
                        }
                        blanks.push_str(&" ".repeat(widths[*at] - text.chars().count() + GAP.len()));
                    }
                    self.text.push_str(&line);
                    self.text.push('\n');
                }
            }
            start += count;
        }
    }

    /// Writes each cell on lines of its own, after the head of its column.
    fn below(&mut self, table: &Table, indent: usize) {
        for row in &table.rows {
            for (at, (column, cell)) in table.columns.iter().zip(&row.cells).enumerate() {
                let before = if at == 0 {
                    margin(row.mark, 0, indent)
                } else {
                    format!("{:indent$}  {}{GAP}", "", one_line(&column.head))
                };
                let after = before.chars().count();
                self.text.push_str(&before);
                hang(&mut self.text, &cell.text, after, self.style.width);
            }
        }
    }
}

/// Returns the blanks before a row, including the row's mark.
fn margin(mark: Option<char>, line: usize, indent: usize) -> String {
    match mark.filter(|_| line == 0 && indent >= 2) {
        Some(mark) => format!("{:1$}{mark} ", "", indent - 2),
        None => " ".repeat(indent),
    }
}

fn whole(cell: &Cell) -> String {
    format!("{}{}", cell.text, cell.after)
}

fn length(cell: &Cell) -> usize {
    one_line(&whole(cell)).chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(columns: usize) -> Block {
        let cells = |word: &str| (0..columns).map(|_| Cell::words(word)).collect::<Vec<_>>();
        let row = |mark, name: &str, word| Row { mark, ..Row::plain([vec![Cell::code(name)], cells(word)].concat()) };
        let head = std::iter::once("probe".to_owned()).chain((0..columns).map(|at| format!("C{at}")));
        let rows = [row(Some('≠'), "order", "serial"), row(None, "carry", "two words")];
        Block::Inset(vec![Block::laid_out(Layout::Beside, head, rows)])
    }

    #[test]
    fn columns_share_the_width_and_follow_each_other_when_that_is_too_narrow() {
        let style = Style { width: 60, ..Style::default() };
        let text = on_screen(&[compared(2)], style);
        let head = format!("{:9}{:25}C1", "", "C0");
        assert_eq!(text, format!("{head}\n≠ order  {0:25}{0}\n  carry  {1:25}{1}\n", "serial", "two words"));
        let text = on_screen(&[compared(3)], style);
        let rows = ["≠ order", "    C0  serial", "    C1  serial", "    C2  serial", "  carry"];
        assert_eq!(text.lines().take(5).collect::<Vec<_>>(), rows);
        // The width may be huge: the standard library pads to at most 65,535 columns.
        assert!(on_screen(&[compared(3)], style.unwrapped()).contains("two words"));
    }

    #[test]
    fn columns_of_a_matrix_that_do_not_fit_go_below_with_the_first_one_again() {
        let cells = ["sum", "one\ntwo", "three", "four"].map(Cell::words).into();
        let block = Block::laid_out(Layout::Matrix, ["", "A", "B", "C"], [Row::plain(cells)]);
        let style = Style { width: 16, ..Style::default() };
        assert_eq!(
            on_screen(std::slice::from_ref(&block), style),
            "     A    B\nsum  one  three\n     two\n\n     C\nsum  four\n"
        );
        assert_eq!(on_screen(&[block], style.unwrapped()).lines().count(), 3);
    }

    #[test]
    fn numbers_are_moved_to_the_right_and_what_unfolds_follows_its_row() {
        let column = |head: &str, is_number| Column { head: head.to_owned(), is_number, ..Column::default() };
        let mut last = Cell::words("b\u{1b}[2J");
        last.more.push(Block::words("more"));
        let rows = vec![
            Row::plain(vec![Cell::code("long name"), Cell::words("1"), last]),
            Row::plain(vec![Cell::code("n"), Cell::words("1000"), Cell::words("")]),
        ];
        let columns = vec![column("name", false), column("count", true), column("remark", false)];
        let table = Block::Table(Table { columns, rows, layout: Layout::Rows });
        let text = on_screen(&[table, Block::Paper(vec![Block::words("paper")]), Block::Gap], Style::default());
        let wanted = "name       count  remark\nlong name      1  b\\u{1b}[2J\n  more\nn           1000\n\n";
        assert_eq!(text, wanted);
    }
}
