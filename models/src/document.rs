//! A TOML document that keeps the line of every value, and tables whose errors name the field.

use std::{cell::RefCell, collections::BTreeMap, fmt::Write as _};

use mxprobe_api::Error;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The location of a value.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    file: String,
    line: usize,
    field: String,
}

impl Place {
    pub(crate) fn error(&self, what: impl std::fmt::Display) -> Error {
        let Self { file, line, field } = self;
        if field.is_empty() {
            Error::invalid(format!("{file}:{line}: {what}"))
        } else {
            Error::invalid(format!("{file}:{line}: {field}: {what}"))
        }
    }

    fn field(&self, name: &str, line: usize) -> Self {
        let field = if self.field.is_empty() { name.to_owned() } else { format!("{}.{name}", self.field) };
        Self { file: self.file.clone(), line, field }
    }
}

/// A value and its line.
#[derive(Clone, Debug)]
struct Node {
    line: usize,
    value: Value,
}

impl Node {
    /// Replaces a word in every string.
    fn replace(&mut self, word: &str, by: &str) {
        match &mut self.value {
            Value::Table(table) => table.values_mut().for_each(|node| node.replace(word, by)),
            Value::Array(nodes) => nodes.iter_mut().for_each(|node| node.replace(word, by)),
            Value::Text(text) => *text = text.replace(word, by),
            Value::Integer(_) | Value::Boolean(_) | Value::Other(_) => {}
        }
    }

    fn is_named(&self, name: &str) -> bool {
        let Value::Table(table) = &self.value else { return false };
        matches!(table.get("name"), Some(Node { value: Value::Text(text), .. }) if text == name)
    }
}

#[derive(Clone, Debug)]
enum Value {
    Table(BTreeMap<String, Node>),
    Array(Vec<Node>),
    Text(String),
    Integer(i64),
    Boolean(bool),
    Other(&'static str),
}

impl Value {
    fn kind(&self) -> String {
        match self {
            Self::Table(_) => "a table".into(),
            Self::Array(_) => "an array".into(),
            Self::Text(text) => format!("the string {text:?}"),
            Self::Integer(number) => format!("the number {number}"),
            Self::Boolean(value) => format!("{value}"),
            Self::Other(kind) => format!("a {kind}"),
        }
    }
}

/// A parsed file. A variant overlays its own values on those of the file.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    file: String,
    root: Node,
}

impl Document {
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let ends: Vec<usize> = (0..text.len()).filter(|at| text.as_bytes()[*at] == b'\n').collect();
        let line_of = |offset: usize| ends.partition_point(|end| *end < offset) + 1;
        let table = DeTable::parse(text).map_err(|error| {
            let line = line_of(error.span().map_or(0, |span| span.start));
            Error::invalid(format!("{file}:{line}: {}", error.message().replace('\n', ", ")))
        })?;
        let root = Node { line: 1, value: table_value(table.get_ref(), &line_of) };
        Ok(Self { file: file.to_owned(), root })
    }

    pub(crate) fn root(&self) -> Table<'_> {
        Table::new(&self.root, Place { file: self.file.clone(), line: 1, field: String::new() })
    }

    /// Overlays the values under `path` on the rest, key by key. Arrays are replaced whole, but a table laid over an
    /// array of tables applies key by key to the tables of that `name`.
    pub(crate) fn overlay(&mut self, path: &[&str]) -> Result<(), Error> {
        let mut at = &self.root;
        let mut place = Place { file: self.file.clone(), line: 1, field: String::new() };
        for key in path {
            let Value::Table(table) = &at.value else { return Ok(()) };
            let Some(next) = table.get(*key) else { return Ok(()) };
            at = next;
            place = place.field(key, at.line);
        }
        let over = at.clone();
        merge(&mut self.root, over, &place)
    }
}

impl Document {
    /// Expands the tables of an array that are templates: with `each = { WORD = ["x", "y"] }`, a table is repeated for
    /// each choice, the last word varying fastest, and `{WORD}` in any of its strings becomes the choice.
    pub(crate) fn write_out(&mut self, array: &str) -> Result<(), Error> {
        let place = Place { file: self.file.clone(), line: 1, field: String::new() };
        let Value::Table(root) = &mut self.root.value else { return Ok(()) };
        let Some(Node { value: Value::Array(tables), .. }) = root.get_mut(array) else { return Ok(()) };
        let mut all = Vec::new();
        for (index, mut table) in tables.drain(..).enumerate() {
            let Value::Table(entries) = &mut table.value else {
                all.push(table);
                continue;
            };
            let Some(each) = entries.remove("each") else {
                all.push(table);
                continue;
            };
            let place = place.field(&format!("{array}[{index}].each"), each.line);
            let Value::Table(words) = &each.value else {
                return Err(place.error(format!("expected a table, found {}", each.value.kind())));
            };
            let mut written = vec![table];
            for (word, choices) in words {
                let place = place.field(word, choices.line);
                let Value::Array(choices) = &choices.value else {
                    return Err(place.error(format!("expected an array, found {}", choices.value.kind())));
                };
                let mut next = Vec::new();
                for table in &written {
                    for choice in choices {
                        let Value::Text(choice) = &choice.value else {
                            return Err(place.error(format!("expected a string, found {}", choice.value.kind())));
                        };
                        let mut table = table.clone();
                        table.replace(&format!("{{{word}}}"), choice);
                        next.push(table);
                    }
                }
                written = next;
                if written.len() > MOST_TABLES {
                    return Err(place.error(format!("expands to more than {MOST_TABLES} tables")));
                }
            }
            all.extend(written);
        }
        *tables = all;
        Ok(())
    }
}

