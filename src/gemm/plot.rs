//! A plot as SVG: logarithmic both ways, readable in light and dark.

use std::fmt::Write as _;

use super::{Curve, Growth, Interval};

/// Width and height of one panel's axes, and the margins around them, in SVG's units.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;
const BETWEEN: f64 = 90.0;
const LEGEND: f64 = 230.0;

/// Colours that stay apart for most people (Okabe and Ito 2008).
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#8c510a"];

/// The componentwise errors of an experiment, a panel for each interval; dashed curves are units that do not exist.
#[must_use]
pub fn svg(growth: &Growth, title: &str) -> String {
    let panels = [Interval::Positive, Interval::Centred];
    let width = LEFT + 2.0 * WIDTH + BETWEEN + LEGEND;
    let height = TOP + HEIGHT + 60.0;
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<style>text{{fill:#222}}.axis{{stroke:#888;fill:none}}.grid{{stroke:#8884}}\
         @media(prefers-color-scheme:dark){{text{{fill:#ddd}}}}</style>\n<text x=\"{LEFT}\" y=\"18\" \
         font-size=\"14\">{}</text>",
        escaped(title)
    );
    let axes = Axes::of(growth);
    for (index, interval) in panels.into_iter().enumerate() {
        let x = LEFT + index as f64 * (WIDTH + BETWEEN);
        panel(&mut svg, growth, interval, x, &axes);
    }
    legend(&mut svg, growth, LEFT + 2.0 * WIDTH + BETWEEN + 20.0);
    svg.push_str("</svg>\n");
    svg
}

/// What the axes reach.
struct Axes {
    from_n: f64,
    to_n: f64,
    /// Powers of ten.
    lowest: i32,
    highest: i32,
}

impl Axes {
    fn of(growth: &Growth) -> Self {
        let points = || growth.curves.iter().flat_map(|curve| &curve.points);
        let lengths = points().map(|point| point.n as f64);
        let errors = || points().map(|point| point.componentwise).filter(|error| *error > 0.0 && error.is_finite());
        let lowest = errors().fold(1f64, f64::min).log10().floor();
        let highest = errors().fold(1e-12, f64::max).log10().ceil();
        #[expect(clippy::cast_possible_truncation, reason = "exponents of errors are small")]
        let (lowest, highest) = (lowest as i32, highest as i32);
        Self {
            from_n: lengths.clone().fold(f64::INFINITY, f64::min),
            to_n: lengths.fold(1.0, f64::max),
            lowest,
            highest: highest.max(lowest + 1),
        }
    }

    fn x(&self, n: f64) -> f64 {
        let span = (self.to_n / self.from_n).log2().max(1.0);
        (n / self.from_n).log2() / span * WIDTH
    }

    fn y(&self, error: f64) -> f64 {
        let span = f64::from(self.highest - self.lowest);
        HEIGHT - (error.log10() - f64::from(self.lowest)) / span * HEIGHT
    }
}

fn panel(svg: &mut String, growth: &Growth, interval: Interval, x: f64, axes: &Axes) {
    let _ = writeln!(
        svg,
        "<g transform=\"translate({x},{TOP})\"><rect class=\"axis\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\
         <text x=\"{}\" y=\"-6\" text-anchor=\"middle\">elements in {}</text>",
        WIDTH / 2.0,
        escaped(interval.name())
    );
    for power in axes.lowest..=axes.highest {
        let y = axes.y(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"-6\" y=\"{:.1}\" \
             text-anchor=\"end\">1e{power}</text>",
            y + 4.0
        );
    }
    let mut n = axes.from_n;
    while n <= axes.to_n {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">2^{:.0}</text>",
            axes.x(n),
            HEIGHT + 18.0,
            n.log2()
        );
        n *= 4.0;
    }
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">n</text>", WIDTH / 2.0, HEIGHT + 38.0);
    for (colour, curve) in coloured(growth).filter(|(_, curve)| curve.interval == interval) {
        let drawn = curve.points.iter().filter(|point| point.componentwise > 0.0 && point.componentwise.is_finite());
        let points: Vec<String> =
            drawn.map(|point| format!("{:.1},{:.1}", axes.x(point.n as f64), axes.y(point.componentwise))).collect();
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{} points=\"{}\"><title>{}</title></polyline>",
            if curve.what_if.is_some() { " stroke-dasharray=\"5 4\"" } else { "" },
            points.join(" "),
            escaped(&label(curve))
        );
    }
    svg.push_str("</g>\n");
}

/// Curves with their colours, the same on both intervals.
fn coloured(growth: &Growth) -> impl Iterator<Item = (&'static str, &Curve)> {
    let in_panel = growth.curves.iter().filter(|curve| curve.interval == Interval::Positive).count().max(1);
    growth.curves.iter().enumerate().map(move |(at, curve)| (COLOURS[at % in_panel % COLOURS.len()], curve))
}

fn legend(svg: &mut String, growth: &Growth, x: f64) {
    for (row, (colour, curve)) in coloured(growth).filter(|(_, curve)| curve.interval == Interval::Positive).enumerate()
    {
        let y = TOP + 12.0 + row as f64 * 20.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"2\"{}/>\
             <text x=\"{}\" y=\"{}\">{}</text>",
            x + 24.0,
            if curve.what_if.is_some() { " stroke-dasharray=\"5 4\"" } else { "" },
            x + 30.0,
            y + 4.0,
            escaped(&label(curve))
        );
    }
}

fn label(curve: &Curve) -> String {
    match curve.what_if {
        Some(cause) => format!("{}, if {}", curve.name, cause.words()),
        None => curve.name.clone(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
