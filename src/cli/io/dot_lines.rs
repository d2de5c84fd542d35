//! Dots as JSON lines: one dot per line, with elements as full-width hexadecimal or as values.

use std::{ops::Range, sync::Arc};

use mxprobe_api::{Format, Operation};
use mxprobe_dots::read_plain;
use mxprobe_models::Dot;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    cli::failure::Failure,
    literal::{self, Literal},
};

/// One line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    a: Vec<&'a str>,
    #[serde(borrow)]
    b: Vec<&'a str>,
    c: &'a str,
    #[serde(borrow, default)]
    scale_a: Option<Vec<&'a str>>,
    #[serde(borrow, default)]
    scale_b: Option<Vec<&'a str>>,
}

/// A line with elements that may be JSON numbers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a, b and c")]
struct RawLine<'a> {
    #[serde(borrow)]
    a: Vec<&'a RawValue>,
    #[serde(borrow)]
    b: Vec<&'a RawValue>,
    #[serde(borrow)]
    c: &'a RawValue,
    #[serde(borrow, default)]
    scale_a: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    scale_b: Option<Vec<&'a RawValue>>,
}

impl<'a> Line<'a> {
    /// Reads a line. Lines whose elements are all strings, the usual ones, are parsed directly; numbers keep their
    /// digits.
    fn read(line: &'a [u8]) -> Result<Self, Wrong> {
        if let Ok(line) = serde_json::from_slice(line) {
            return Ok(line);
        }
        let RawLine { a, b, c, scale_a, scale_b } =
            serde_json::from_slice(line).map_err(|error| Wrong(describe(&error)))?;
        let texts = |name: &str, raw: Vec<&'a RawValue>| -> Result<Vec<&'a str>, Wrong> {
            raw.into_iter().enumerate().map(|(at, raw)| element(&format!("{name}[{at}]"), raw)).collect()
        };
        let [scale_a, scale_b] =
            [("scale_a", scale_a), ("scale_b", scale_b)].map(|(name, raw)| raw.map(|raw| texts(name, raw)).transpose());
        let (scale_a, scale_b) = (scale_a?, scale_b?);
        Ok(Self { a: texts("a", a)?, b: texts("b", b)?, c: element("c", c)?, scale_a, scale_b })
    }
}

/// Returns the text of a JSON string, or the digits of a number.
fn element<'a>(place: &str, raw: &'a RawValue) -> Result<&'a str, Wrong> {
    let text = raw.get();
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) if !text.contains('\\') => Ok(text),
        None if text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) => Ok(text),
        _ => Err(Wrong(format!("{place}: `{text}` is neither a number nor a text such as \"0x3c00\" or \"2^-24\""))),
    }
}

/// The error in a line.
pub(in crate::cli) struct Wrong(String);

impl Wrong {
    pub(in crate::cli) fn on_line(self, number: usize, line: &[u8], operation: &Operation) -> Failure {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        let shown: String = text.chars().take(100).collect();
        let more = if shown.len() < text.len() { "…" } else { "" };
        Failure::usage(format!("line {number}: {}", self.0)).cause(format!("{shown}{more}")).help(format!(
            "a line for {} looks like {}",
            operation.id,
            example(operation)
        ))
    }
}

