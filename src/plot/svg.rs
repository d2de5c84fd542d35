//! The SVG elements that all plots share.

use std::fmt::Write as _;

use crate::plain::escaped_line;

/// The number of curve kinds. Each has a mark and a colour, from `--curve-0` in the palette; after Okabe and Ito 2008,
/// most people can tell the colours apart, and from the background.
pub(super) const KINDS: usize = 8;

/// Draws the mark of a kind of curve at a point.
pub(super) fn mark(out: &mut String, kind: usize, (x, y): (f64, f64)) {
    let kind = kind % KINDS;
    let shape = match kind {
        0 => "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
        1 => "m-3 -3h6v6h-6z",
        2 => "m0 -4l4 7h-8z",
        3 => "m0 -4.5l4 4.5l-4 4.5l-4 -4.5z",
        4 => "m0 4l4 -7h-8z",
        5 => "m-4 -1h3v-3h2v3h3v2h-3v3h-2v-3h-3z",
        6 => "m-4 -1.5h8v3h-8z",
        _ => "m-1.5 -4h3v8h-3z",
    };
    let _ = writeln!(out, "<path class=\"fill-{kind}\" d=\"M{x:.1} {y:.1}{shape}\"></path>");
}

/// The alignment of a text relative to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Draws a text at a point; `x` and `y` may be percentages, `class` is the CSS class.
pub(super) fn text(out: &mut String, (x, y): (&str, &str), anchor: Anchor, class: &str, words: &str) {
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<text{class} x=\"{x}\" y=\"{y}\"{anchor}>{}</text>", escaped_line(words));
}

/// Draws a grid line.
pub(super) fn grid(out: &mut String, (from_x, from_y): (&str, &str), (to_x, to_y): (&str, &str)) {
    let _ = writeln!(out, "<line class=\"grid\" x1=\"{from_x}\" x2=\"{to_x}\" y1=\"{from_y}\" y2=\"{to_y}\"></line>");
}
