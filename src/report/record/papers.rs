//! What `papers` found: the types of its JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tool;

/// The schema version of what `papers` found.
pub const PAPERS_SCHEMA: &str = "mxprobe-papers/1.0";

/// What papers print, and what was computed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PapersReport {
    /// `mxprobe-papers/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// The device that was asked instead of the models of the papers' units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The papers.
    pub papers: Vec<PaperRecord>,
    /// How long it took.
    pub duration_ns: u64,
}

/// A paper.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PaperRecord {
    /// The name by which it is asked for.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Authors, where it appeared and when.
    pub reference: String,
    /// Its sections, tables and figures.
    pub sections: Vec<PaperSection>,
}

/// A section, a table or a figure.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PaperSection {
    /// `3.1.2`, `Table 3`.
    pub place: String,
    /// What it is about.
    pub about: String,
    /// Why it has no items, if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub none: Option<String>,
    /// What it prints.
    pub items: Vec<PaperItem>,
}

/// A number that is printed, or a few that belong together.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PaperItem {
    /// What was asked.
    pub asked: String,
    /// The model of the unit that the paper asked, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// What is printed.
    pub printed: String,
    /// What was computed; empty if nothing was.
    pub computed: String,
    /// What came of it.
    pub verdict: Verdict,
    /// Why it differs, or was not computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What came of computing what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is what is printed.
    Equal,
    /// It differs, and it is known why.
    Explained,
    /// It differs.
    Differs,
    /// The device that was asked has nothing of the kind.
    Unsupported,
    /// It could not be computed.
    Failed,
}

impl PapersReport {
    /// Every item.
    pub fn items(&self) -> impl Iterator<Item = &PaperItem> {
        self.papers.iter().flat_map(PaperRecord::items)
    }
}

impl PaperRecord {
    /// Every item.
    pub fn items(&self) -> impl Iterator<Item = &PaperItem> {
        self.sections.iter().flat_map(|section| &section.items)
    }
}

/// The JSON Schema of what `papers` found.
#[must_use]
pub fn papers_schema() -> serde_json::Value {
    schemars::schema_for!(PapersReport).to_value()
}
