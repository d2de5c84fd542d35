//! The models one parameter away from a model, and what each parameter is.

use mxprobe_api::{Error, OperationId};
use mxprobe_models::{Model, PARAMETERS, RULE};

use super::carry::sufficient_carry_bits;

/// A model and one that differs from it in one parameter.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// What differs, in words: `24 fraction bits`.
    pub what: String,
    /// The model.
    pub model: Model,
}

/// The model with just as many carry bits in every adder of an operation as suffice, where the closed form says how many,
/// and its neighbours: one carry bit more and fewer, one fraction bit more and fewer, the other exponent convention, the
/// other ways with bits below the grid and with results (floor, nearest, sticky; nearest, down, up), and subnormal
/// operands, c and results flushed.
///
/// # Errors
/// If the model has no such operation, or an adder of it has no closed form for its carry bits.
pub fn neighbours(model: &Model, id: &OperationId) -> Result<(Model, Vec<Neighbour>), Error> {
    let missing = || Error::invalid(format!("the model {} has no operation {id}", model.name));
    let (_, plan) = model.plan(id).ok_or_else(missing)?;
    let mut base = model.clone();
    let mut used: Vec<usize> = plan.nodes.iter().map(|node| node.adder).collect();
    used.sort_unstable();
    used.dedup();
    for number in &used {
        let adder = &model.adders[*number];
        let nodes = plan.nodes.iter().filter(|node| node.adder == *number);
        let needed: Option<Vec<u32>> =
            nodes.map(|node| sufficient_carry_bits(adder, node, id, &model.adders, &plan.nodes)).collect();
        let unknown = || Error::unsupported(format!("the adder {} has no closed form for its carry bits", adder.name));
        base.adders[*number].carry_bits = Some(needed.and_then(|bits| bits.into_iter().max()).ok_or_else(unknown)?);
    }
    let mut found = Vec::new();
    let mut change = |what: String, change: &dyn Fn(&mut Model)| {
        let mut model = base.clone();
        change(&mut model);
        found.push(Neighbour { what, model });
    };
    for number in used {
        for parameter in &PARAMETERS {
            for (to, what) in parameter.proved_neighbours(&base.adders[number]) {
                change(what, &|model| (parameter.set)(&mut model.adders[number], to));
            }
        }
        for parameter in &RULE {
            for (to, what) in parameter.proved_neighbours(&base.adders[number].grid[0]) {
                change(what, &|model| (parameter.set)(&mut model.adders[number].grid[0], to));
            }
        }
    }
    let unit = base.units.iter().position(|unit| unit.operations.contains(id)).ok_or_else(missing)?;
    change("subnormals of a and b flushed".into(), &|model| {
        (model.units[unit].flush.a, model.units[unit].flush.b) = (true, true);
    });
    change("subnormals of c flushed".into(), &|model| model.units[unit].flush.c = true);
    Ok((base, found))
}
