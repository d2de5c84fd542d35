//! Summation trees, side by side: an addition is a bar, and its terms hang below it.

use std::fmt::Write as _;

use super::{
    sum::{Drawn, Sum, folded},
    svg::{Anchor, text},
};
use crate::plain::escaped_line;

/// Trees side by side, as many to a line as fit.
#[derive(Clone, Debug)]
pub struct Trees {
    /// The title.
    pub title: String,
    /// The trees, in reading order.
    pub trees: Vec<Tree>,
}

/// The tree of a device or an operation.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The device or operation.
    pub label: String,
    /// The tree in words: `2 steps of 8 products each`.
    pub words: String,
    /// The tree.
    pub sum: Sum,
}

/// In pixels: the minimum width of a term, the width of a letter below it, the maximum and minimum height of a level,
/// and the height of all levels.
const SLOT: usize = 20;
const LETTER: usize = 6;
const LEVEL: (usize, usize) = (16, 7);
const LEVELS: usize = 110;
/// Pixels above the highest bar and below the terms.
const ABOVE: usize = 16;
const BELOW: usize = 16;

impl Trees {
    /// A figure for a page.
    #[must_use]
    pub fn figure(&self) -> String {
        let title = escaped_line(&self.title);
        let mut out = format!("<figure class=\"trees\">\n<figcaption>{title}</figcaption>\n");
        for tree in &self.trees {
            tree.draw(&mut out);
        }
        out.push_str("</figure>\n");
        out
    }
}

/// A tree that is being drawn, in pixels.
struct Drawing {
    lines: String,
    dotted: String,
    texts: String,
    /// The left edge of the next term.
    next: usize,
    level: usize,
    bottom: usize,
}

impl Tree {
    fn draw(&self, out: &mut String) {
        let sum = folded(&self.sum);
        let levels = sum.levels().max(1);
        let level = (LEVELS / levels).clamp(LEVEL.1, LEVEL.0);
        let bottom = ABOVE + levels * level + level;
        let mut drawing =
            Drawing { lines: String::new(), dotted: String::new(), texts: String::new(), next: 0, level, bottom };
        // The result leaves at the top.
        let (x, y) = drawing.sum(&sum);
        let _ = write!(drawing.lines, "M{x} {}V{}", y.min(bottom), ABOVE - 8);
        text(&mut drawing.texts, (&(x + 4).to_string(), &(ABOVE - 4).to_string()), Anchor::Start, "", "d");
        let (width, height) = (drawing.next + 4, bottom + BELOW);
        let alternative = escaped_line(&format!("{}: {}", self.label, self.words));
        let _ = writeln!(
            out,
            "<div class=\"tree\"><p><strong>{}</strong> {}</p><svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{alternative}\"><title>{alternative}</title>",
            escaped_line(&self.label),
            escaped_line(&self.words)
        );
        let _ = writeln!(out, "<path class=\"sum\" d=\"{}\"></path>", drawing.lines);
        if !drawing.dotted.is_empty() {
            let _ = writeln!(out, "<path class=\"sum dashed\" d=\"{}\"></path>", drawing.dotted);
        }
        out.push_str(&drawing.texts);
        out.push_str("</svg></div>\n");
    }
}

