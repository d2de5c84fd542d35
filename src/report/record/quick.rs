//! Reads documents straight into their types, if nothing is wrong with them. Whatever is wrong is said by
//! [`check`](super::check), which reads a document into a tree of values first and so knows where a problem is.

use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};

/// The most keys of one object that are compared with each other; the reports' own have fewer than thirty.
const MOST_KEYS: usize = 64;

/// Reads a document with a schema that `is_known`, or an array of them, nested at most `deepest` deep. `None` if a key
/// appears twice in an object, or anything else is wrong.
pub(super) fn documents<T: DeserializeOwned>(
    text: &str,
    deepest: usize,
    is_known: &dyn Fn(&str) -> bool,
) -> Option<Vec<T>> {
    let mut state = State { keys: Vec::new(), deepest, is_known, documents: 0, known: 0 };
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    Item { state: &mut state, depth: 0, is_document: true }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    if state.documents != state.known {
        return None;
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    match text.trim_start().starts_with('[') {
        true => serde::Deserialize::deserialize(&mut reader).ok(),
        false => Some(vec![T::deserialize(&mut reader).ok()?]),
    }
}

/// The state of a first pass over a text.
struct State<'a, 'de> {
    /// The keys of the objects around the current place, those of the innermost last.
    keys: Vec<Cow<'de, str>>,
    deepest: usize,
    is_known: &'a dyn Fn(&str) -> bool,
    /// The documents, and those of a known schema.
    documents: usize,
    known: usize,
}

/// A value of any type, of which nothing is kept.
struct Item<'s, 'a, 'de> {
    state: &'s mut State<'a, 'de>,
    depth: usize,
    /// Whether an object here is a whole document.
    is_document: bool,
}

impl<'de> DeserializeSeed<'de> for Item<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Item<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let depth = self.depth + 1;
        if depth > self.state.deepest {
            return Err(A::Error::custom("nested too deeply"));
        }
        // A list of values could be read as a document without names.
        if self.is_document && self.depth > 0 {
            return Err(A::Error::custom("a list in the place of a document"));
        }
        let is_document = self.is_document;
        while items.next_element_seed(Item { state: &mut *self.state, depth, is_document })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let depth = self.depth + 1;
        if depth > self.state.deepest {
            return Err(A::Error::custom("nested too deeply"));
        }
        self.state.documents += usize::from(self.is_document);
        let first = self.state.keys.len();
        while let Some(key) = items.next_key_seed(Key)? {
            let keys = &self.state.keys[first..];
            if keys.len() >= MOST_KEYS || keys.contains(&key) {
                return Err(A::Error::custom("a key appears twice, or there are too many"));
            }
            let is_schema = self.is_document && key == "schema";
            self.state.keys.push(key);
            if is_schema {
                let schema: Cow<'_, str> = items.next_value()?;
                self.state.known += usize::from((self.state.is_known)(&schema));
            } else {
                items.next_value_seed(Item { state: &mut *self.state, depth, is_document: false })?;
            }
        }
        self.state.keys.truncate(first);
        Ok(())
    }
}

/// A key, borrowed from the text unless it has escapes.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, PartialEq, Debug)]
    struct One {
        schema: String,
        tree: serde_json::Value,
    }

    fn read(text: &str) -> Option<usize> {
        let found: Vec<One> = documents(text, 5, &|schema| schema == "a/1.0")?;
        assert!(found.iter().all(|one| one.schema == "a/1.0"));
        Some(found.len())
    }

    #[test]
    fn whole_documents_of_the_schema_are_read() {
        assert_eq!(read(r#"{"schema": "a/1.0", "tree": [1, [2.5, [true, "x"]]], "unknown": null}"#), Some(1));
        assert_eq!(read(r#" [{"schema": "a/1.0", "tree": {}}, {"tree": -3, "schema": "a/1.0"}] "#), Some(2));
        assert_eq!(read("[]"), Some(0));
    }

    #[test]
    fn whatever_is_wrong_is_left_to_the_reader_that_says_it() {
        for wrong in [
            r#"{"schema": "a/2.0", "tree": 1}"#,
            r#"{"tree": 1}"#,
            r#"{"schema": 1, "tree": 1}"#,
            r#"{"schema": "a/1.0"}"#,
            r#"{"schema": "a/1.0", "tree": 1} x"#,
            r#"{"schema": "a/1.0", "tree": 1"#,
            r#"{"schema": "a/1.0", "tree": {"x": 1, "y": 2, "x": 1}}"#,
            r#"{"schema": "a/1.0", "tree": 1, "unknown": {"x": 1, "\u0078": 2}}"#,
            r#"{"schema": "a/1.0", "tree": [[[[[1]]]]]}"#,
            r#"[{"schema": "a/1.0", "tree": 1}, {"schema": "b/1.0", "tree": 1}]"#,
            r#"[[{"schema": "a/1.0", "tree": 1}]]"#,
            r#"[["a/1.0", 1]]"#,
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
