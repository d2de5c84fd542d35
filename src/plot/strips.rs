//! Strips of bits: which bits an adder keeps and drops below its largest term.

use std::fmt::Write as _;

use super::{
    PALETTE, STYLE,
    svg::{Anchor, text},
};
use crate::plain::escaped_line;

/// Strips below each other, on one scale, with the leading bit of the largest term on the left.
#[derive(Clone, Debug)]
pub struct Strips {
    /// The title.
    pub title: String,
    /// The strips, from top to bottom.
    pub strips: Vec<Strip>,
}

/// The strip of a device or an operation.
#[derive(Clone, Debug)]
pub struct Strip {
    /// The device or operation.
    pub label: String,
    /// The fraction bits that survive alignment.
    pub kept: Kept,
    /// Where the result's format ends, if known.
    pub ends: Option<Ends>,
    /// How the remaining bits are treated: `truncated, then toward zero`.
    pub words: String,
}

/// How many fraction bits are kept below the leading bit of the largest term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// This many.
    Bits(u32),
    /// At least this many, the limit of what was tested: drawn as if there were no end.
    AtLeast(u32),
    /// Every bit: drawn longer than any other, with an arrow, and labelled exact.
    All,
}

/// The end of the result's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Its name: `f32`.
    pub format: String,
    /// Its fraction bits.
    pub bits: u32,
}

/// The fewest and the most columns of a figure. A strip with more bits fills them all.
const FEWEST: u32 = 40;
const MOST: u32 = 160;
/// Dropped bits that are drawn beyond the longest strip.
const BEYOND: u32 = 6;
/// Columns that the arrow of an exact strip takes.
const ARROW: u32 = 2;
/// The step between numbers on the axis, in bits; long axes use a multiple of it.
const STEP: u32 = 8;
/// The height of a strip, in units of the width of a bit.
const HEIGHT: u32 = 10;
/// In a file, in pixels: the height above the strips and of a strip; the widths of names, bits, words, the space
/// between them, and a letter.
const HEAD: usize = 40;
const LINE: usize = 22;
const NAMES: usize = 400;
const BITS: usize = 440;
const WORDS: usize = 400;
const SPACE: usize = 14;
const LETTER: usize = 8;
/// The filled share of a bit's width.
const FILLED: f64 = 0.88;

impl Strips {
    /// Draws a figure for a page that fills the width. Names and words are HTML text, which may wrap.
    #[must_use]
    pub fn figure(&self) -> String {
        let columns = self.columns();
        let title = escaped_line(&self.title);
        let mut out = format!("<figure class=\"strips\">\n<figcaption>{title}</figcaption>\n");
        for strip in &self.strips {
            strip.draw(&mut out, columns);
        }
        self.axis(&mut out, columns);
        out.push_str("</figure>\n");
        out
    }