/// The most tables to which one expands.
const MOST_TABLES: usize = 4096;

fn merge(under: &mut Node, over: Node, place: &Place) -> Result<(), Error> {
    match (&mut under.value, over.value) {
        (Value::Table(under), Value::Table(over)) => {
            for (key, node) in over {
                match under.get_mut(&key) {
                    Some(existing) => {
                        let place = place.field(&key, node.line);
                        merge(existing, node, &place)?;
                    }
                    None => {
                        under.insert(key, node);
                    }
                }
            }
        }
        (Value::Array(elements), Value::Table(over)) => {
            for (name, node) in over {
                let place = place.field(&name, node.line);
                let element = elements.iter_mut().find(|element| element.is_named(&name));
                merge(element.ok_or_else(|| place.error("no element has this name"))?, node, &place)?;
            }
        }
        (_, value) => *under = Node { line: over.line, value },
    }
    Ok(())
}

fn table_value(table: &DeTable<'_>, line_of: &dyn Fn(usize) -> usize) -> Value {
    let entries = table.iter().map(|(key, value)| {
        let mut node = node(value, line_of);
        node.line = line_of(key.span().start);
        (key.get_ref().to_string(), node)
    });
    Value::Table(entries.collect())
}

fn node(value: &Spanned<DeValue<'_>>, line_of: &dyn Fn(usize) -> usize) -> Node {
    let line = line_of(value.span().start);
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Other("number out of range"), Value::Integer),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Array(array) => Value::Array(array.iter().map(|value| node(value, line_of)).collect()),
        DeValue::Table(table) => table_value(table, line_of),
        DeValue::Float(_) => Value::Other("number with a fraction"),
        DeValue::Datetime(_) => Value::Other("date"),
    };
    Node { line, value }
}

/// A table that records which keys were read.
pub(crate) struct Table<'a> {
    entries: &'a BTreeMap<String, Node>,
    place: Place,
    read: RefCell<Vec<&'static str>>,
}

