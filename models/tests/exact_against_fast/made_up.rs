//! Models of units that nobody has.

use mxprobe_models::Model;

/// A unit: its tree, its operations, and what else its section says.
pub(super) type Unit<'a> = (&'a str, &'a str, &'a str);

/// A model of these adders, by name with the lines of their sections, and of these units.
pub(super) fn made_up(name: &str, adders: &[(&str, &str)], units: &[Unit<'_>]) -> Model {
    let mut text = format!(
        "schema = \"mxprobe-model/1\"\nname = \"{name}\"\ntitle = \"a unit that nobody has\"\nvendor = \"nobody\"\n\
         fingerprint = \"{name}\"\n[sources]\nhere = \"made up\"\n"
    );
    for (adder, lines) in adders {
        text += &format!("[adder.{adder}]\n{lines}\nbasis = \"assumed\"\nsource = \"here\"\n");
    }
    for (tree, operations, more) in units {
        text += &format!(
            "[[unit]]\ntree = \"{tree}\"\noperations = [\"{operations}\"]\n{more}\nbasis = \"assumed\"\nsource = \"here\"\n"
        );
    }
    Model::parse(&format!("{name}.toml"), &text, None).unwrap_or_else(|error| panic!("{error}\n{text}"))
}