    /// Draws a file: names on the left, the treatment of other bits on the right; text that does not fit is cut.
    #[must_use]
    pub fn svg(&self) -> String {
        let columns = self.columns();
        let (words_at, width) = (NAMES + BITS + 2 * SPACE, NAMES + BITS + WORDS + 2 * SPACE);
        let height = HEAD + LINE * self.strips.len() + 40;
        let title = escaped_line(&self.title);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{title}\">\n<title>{title}</title>\n<style>\n{PALETTE}{STYLE}</style>\n<rect class=\"paper\" \
             width=\"{width}\" height=\"{height}\"></rect>\n"
        );
        text(&mut out, ("8", "24"), Anchor::Start, "heading", &self.title);
        for (number, strip) in self.strips.iter().enumerate() {
            let top = HEAD + number * LINE;
            let line = (top + 15).to_string();
            text(&mut out, ("8", &line), Anchor::Start, "", &cut(&strip.label, (NAMES - 8) / LETTER));
            let words = cut(&format!("{}, {}", strip.number(), strip.words), WORDS / LETTER);
            text(&mut out, (&words_at.to_string(), &line), Anchor::Start, "", &words);
            let _ = writeln!(
                out,
                "<svg x=\"{}\" y=\"{}\" width=\"{BITS}\" height=\"16\" viewBox=\"0 0 {} {HEIGHT}\" \
                 preserveAspectRatio=\"none\">",
                NAMES + SPACE,
                top + 3,
                columns + ARROW
            );
            strip.cells(&mut out, columns);
            out.push_str("</svg>\n");
        }
        let below = HEAD + LINE * self.strips.len();
        let _ = writeln!(out, "<svg x=\"{}\" y=\"{below}\" width=\"{BITS}\" height=\"34\">", NAMES + SPACE);
        self.ticks(&mut out, columns);
        out.push_str("</svg>\n</svg>\n");
        out
    }

    /// How many bits are drawn, kept or dropped.
    fn columns(&self) -> u32 {
        let reach = |strip: &Strip| {
            let kept = match strip.kept {
                Kept::Bits(bits) => bits,
                Kept::AtLeast(_) | Kept::All => 0,
            };
            kept.max(strip.ends.as_ref().map_or(0, |ends| ends.bits))
        };
        let longest = self.strips.iter().map(reach).max().unwrap_or(0);
        (longest.min(MOST) + 1 + BEYOND).next_multiple_of(STEP).clamp(FEWEST, MOST)
    }

    /// The format of every strip's result, if they all have the same one.
    fn end_of_all(&self) -> Option<&Ends> {
        let first = self.strips.first()?.ends.as_ref()?;
        self.strips.iter().all(|strip| strip.ends.as_ref() == Some(first)).then_some(first)
    }

    fn axis(&self, out: &mut String, columns: u32) {
        out.push_str(
            "<div class=\"strip axis\"><span></span><svg width=\"100%\" height=\"32\" aria-label=\"places of bits\">\n",
        );
        self.ticks(out, columns);
        out.push_str("</svg><span></span></div>\n");
    }

    /// Draws the positions of bits, and where the result's format ends.
    fn ticks(&self, out: &mut String, columns: u32) {
        let percent = |bits: u32| f64::from(bits) * 100.0 / f64::from(columns + ARROW);
        // A phone has room for as many numbers as a strip of usual length has.
        let step = (columns / STEP).next_multiple_of(STEP);
        for bits in (0..columns - step / 2).step_by(step as usize) {
            let (at, label) =
                (format!("{:.2}%", percent(bits)), if bits == 0 { "1".into() } else { format!("2^-{bits}") });
            text(out, (&at, "12"), Anchor::Start, "tick", &label);
        }
        if let Some(ends) = self.end_of_all().filter(|ends| ends.bits < columns) {
            // Next to the line, on the side with more room.
            let at = percent(ends.bits + 1);
            let (at, anchor) = if at < 50.0 { (at, Anchor::Start) } else { (at, Anchor::End) };
            let words = format!("{} ends here, after {} bits", ends.format, ends.bits);
            text(out, (&format!("{at:.2}%"), "28"), anchor, "", &words);
        }
    }
}

impl Strip {
    fn draw(&self, out: &mut String, columns: u32) {
        let number = self.number();
        let end = self.ends.as_ref().map_or_else(String::new, |ends| format!("; {} has {}", ends.format, ends.bits));
        let alternative = format!("{}: {number} kept below the largest term{end}; {}", self.label, self.words);
        let alternative = escaped_line(alternative.trim_end_matches("; "));
        let _ = writeln!(
            out,
            "<div class=\"strip\"><strong>{}</strong><svg viewBox=\"0 0 {} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
             aria-label=\"{alternative}\"><title>{alternative}</title>",
            escaped_line(&self.label),
            columns + ARROW
        );
        self.cells(out, columns);
        let _ = writeln!(out, "</svg><span><strong>{number}</strong> {}</span></div>", escaped_line(&self.words));
    }

    /// The number of bits kept, as text.
    fn number(&self) -> String {
        match self.kept {
            Kept::Bits(1) => "1 bit".to_owned(),
            Kept::Bits(bits) => format!("{bits} bits"),
            Kept::AtLeast(bits) => format!("≥ {bits} bits"),
            Kept::All => "exact".to_owned(),
        }
    }

    /// Draws the bits of the strip.
    fn cells(&self, out: &mut String, columns: u32) {
        // The leading bit is drawn in addition to the fraction.
        let kept = match self.kept {
            Kept::Bits(bits) => bits.saturating_add(1).min(columns),
            Kept::AtLeast(_) | Kept::All => columns,
        };
        let ends = self.ends.as_ref().map_or(columns, |ends| ends.bits.saturating_add(1).min(columns));
        cells(out, "kept", 0..kept.min(ends));
        cells(out, "guard", ends.min(kept)..kept);
        cells(out, "dropped", kept..columns);
        if matches!(self.kept, Kept::AtLeast(_) | Kept::All) {
            let _ = writeln!(out, "<path class=\"guard\" d=\"M{columns} 0v{HEIGHT}l{ARROW} -5z\"></path>");
        }
        if self.ends.is_some() && ends < columns {
            let _ = writeln!(
                out,
                "<path class=\"ends\" d=\"M{:.2} 0v{HEIGHT}\"></path>",
                f64::from(ends) - (1.0 - FILLED) / 2.0
            );
        }
    }
}

