//! Curves on panels side by side, labelled where they end: part of a page, or a file of its own.

use std::fmt::Write as _;

use super::{
    PALETTE, STYLE, Scale,
    svg::{Anchor, KINDS, grid, mark, text},
};
use crate::plain::escaped_line;

/// Panels that share their axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// The name of the x axis.
    pub x_name: String,
    /// The name of the y axis.
    pub y_name: String,
    /// The x axis of every panel.
    pub x: Scale,
    /// The y axis of every panel.
    pub y: Scale,
    /// The panels, from left to right.
    pub panels: Vec<Panel>,
}

/// A panel: its title, and curves.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The panel's own title.
    pub title: String,
    /// Its curves.
    pub curves: Vec<Curve>,
}

/// A named line through points.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name, shown where the curve ends.
    pub name: String,
    /// Curves of one kind have one colour and one mark, in every panel.
    pub kind: String,
    /// Whether the curve is dashed: its subject does not exist.
    pub dashed: bool,
    /// The points as (x, y). Points that a scale cannot show are left out.
    pub points: Vec<(f64, f64)>,
}

/// The width and minimum height of a panel's axes, and the margins around them, in SVG units.
const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 34.0;
const BELOW: f64 = 48.0;
/// The height of a file's heading.
const HEADING: f64 = 28.0;
/// The names after the curves: their distance from the axes, their width, the height of a line, and its characters.
const LEADER: f64 = 22.0;
const NAMES: f64 = 186.0;
const LINE: f64 = 14.0;
const LETTERS: usize = 20;
/// The gap between two names.
const GAP: f64 = 3.0;
/// The height of the axes relative to that of all names, at least, so that most names are close to their curves.
const ROOM: f64 = 1.3;
/// The width of a panel with its margins.
const PANEL: f64 = LEFT + WIDTH + NAMES;

/// The label of a curve.
struct Name<'a> {
    lines: Vec<&'a str>,
    kind: usize,
    dashed: bool,
    /// Where the curve ends.
    end: (f64, f64),
    /// The vertical centre of its lines.
    y: f64,
}

impl Name<'_> {
    fn height(&self) -> f64 {
        self.lines.len() as f64 * LINE + GAP
    }
}

