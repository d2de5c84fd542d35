//! Horizontal bars on a common axis that starts at zero.

use std::fmt::Write as _;

use super::{
    Scale,
    svg::{Anchor, grid, text},
};
use crate::plain::escaped_line;

/// A bar chart; all bars have the same unit.
#[derive(Clone, Debug)]
pub struct Bars {
    /// The title.
    pub title: String,
    /// The unit of the lengths.
    pub unit: String,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// A labelled bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The label.
    pub label: String,
    /// The length.
    pub length: Length,
    /// An optional mark across the bar, at this length.
    pub mark: Option<f64>,
}

/// The length of a bar, in units of the plot; zero or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// A known length.
    Of(f64),
    /// Unbounded: drawn beyond the axis, with an arrow.
    Endless {
        /// The length is known to be at least this.
        at_least: f64,
    },
}

impl Length {
    /// The value that the axis must reach for this length.
    fn known(self) -> f64 {
        match self {
            Self::Of(length) | Self::Endless { at_least: length } => length,
        }
    }
}

/// The share of the width that the axis takes, in percent; the rest is for the number after the longest bar.
const AXIS: f64 = 64.0;
/// Where an unbounded bar stops and its arrow begins, in percent of the width.
const BEYOND: f64 = 67.0;
/// The arrow's length, in pixels.
const ARROW: usize = 9;
/// The height of a label's line, of a bar with its margins, and of the area below the bars, in pixels.
const LINE: usize = 15;
const BAR: usize = 22;
const BELOW: usize = 38;
/// Pixels between a bar and its number.
const TEXT_GAP: usize = 7;
/// Characters that fit into a line on a phone.
const LABEL: usize = 46;

impl Bars {
    /// Draws a figure for a page that fills the width: lengths are shares of the width, so that texts keep their size.
    #[must_use]
    pub fn figure(&self) -> String {
        let longest =
            self.bars.iter().flat_map(|bar| [bar.length.known(), bar.mark.unwrap_or(0.0)]).fold(0.0, f64::max);
        let scale = Scale::FromZero { to: if longest > 0.0 { longest } else { 1.0 } };
        let labels: Vec<Vec<&str>> = self.bars.iter().map(|bar| lines(&bar.label)).collect();
        let bottom = labels.iter().map(|lines| lines.len() * LINE + BAR).sum::<usize>();
        let title = escaped_line(&self.title);
        let mut out = format!("<figure>\n<figcaption>{title}</figcaption>\n");
        let _ = writeln!(
            out,
            "<svg class=\"plot\" width=\"100%\" height=\"{}\" role=\"img\" aria-label=\"{title}\">",
            bottom + BELOW
        );
        self.axis(&mut out, scale, bottom);
        let mut top = 0;
        for (bar, lines) in self.bars.iter().zip(labels) {
            for line in &lines {
                text(&mut out, ("0", &(top + 12).to_string()), Anchor::Start, "", line);
                top += LINE;
            }
            self.bar(&mut out, bar, scale, top);
            top += BAR;
        }
        out.push_str("</svg>\n</figure>\n");
        out
    }

    fn axis(&self, out: &mut String, scale: Scale, bottom: usize) {
        for tick in scale.ticks() {
            let at = format!("{:.2}%", tick.at * AXIS);
            grid(out, (&at, "0"), (&at, &bottom.to_string()));
            let anchor = if tick.at > 0.0 { Anchor::Middle } else { Anchor::Start };
            text(out, (&at, &(bottom + 14).to_string()), anchor, "tick", &tick.label);
        }
        text(out, ("0", &(bottom + 30).to_string()), Anchor::Start, "axis", &self.unit);
    }

