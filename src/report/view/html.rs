//! The view for a browser: one page that needs nothing else, no script, no network.

use std::fmt::Write as _;

use super::page::{Block, Cell, CellKind, Column, Page, Table, Tone, marked};
use crate::{
    plain::{self, escaped},
    plot::{PALETTE, STYLE},
};

/// The page. Every text is escaped, and characters that would act are written out.
pub(super) fn text(page: &Page) -> String {
    let mut out = String::new();
    out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    // What a report says can load nothing and run nothing, even if an escape were forgotten.
    out.push_str(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
    );
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    let _ = writeln!(out, "<title>{} – mxprobe</title>", line(&page.title));
    let _ = write!(out, "<style>\n{PALETTE}{}{STYLE}</style>\n</head>\n<body>\n<main>\n", include_str!("page.css"));
    blocks(&mut out, &page.blocks);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn blocks(out: &mut String, blocks: &[Block]) {
    blocks.iter().for_each(|found| block(out, found));
}

fn line(text: &str) -> String {
    escaped(&plain::one_line(text))
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

fn block(out: &mut String, found: &Block) {
    match found {
        Block::Heading { level, text, anchor } => {
            let level = (*level).clamp(1, 6);
            let anchor = anchor.as_ref().map_or_else(String::new, |anchor| format!(" id=\"{}\"", line(anchor)));
            let _ = writeln!(out, "<h{level}{anchor}>{}</h{level}>", line(text));
        }
        Block::Words(tone, text) => {
            let _ = writeln!(out, "<p{}>{}</p>", class(*tone), lines(text));
        }
        Block::Facts(facts) => {
            out.push_str("<dl>\n");
            for (name, words) in facts {
                let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", line(name), lines(words));
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
        Block::Table(found) => table(out, found),
        Block::Lines(text) => {
            out.push_str("<pre>");
            for text in text {
                let _ = writeln!(out, "{}", line(text));
            }
            out.push_str("</pre>\n");
        }
        Block::Details { summary, blocks: inner } => {
            let _ = writeln!(out, "<details><summary>{}</summary>", line(summary));
            blocks(out, inner);
            out.push_str("</details>\n");
        }
        Block::Plot(plot) => out.push_str(&plot.figure()),
        Block::Chart(chart) => {
            let _ = writeln!(out, "<figure>\n{}</figure>", chart.svg());
        }
        Block::Inset(inner) | Block::Paper(inner) => blocks(out, inner),
        Block::Gap | Block::Screen(_) => {}
    }
}

fn table(out: &mut String, Table { columns, rows, .. }: &Table) {
    // On a phone the cells of a row stand one below the other; many short ones fill lines.
    let kind = match columns.len() {
        0..=2 => "pairs",
        3..=MOST_BELOW => "columns",
        _ => "columns many",
    };
    let _ = write!(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"{kind}\">\n<thead><tr>");
    for column in columns {
        let _ = write!(out, "<th scope=\"col\">{}</th>", line(&column.head));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        let _ = write!(out, "<tr{}>", class(row.tone));
        for (number, found) in row.cells.iter().enumerate() {
            cell(out, found, number, columns);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

/// The most columns whose cells a phone shows each on a line of its own.
const MOST_BELOW: usize = 6;

fn cell(out: &mut String, cell: &Cell, number: usize, columns: &[Column]) {
    // Where the head is not shown, each cell says what it is; of two columns that is plain.
    let label = match columns.get(number).filter(|_| columns.len() > 2) {
        Some(column) => format!(" data-label=\"{}\"", line(&column.head)),
        None => String::new(),
    };
    let (open, close) = if number == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
    let _ = write!(out, "<{open}{}{label}>", class(cell.tone));
    let text = match cell.kind {
        CellKind::Words => lines(&cell.text).replace('\n', "<br>"),
        CellKind::Code => format!("<code>{}</code>", lines(&cell.text).replace('\n', "<br>")),
        CellKind::Marked => with_code(&cell.text),
    };
    match &cell.link {
        Some(anchor) => {
            let _ = write!(out, "<a href=\"#{}\">{text}</a>", line(anchor));
        }
        None => out.push_str(&text),
    }
    out.push_str(&lines(&cell.after));
    blocks(out, &cell.more);
    let _ = write!(out, "</{close}>");
}