/// Returns a line for a dot of an operation: 1·1 + 0.
pub(in crate::cli) fn example(operation: &Operation) -> String {
    let id = &operation.id;
    let (a, b, c) = (id.a.hex(id.a.one()), id.b.hex(id.b.one()), id.c.hex(0));
    let scales = id.block_scale().map_or_else(String::new, |scale| {
        let one = scale.format.hex(scale.format.one());
        format!(r#","scale_a":["{one}"],"scale_b":["{one}"]"#)
    });
    format!(r#"{{"a":["{a}"],"b":["{b}"],"c":"{c}"{scales}}}"#)
}

/// Dots of one operation, as bits.
pub(in crate::cli) struct Dots {
    pub(in crate::cli) operation: Arc<Operation>,
    pub(in crate::cli) count: usize,
    pub(in crate::cli) a: Vec<u64>,
    pub(in crate::cli) b: Vec<u64>,
    pub(in crate::cli) c: Vec<u64>,
    pub(in crate::cli) scale_a: Vec<u64>,
    pub(in crate::cli) scale_b: Vec<u64>,
    /// A description of the first value that was rounded.
    pub(in crate::cli) rounded: Option<String>,
}

impl Dots {
    pub(in crate::cli) fn new(operation: impl Into<Arc<Operation>>) -> Self {
        let (a, b, c) = (Vec::new(), Vec::new(), Vec::new());
        let operation = operation.into();
        Self { operation, count: 0, a, b, c, scale_a: Vec::new(), scale_b: Vec::new(), rounded: None }
    }

    /// Removes all dots and keeps their allocations.
    pub(in crate::cli) fn clear(&mut self) {
        self.cut([0; 5]);
        (self.count, self.rounded) = (0, None);
    }

    /// Reads the line at the start of a text, and returns the text after it, if there is a line end. Errors are with the
    /// line.
    pub(in crate::cli) fn read_first<'t>(&mut self, text: &'t [u8]) -> Result<Option<&'t [u8]>, (Wrong, &'t [u8])> {
        let kept = self.marks();
        match self.read_plain(text) {
            Some([]) => {
                self.count += 1;
                return Ok(None);
            }
            Some([b'\n', rest @ ..]) => {
                self.count += 1;
                return Ok(Some(rest));
            }
            _ => self.cut(kept),
        }
        let (line, rest) = match text.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&text[..end], Some(&text[end + 1..])),
            None => (text, None),
        };
        self.read(line).map(|()| rest).map_err(|wrong| (wrong, line))
    }

    /// Reads one line; an empty line is skipped.
    pub(in crate::cli) fn read(&mut self, line: &[u8]) -> Result<(), Wrong> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        let kept = self.marks();
        if self.read_plain(line).is_some_and(<[u8]>::is_empty) {
            self.count += 1;
            return Ok(());
        }
        self.cut(kept);
        let line = Line::read(line)?;
        let id = &self.operation.id;
        let k = id.shape.sizes().2;
        if line.a.len() != line.b.len() {
            return Err(Wrong(format!("a has {} elements and b has {}", line.a.len(), line.b.len())));
        }
        if line.a.len() > k {
            return Err(Wrong(format!("a and b have {} elements, but k of {id} is {k}", line.a.len())));
        }
        let result = self.append(&line, k);
        match result {
            Ok(()) => self.count += 1,
            Err(_) => self.cut(kept),
        }
        result
    }

    /// Reads a dot in the usual form, as [`read_plain`] does; `None` if it is in any other form, or takes scales.
    fn read_plain<'t>(&mut self, text: &'t [u8]) -> Option<&'t [u8]> {
        let id = &self.operation.id;
        if id.block_scale().is_some() {
            return None;
        }
        let k = id.shape.sizes().2;
        read_plain(text, k, [id.a, id.b, id.c], [&mut self.a, &mut self.b, &mut self.c])
    }

    fn append(&mut self, line: &Line, k: usize) -> Result<(), Wrong> {
        let id = &self.operation.id;
        numbers(&mut self.rounded, &mut self.a, "a", id.a, &line.a, k, 0)?;
        numbers(&mut self.rounded, &mut self.b, "b", id.b, &line.b, k, 0)?;
        numbers(&mut self.rounded, &mut self.c, "c", id.c, &[line.c], 1, 0)?;
        let Some(scale) = id.block_scale() else {
            return match (&line.scale_a, &line.scale_b) {
                (None, None) => Ok(()),
                _ => Err(Wrong(format!("{id} takes neither scale_a nor scale_b"))),
            };
        };
        let (Some(scale_a), Some(scale_b)) = (&line.scale_a, &line.scale_b) else {
            return Err(Wrong(format!(
                "scale_a and scale_b are missing: one {} for each {} elements",
                scale.format, scale.block
            )));
        };
        let (least, most) = (line.a.len().div_ceil(scale.block), k.div_ceil(scale.block));
        for (name, scales) in [("scale_a", scale_a), ("scale_b", scale_b)] {
            if !(least..=most).contains(&scales.len()) {
                return Err(Wrong(format!(
                    "{name} has {} elements, but {} elements of a in blocks of {} take from {least} to {most}",
                    scales.len(),
                    line.a.len(),
                    scale.block
                )));
            }
        }
        let one = scale.format.one();
        numbers(&mut self.rounded, &mut self.scale_a, "scale_a", scale.format, scale_a, most, one)?;
        numbers(&mut self.rounded, &mut self.scale_b, "scale_b", scale.format, scale_b, most, one)
    }

    fn marks(&self) -> [usize; 5] {
        [self.a.len(), self.b.len(), self.c.len(), self.scale_a.len(), self.scale_b.len()]
    }

    fn cut(&mut self, marks: [usize; 5]) {
        let all = [&mut self.a, &mut self.b, &mut self.c, &mut self.scale_a, &mut self.scale_b];
        for (numbers, mark) in all.into_iter().zip(marks) {
            numbers.truncate(mark);
        }
    }

    /// Returns the dot at an index.
    pub(in crate::cli) fn dot(&self, at: usize) -> Dot<'_> {
        let k = self.operation.id.shape.sizes().2;
        let blocks = self.operation.id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
        Dot {
            a: &self.a[range_of(at, k)],
            b: &self.b[range_of(at, k)],
            c: self.c[at],
            scales: (blocks > 0).then(|| (&self.scale_a[range_of(at, blocks)], &self.scale_b[range_of(at, blocks)])),
        }
    }
}

