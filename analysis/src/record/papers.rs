//! Results of `papers`: the types of its JSON.

use serde::{Deserialize, Serialize};

use super::Tool;

/// The schema version of results of `papers`.
pub const PAPERS_SCHEMA: &str = "mxprobe-papers/1.0";

/// Figures printed in papers, and the computed ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PapersReport {
    /// `mxprobe-papers/MAJOR.MINOR`.
    pub schema: String,
    /// The program that made the report.
    pub tool: Tool,
    /// The device that was asked instead of the models of the papers' units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The papers.
    pub papers: Vec<PaperRecord>,
    /// The duration.
    pub duration_ns: u64,
}

/// A paper.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PaperRecord {
    /// The name that selects the paper on the command line.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Authors, venue and year.
    pub reference: String,
    /// Its sections, tables and figures.
    pub sections: Vec<PaperSection>,
}

/// A section, a table or a figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PaperSection {
    /// The location, such as `3.1.2` or `Table 3`.
    pub place: String,
    /// The subject.
    pub about: String,
    /// Why the list of items is empty, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub none: Option<String>,
    /// The printed figures.
    pub items: Vec<PaperItem>,
}

/// A printed number, or a few that belong together.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PaperItem {
    /// The question.
    pub asked: String,
    /// The model of the unit that the paper examined, if it examined one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The printed figure.
    pub printed: String,
    /// The computed figure; empty if none was computed.
    pub computed: String,
    /// The result of the comparison.
    pub verdict: Verdict,
    /// Why the figures differ, or none was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The result of comparing a computed figure with the printed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Equal to the printed figure.
    Equal,
    /// Different, for a known reason.
    Explained,
    /// Different.
    Differs,
    /// The device does not support what was asked.
    Unsupported,
    /// It could not be computed.
    Failed,
}

impl PapersReport {
    /// Iterates over all items.
    pub fn items(&self) -> impl Iterator<Item = &PaperItem> {
        self.papers.iter().flat_map(PaperRecord::items)
    }
}

impl PaperRecord {
    /// Iterates over all items.
    pub fn items(&self) -> impl Iterator<Item = &PaperItem> {
        self.sections.iter().flat_map(|section| &section.items)
    }
}
