//! The view for browsers: one self-contained page, without scripts or network access.

use std::fmt::Write as _;

use super::{
    html_matrix,
    page::{Block, Cell, CellKind, Column, Page, Table, Tone, marked},
};
use crate::{
    plain::{self, escaped, escaped_line},
    plot::{PALETTE, STYLE},
};

/// Renders the page. Every text is escaped, and characters with a special meaning are written out.
pub(super) fn text(page: &Page) -> String {
    let mut out = String::new();
    out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    // The texts of a report cannot load or run anything, even if an escape were forgotten.
    out.push_str(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
    );
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    let _ = writeln!(out, "<title>{} – mxprobe</title>", escaped_line(&page.title));
    let _ = write!(out, "<style>\n{PALETTE}{}{STYLE}</style>\n</head>\n<body>\n<main>\n", include_str!("page.css"));
    let mut sections = Vec::new();
    named(&page.blocks, &mut sections);
    let mut writer = Writer { out, sections, reached: 0, folds: 0 };
    writer.blocks(&page.blocks);
    let mut out = writer.out;
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Collects the level-2 headings that are not folded: their anchors and texts.
fn named(blocks: &[Block], sections: &mut Vec<(String, String)>) {
    for block in blocks {
        match block {
            Block::Heading { level: 2, text, anchor } => {
                let anchor = anchor.clone().unwrap_or_else(|| format!("section-{}", sections.len() + 1));
                sections.push((anchor, text.clone()));
            }
            Block::Inset(inner) | Block::Paper(inner) => named(inner, sections),
            _ => {}
        }
    }
}

fn lines(text: &str) -> String {
    escaped(&plain::lines(text))
}

/// Words in which backticks enclose code.
fn with_code(text: &str) -> String {
    let is_code = [false, true].into_iter().cycle();
    let parts = marked(text).into_iter().zip(is_code);
    parts.map(|(part, is_code)| if is_code { format!("<code>{}</code>", lines(part)) } else { lines(part) }).collect()
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Strong => "",
        Tone::Muted => " class=\"muted\"",
        Tone::Warning => " class=\"warning\"",
        Tone::Failure => " class=\"failure\"",
    }
}

/// Writes a list of links.
fn navigation<'a>(out: &mut String, name: Option<&str>, links: impl Iterator<Item = (String, &'a String)>) {
    let name = name.map_or_else(String::new, |name| format!(" aria-label=\"{name}\""));
    let _ = writeln!(out, "<nav{name}><ul>");
    for (link, text) in links {
        let _ = writeln!(out, "<li><a href=\"{}\">{}</a></li>", escaped_line(&link), escaped_line(text));
    }
    out.push_str("</ul></nav>\n");
}

struct Writer {
    out: String,
    /// The level-2 headings, from [`named`].
    sections: Vec<(String, String)>,
    /// The number of them written so far.
    reached: usize,
    /// The number of folded blocks around the current position.
    folds: usize,
}

impl Writer {
    fn blocks(&mut self, blocks: &[Block]) {
        blocks.iter().for_each(|found| self.block(found));
    }

