//! JSON for programs that people can also read and compare line by line: a list is on one line unless it contains
//! objects.

use std::io::{self, Write};

use erased_serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::Report;
use crate::plain::{is_printable_ascii, is_unsafe};

/// Serializes a value as JSON with a newline at the end. Control and direction characters are escaped, so that the text
/// is safe to show on a terminal.
///
/// # Panics
/// Never for the types of reports, whose keys are strings.
#[must_use]
pub fn to_json(value: &dyn Serialize) -> String {
    let mut bytes = Vec::new();
    // Type erasure keeps this layout from being compiled once for every type.
    let mut serializer = Serializer::with_formatter(&mut bytes, Lines::default());
    let mut serializer = <dyn erased_serde::Serializer>::erase(&mut serializer);
    value.erased_serialize(&mut serializer).expect("a report is JSON");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// Serializes a single value as it is, and several as an array, like [`to_json`].
#[must_use]
pub fn one_or_array<T: serde::Serialize>(values: &[T]) -> String {
    match values {
        [one] => to_json(one),
        several => to_json(&several),
    }
}

/// Serializes a report as it is, and several as an array, like [`to_json`]: the largest of all types, compiled once.
#[must_use]
pub fn reports_json(reports: &[Report]) -> String {
    one_or_array(reports)
}

/// A new line, indented as deep as most.
const LINE: &str = "\n                                ";

/// The layout of the JSON.
#[derive(Default)]
struct Lines {
    /// The open lists and objects; whether each has started a line of its own.
    open: Vec<bool>,
    /// Set before an element of a list; whether it is the first.
    next: Option<bool>,
}

impl Lines {
    fn line(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let spaces = 2 * self.open.len();
        let at_once = spaces.min(LINE.len() - 1);
        out.write_all(&LINE.as_bytes()[..=at_once])?;
        (at_once..spaces).try_for_each(|_| out.write_all(b" "))
    }

    /// Writes the separator before an element of a list, once it is known whether the element is an object.
    fn element(&mut self, out: &mut (impl Write + ?Sized), object: bool) -> io::Result<()> {
        let Some(first) = self.next.take() else { return Ok(()) };
        let broken = self.open.last_mut().expect("a list is open");
        *broken |= object;
        match (*broken, first) {
            (true, true) => self.line(out),
            (true, false) => out.write_all(b",").and_then(|()| self.line(out)),
            (false, true) => Ok(()),
            (false, false) => out.write_all(b", "),
        }
    }

    fn close(&mut self, out: &mut (impl Write + ?Sized), end: &[u8]) -> io::Result<()> {
        if self.open.pop() == Some(true) {
            self.line(out)?;
        }
        out.write_all(end)
    }
}

/// Scalars, as Rust writes them: JSON has neither NaN nor infinity, and reports contain neither.
macro_rules! numbers {
    ($($name:ident: $type:ty),*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, out: &mut W, value: $type) -> io::Result<()> {
            self.element(out, false)?;
            write!(out, "{value:?}")
        })*
    };
}

impl Formatter for Lines {
    numbers!(
        write_bool: bool, write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_i128: i128, write_u8: u8,
        write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128, write_f32: f32, write_f64: f64
    );

    fn write_null<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.element(out, false)?;
        out.write_all(b"null")
    }

    fn write_number_str<W: ?Sized + Write>(&mut self, out: &mut W, value: &str) -> io::Result<()> {
        self.element(out, false)?;
        out.write_all(value.as_bytes())
    }

    fn begin_string<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.element(out, false)?;
        out.write_all(b"\"")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        if is_printable_ascii(fragment) {
            return out.write_all(fragment.as_bytes());
        }
        let mut written = 0;
        for (at, letter) in fragment.char_indices().filter(|(_, letter)| is_unsafe(*letter)) {
            out.write_all(&fragment.as_bytes()[written..at])?;
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            written = at + letter.len_utf8();
        }
        out.write_all(&fragment.as_bytes()[written..])
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.element(out, false)?;
        self.open.push(false);
        out.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, _: &mut W, first: bool) -> io::Result<()> {
        self.next = Some(first);
        Ok(())
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.element(out, true)?;
        self.open.push(false);
        out.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        *self.open.last_mut().expect("an object is open") = true;
        self.line(out)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn lists_of_scalars_and_of_lists_take_one_line_and_objects_begin_lines() {
        let value =
            json!({ "a": ["0x0001", "0x3c00"], "o": [{ "k": 1 }, { "k": [] }], "t": [[0, 1], ["c", null]], "z": {} });
        let text = "{\n  \"a\": [\"0x0001\", \"0x3c00\"],\n  \"o\": [\n    {\n      \"k\": 1\n    },\n    {\n      \"k\": []\n    \
                    }\n  ],\n  \"t\": [[0, 1], [\"c\", null]],\n  \"z\": {}\n}\n";
        assert_eq!(to_json(&value), text);
    }

    #[test]
    fn every_level_is_indented_by_two_spaces() {
        let deep = (0..40).fold(json!({}), |inner, _| json!({ "x": inner }));
        for (level, line) in to_json(&deep).lines().take(41).enumerate() {
            assert_eq!(line.find(|letter| letter != ' '), Some(2 * level), "{line}");
        }
    }

    #[test]
    fn every_value_reads_back_as_it_was() {
        let value = json!([
            null, true, -1, u64::MAX, 0.1, 1e300, "", "\u{0}\u{1b}[31m\u{9b}\u{7f}\"\\/\u{202e}\u{2028}\u{e0001}\r\n\t", "é",
            [[], [{}], {"": [{"x": [1, {"y": 2}, 3]}]}]
        ]);
        let text = to_json(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(text.chars().all(|letter| letter == '\n' || !is_unsafe(letter)), "{text:?}");
    }
}
