//! Entries of the glossary.

use serde::{Deserialize, Serialize};

/// The meaning of a name, for readers of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Entry {
    /// The name.
    pub name: String,
    /// The kind of name.
    pub kind: Kind,
    /// The question of a probe, or a description.
    pub about: String,
    /// How a probe finds out, or further details.
    pub how: String,
    /// The possible values, and what each of them means for somebody who computes with the unit.
    pub answers: Vec<(String, String)>,
    /// The source.
    pub source: String,
}

/// The kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A question about an operation.
    Probe,
    /// A number format.
    Format,
    /// A family of operations: the first word of an id.
    Family,
    /// A field of the report.
    Field,
    /// One operation, by its id.
    Operation,
    /// A term of the field.
    Term,
    /// A number in a format.
    Number,
}

impl Kind {
    /// The kind in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Format => "format",
            Self::Family => "family of operations",
            Self::Field => "field of the report",
            Self::Operation => "operation",
            Self::Term => "term",
            Self::Number => "number",
        }
    }
}
