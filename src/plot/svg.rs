//! The elements that every plot is made of.

use std::fmt::Write as _;

use crate::plain;

/// Colours that stay apart for most people, on light and dark (Okabe and Ito 2008).
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#8c510a"];

/// The colour of a curve by its number.
pub(super) fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// Text from anywhere, harmless as text of an element and of an attribute.
pub(super) fn harmless(text: &str) -> String {
    plain::escaped(&plain::one_line(text))
}

/// Where a text stands beside its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A text at a point; `x` and `y` may be percentages, `class` says what it is.
pub(super) fn text(out: &mut String, (x, y): (&str, &str), anchor: Anchor, class: &str, words: &str) {
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<text{class} x=\"{x}\" y=\"{y}\"{anchor}>{}</text>", harmless(words));
}

/// A line of the grid.
pub(super) fn grid(out: &mut String, (from_x, from_y): (&str, &str), (to_x, to_y): (&str, &str)) {
    let _ = writeln!(out, "<line class=\"grid\" x1=\"{from_x}\" x2=\"{to_x}\" y1=\"{from_y}\" y2=\"{to_y}\"></line>");
}
