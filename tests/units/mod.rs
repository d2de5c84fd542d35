//! Which operations of a model stand for all of them.

use std::collections::BTreeSet;

use mxprobe_api::OperationId;
use mxprobe_sim::Model;

/// One operation of every unit for each k and set of formats; among shapes that compute alike, the smallest.
pub(crate) fn operations(model: &Model) -> Vec<OperationId> {
    let mut seen = BTreeSet::new();
    let mut ids: Vec<&OperationId> = model.operations.keys().collect();
    ids.sort_by_key(|id| u64::from(id.shape.m) * u64::from(id.shape.n));
    let mut chosen = Vec::new();
    for id in ids {
        let unit = model.units.iter().position(|unit| unit.operations.contains(id));
        if seen.insert((unit, id.shape.k, id.d, id.a, id.b, id.c, id.block_scale().map(|scale| scale.block))) {
            chosen.push(id.clone());
        }
    }
    chosen
}
