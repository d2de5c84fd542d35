//! An entry: what a name means.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a name means to a reader of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// What kind of name it is.
    pub kind: Kind,
    /// What it asks, or what it is.
    pub about: String,
    /// How it is found out, or what it is made of.
    pub how: String,
    /// Values and what each of them means for who computes with it.
    pub answers: Vec<(String, String)>,
    /// Where this is from.
    pub source: String,
}

/// The kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// In a word.
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
