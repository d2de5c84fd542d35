//! The header of a NumPy file: the type, order and shape of its elements (*specified*: NumPy, `numpy.lib.format`).
//!
//! Ten bytes or twelve, with the length of the text that follows: a dictionary as Python writes it, then spaces up to a
//! multiple of 64 bytes.

use std::io::{ErrorKind, Read};

/// The bytes that every file begins with.
const MAGIC: &[u8] = b"\x93NUMPY";
/// Data begins at a multiple of this.
const ALIGNMENT: usize = 64;
/// How deep lists and tuples may nest: those of a structured type do, by two levels for each structure in another.
const DEEPEST: usize = 32;
const ENDS_EARLY: &str = "its header ends early";

/// What a file holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The type of an element, as Python's expression: `'<f4'`, or a list of the fields of a structured type.
    pub(super) descr: String,
    /// Whether elements of a column, not of a row, are stored next to each other.
    pub(super) is_fortran: bool,
    pub(super) shape: Vec<usize>,
}

impl Header {
    /// Reads the header of a file from its beginning.
    pub(super) fn read(file: &mut impl Read) -> Result<Self, String> {
        let mut exactly = |bytes: &mut [u8]| {
            file.read_exact(bytes).map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => ENDS_EARLY.to_owned(),
                _ => error.to_string(),
            })
        };
        let mut start = [0; 8];
        exactly(&mut start)?;
        let version = match start.split_at(MAGIC.len()) {
            (MAGIC, version) => version,
            _ => return Err("it does not begin with \\x93NUMPY".to_owned()),
        };
        let mut length = [0; 4];
        match *version {
            [1, _] => exactly(&mut length[..2])?,
            [2 | 3, _] => exactly(&mut length)?,
            _ => return Err(format!("format version {}.{}, not 1, 2 or 3", version[0], version[1])),
        }
        let length = u32::from_le_bytes(length).into();
        let mut text = Vec::new();
        // The length may be wrong, and far beyond the file's.
        let found = file.take(length).read_to_end(&mut text).map_err(|error| error.to_string())?;
        if found as u64 != length {
            return Err(format!("it ends after {found} of {length} bytes of its header"));
        }
        // Versions 1 and 2 are Latin-1, which differs from UTF-8 only in the names of a structured type's fields.
        Self::parsed(&String::from_utf8_lossy(&text))
    }

    fn parsed(text: &str) -> Result<Self, String> {
        let mut literal = Literal { rest: text };
        let found = literal.value(0)?;
        let Value::Dictionary(entries) = found else { return Err("its header is not a dictionary".to_owned()) };
        if !literal.rest.trim().is_empty() {
            return Err(format!("`{}` follows the dictionary of its header", literal.rest.trim()));
        }
        let (mut descr, mut order, mut shape) = (None, None, None);
        for (key, value, expression) in entries {
            match (key, value) {
                ("descr", Value::Text(of)) => descr = Some(format!("'{of}'")),
                ("descr", _) => descr = Some(expression.to_owned()),
                ("fortran_order", Value::Truth(is_fortran)) => order = Some(is_fortran),
                ("shape", Value::Sequence(sizes)) => shape = Some(sizes_of(&sizes, expression)?),
                ("fortran_order" | "shape", _) => return Err(format!("`{key}` is {expression} in its header")),
                _ => return Err(format!("`{key}` in its header is not descr, fortran_order or shape")),
            }
        }
        let missing = |key: &str| format!("`{key}` is missing in its header");
        Ok(Self {
            descr: descr.ok_or_else(|| missing("descr"))?,
            is_fortran: order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    /// The type of an element that is a number: whether its most significant byte comes first, the letter for its kind,
    /// and its bytes.
    pub(super) fn number(&self) -> Option<(bool, char, usize)> {
        let mut of = self.descr.strip_prefix('\'')?.strip_suffix('\'')?.chars();
        let is_big = match of.next()? {
            '<' | '|' => false,
            '>' => true,
            _ => return None,
        };
        Some((is_big, of.next()?, of.as_str().parse().ok()?))
    }

    /// Returns the header of an array that is stored row by row, of elements of a type such as `<f4`.
    pub(super) fn written(descr: &str, shape: &[usize]) -> Vec<u8> {
        let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
        let comma = if shape.len() == 1 { "," } else { "" };
        let shape = format!("({}{comma})", sizes.join(", "));
        let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let start = MAGIC.len() + 4;
        let length = (start + text.len() + 1).next_multiple_of(ALIGNMENT) - start;
        text.extend(std::iter::repeat_n(' ', length - text.len() - 1));
        text.push('\n');
        let length = u16::try_from(length).expect("a few dimensions take a few hundred bytes");
        [MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat()
    }
}

fn sizes_of(sizes: &[Value<'_>], expression: &str) -> Result<Vec<usize>, String> {
    let size = |value: &Value<'_>| match value {
        Value::Number(size) => Some(*size),
        _ => None,
    };
    sizes.iter().map(size).collect::<Option<_>>().ok_or_else(|| format!("`shape` is {expression} in its header"))
}

/// A Python literal, as far as headers have them.
enum Value<'a> {
    /// Text without escapes.
    Text(&'a str),
    Number(usize),
    Truth(bool),
    /// A tuple or a list.
    Sequence(Vec<Value<'a>>),
    /// Keys, values, and the values' expressions.
    Dictionary(Vec<(&'a str, Value<'a>, &'a str)>),
}

/// The rest of an expression.
struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    /// Skips white space, then text if it is next.
    fn skips(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(text);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn unexpected(&self) -> String {
        match self.rest.trim_start().chars().next() {
            Some(next) => format!("`{next}` is unexpected in its header"),
            None => ENDS_EARLY.to_owned(),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value<'a>, String> {
        if depth > DEEPEST {
            return Err(format!("its header nests more than {DEEPEST} levels"));
        }
        for (word, truth) in [("True", true), ("False", false)] {
            if self.skips(word) {
                return Ok(Value::Truth(truth));
            }
        }
        for quote in ["'", "\""] {
            if self.skips(quote) {
                let (text, rest) = self.rest.split_once(quote).ok_or(ENDS_EARLY)?;
                self.rest = rest;
                return Ok(Value::Text(text));
            }
        }
        for (open, close) in [("(", ")"), ("[", "]")] {
            if self.skips(open) {
                let mut values = Vec::new();
                let commas = self.until(close, |literal| {
                    values.push(literal.value(depth + 1)?);
                    Ok(())
                })?;
                // One value in parentheses is that value.
                return match values.pop() {
                    Some(value) if open == "(" && commas == 0 => Ok(value),
                    last => {
                        values.extend(last);
                        Ok(Value::Sequence(values))
                    }
                };
            }
        }
        if self.skips("{") {
            let mut entries = Vec::new();
            self.until("}", |literal| {
                let Value::Text(key) = literal.value(depth + 1)? else { return Err(literal.unexpected()) };
                if !literal.skips(":") {
                    return Err(literal.unexpected());
                }
                let from = literal.rest;
                let value = literal.value(depth + 1)?;
                let expression = from[..from.len() - literal.rest.len()].trim();
                entries.push((key, value, expression));
                Ok(())
            })?;
            return Ok(Value::Dictionary(entries));
        }
        let digits = self.rest.len() - self.rest.trim_start_matches(|next: char| next.is_ascii_digit()).len();
        let (number, rest) = self.rest.split_at(digits);
        if number.is_empty() {
            return Err(self.unexpected());
        }
        let number = number.parse().map_err(|_| format!("{number} in its header is too large"))?;
        self.rest = rest;
        // As Python 2 wrote whole numbers of 64 bits.
        self.skips("L");
        Ok(Value::Number(number))
    }

    /// Reads items between commas up to the end of what they are in, and returns the number of commas.
    fn until(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<(), String>) -> Result<usize, String> {
        let mut commas = 0;
        while !self.skips(close) {
            item(self)?;
            if self.skips(",") {
                commas += 1;
            } else if self.skips(close) {
                break;
            } else {
                return Err(self.unexpected());
            }
        }
        Ok(commas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Header, String> {
        let length = u16::try_from(text.len()).unwrap().to_le_bytes();
        Header::read(&mut [b"\x93NUMPY\x01\0", &length[..], text.as_bytes()].concat().as_slice())
    }

    fn of(descr: &str, is_fortran: bool, shape: &[usize]) -> Header {
        Header { descr: format!("'{descr}'"), is_fortran, shape: shape.to_vec() }
    }

    #[test]
    fn headers_are_read_as_numpy_and_others_write_them() {
        let cases = [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", of("<f4", false, &[3, 4])),
            ("{\"shape\":(3,),\"fortran_order\":True,\"descr\":\"|u1\"}", of("|u1", true, &[3])),
            ("{'descr': '>i8', 'fortran_order': False, 'shape': (), }\n", of(">i8", false, &[])),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 30L), }\n", of("<f8", false, &[2, 30])),
            ("{ 'descr' :\n'<f2' , 'fortran_order' : False , 'shape' : [0,\t7] }", of("<f2", false, &[0, 7])),
        ];
        for (text, wanted) in cases {
            assert_eq!(read(text), Ok(wanted), "{text}");
        }
        let structured = "{'descr': [('re', '<f4'), ('im', ('<f4', (2,)))], 'fortran_order': False, 'shape': (3,), }";
        let read = read(structured).unwrap();
        assert_eq!((read.descr.as_str(), read.number()), ("[('re', '<f4'), ('im', ('<f4', (2,)))]", None));
    }

    #[test]
    fn a_type_of_numbers_has_an_order_a_letter_and_a_size() {
        let number = |descr| of(descr, false, &[]).number();
        assert_eq!(number("<f4"), Some((false, 'f', 4)));
        assert_eq!(number(">u8"), Some((true, 'u', 8)));
        assert_eq!(number("|i1"), Some((false, 'i', 1)));
        assert_eq!(number("<U16"), Some((false, 'U', 16)));
        for descr in ["", "<", "<f", "f4", "=f4", "<M8[ns]", "<é4x", "|O"] {
            assert_eq!(number(descr), None, "{descr}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_header_is_said() {
        let wrong = |key: &str, value: &str| {
            let entry = |of: &str, right: &str| format!("'{of}': {}, ", if of == key { value } else { right });
            format!("{{{}{}{}}}", entry("descr", "'<f4'"), entry("fortran_order", "False"), entry("shape", "(3, 4)"))
        };
        let cases = [
            ("".to_owned(), "ends early"),
            ("3".to_owned(), "not a dictionary"),
            ("{'descr': '<f4', 'fortran_order': False, }".to_owned(), "`shape` is missing"),
            ("{'descr': '<f4', 'order': False, }".to_owned(), "`order`"),
            ("{'descr': '<f4' 'shape': (3,)}".to_owned(), "`'` is unexpected"),
            ("{'descr': '<f4".to_owned(), "ends early"),
            (wrong("", "") + "{}", "`{}` follows"),
            (wrong("fortran_order", "0"), "`fortran_order` is 0"),
            (wrong("shape", "(3)"), "`shape` is (3)"),
            (wrong("shape", "(3, '4')"), "`shape` is (3, '4')"),
            (wrong("shape", "(-3, 4)"), "`-` is unexpected"),
            (wrong("shape", "(3.0, 4)"), "`.` is unexpected"),
            (wrong("shape", "(99999999999999999999, 4)"), "99999999999999999999 in its header is too large"),
            (wrong("descr", &"[".repeat(40)), "32 levels"),
        ];
        for (text, wanted) in cases {
            let error = read(&text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        for (bytes, wanted) in [
            (&b"PK\x03\x04 and so on"[..], "x93NUMPY"),
            (b"\x93NUMPY\x04\0\0\0", "version 4.0"),
            (b"\x93NUMPY\x02\0\xff\xff\xff\xff{}", "ends after 2 of 4294967295 bytes"),
            (b"\x93NUM", "its header ends early"),
            (b"", "its header ends early"),
        ] {
            let error = Header::read(&mut &*bytes).unwrap_err();
            assert!(error.contains(wanted), "{bytes:?}: {error}");
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_data_follow_at_a_multiple_of_64() {
        for shape in [&[][..], &[7], &[3, 4], &[usize::MAX; 2]] {
            let bytes = Header::written("<f4", shape);
            assert_eq!((bytes.len() % 64, bytes.last()), (0, Some(&b'\n')));
            assert_eq!(Header::read(&mut bytes.as_slice()), Ok(of("<f4", false, shape)));
        }
        let wanted = b"\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }";
        assert!(Header::written("<f4", &[7]).starts_with(wanted));
    }
}
