//! Model files of identified arithmetic.

use std::collections::BTreeMap;

use mxprobe_api::{DeviceInfo, Error, Operation};
use mxprobe_models::{Adder, Basis, Model, Origin, Output, Provenance, Unit};

use super::outcome::Arithmetic;

/// The key of the file's only source.
pub(super) const SOURCE: &str = "identified";

/// Makes a model of the identified operations. Operations that compute alike share a unit, and equal adders are written
/// once.
///
/// `name` will select the model; `source` says how its values were found.
///
/// # Errors
/// If the parts do not make a valid model file; the text says why.
pub fn model_of(
    device: &DeviceInfo,
    name: &str,
    source: &str,
    found: &[(Arithmetic, Operation)],
) -> Result<Model, Error> {
    let origin = Origin { basis: Basis::Measured, source: SOURCE.into() };
    let mut adders: Vec<Adder> = Vec::new();
    let mut units: Vec<Unit> = Vec::new();
    let mut operations = BTreeMap::new();
    for (arithmetic, operation) in found {
        let mut names = BTreeMap::new();
        for adder in &arithmetic.adders {
            let exceptions = adder.provenance.exceptions.clone();
            let provenance = Provenance { origin: origin.clone(), exceptions };
            let adder = Adder { provenance, ..adder.clone() };
            let same = adders.iter().find(|known| Adder { name: adder.name.clone(), ..(*known).clone() } == adder);
            let name = match same {
                Some(known) => known.name.clone(),
                None => {
                    let name = free_name(&adders, adder.output);
                    adders.push(Adder { name: name.clone(), ..adder.clone() });
                    name
                }
            };
            names.insert(adder.name.clone(), name);
        }
        let tree = renamed(&arithmetic.tree, &names);
        operations.insert(operation.id.clone(), operation.clone());
        let alike = units.iter_mut().find(|unit| {
            unit.tree == tree
                && unit.flush == arithmetic.flush
                && unit
                    .operations
                    .first()
                    .and_then(|id| operations.get(id))
                    .is_some_and(|first| first.scope == operation.scope)
        });
        match alike {
            Some(unit) => unit.operations.push(operation.id.clone()),
            None => {
                let known: Vec<&str> = adders.iter().map(|adder| adder.name.as_str()).collect();
                let ids = vec![operation.id.clone()];
                units.push(Unit::new(&tree, &known, ids, arithmetic.flush, origin.clone())?);
            }
        }
    }
    let model = Model {
        name: name.to_owned(),
        variant: None,
        title: format!("{}, as identified", device.name),
        vendor: device.properties.get("vendor").cloned().unwrap_or_else(|| "unknown".into()),
        fingerprint: device.fingerprint.clone(),
        aliases: Vec::new(),
        sources: BTreeMap::from([(SOURCE.to_owned(), source.to_owned())]),
        variants: BTreeMap::new(),
        adders,
        units,
        operations,
    };
    // Parse the file's text, so that the caller gets what a reader of the file gets.
    Model::parse(&format!("{name}.toml"), &model.to_toml(), None)
}

/// Returns an unused name for an adder: that of its output, with a number from the second adder on.
fn free_name(adders: &[Adder], output: Output) -> String {
    let base = match output {
        Output::Wide => "wide".to_owned(),
        Output::Float { format, .. } | Output::Integer { format, .. } => format.name().to_owned(),
    };
    let taken = |name: &str| adders.iter().any(|adder| adder.name == name);
    if !taken(&base) {
        return base;
    }
    (2..).map(|number| format!("{base}-{number}")).find(|name| !taken(name)).unwrap_or(base)
}

/// Renames the adders in the text of a tree.
fn renamed(tree: &str, names: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    let mut word = String::new();
    for c in tree.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            word.push(c);
            continue;
        }
        let taken = std::mem::take(&mut word);
        // Words such as `c`, `acc` and `all` are not names of adders.
        text += names.get(&taken).filter(|_| c == '(' || c == ')').map_or(&taken, |name| name);
        text.push(c);
    }
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adders_are_renamed_and_nothing_else() {
        let names = BTreeMap::from([("sum".to_owned(), "f32".to_owned()), ("group".to_owned(), "wide".to_owned())]);
        assert_eq!(
            renamed("fold(c, all/8, sum(group(0..2), group(every(4, 2, 3)), acc))", &names),
            "fold(c, all/8, f32(wide(0..2), wide(every(4, 2, 3)), acc))"
        );
        assert_eq!(renamed("sum(pairs(all/1, group(all), sum), c)", &names), "f32(pairs(all/1, wide(all), f32), c)");
    }
}
