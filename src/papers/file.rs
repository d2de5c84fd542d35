//! Papers as data files.

use serde::Deserialize;

use super::Check;
use crate::contained;

/// The files, in the order in which papers are listed.
pub(super) const TEXTS: [&str; 5] = [
    include_str!("data/nvidia.toml"),
    include_str!("data/fasi-2021.toml"),
    include_str!("data/poster.toml"),
    include_str!("data/fasi-2023.toml"),
    include_str!("data/valpey.toml"),
];

/// A paper: its parts, and the numbers that it prints.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The name that selects it.
    pub name: String,
    /// The title.
    pub title: String,
    /// The authors, the publication and the year.
    pub reference: String,
    /// Its sections, tables and figures, in order.
    pub section: Vec<Section>,
    /// The numbers that it prints.
    pub item: Vec<Item>,
}

/// A section, a table or a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Its number or name: `3.1.2`, `Table 3`.
    pub place: String,
    /// The subject.
    pub about: String,
    /// The reason why it has no items, if it has none.
    pub none: Option<String>,
}

/// A number that a paper prints, or a few that belong together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The `place` of the section that contains it.
    pub place: String,
    /// The question.
    pub asked: String,
    /// The printed answer, as in the paper.
    pub printed: String,
    /// The model of the unit that the question is about, if any.
    pub unit: Option<String>,
    /// The reason why the computed answer differs, if it does.
    pub why: Option<String>,
    /// How the answer is computed.
    pub check: Check,
}

impl Paper {
    /// The items of a section, in the order of the file.
    pub(super) fn items(&self, section: &Section) -> impl Iterator<Item = &Item> {
        self.item.iter().filter(move |item| item.place == section.place)
    }

    /// Parses one of the program's files.
    pub(super) fn parse(text: &str) -> Self {
        contained::table(text)
    }
}
