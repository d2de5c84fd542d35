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
        }
    }
}

/// Text as it stands in the tables of this room.
pub(super) struct Text {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) how: &'static str,
    pub(super) answers: &'static [(&'static str, &'static str)],
    pub(super) source: &'static str,
}

impl Text {
    pub(super) fn entry(&self, kind: Kind) -> Entry {
        Entry {
            name: self.name.to_owned(),
            kind,
            about: self.about.to_owned(),
            how: self.how.to_owned(),
            answers: self.answers.iter().map(|(value, words)| ((*value).to_owned(), (*words).to_owned())).collect(),
            source: self.source.to_owned(),
        }
    }
}
