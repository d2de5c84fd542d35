//! Made-up units, and the comparison of models identified with them.

mod adders;
mod drawn;
mod exchanged;
mod judge;
mod named;

use mxprobe_models::Model;

pub(crate) use drawn::drawn;
pub(crate) use judge::{judge, paths};

/// Returns all named units.
pub(crate) fn named() -> Vec<Made> {
    [named::named(), exchanged::exchanged()].concat()
}

/// A made-up unit: adders as the lines of their tables, a tree over them and one operation.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) adders: Vec<(String, String)>,
    /// Further lines of the unit's table, such as `flush`.
    pub(crate) unit: String,
    pub(crate) tree: String,
    pub(crate) operation: String,
}

impl Made {
    /// Makes a unit from pairs of an adder's name and its lines.
    pub(crate) fn new(name: &str, operation: &str, tree: &str, adders: &[(&str, &str)]) -> Self {
        let adders = adders.iter().map(|(name, lines)| ((*name).to_owned(), (*lines).to_owned())).collect();
        Self { name: name.into(), adders, unit: String::new(), tree: tree.into(), operation: operation.into() }
    }

    /// Returns the text of the model file.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "schema = \"mxprobe-model/1\"\nname = \"{0}\"\ntitle = \"a unit that nobody has\"\nvendor = \"nobody\"\n\
             fingerprint = \"{0}\"\n[sources]\nhere = \"made up for this test\"\n",
            self.name
        );
        for (name, lines) in &self.adders {
            text += &format!("[adder.{name}]\n{lines}\nbasis = \"assumed\"\nsource = \"here\"\n");
        }
        text += &format!(
            "[[unit]]\ntree = \"{}\"\noperations = [\"{}\"]\n{}\nbasis = \"assumed\"\nsource = \"here\"\n",
            self.tree, self.operation, self.unit
        );
        text
    }

    /// Parses the model file.
    pub(crate) fn model(&self) -> Model {
        Model::parse(&self.name, &self.text(), None).unwrap_or_else(|error| panic!("{error}\n{}", self.text()))
    }
}
