//! The view for documents: GitHub's Markdown, with every text of a report escaped to appear verbatim.

use std::fmt::Write as _;

use super::page::{Block, Cell, CellKind, Matrix, Page, Row, Table, marked};
use crate::plain;

/// Renders the document. Plots are omitted.
pub(super) fn text(page: &Page) -> String {
    let mut out = String::new();
    page.blocks.iter().for_each(|block| write_block(&mut out, block));
    while out.ends_with("\n\n") {
        out.pop();
    }
    out
}

fn write_block(out: &mut String, block: &Block) {
    match block {
        Block::Heading { level, text, .. } => {
            let _ = write!(out, "{} {}\n\n", "#".repeat((*level).into()), words(text));
        }
        Block::Words(_, text) => {
            let _ = write!(out, "{}\n\n", words(text));
        }
        Block::Facts(facts) => {
            for (name, text) in facts {
                let _ = writeln!(out, "- {}: {}", words(name), words(text));
            }
            out.push('\n');
        }
        Block::Marked(text) => {
            let _ = write!(out, "{}\n\n", with_code(text));
        }
        Block::List(sentences) => {
            for (_, text) in sentences {
                let _ = writeln!(out, "- {}", words(text));
            }
            out.push('\n');
        }
        Block::Table(found) => table(out, found),
        Block::Lines(lines) => {
            let fence = "`".repeat(longest_run(lines.iter().map(String::as_str), '`').max(2) + 1);
            let _ = writeln!(out, "{fence}text");
            for line in lines {
                let _ = writeln!(out, "{}", plain::one_line(line));
            }
            let _ = write!(out, "{fence}\n\n");
        }
        Block::Details { summary, blocks } => {
            let _ = write!(out, "<details><summary>{}</summary>\n\n", words(summary));
            blocks.iter().for_each(|block| write_block(out, block));
            out.push_str("</details>\n\n");
        }
        Block::Inset(blocks) | Block::Paper(blocks) => blocks.iter().for_each(|block| write_block(out, block)),
        Block::Matrix(found) => matrix(out, found),
        Block::Plot(_)
        | Block::Chart(_)
        | Block::Strips(_)
        | Block::Trees(_)
        | Block::Shades(_)
        | Block::Links(_)
        | Block::Contents
        | Block::Gap
        | Block::Screen(_) => {}
    }
}

/// Renders a matrix as a table; the large number precedes the words.
fn matrix(out: &mut String, Matrix { corner, columns, rows, .. }: &Matrix) {
    let head = [corner.clone()].into_iter().chain(columns.iter().map(|(head, _)| head.clone()));
    let rows = rows.iter().map(|row| {
        let cells = row.cells.iter().map(|found| {
            let found = found.iter().map(|found| {
                let parts = [&found.large, &found.words, &found.of].map(String::as_str);
                parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
            });
            Cell::words(found.collect::<Vec<_>>().join("\n"))
        });
        Row::plain([Cell::words(row.head.clone())].into_iter().chain(cells).collect())
    });
    write_block(out, &Block::table(head, rows));
}

fn table(out: &mut String, Table { columns, rows, .. }: &Table) {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&line(columns.iter().map(|column| words(&column.head)).collect()));
    out.push_str(&line(columns.iter().map(|_| "---".to_owned()).collect()));
    for row in rows {
        out.push_str(&line(row.cells.iter().map(cell).collect()));
    }
    out.push('\n');
    // Blocks that unfold in a cell cannot be placed inside a Markdown table cell: they follow the table.
    for row in rows {
        for cell in &row.cells {
            for more in &cell.more {
                let name = &row.cells[0].text;
                match more {
                    Block::Details { summary, blocks } => {
                        let summary = format!("{name}: {summary}");
                        write_block(out, &Block::Details { summary, blocks: blocks.clone() });
                    }
                    other => write_block(out, other),
                }
            }
        }
    }
}

fn cell(cell: &Cell) -> String {
    let text = match cell.kind {
        CellKind::Words => paragraphs(&cell.text),
        CellKind::Code => code(&cell.text),
        CellKind::Marked => with_code(&cell.text),
    };
    format!(
        "{text}{}",
        if cell.after.is_empty() { String::new() } else { format!(" {}", words(cell.after.trim_start())) }
    )
}

/// Joins the lines of a cell with `<br>`, the only line break that a cell allows.
fn paragraphs(text: &str) -> String {
    text.split('\n').map(words).collect::<Vec<_>>().join("<br>")
}

/// Formats a name as code, if it is one.
fn code(text: &str) -> String {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "._-:@+".contains(letter);
    if !text.is_empty() && text.chars().all(is_name) { format!("`{text}`") } else { words(text) }
}

/// Renders words in which backticks enclose code.
fn with_code(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in marked(text).into_iter().enumerate() {
        // A table cell ends at a bar, even inside code.
        let code = || format!("`{}`", plain::one_line(part).replace('|', "\\|"));
        out += &if at % 2 == 1 { code() } else { words(part) };
    }
    out
}

fn longest_run<'a>(lines: impl Iterator<Item = &'a str>, letter: char) -> usize {
    lines.flat_map(|line| line.split(|other| other != letter).map(str::len)).max().unwrap_or(0)
}

/// Escapes text so that nothing in it is markup, a link, a mention, a formula or a list.
fn words(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b',' | b';' | b'/')) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for (at, letter) in plain::one_line(text).char_indices() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(letter);
            }
            // An underscore between letters is not emphasis.
            '_' if !before.is_ascii_alphanumeric() => out.push_str("\\_"),
            // Prevents addresses from being linked automatically.
            ':' => out.push_str(if text.contains("://") { "&#58;" } else { ":" }),
            '.' if before.eq_ignore_ascii_case(&'w') => out.push_str("&#46;"),
            '#' | '+' | '-' | '=' if at == 0 => {
                out.push('\\');
                out.push(letter);
            }
            '.' | ')' if out.chars().all(|digit| digit.is_ascii_digit()) => {
                out.push('\\');
                out.push(letter);
            }
            _ => out.push(letter),
        }
        before = letter;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_text_stands_as_text() {
        for (text, escaped) in [
            ("a*b*|c `d` [e](f) ~g~ $h$", r"a\*b\*\|c \`d\` \[e\](f) \~g\~ \$h\$"),
            ("<img src=x> & co", "&lt;img src=x&gt; &amp; co"),
            ("# no heading", r"\# no heading"),
            ("1. no list", r"1\. no list"),
            ("fraction_bits _x_", r"fraction_bits \_x_"),
            ("@who https://x.y www.z", "&#64;who https&#58;//x.y www&#46;z"),
            ("two\nlines", r"two\\u{a}lines"),
            ("fused(p0…p3 + c): 2^-24", "fused(p0…p3 + c): 2^-24"),
            ("1, 2; a/b", "1, 2; a/b"),
        ] {
            assert_eq!(words(text), escaped);
        }
    }
}
