//! Representative operations of a model, and invented units.

use std::collections::BTreeSet;

use mxprobe_api::OperationId;
use mxprobe_models::Model;

/// One operation of every unit for each k and set of formats; among shapes that compute alike, the smallest.
pub(crate) fn operations(model: &Model) -> Vec<OperationId> {
    let mut seen = BTreeSet::new();
    let mut ids: Vec<&OperationId> = model.operations.keys().collect();
    ids.sort_by_key(|id| u64::from(id.shape.m) * u64::from(id.shape.n));
    let mut chosen = Vec::new();
    for id in ids {
        let unit = model.units.iter().position(|unit| unit.operations.contains(id));
        let scale = id.block_scale().map(|scale| (scale.block, scale.format));
        if seen.insert((unit, id.shape.k, id.d, id.a, id.b, id.c, scale)) {
            chosen.push(id.clone());
        }
    }
    chosen
}

/// An invented unit from the lines of its adder `s`, its tree over that adder, and its one operation.
pub(crate) fn invented(name: &str, adder: &str, tree: &str, operation: &str) -> Model {
    let text = format!(
        r#"
schema = "mxprobe-model/1"
name = "{name}"
title = "a unit that nobody has"
vendor = "nobody"
fingerprint = "{name}"
[sources]
here = "made up for this test"
[adder.s]
{adder}
basis = "assumed"
source = "here"
[[unit]]
tree = "{tree}"
operations = ["{operation}"]
basis = "assumed"
source = "here"
"#
    );
    Model::parse(name, &text, None).unwrap()
}