impl Chart {
    /// Draws the chart as a file.
    #[must_use]
    pub fn svg(&self) -> String {
        let height = self.height();
        let (width, whole) = (self.panels.len() as f64 * PANEL, HEADING + TOP + height + BELOW);
        let mut out = String::new();
        let title = escaped_line(&self.title);
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {whole}\" role=\"img\" \
             aria-label=\"{title}\">\n<title>{title}</title>\n<style>\n{PALETTE}{STYLE}</style>\n<rect class=\"paper\" \
             width=\"{width}\" height=\"{whole}\"></rect>"
        );
        text(&mut out, (&LEFT.to_string(), "22"), Anchor::Start, "heading", &self.title);
        for (index, panel) in self.panels.iter().enumerate() {
            let x = index as f64 * PANEL;
            let _ = writeln!(out, "<g transform=\"translate({x},{HEADING})\">");
            self.panel(&mut out, panel, height);
            out.push_str("</g>\n");
        }
        out.push_str("</svg>\n");
        out
    }

    /// Draws a figure for a page: panels are side by side if there is room.
    #[must_use]
    pub fn figure(&self) -> String {
        let height = self.height();
        let whole = TOP + height + BELOW;
        let title = escaped_line(&self.title);
        let mut out = format!("<figure class=\"chart\">\n<figcaption>{title}</figcaption>\n");
        for panel in &self.panels {
            let names: Vec<&str> = panel.curves.iter().map(|curve| curve.name.as_str()).collect();
            let alternative = escaped_line(&format!("{}, {}: {}", self.title, panel.title, names.join("; ")));
            let _ = writeln!(
                out,
                "<svg viewBox=\"0 0 {PANEL} {whole}\" role=\"img\" aria-label=\"{alternative}\">\
                 <title>{alternative}</title>"
            );
            self.panel(&mut out, panel, height);
            out.push_str("</svg>\n");
        }
        out.push_str("</figure>\n");
        out
    }

    /// The height of the axes, so that the names of every panel fit next to them.
    fn height(&self) -> f64 {
        let names =
            |panel: &Panel| panel.curves.iter().map(|curve| wrapped(&curve.name).len() as f64 * LINE + GAP).sum();
        self.panels.iter().map(names).map(|names: f64| names * ROOM).fold(HEIGHT, f64::max)
    }

    /// The number of a curve's kind.
    fn kind(&self, curve: &Curve) -> usize {
        let mut kinds: Vec<&str> = Vec::new();
        for known in self.panels.iter().flat_map(|panel| &panel.curves) {
            if !kinds.contains(&known.kind.as_str()) {
                kinds.push(&known.kind);
            }
        }
        kinds.iter().position(|kind| *kind == curve.kind).unwrap_or(0) % KINDS
    }

    /// Draws a panel with its axes, curves and names.
    fn panel(&self, out: &mut String, panel: &Panel, height: f64) {
        let _ = writeln!(out, "<g transform=\"translate({LEFT},{TOP})\">");
        self.axes(out, height);
        text(out, ("0", "-12"), Anchor::Start, "", &panel.title);
        let mut names = Vec::new();
        for curve in &panel.curves {
            let kind = self.kind(curve);
            let place = |(x, y): &(f64, f64)| Some((self.x.at(*x)?, self.y.at(*y)?));
            let points: Vec<(f64, f64)> =
                curve.points.iter().filter_map(place).map(|(x, y)| (x * WIDTH, height - y * height)).collect();
            let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let dashed = if curve.dashed { " dashed" } else { "" };
            let (line, name) = (line.join(" "), escaped_line(&curve.name));
            let _ = writeln!(
                out,
                "<polyline class=\"curve{dashed} stroke-{kind}\" points=\"{line}\"><title>{name}</title></polyline>"
            );
            points.iter().for_each(|point| mark(out, kind, *point));
            let end = points.last().copied().unwrap_or((WIDTH, height));
            names.push(Name { lines: wrapped(&curve.name), kind, dashed: curve.dashed, end, y: end.1 });
        }
        spread(&mut names, height);
        names.iter().for_each(|found| name(out, found));
        out.push_str("</g>\n");
    }

    fn axes(&self, out: &mut String, height: f64) {
        let (width, bottom) = (WIDTH.to_string(), height.to_string());
        for tick in self.y.ticks() {
            let y = height - tick.at * height;
            grid(out, ("0", &format!("{y:.1}")), (&width, &format!("{y:.1}")));
            text(out, ("-6", &format!("{:.1}", y + 4.0)), Anchor::End, "tick", &tick.label);
        }
        for tick in self.x.ticks() {
            let x = format!("{:.1}", tick.at * WIDTH);
            grid(out, (&x, "0"), (&x, &bottom));
            text(out, (&x, &(height + 18.0).to_string()), Anchor::Middle, "tick", &tick.label);
        }
        let _ = writeln!(out, "<rect class=\"frame\" width=\"{width}\" height=\"{height}\"></rect>");
        text(out, (&(WIDTH / 2.0).to_string(), &(height + 38.0).to_string()), Anchor::Middle, "axis", &self.x_name);
        let _ = writeln!(out, "<g transform=\"translate(-56,{}) rotate(-90)\">", height / 2.0);
        text(out, ("0", "0"), Anchor::Middle, "axis", &self.y_name);
        out.push_str("</g>\n");
    }
}