/// Shortens a text to this many letters.
fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some(_) => text.chars().take(letters.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Draws bits of one kind as one path: boxes, or a slash for each dropped bit.
fn cells(out: &mut String, class: &str, bits: std::ops::Range<u32>) {
    if bits.is_empty() {
        return;
    }
    let _ = write!(out, "<path class=\"{class}\" d=\"");
    for bit in bits {
        let _ = match class {
            "dropped" => write!(out, "M{bit}.2 8L{bit}.7 2"),
            _ => write!(out, "M{bit} 0h{FILLED}v{HEIGHT}h-{FILLED}z"),
        };
    }
    out.push_str("\"></path>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(kept: Kept, bits: u32) -> Strip {
        let ends = Some(Ends { format: "f32".into(), bits });
        Strip { label: "<unit>".into(), kept, ends, words: "truncated".into() }
    }

    fn figure(strips: Vec<Strip>) -> String {
        Strips { title: "a & b".into(), strips }.figure()
    }

    /// How many bits of a kind each strip has.
    fn drawn(figure: &str, class: &str) -> Vec<usize> {
        let strips = figure.split("<div class=\"strip\">").skip(1);
        let of = |strip: &str| {
            let path = strip.split(&format!("class=\"{class}\" d=\"")).nth(1);
            path.map_or(0, |path| path.split('"').next().unwrap_or_default().matches('M').count())
        };
        strips.map(of).collect()
    }

    #[test]
    fn kept_and_dropped_bits_are_drawn_one_by_one_and_the_line_is_where_the_format_ends() {
        let figure = figure(vec![strip(Kept::Bits(25), 23), strip(Kept::Bits(13), 23)]);
        assert_eq!(drawn(&figure, "kept"), [24, 14]);
        assert_eq!(drawn(&figure, "guard"), [2, 0]);
        assert_eq!(drawn(&figure, "dropped"), [14, 26]);
        assert_eq!(figure.matches("<path class=\"ends\" d=\"M23.94 0").count(), 2, "{figure}");
        for wanted in [
            "f32 ends here, after 23 bits",
            "<strong>25 bits</strong> truncated",
            ">a &amp; b<",
            "<strong>&lt;unit&gt;</strong>",
        ] {
            assert!(figure.contains(wanted), "{wanted}: {figure}");
        }
        let alternative = "&lt;unit&gt;: 13 bits kept below the largest term; f32 has 23; truncated";
        assert!(figure.contains(&format!("aria-label=\"{alternative}\"><title>{alternative}</title>")), "{figure}");
    }

    #[test]
    fn an_exact_unit_has_the_longest_strip_and_is_called_exact() {
        for longest in [13, 25, 100, 5000] {
            let figure = figure(vec![strip(Kept::Bits(longest), 23), strip(Kept::All, 10)]);
            let filled: Vec<usize> =
                drawn(&figure, "kept").iter().zip(drawn(&figure, "guard")).map(|(kept, guard)| kept + guard).collect();
            assert!(filled[1] >= filled[0], "{longest}: {filled:?}");
            assert_eq!(drawn(&figure, "dropped")[1], 0);
            assert_eq!(figure.matches("l2 -5z").count(), 1, "one arrow, of the exact strip");
            assert!(figure.contains("<strong>exact</strong> truncated") && !figure.contains("ends here"), "{figure}");
        }
    }

    #[test]
    fn a_file_has_a_line_for_each_strip_and_cuts_what_is_longer_than_its_place() {
        let long = Strip { label: "unit ".repeat(30), ..strip(Kept::Bits(13), 23) };
        let svg = Strips { title: "a & b".into(), strips: vec![long, strip(Kept::All, 23)] }.svg();
        for wanted in [">a &amp; b</text>", ">exact, truncated</text>", ">13 bits, truncated</text>", "f32 ends here"] {
            assert!(svg.contains(wanted), "{wanted}: {svg}");
        }
        assert!(svg.contains("…</text>") && !svg.contains(&"unit ".repeat(10)), "{svg}");
        assert_eq!(svg.matches("preserveAspectRatio").count(), 2);
    }

    #[test]
    fn an_axis_has_few_numbers_however_long_it_is() {
        for kept in [Kept::Bits(13), Kept::Bits(52), Kept::Bits(100), Kept::Bits(5000), Kept::AtLeast(78)] {
            let numbers = figure(vec![strip(kept, 23)]).matches("class=\"tick\"").count();
            assert!((4..=8).contains(&numbers), "{numbers} for {kept:?}");
        }
        // Strips without a known end do not make the others longer.
        assert_eq!(drawn(&figure(vec![strip(Kept::Bits(13), 23), strip(Kept::AtLeast(78), 23)]), "dropped")[0], 26);
    }

    #[test]
    fn a_figure_of_nothing_or_of_huge_numbers_is_drawn() {
        let huge = figure(vec![strip(Kept::Bits(u32::MAX), u32::MAX)]);
        assert_eq!(drawn(&huge, "kept"), [MOST as usize]);
        assert!(!huge.contains("class=\"ends\""), "{huge}");
        assert!(figure(Vec::new()).contains("</figure>"));
        let open = Strip { ends: None, ..strip(Kept::Bits(8), 23) };
        assert_eq!(drawn(&figure(vec![open]), "kept"), [9]);
    }
}