    fn block(&mut self, found: &Block) {
        let out = &mut self.out;
        match found {
            Block::Heading { level, text, anchor } => self.heading(*level, text, anchor.as_deref()),
            Block::Words(tone, text) => {
                let _ = writeln!(out, "<p{}>{}</p>", class(*tone), lines(text));
            }
            Block::Facts(facts) => {
                out.push_str("<dl>\n");
                for (name, words) in facts {
                    let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escaped_line(name), lines(words));
                }
                out.push_str("</dl>\n");
            }
            Block::Marked(text) => {
                let _ = writeln!(out, "<p>{}</p>", with_code(text));
            }
            Block::List(sentences) => {
                out.push_str("<ul>\n");
                for (tone, text) in sentences {
                    let _ = writeln!(out, "<li{}>{}</li>", class(*tone), lines(text));
                }
                out.push_str("</ul>\n");
            }
            Block::Table(found) => self.table(found),
            Block::Lines(text) => {
                out.push_str("<pre>");
                for text in text {
                    let _ = writeln!(out, "{}", escaped_line(text));
                }
                out.push_str("</pre>\n");
            }
            Block::Details { summary, blocks: inner } => {
                let _ = writeln!(out, "<details><summary>{}</summary>", escaped_line(summary));
                self.folds += 1;
                self.blocks(inner);
                self.folds -= 1;
                self.out.push_str("</details>\n");
            }
            Block::Plot(plot) => out.push_str(&plot.figure()),
            Block::Chart(chart) => out.push_str(&chart.figure()),
            Block::Strips(strips) => out.push_str(&strips.figure()),
            Block::Trees(trees) => out.push_str(&trees.figure()),
            Block::Matrix(found) => html_matrix::matrix(out, found),
            Block::Shades(shades) => html_matrix::shades(out, shades),
            Block::Links(links) => navigation(out, None, links.iter().map(|(text, link)| (link.clone(), text))),
            Block::Contents => self.contents(),
            Block::Inset(inner) | Block::Paper(inner) => self.blocks(inner),
            Block::Gap | Block::Screen(_) => {}
        }
    }

    fn heading(&mut self, level: u8, text: &str, anchor: Option<&str>) {
        let level = level.clamp(1, 6);
        let mut anchor = anchor.map(str::to_owned);
        if level == 2 && self.folds == 0 {
            anchor = self.sections.get(self.reached).map(|(anchor, _)| anchor.clone());
            self.reached += 1;
        }
        let anchor = anchor.map_or_else(String::new, |anchor| format!(" id=\"{}\"", escaped_line(&anchor)));
        let _ = writeln!(self.out, "<h{level}{anchor}>{}</h{level}>", escaped_line(text));
    }

    fn contents(&mut self) {
        if self.sections.len() < 2 {
            return;
        }
        let links = self.sections.iter().map(|(anchor, text)| (format!("#{anchor}"), text));
        navigation(&mut self.out, Some("Contents"), links);
    }

    fn table(&mut self, Table { columns, rows, .. }: &Table) {
        // On a phone the cells of a row are placed below each other; many short ones fill lines.
        let is_short = |cell: &Cell| cell.text.chars().count() <= SHORT && cell.more.is_empty();
        let kind = match columns.len() {
            0..=2 => "pairs",
            count if count > MOST_BELOW && rows.iter().flat_map(|row| row.cells.iter().skip(1)).all(is_short) => {
                "columns many"
            }
            _ => "columns",
        };
        let scrolls = if columns.len() > MOST_BELOW { "box scroll" } else { "box" };
        let _ = write!(self.out, "<div class=\"{scrolls}\" tabindex=\"0\"><table class=\"{kind}\">\n<thead><tr>");
        for column in columns {
            let _ = write!(self.out, "<th scope=\"col\">{}</th>", escaped_line(&column.head));
        }
        self.out.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            let _ = write!(self.out, "<tr{}>", class(row.tone));
            for (number, found) in row.cells.iter().enumerate() {
                self.cell(found, number, columns);
            }
            self.out.push_str("</tr>\n");
        }
        self.out.push_str("</tbody>\n</table></div>\n");
    }

    fn cell(&mut self, cell: &Cell, number: usize, columns: &[Column]) {
        // If the head is not shown, each cell carries its label; with two columns that is not necessary.
        let label = match columns.get(number).filter(|_| columns.len() > 2) {
            Some(column) => format!(" data-label=\"{}\"", escaped_line(&column.head)),
            None => String::new(),
        };
        let (open, close) = if number == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
        let _ = write!(self.out, "<{open}{}{label}>", class(cell.tone));
        let text = match cell.kind {
            CellKind::Words => lines(&cell.text).replace('\n', "<br>"),
            CellKind::Code => format!("<code>{}</code>", lines(&cell.text).replace('\n', "<br>")),
            CellKind::Marked => with_code(&cell.text),
        };
        match &cell.link {
            Some(link) => {
                let _ = write!(self.out, "<a href=\"{}\">{text}</a>", escaped_line(link));
            }
            None => self.out.push_str(&text),
        }
        self.out.push_str(&lines(&cell.after));
        self.folds += 1;
        self.blocks(&cell.more);
        self.folds -= 1;
        let _ = write!(self.out, "</{close}>");
    }
}

/// The maximum number of columns for which a phone shows each cell on a line of its own.
const MOST_BELOW: usize = 6;
/// The maximum length of a cell, in characters, that is not wrapped.
const SHORT: usize = 24;
