//! The meanings of names, as `explain` shows them.

use serde::{Deserialize, Serialize};

use super::Tool;

/// The schema version of an explanation.
pub const EXPLANATION_SCHEMA: &str = "mxprobe-explanation/1.1";

/// The result of `explain`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Explanation {
    /// `mxprobe-explanation/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// The name that was asked for; missing if everything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Probes, formats, families of operations, fields of the report, terms.
    pub entries: Vec<Entry>,
    /// Models and recipes with that name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelInWords>,
    /// Fields with that name in the types of reports and listings, if no entry has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldInWords>,
    /// How a model computes dots, in the order in which the dots were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceInWords>,
}

/// A model or a recipe in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ModelInWords {
    /// The name.
    pub name: String,
    /// The description, line by line.
    pub lines: Vec<String>,
}

/// A field of a type of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FieldInWords {
    /// The type and the field: `Finding.value`.
    pub field: String,
    /// The purpose of the field.
    pub description: String,
}

/// How a model computes a dot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TraceInWords {
    /// The model.
    pub model: String,
    /// The operation.
    pub operation: String,
    /// The computation, step by step.
    pub lines: Vec<String>,
}

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
