//! The view for a browser: one page that needs nothing else, no script, no network.

use std::fmt::Write as _;

use crate::plain::{self, escaped};

use super::document::{Block, Cell, Document, Row, Tone};
use crate::plot::{PALETTE, STYLE};

/// The page. Every text is escaped, and characters that would act are written out.
pub(super) fn page(document: &Document) -> String {
    let mut out = String::new();
    out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    // What a report says can load nothing and run nothing, even if an escape were forgotten.
    out.push_str(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
    );
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    let _ = writeln!(out, "<title>{} – mxprobe</title>", line(&document.title));
    let _ = write!(out, "<style>\n{PALETTE}{}{STYLE}</style>\n</head>\n<body>\n<main>\n", include_str!("page.css"));
    document.blocks.iter().for_each(|found| block(&mut out, found));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn line(text: &str) -> String {
    escaped(&plain::one_line(text))
}

fn lines(text: &str) -> String {
    escaped(&plain::lines(text))
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Muted => " class=\"muted\"",
        Tone::Warning => " class=\"warning\"",
        Tone::Failure => " class=\"failure\"",
    }
}

fn block(out: &mut String, block_of: &Block) {
    match block_of {
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
        Block::Table { head, rows } => table(out, head, rows),
        Block::Lines(text) => {
            out.push_str("<pre>");
            for text in text {
                let _ = writeln!(out, "{}", line(text));
            }
            out.push_str("</pre>\n");
        }
        Block::Details { summary, blocks } => {
            let _ = writeln!(out, "<details><summary>{}</summary>", line(summary));
            blocks.iter().for_each(|inner| block(out, inner));
            out.push_str("</details>\n");
        }
        Block::Plot(plot) => out.push_str(&plot.figure()),
    }
}

fn table(out: &mut String, head: &[String], rows: &[Row]) {
    // On a phone the cells of a row stand one below the other; many short ones fill lines.
    let kind = match head.len() {
        0..=2 => "pairs",
        3..=MOST_BELOW => "columns",
        _ => "columns many",
    };
    let _ = write!(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"{kind}\">\n<thead><tr>");
    for name in head {
        let _ = write!(out, "<th scope=\"col\">{}</th>", line(name));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        let _ = write!(out, "<tr{}>", class(row.tone));
        for (number, found) in row.cells.iter().enumerate() {
            cell(out, found, number, head);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

/// The most columns whose cells a phone shows each on a line of its own.
const MOST_BELOW: usize = 6;

fn cell(out: &mut String, cell: &Cell, number: usize, head: &[String]) {
    // Where the head is not shown, each cell says what it is; of two columns that is plain.
    let label = match head.get(number).filter(|_| head.len() > 2) {
        Some(name) => format!(" data-label=\"{}\"", line(name)),
        None => String::new(),
    };
    let (open, close) = if number == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
    let _ = write!(out, "<{open}{}{label}>", class(cell.tone));
    let text = lines(&cell.text).replace('\n', "<br>");
    let text = if cell.code { format!("<code>{text}</code>") } else { text };
    match &cell.link {
        Some(anchor) => {
            let _ = write!(out, "<a href=\"#{}\">{text}</a>", line(anchor));
        }
        None => out.push_str(&text),
    }
    out.push_str(&lines(&cell.after));
    cell.more.iter().for_each(|more| block(out, more));
    let _ = write!(out, "</{close}>");
}