/// Returns the range of the elements of the dot at an index, for dots of `length` elements.
pub(in crate::cli) fn range_of(at: usize, length: usize) -> Range<usize> {
    at * length..(at + 1) * length
}

/// Appends `wanted` numbers: those of the texts, padded with `rest`. `rounded` keeps a description of the first that
/// was rounded.
fn numbers(
    rounded: &mut Option<String>,
    into: &mut Vec<u64>,
    name: &str,
    format: Format,
    texts: &[&str],
    wanted: usize,
    rest: u64,
) -> Result<(), Wrong> {
    for (at, text) in texts.iter().enumerate() {
        let place = || if name == "c" { name.to_owned() } else { format!("{name}[{at}]") };
        let found = match format.parse_hex(text) {
            Ok(bits) => Literal { bits, rounded: false },
            Err(_) => literal::read(format, text).map_err(|error| Wrong(format!("{}: {error}", place())))?,
        };
        if found.rounded && rounded.is_none() {
            let value = format.to_f64(found.bits);
            *rounded = Some(format!(
                "{}: `{text}` is not exact in {format}: rounded to nearest even, {value} ({})",
                place(),
                format.hex(found.bits)
            ));
        }
        into.push(found.bits);
    }
    into.extend(std::iter::repeat_n(rest, wanted - texts.len()));
    Ok(())
}

/// Returns the parser's message without the line number, which would be wrong.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let words = text.rsplit_once(" at line ").map_or(text.as_str(), |(words, _)| words);
    if error.is_data() { words.to_owned() } else { format!("not JSON: {words} at column {}", error.column()) }
}

#[cfg(test)]
#[path = "../../../tests/mutation/mod.rs"]
#[allow(dead_code)]
mod mutation;

#[cfg(test)]
mod tests {
    use mxprobe_api::Backend;

    use super::{
        mutation::{MANY, files, survives},
        *,
    };