/// An element of an array of strings and tables.
pub(crate) enum Item<'a> {
    Text(&'a str, Place),
    Table(Table<'a>),
}

static EMPTY: BTreeMap<String, Node> = BTreeMap::new();

impl<'a> Table<'a> {
    fn new(node: &'a Node, place: Place) -> Self {
        let entries = if let Value::Table(entries) = &node.value { entries } else { &EMPTY };
        Self { entries, place, read: RefCell::default() }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The place of a key, or of the table if the key is missing.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        self.entries
            .get(key)
            .map_or_else(|| self.place.field(key, self.place.line), |node| self.place.field(key, node.line))
    }

    fn get(&self, key: &'static str) -> Option<(&'a Node, Place)> {
        self.read.borrow_mut().push(key);
        let node = self.entries.get(key)?;
        Some((node, self.place.field(key, node.line)))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.entries.keys().map(String::as_str)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    pub(crate) fn text(&self, key: &'static str) -> Result<Option<&'a str>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some((Node { value: Value::Text(text), .. }, _)) => Ok(Some(text)),
            Some((node, place)) => Err(place.error(format!("expected a string, found {}", node.value.kind()))),
        }
    }

    pub(crate) fn required_text(&self, key: &'static str) -> Result<&'a str, Error> {
        self.text(key)?.ok_or_else(|| self.place.error(format!("`{key}` is missing")))
    }

    pub(crate) fn integer(&self, key: &'static str, low: i64, high: i64) -> Result<Option<i32>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some((Node { value: Value::Integer(number), .. }, place)) => {
                let fits = (low..=high).contains(number).then(|| i32::try_from(*number).ok()).flatten();
                fits.map(Some).ok_or_else(|| place.error(format!("{number} is not between {low} and {high}")))
            }
            Some((node, place)) => {
                Err(place.error(format!("expected a whole number from {low} to {high}, found {}", node.value.kind())))
            }
        }
    }

    /// A whole number under a key that the file chose.
    pub(crate) fn number(&self, key: &str, low: i64, high: i64) -> Result<i64, Error> {
        match self.entries.get(key).map(|node| &node.value) {
            Some(Value::Integer(number)) if (low..=high).contains(number) => Ok(*number),
            Some(Value::Integer(number)) => {
                Err(self.place_of(key).error(format!("{number} is not between {low} and {high}")))
            }
            other => {
                let found = other.map_or_else(|| "nothing".to_owned(), Value::kind);
                let wanted = format!("expected a whole number from {low} to {high}, found {found}");
                Err(self.place_of(key).error(wanted))
            }
        }
    }

    /// Whether a key holds a string.
    pub(crate) fn is_text(&self, key: &str) -> bool {
        matches!(self.entries.get(key), Some(Node { value: Value::Text(_), .. }))
    }

    pub(crate) fn boolean(&self, key: &'static str) -> Result<Option<bool>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some((Node { value: Value::Boolean(value), .. }, _)) => Ok(Some(*value)),
            Some((node, place)) => Err(place.error(format!("expected true or false, found {}", node.value.kind()))),
        }
    }

    /// A string that is one of these names.
    pub(crate) fn choice<T: Copy>(&self, key: &'static str, choices: &[(&str, T)]) -> Result<Option<T>, Error> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let found = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        found.map(Some).ok_or_else(|| self.place_of(key).error(format!("`{text}` is not one of {}", names())))
    }

    pub(crate) fn texts(&self, key: &'static str) -> Result<Vec<(&'a str, Place)>, Error> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some((Node { value: Value::Array(nodes), .. }, place)) => nodes
                .iter()
                .map(|node| {
                    let place = Place { line: node.line, ..place.clone() };
                    match &node.value {
                        Value::Text(text) => Ok((text.as_str(), place)),
                        other => Err(place.error(format!("expected a string, found {}", other.kind()))),
                    }
                })
                .collect(),
            Some((node, place)) => Err(place.error(format!("expected an array, found {}", node.value.kind()))),
        }
    }

    /// Every element of an array of strings and tables.
    pub(crate) fn items(&self, key: &'static str) -> Result<Vec<Item<'a>>, Error> {
        self.elements(key, ["an array", "a string or a table"], |node, place| match &node.value {
            Value::Text(text) => Some(Item::Text(text, place)),
            Value::Table(_) => Some(Item::Table(Table::new(node, place))),
            _ => None,
        })
    }

    pub(crate) fn table(&self, key: &'static str) -> Result<Option<Table<'a>>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some((node @ Node { value: Value::Table(_), .. }, place)) => Ok(Some(Table::new(node, place))),
            Some((node, place)) => Err(place.error(format!("expected a table, found {}", node.value.kind()))),
        }
    }

    pub(crate) fn tables(&self, key: &'static str) -> Result<Vec<Table<'a>>, Error> {
        let is_table = |node: &Node| matches!(node.value, Value::Table(_));
        self.elements(key, ["an array of tables", "a table"], |node, place| {
            is_table(node).then(|| Table::new(node, place))
        })
    }

    /// Every element of an array; `wanted` names the expected kinds of the array and of an element.
    fn elements<T>(
        &self,
        key: &'static str,
        wanted: [&str; 2],
        read: impl Fn(&'a Node, Place) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let Some((node, place)) = self.get(key) else { return Ok(Vec::new()) };
        let other = |node: &Node, wanted: &str| format!("expected {wanted}, found {}", node.value.kind());
        let Value::Array(nodes) = &node.value else { return Err(place.error(other(node, wanted[0]))) };
        let read = |(index, node): (usize, &'a Node)| {
            let place = Place { line: node.line, field: format!("{}[{index}]", place.field), ..place.clone() };
            read(node, place.clone()).ok_or_else(|| place.error(other(node, wanted[1])))
        };
        nodes.iter().enumerate().map(read).collect()
    }

    /// Every entry; each must be a table.
    pub(crate) fn named_tables(&self, key: &'static str) -> Result<Vec<(&'a str, Table<'a>)>, Error> {
        let Some(table) = self.table(key)? else { return Ok(Vec::new()) };
        table
            .entries
            .iter()
            .map(|(name, node)| {
                let place = table.place.field(name, node.line);
                match &node.value {
                    Value::Table(_) => Ok((name.as_str(), Table::new(node, place))),
                    other => Err(place.error(format!("expected a table, found {}", other.kind()))),
                }
            })
            .collect()
    }

    /// Every entry; each must be a string.
    pub(crate) fn named_texts(&self, key: &'static str) -> Result<Vec<(&'a str, &'a str)>, Error> {
        let Some(table) = self.table(key)? else { return Ok(Vec::new()) };
        table
            .entries
            .iter()
            .map(|(name, node)| match &node.value {
                Value::Text(text) => Ok((name.as_str(), text.as_str())),
                other => {
                    Err(table.place.field(name, node.line).error(format!("expected a string, found {}", other.kind())))
                }
            })
            .collect()
    }

    /// Rejects keys that nobody read.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let read = self.read.borrow();
        match self.entries.iter().find(|(key, _)| !read.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, node)) => {
                let mut known = read.clone();
                known.sort_unstable();
                known.dedup();
                Err(self
                    .place
                    .field(key, node.line)
                    .error(format!("unknown key; the keys here are {}", known.join(", "))))
            }
        }
    }
}

/// A string as a TOML basic string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Strings as a TOML array.
pub(crate) fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}
