//! Where a value comes from: its basis and its source.

use std::{collections::BTreeMap, fmt::Write as _};

use mxprobe_api::Error;
use serde::Serialize;

use crate::document::{Table, quoted};

/// How a value came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Stated in a vendor's document.
    Specified,
    /// Measured on silicon by somebody.
    Measured,
    /// Neither of these: the best guess.
    Assumed,
}

impl Basis {
    const ALL: [(&'static str, Self); 3] =
        [("specified", Self::Specified), ("measured", Self::Measured), ("assumed", Self::Assumed)];

    /// The name in files.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, basis)| *basis == self).map_or("", |(name, _)| name)
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// How it is known.
    pub basis: Basis,
    /// A key of the model's sources.
    pub source: String,
}

/// Where the values of an adder or a unit come from: one origin, and exceptions by field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The origin of every field that is not among the exceptions.
    pub origin: Origin,
    /// Fields with another origin.
    pub exceptions: BTreeMap<String, Origin>,
}

impl Provenance {
    /// Where the value of a field comes from.
    #[must_use]
    pub fn of(&self, field: &str) -> &Origin {
        self.exceptions.get(field).unwrap_or(&self.origin)
    }

    /// `[measured: key]`.
    pub(crate) fn cited(&self, field: &str) -> String {
        let origin = self.of(field);
        format!("[{}: {}]", origin.basis.name(), origin.source)
    }

    /// Reads `basis`, `source` and the exceptions of a table.
    pub(crate) fn read(table: &Table<'_>, sources: &BTreeMap<String, String>) -> Result<Self, Error> {
        let origin = |table: &Table<'_>| -> Result<Origin, Error> {
            let basis = table.choice("basis", &Basis::ALL)?;
            let basis = basis.ok_or_else(|| table.place().error("`basis` is missing"))?;
            let source = table.required_text("source")?;
            if !sources.contains_key(source) {
                return Err(table.place_of("source").error(format!("`{source}` is not among the file's sources")));
            }
            Ok(Origin { basis, source: source.to_owned() })
        };
        let mut exceptions = BTreeMap::new();
        for (field, exception) in table.named_tables("provenance")? {
            if !table.has(field) {
                return Err(exception.place().error("this table has no such field"));
            }
            exceptions.insert(field.to_owned(), origin(&exception)?);
            exception.finish()?;
        }
        Ok(Self { origin: origin(table)?, exceptions })
    }

    /// The provenance as TOML; `table` names the table of exceptions.
    pub(crate) fn written(&self, table: &str) -> String {
        let mut text = format!("basis = \"{}\"\nsource = {}\n", self.origin.basis.name(), quoted(&self.origin.source));
        if !self.exceptions.is_empty() {
            let _ = writeln!(text, "[{table}]");
            for (field, origin) in &self.exceptions {
                let (basis, source) = (origin.basis.name(), quoted(&origin.source));
                let _ = writeln!(text, "{field} = {{ basis = \"{basis}\", source = {source} }}");
            }
        }
        text
    }
}
