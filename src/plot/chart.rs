//! Curves on panels side by side, with one legend: a file of its own.

use std::fmt::Write as _;

use super::{
    PALETTE, STYLE, Scale,
    svg::{Anchor, colour, grid, harmless, text},
};

/// Panels that share their axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What runs along x.
    pub x_name: String,
    /// What runs along y.
    pub y_name: String,
    /// Of every panel.
    pub x: Scale,
    /// Of every panel.
    pub y: Scale,
    /// From left to right.
    pub panels: Vec<Panel>,
}

/// A panel: its title, and curves. Curves with the same number in their panels have one colour and one entry of the legend.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What is particular to it.
    pub title: String,
    /// Its curves.
    pub curves: Vec<Curve>,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What it is of.
    pub name: String,
    /// It is of something that does not exist.
    pub dashed: bool,
    /// x and y. What a scale has no place for is left out.
    pub points: Vec<(f64, f64)>,
}

/// Width and height of a panel's axes, and what is around them, in SVG's units.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 56.0;
const RIGHT: f64 = 24.0;
/// From the axes to the legend, and a line of it.
const BELOW: f64 = 64.0;
const ROW: f64 = 20.0;
/// Letters that half a legend has room for.
const LONGEST: usize = 60;

impl Chart {
    /// The file.
    #[must_use]
    pub fn svg(&self) -> String {
        let legend: &[Curve] = self.panels.first().map_or(&[], |panel| &panel.curves);
        let width = self.panels.len() as f64 * (LEFT + WIDTH) + RIGHT;
        // Side by side where names are short enough.
        let columns = if legend.iter().any(|curve| curve.name.chars().count() > LONGEST) { 1 } else { 2 };
        let rows = legend.len().div_ceil(columns) as f64;
        let height = TOP + HEIGHT + BELOW + rows * ROW;
        let mut out = String::new();
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{}\">\n<style>\n{PALETTE}{STYLE}</style>\n<rect class=\"paper\" width=\"{width}\" \
             height=\"{height}\"></rect>",
            harmless(&self.title)
        );
        text(&mut out, (&LEFT.to_string(), "22"), Anchor::Start, "heading", &self.title);
        for (index, panel) in self.panels.iter().enumerate() {
            let x = LEFT + index as f64 * (LEFT + WIDTH);
            let _ = writeln!(out, "<g transform=\"translate({x},{TOP})\">");
            self.axes(&mut out);
            self.curves(&mut out, panel);
            out.push_str("</g>\n");
        }
        for (number, curve) in legend.iter().enumerate() {
            let x = LEFT + (number % columns) as f64 * (LEFT + WIDTH);
            let y = TOP + HEIGHT + BELOW + (number / columns) as f64 * ROW;
            entry(&mut out, (x, y), number, curve);
        }
        out.push_str("</svg>\n");
        out
    }

    fn axes(&self, out: &mut String) {
        let (width, height) = (WIDTH.to_string(), HEIGHT.to_string());
        for tick in self.y.ticks() {
            let y = HEIGHT - tick.at * HEIGHT;
            grid(out, ("0", &format!("{y:.1}")), (&width, &format!("{y:.1}")));
            text(out, ("-6", &format!("{:.1}", y + 4.0)), Anchor::End, "tick", &tick.label);
        }
        for tick in self.x.ticks() {
            let x = format!("{:.1}", tick.at * WIDTH);
            grid(out, (&x, "0"), (&x, &height));
            text(out, (&x, &(HEIGHT + 18.0).to_string()), Anchor::Middle, "tick", &tick.label);
        }
        let _ = writeln!(out, "<rect class=\"frame\" width=\"{width}\" height=\"{height}\"></rect>");
        text(out, (&(WIDTH / 2.0).to_string(), &(HEIGHT + 38.0).to_string()), Anchor::Middle, "axis", &self.x_name);
        let _ = writeln!(out, "<g transform=\"translate(-62,{}) rotate(-90)\">", HEIGHT / 2.0);
        text(out, ("0", "0"), Anchor::Middle, "axis", &self.y_name);
        out.push_str("</g>\n");
    }

    fn curves(&self, out: &mut String, panel: &Panel) {
        text(out, (&(WIDTH / 2.0).to_string(), "-8"), Anchor::Middle, "", &panel.title);
        for (number, curve) in panel.curves.iter().enumerate() {
            let place = |(x, y): &(f64, f64)| Some((self.x.at(*x)?, self.y.at(*y)?));
            let points: Vec<(f64, f64)> =
                curve.points.iter().filter_map(place).map(|(x, y)| (x * WIDTH, HEIGHT - y * HEIGHT)).collect();
            let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = writeln!(
                out,
                "<polyline {} points=\"{}\"><title>{}</title></polyline>",
                stroke(number, curve),
                line.join(" "),
                harmless(&curve.name)
            );
            // A line through one point is none.
            if let [(x, y)] = points[..] {
                let _ =
                    writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{}\"></circle>", colour(number));
            }
        }
    }
}

fn stroke(number: usize, curve: &Curve) -> String {
    let dashed = if curve.dashed { " dashed" } else { "" };
    format!("class=\"curve{dashed}\" stroke=\"{}\"", colour(number))
}

fn entry(out: &mut String, (x, y): (f64, f64), number: usize, curve: &Curve) {
    let _ =
        writeln!(out, "<line {} x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"></line>", stroke(number, curve), x + 24.0);
    text(out, (&(x + 32.0).to_string(), &(y + 4.0).to_string()), Anchor::Start, "", &curve.name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_is_drawn_in_its_panel_and_named_once_in_the_legend() {
        let curve = |name: &str, dashed, points| Curve { name: name.into(), dashed, points };
        let panel = |points: Vec<(f64, f64)>| Panel {
            title: "in (0, 1]".into(),
            curves: vec![curve("<f16>", false, points), curve("if not", true, vec![(2.0, 0.1), (4.0, 0.0)])],
        };
        let chart = Chart {
            title: "errors".into(),
            x_name: "n".into(),
            y_name: "error".into(),
            x: Scale::Octaves { from: 1, to: 2 },
            y: Scale::Decades { from: -2, to: 0 },
            panels: vec![panel(vec![(2.0, 0.1), (4.0, 1.0)]), panel(vec![(4.0, 0.01)])],
        };
        let svg = chart.svg();
        assert!(svg.contains("points=\"0.0,150.0 420.0,0.0\""), "{svg}");
        assert_eq!(svg.matches("<polyline ").count(), 4);
        assert_eq!(svg.matches(" dashed\"").count(), 3, "two curves and the legend");
        // Two of the second curve, and one of the first, have one point.
        assert_eq!(svg.matches("<circle ").count(), 3);
        assert_eq!(svg.matches("&lt;f16&gt;</text>").count(), 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
