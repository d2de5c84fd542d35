//! A matrix for browsers: a table with sticky heads, and on a phone one card per row.

use std::fmt::Write as _;

use super::page::{Glimpse, Matrix, Shade};
use crate::plain::escaped_line;

/// The maximum number of columns that a desktop browser shows side by side without a scrolling box.
const MOST_SIDE_BY_SIDE: usize = 8;

pub(super) fn matrix(out: &mut String, matrix: &Matrix) {
    let kind = if matrix.columns.len() > MOST_SIDE_BY_SIDE { "box scroll" } else { "box" };
    let _ = write!(out, "<div class=\"{kind}\" tabindex=\"0\"><table class=\"matrix\">\n<thead>");
    if !matrix.groups.is_empty() {
        out.push_str("<tr class=\"groups\"><td></td>");
        for (group, columns) in &matrix.groups {
            let _ = write!(out, "<th scope=\"colgroup\" colspan=\"{columns}\">{}</th>", escaped_line(group));
        }
        out.push_str("</tr>\n");
    }
    let _ = write!(out, "<tr class=\"heads\"><th scope=\"col\">{}</th>", escaped_line(&matrix.corner));
    for (head, link) in &matrix.columns {
        let _ = write!(out, "<th scope=\"col\">{}</th>", linked(head, link.as_deref()));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &matrix.rows {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", linked(&row.head, row.link.as_deref()));
        for (number, found) in row.cells.iter().enumerate() {
            let head = matrix.columns.get(number).map_or("", |(head, _)| head);
            cell(out, found, head);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

/// Writes the legend of the colours.
pub(super) fn shades(out: &mut String, shades: &[(Shade, String)]) {
    out.push_str("<p class=\"key\">");
    for (shade, words) in shades {
        let _ = write!(out, "<span class=\"{}\">{}</span> ", class(*shade), escaped_line(words));
    }
    out.push_str("</p>\n");
}

fn linked(text: &str, link: Option<&str>) -> String {
    match link {
        Some(link) => format!("<a href=\"{}\">{}</a>", escaped_line(link), escaped_line(text)),
        None => escaped_line(text),
    }
}

fn cell(out: &mut String, found: &[Glimpse], head: &str) {
    if found.is_empty() {
        let _ = write!(out, "<td class=\"none\" data-label=\"{}\">not offered</td>", escaped_line(head));
        return;
    }
    // The worst part decides the colour, so that it is not overlooked.
    let shade = found.iter().map(|found| found.shade).filter(|shade| *shade != Shade::Unknown).max();
    let _ = write!(out, "<td class=\"{}\" data-label=\"{}\">", class(shade.unwrap_or_default()), escaped_line(head));
    for Glimpse { large, words, of, .. } in found {
        let _ = write!(out, "<p><strong>{}</strong> {}", escaped_line(large), escaped_line(words));
        if !of.is_empty() {
            let _ = write!(out, " <small>{}</small>", escaped_line(of));
        }
        out.push_str("</p>");
    }
    out.push_str("</td>");
}

fn class(shade: Shade) -> &'static str {
    match shade {
        Shade::Good => "good",
        Shade::Fair => "fair",
        Shade::Lossy => "lossy",
        Shade::Poor => "poor",
        Shade::Unknown => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::{super::page::GlimpseRow, *};

    #[test]
    fn a_cell_has_the_colour_of_its_worst_part_and_on_a_phone_the_name_of_its_column() {
        let glimpse =
            |large: &str, shade| Glimpse { large: large.into(), words: "truncates".into(), of: "mma".into(), shade };
        let row = GlimpseRow {
            head: "fp8".into(),
            link: Some("fp8.html".into()),
            cells: vec![vec![glimpse("25", Shade::Lossy), glimpse("13", Shade::Poor)], Vec::new()],
        };
        let found = Matrix {
            corner: "formats".into(),
            groups: vec![("<vendor>".into(), 2)],
            columns: vec![("A & B".into(), None), ("C".into(), None)],
            rows: vec![row],
        };
        let mut out = String::new();
        matrix(&mut out, &found);
        for wanted in [
            "<td class=\"poor\" data-label=\"A &amp; B\"><p><strong>25</strong> truncates <small>mma</small></p><p><strong>13</strong>",
            "<td class=\"none\" data-label=\"C\">not offered</td>",
            "<th scope=\"colgroup\" colspan=\"2\">&lt;vendor&gt;</th>",
            "<th scope=\"row\"><a href=\"fp8.html\">fp8</a></th>",
        ] {
            assert!(out.contains(wanted), "{wanted}: {out}");
        }
    }
}
