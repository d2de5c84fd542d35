//! Papers as data.

use serde::Deserialize;

use super::Check;

/// The files, in the order in which papers are listed.
pub(super) const TEXTS: [&str; 5] = [
    include_str!("data/nvidia.toml"),
    include_str!("data/fasi-2021.toml"),
    include_str!("data/poster.toml"),
    include_str!("data/fasi-2023.toml"),
    include_str!("data/valpey.toml"),
];

/// A paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The name by which it is asked for.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Authors, where it appeared and when.
    pub reference: String,
    /// Its sections, tables and figures, in their order.
    pub section: Vec<Section>,
    /// What it prints.
    pub item: Vec<Item>,
}

/// A section, a table or a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// `3.1.2`, `Table 3`.
    pub place: String,
    /// What it is about.
    pub about: String,
    /// Why it has no items, if it has none.
    pub none: Option<String>,
}

/// A number that a paper prints, or a few that belong together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Where it stands: the place of a section.
    pub place: String,
    /// What was asked.
    pub asked: String,
    /// What is printed, as the paper has it.
    pub printed: String,
    /// The model of the unit that it was asked of, if it was one.
    pub unit: Option<String>,
    /// Why what is computed differs, if it does.
    pub why: Option<String>,
    /// How it is computed.
    pub check: Check,
}

impl Paper {
    /// Reads one of the files of this program.
    pub(super) fn parse(text: &str) -> Self {
        toml::from_str(text).unwrap_or_else(|error| panic!("a paper is not well formed: {error}"))
    }
}
