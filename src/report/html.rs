//! The view for a browser: one page that needs nothing else, no script, no network.

use std::fmt::Write as _;

use super::{
    document::{Block, Cell, Document, Row, Tone},
    plain,
    plot::{Bar, Plot},
};

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
    let _ = write!(out, "<style>\n{}</style>\n</head>\n<body>\n<main>\n", include_str!("page.css"));
    document.blocks.iter().for_each(|found| block(&mut out, found));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(letter),
        }
    }
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
        Block::Plot(plot) => draw(out, plot),
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

/// Height of a bar with its label above it.
const STEP: usize = 36;
/// The longest bar's share of the width, in percent; the rest is for the number behind it.
const LONGEST: f64 = 84.0;

fn draw(out: &mut String, plot: &Plot) {
    let longest = plot.bars.iter().flat_map(|bar| [bar.length, bar.mark.unwrap_or(0.0)]).fold(1.0, f64::max);
    let height = plot.bars.len() * STEP + 4;
    let title = line(&plot.title);
    let _ = writeln!(out, "<figure>\n<figcaption>{title}</figcaption>");
    let _ = writeln!(out, "<svg width=\"100%\" height=\"{height}\" role=\"img\" aria-label=\"{title}\">");
    for (number, bar) in plot.bars.iter().enumerate() {
        draw_bar(out, bar, number * STEP, LONGEST / longest, &plot.unit);
    }
    out.push_str("</svg>\n</figure>\n");
}

/// A bar from `top`, lengths times `scale` percent wide, so that text keeps its size on every screen.
fn draw_bar(out: &mut String, bar: &Bar, top: usize, scale: f64, unit: &str) {
    let (text, middle, below) = (top + 12, top + 18, top + 29);
    let width = bar.length * scale;
    let number = format!("{}{} {unit}", if bar.at_least { "≥ " } else { "" }, bar.length);
    let _ = writeln!(out, "<text x=\"0\" y=\"{text}\">{}</text>", line(&bar.label));
    let _ = writeln!(out, "<rect class=\"bar\" x=\"0\" y=\"{middle}\" width=\"{width:.2}%\" height=\"12\"></rect>");
    if let Some(mark) = bar.mark {
        let (at, from) = (mark * scale, top + 16);
        let _ = writeln!(out, "<rect class=\"mark\" x=\"{at:.2}%\" y=\"{from}\" width=\"2.5\" height=\"16\"></rect>");
    }
    let end = width.max(bar.mark.unwrap_or(0.0) * scale);
    let _ = writeln!(out, "<text x=\"{end:.2}%\" dx=\"7\" y=\"{below}\">{}</text>", line(&number));
}