    fn read(text: &[u8], operation: &Operation) {
        let mut dots = Dots::new(operation.clone());
        for line in text.split(|&byte| byte == b'\n') {
            let read = dots.read(line);
            let k = operation.id.shape.sizes().2;
            assert_eq!((dots.a.len(), dots.b.len(), dots.c.len()), (dots.count * k, dots.count * k, dots.count));
            if let Err(wrong) = read {
                assert!(!wrong.0.is_empty());
            }
        }
    }

    #[test]
    fn lines_in_the_usual_form_are_read_as_by_the_parser_of_json() {
        let device = mxprobe_sim::SimBackend.open("h100").expect("a model");
        for (name, a, c) in [("mma.m16n8k8.f32.tf32.tf32.f32", 8, 8), ("mma.m16n8k32.f32.e4m3.e4m3.f32", 2, 8)] {
            let operation = &device.operations()[&name.parse().expect("an id")];
            let hex = |digits: usize, value: u64| format!("\"0x{value:0digits$x}\"");
            let (one, two, sum) = (hex(a, 0x3a), hex(a, 0x41), hex(c, 0x3f80_00ff));
            let plain = [
                format!("{{\"a\":[{one},{two}],\"b\":[{two},{one}],\"c\":{sum}}}"),
                format!("{{\"a\": [{one}], \"b\": [{two}], \"c\": {sum}}}"),
                format!("{{\"a\":[],\"b\":[],\"c\":{sum}}}"),
            ];
            for line in &plain {
                let (mut quick, mut slow) = (Dots::new(operation.clone()), Dots::new(operation.clone()));
                assert!(quick.read_plain(line.as_bytes()).is_some_and(<[u8]>::is_empty), "{line}");
                let k = operation.id.shape.sizes().2;
                slow.append(&Line::read(line.as_bytes()).ok().expect("a line"), k).ok().expect("a dot");
                assert_eq!((&quick.a, &quick.b, &quick.c), (&slow.a, &slow.b, &slow.c), "{line}");
            }
            for other in [
                format!("{{\"b\":[{one}],\"a\":[{two}],\"c\":{sum}}}"),
                format!("{{\"a\":[{one},],\"b\":[{two}],\"c\":{sum}}}"),
                format!("{{\"a\":[{one},{one}],\"b\":[{two}],\"c\":{sum}}}"),
                format!("{{\"a\":[{one}],\"b\":[{two}],\"c\":{sum},\"c\":{sum}}}"),
                format!("{{\"a\":[1.5],\"b\":[{two}],\"c\":{sum}}}"),
                format!("{{\"a\":[{}],\"b\":[{two}],\"c\":{sum}}}", hex(a + 1, 1)),
            ] {
                assert!(
                    !Dots::new(operation.clone()).read_plain(other.as_bytes()).is_some_and(<[u8]>::is_empty),
                    "{other}"
                );
            }
        }
    }

    fn changed(count: u64) {
        let device = mxprobe_sim::SimBackend.open("rtx5090").expect("a model");
        let scaled = |operation: &&Operation| operation.id.block_scale().is_some();
        let operation = device.operations().values().find(scaled).expect("one has block scales").clone();
        let (a, b, c) = (operation.id.a.hex(1), operation.id.b.hex(2), operation.id.c.hex(3));
        let scale = operation.id.block_scale().expect("it was chosen so").format;
        let scale = scale.hex(scale.one());
        let line =
            format!(r#"{{"a":["{a}","{a}"],"b":["{b}","{b}"],"c":"{c}","scale_a":["{scale}"],"scale_b":["{scale}"]}}"#);
        read(line.as_bytes(), &operation);
        survives(count, vec![format!("{line}\n{line}\n").into_bytes()], move |text| read(text, &operation));
    }

    #[test]
    fn changed_dots_are_read_or_refused() {
        changed(files() / 3);
    }

    #[test]
    #[ignore = "100 000 files with those of the other kinds: cargo test --release -- --ignored changed"]
    fn many_changed_dots_are_read_or_refused() {
        changed(MANY / 3);
    }
}