    fn bar(&self, out: &mut String, bar: &Bar, scale: Scale, top: usize) {
        let percent = |length: f64| scale.at(length).unwrap_or(0.0) * AXIS;
        let width = match bar.length {
            Length::Of(length) => percent(length),
            Length::Endless { .. } => BEYOND,
        };
        let _ =
            writeln!(out, "<rect class=\"bar\" x=\"0\" y=\"{}\" width=\"{width:.2}%\" height=\"12\"></rect>", top + 3);
        if let Some(mark) = bar.mark {
            let _ = writeln!(
                out,
                "<rect class=\"mark\" x=\"{:.2}%\" y=\"{}\" width=\"2.5\" height=\"16\"></rect>",
                percent(mark),
                top + 1
            );
        }
        let (number, end, gap) = match bar.length {
            Length::Of(length) => {
                (format!("{length} {}", self.unit), percent(length.max(bar.mark.unwrap_or(0.0))), TEXT_GAP)
            }
            Length::Endless { at_least } => {
                let _ = writeln!(
                    out,
                    "<svg x=\"{BEYOND:.2}%\" y=\"{top}\" width=\"{ARROW}\" height=\"18\"><path class=\"bar\" \
                     d=\"M0 0L{ARROW} 9L0 18z\"></path></svg>"
                );
                (format!("all (≥ {at_least})"), BEYOND, ARROW + TEXT_GAP)
            }
        };
        let _ = writeln!(out, "<text x=\"{end:.2}%\" dx=\"{gap}\" y=\"{}\">{}</text>", top + 13, escaped_line(&number));
    }
}

/// Splits a label into lines that fit on a phone, broken after a dot or a space; a longer word is not broken.
fn lines(label: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = label;
    while rest.chars().count() > LABEL {
        let end = rest.char_indices().nth(LABEL).map_or(rest.len(), |(at, _)| at);
        let Some(at) = rest[..end].rfind(['.', ' ']).filter(|at| *at > 0) else { break };
        let (line, tail) = rest.split_at(at + 1);
        lines.push(line.trim_end());
        rest = tail;
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_labels_are_broken_where_they_may_be_and_stay_whole() {
        let label = "mma.m16n8k64.f32.e2m1.e2m1.f32.block32.ue8m0 and 3 more";
        assert_eq!(lines(label), ["mma.m16n8k64.f32.e2m1.e2m1.f32.block32.ue8m0", "and 3 more"]);
        assert_eq!(lines("mma.m8n8k4"), ["mma.m8n8k4"]);
        let word = "w".repeat(100);
        assert_eq!(lines(&word), [word.as_str()]);
        assert_eq!(lines(""), [""]);
    }

    #[test]
    fn a_bar_has_its_number_with_its_unit_and_the_axis_its_ticks() {
        let bar = |length| Bar { label: "<x>".into(), length: Length::Of(length), mark: Some(10.0) };
        let bars = Bars { title: "a & b".into(), unit: "bits".into(), bars: vec![bar(12.0), bar(24.0)] };
        let figure = bars.figure();
        for wanted in [">12 bits<", ">24 bits<", ">&lt;x&gt;<", ">a &amp; b<", "width=\"32.00%\"", ">20<", ">bits<"] {
            assert!(figure.contains(wanted), "{wanted}: {figure}");
        }
        let empty = Bars { bars: vec![bar(0.0)], ..bars };
        assert!(!empty.figure().contains("NaN"), "{}", empty.figure());
    }

    #[test]
    fn a_bar_without_end_reaches_beyond_every_other_and_has_an_arrow() {
        let bar = |length| Bar { label: "x".into(), length, mark: None };
        let all = vec![bar(Length::Of(25.0)), bar(Length::Endless { at_least: 23.0 })];
        let figure = Bars { title: "t".into(), unit: "bits".into(), bars: all }.figure();
        let widths: Vec<f64> = figure
            .split("class=\"bar\" x=\"0\"")
            .skip(1)
            .map(|rest| rest.split("width=\"").nth(1).unwrap().split('%').next().unwrap().parse().unwrap())
            .collect();
        assert!(widths.len() == 2 && widths[1] > widths[0], "{widths:?}");
        assert_eq!(figure.matches("<path class=\"bar\"").count(), 1, "{figure}");
        assert!(figure.contains(">25 bits<") && figure.contains(">all (≥ 23)<"), "{figure}");
    }
}