impl Drawing {
    /// Draws a sum, and returns the point where its result leaves it.
    fn sum(&mut self, sum: &Drawn) -> (usize, usize) {
        match sum {
            Drawn::Term { label, is_many } => {
                let width = SLOT.max(label.chars().count() * LETTER + 4);
                let x = self.next + width / 2;
                self.next += width;
                let (y, label_y) = (self.bottom, self.bottom + 12);
                text(&mut self.texts, (&x.to_string(), &label_y.to_string()), Anchor::Middle, "tick", label);
                if *is_many {
                    // Several terms hang here: a dotted line ends where one of theirs would.
                    return (x, usize::MAX);
                }
                (x, y)
            }
            Drawn::Added(terms) => {
                let ends: Vec<(usize, usize)> = terms.iter().map(|term| self.sum(term)).collect();
                let y = self.bottom - sum.levels() * self.level;
                for (x, from) in &ends {
                    let (path, from) = match *from {
                        usize::MAX => (&mut self.dotted, self.bottom),
                        from => (&mut self.lines, from),
                    };
                    let _ = write!(path, "M{x} {from}V{y}");
                }
                let (first, last) = (ends.first().map_or(0, |end| end.0), ends.last().map_or(0, |end| end.0));
                let _ = write!(self.lines, "M{first} {y}H{last}");
                // A step of a chain continues where its last term ends; a sum of sums, from its middle.
                let is_step = terms[1..].iter().all(|term| matches!(term, Drawn::Term { .. }));
                (if is_step { last } else { first.midpoint(last) }, y)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(terms: impl IntoIterator<Item = Sum>) -> Sum {
        Sum::Added(terms.into_iter().collect())
    }

    fn blocks(k: usize, width: usize) -> Sum {
        (0..k / width)
            .fold(Sum::C, |sum, block| added((block * width..(block + 1) * width).map(Sum::Product).chain([sum])))
    }

    fn svg(sum: Sum) -> String {
        let tree = Tree { label: "<unit>".into(), words: "as it adds".into(), sum };
        Trees { title: "order".into(), trees: vec![tree] }.figure()
    }

    fn labels(svg: &str) -> Vec<String> {
        let texts = svg.split("<text class=\"tick\"").skip(1);
        texts.map(|text| text.split(['>', '<']).nth(1).unwrap().to_owned()).collect()
    }

    #[test]
    fn a_short_sum_is_drawn_whole_with_c_where_it_is_added() {
        let chain = svg(blocks(4, 1));
        assert_eq!(labels(&chain), ["c", "p0", "p1", "p2", "p3"]);
        let last = svg(added([Sum::C, added([Sum::Product(0), Sum::Product(1)])]));
        assert_eq!(labels(&last), ["p0", "p1", "c"]);
        assert_eq!(labels(&svg(blocks(16, 4))).len(), 17);
        // One addition of 17 terms has one bar, and a line for each term and for d.
        let fused = svg(blocks(16, 16));
        let path = fused.split("class=\"sum\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!((path.matches('H').count(), path.matches('V').count()), (1, 18), "{path}");
        assert!(fused.contains("aria-label=\"&lt;unit&gt;: as it adds\""), "{fused}");
    }

    #[test]
    fn no_line_leaves_the_drawing_and_no_label_touches_the_next() {
        let pairs = |from: usize, to: usize| -> Sum {
            fn half(from: usize, to: usize) -> Sum {
                if to - from == 1 {
                    return Sum::Product(from);
                }
                added([half(from, from.midpoint(to)), half(from.midpoint(to), to)])
            }
            added([Sum::C, half(from, to)])
        };
        let shapes = [blocks(1, 1), blocks(64, 1), blocks(64, 4), blocks(64, 64), pairs(0, 64), pairs(64, 192)];
        for sum in shapes.into_iter().chain([added([]), Sum::C, added([added([])])]) {
            let svg = svg(sum);
            let number = |text: &str| text.parse::<usize>().unwrap_or_else(|_| panic!("{text}: {svg}"));
            let size = svg.split("viewBox=\"0 0 ").nth(1).unwrap().split('"').next().unwrap();
            let (width, height) = size.split_once(' ').map(|(width, height)| (number(width), number(height))).unwrap();
            assert!(width <= 390 && height <= 180, "{width} × {height}");
            for path in svg.split(" d=\"").skip(1).map(|path| path.split('"').next().unwrap()) {
                for part in path.split('M').filter(|part| !part.is_empty()) {
                    let (x, rest) = part.split_once(' ').unwrap();
                    let (y, to) = rest.split_once(['V', 'H']).unwrap();
                    let limit = if rest.contains('V') { height } else { width };
                    assert!(number(x) < width && number(y) <= height && number(to) <= limit, "{part}: {svg}");
                }
            }
            let texts: Vec<(usize, usize)> = svg
                .split("<text class=\"tick\" x=\"")
                .skip(1)
                .map(|text| {
                    (number(text.split('"').next().unwrap()), text.split(['>', '<']).nth(1).unwrap().chars().count())
                })
                .collect();
            for pair in texts.windows(2) {
                assert!(pair[0].0 + (pair[0].1 + pair[1].1) * LETTER / 2 < pair[1].0, "{pair:?}");
            }
        }
    }
}