/// Moves names apart, each as little as possible from where its curve ends, and none beyond the axes.
fn spread(names: &mut [Name<'_>], height: f64) {
    names.sort_by(|left, right| left.end.1.total_cmp(&right.end.1));
    let mut top = 0.0;
    for name in names.iter_mut() {
        name.y = name.y.max(top + name.height() / 2.0);
        top = name.y + name.height() / 2.0;
    }
    let mut bottom = height;
    for name in names.iter_mut().rev() {
        name.y = name.y.min(bottom - name.height() / 2.0);
        bottom = name.y - name.height() / 2.0;
    }
}

/// Draws a name, and a line to it from the end of its curve.
fn name(out: &mut String, name: &Name<'_>) {
    let Name { kind, end: (x, y), .. } = *name;
    let dashed = if name.dashed { " dashed" } else { "" };
    let _ = writeln!(
        out,
        "<path class=\"leader{dashed} stroke-{kind}\" d=\"M{x:.1} {y:.1}L{WIDTH} {y:.1}L{} {:.1}\"></path>",
        WIDTH + LEADER - 8.0,
        name.y
    );
    mark(out, kind, (WIDTH + LEADER - 4.0, name.y));
    let first = name.y - (name.lines.len() as f64 - 1.0) * LINE / 2.0 + 4.0;
    for (number, line) in name.lines.iter().enumerate() {
        let y = first + number as f64 * LINE;
        text(out, (&(WIDTH + LEADER + 4.0).to_string(), &format!("{y:.1}")), Anchor::Start, "", line);
    }
}

/// Splits a name into lines that fit next to the axes; a longer word is broken.
fn wrapped(name: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = name.trim();
    while rest.chars().count() > LETTERS {
        let end = rest.char_indices().nth(LETTERS).map_or(rest.len(), |(at, _)| at);
        let at = if rest[end..].starts_with(' ') { end } else { rest[..end].rfind(' ').unwrap_or(end) };
        let (line, tail) = rest.split_at(at);
        lines.push(line.trim_end());
        rest = tail.trim_start();
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, kind: &str, points: &[(f64, f64)]) -> Curve {
        Curve { name: name.into(), kind: kind.into(), dashed: name.contains("if"), points: points.to_vec() }
    }

    fn chart(panels: Vec<Vec<Curve>>) -> Chart {
        Chart {
            title: "errors".into(),
            x_name: "n".into(),
            y_name: "error".into(),
            x: Scale::Octaves { from: 1, to: 2 },
            y: Scale::Decades { from: -2, to: 0 },
            panels: panels.into_iter().map(|curves| Panel { title: "in (0, 1]".into(), curves }).collect(),
        }
    }

    #[test]
    fn every_curve_is_drawn_in_its_panel_and_named_where_it_ends() {
        let what_if = || curve("if not", "f16", &[(2.0, 0.1), (4.0, 0.0)]);
        let chart = chart(vec![
            vec![curve("<f16>", "f16", &[(2.0, 0.1), (4.0, 1.0)]), what_if()],
            vec![curve("<f16>", "f16", &[(4.0, 0.01)]), what_if()],
        ]);
        let svg = chart.svg();
        assert!(svg.contains("points=\"0.0,150.0 330.0,0.0\""), "{svg}");
        assert_eq!(svg.matches("<polyline ").count(), 4);
        assert_eq!(svg.matches("class=\"curve dashed stroke-0\"").count(), 2);
        assert_eq!(svg.matches("&lt;f16&gt;</text>").count(), 2, "beside each panel");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let figure = chart.figure();
        assert_eq!(figure.matches("<svg ").count(), 2);
        assert!(figure.contains("aria-label=\"errors, in (0, 1]: &lt;f16&gt;; if not\""), "{figure}");
    }

    #[test]
    fn curves_of_one_format_have_one_colour_and_one_mark_and_those_of_another_another() {
        let at = [(2.0, 0.1), (4.0, 0.1)];
        let curves = vec![curve("f16", "f16", &at), curve("bf16", "bf16", &at), curve("double-f16", "f16", &at)];
        let chart = chart(vec![curves[1..].to_vec(), curves]);
        let figure = chart.figure();
        // bf16 comes first in the first panel.
        assert_eq!(figure.matches("class=\"curve stroke-0\"").count(), 2);
        assert_eq!(figure.matches("class=\"curve stroke-1\"").count(), 3);
        let shapes = |kind: usize| -> std::collections::BTreeSet<&str> {
            let class = format!("class=\"fill-{kind}\" d=\"M");
            let marks = figure.split(&class).skip(1);
            marks.map(|mark| &mark[mark.find('m').unwrap()..mark.find('z').unwrap()]).collect()
        };
        assert_eq!((shapes(0).len(), shapes(1).len()), (1, 1));
        assert_ne!(shapes(0), shapes(1));
    }

    #[test]
    fn names_of_curves_that_end_together_stand_below_each_other_beside_the_axes() {
        let curves: Vec<Curve> = (0..30)
            .map(|number| {
                let name = format!("double-f16, if nothing is lost at alignment {number}");
                curve(&name, "f16", &[(2.0, 0.01), (4.0, if number < 20 { 0.01 } else { 1.0 })])
            })
            .collect();
        let chart = chart(vec![curves]);
        let height = chart.height();
        assert!(height > HEIGHT, "{height}");
        let svg = chart.svg();
        let wanted = format!("<text x=\"{}\" y=\"", WIDTH + LEADER + 4.0);
        let mut lines: Vec<f64> =
            svg.split(&wanted).skip(1).map(|text| text.split('"').next().unwrap().parse().unwrap()).collect();
        lines.sort_by(f64::total_cmp);
        assert!(lines.len() >= 90, "{}", lines.len());
        assert!(lines.windows(2).all(|pair| pair[1] - pair[0] > LINE - 0.2), "{lines:?}");
        assert!(lines[0] > 0.0 && lines[lines.len() - 1] < height + 1.0, "{lines:?}");
    }

    #[test]
    fn names_are_broken_between_words_if_they_can_be() {
        assert_eq!(wrapped("double-f16, blocks of 256 added in f32"), ["double-f16, blocks", "of 256 added in f32"]);
        assert_eq!(wrapped("f16"), ["f16"]);
        assert_eq!(wrapped(""), [""]);
        let word = "ü".repeat(45);
        assert_eq!(wrapped(&word).iter().map(|line| line.chars().count()).collect::<Vec<_>>(), [20, 20, 5]);
        assert_eq!(wrapped("12345678901234567890 end"), ["12345678901234567890", "end"]);
    }
}
