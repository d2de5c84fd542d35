//! The models one parameter away from a model.

use mxprobe_api::{Error, OperationId};
use mxprobe_models::{Model, PARAMETERS, Plan, RULE};

use super::carry::sufficient_carry_bits;

/// A model that differs from another in one parameter.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// The difference in words: `24 fraction bits`.
    pub what: String,
    /// The model.
    pub model: Model,
}

/// The model with exactly as many carry bits as suffice in every adder of an operation, by the closed form, and its
/// neighbours: one carry bit more and fewer, one fraction bit more and fewer, the other exponent convention, the other
/// treatments of bits below the grid and of results (floor, nearest, sticky; nearest, down, up), and subnormal
/// operands, c and results flushed.
///
/// # Errors
/// If the model has no such operation, or an adder of it has no closed form for its carry bits.
pub fn neighbours(model: &Model, id: &OperationId) -> Result<(Model, Vec<Neighbour>), Error> {
    let missing = || missing(model, id);
    let (_, plan) = model.plan(id).ok_or_else(missing)?;
    let used = adders(&plan);
    let base = with_sufficient_carry(model, id, &used)?;
    let mut found = of_parameters(&base, &used, |_| true);
    let unit = base.units.iter().position(|unit| unit.operations.contains(id)).ok_or_else(missing)?;
    let mut change = |what: &str, change: &dyn Fn(&mut Model)| {
        let mut model = base.clone();
        change(&mut model);
        found.push(Neighbour { what: what.to_owned(), model });
    };
    change("subnormals of a and b flushed", &|model| {
        (model.units[unit].flush.a, model.units[unit].flush.b) = (true, true);
    });
    change("subnormals of c flushed", &|model| model.units[unit].flush.c = true);
    Ok((base, found))
}

fn missing(model: &Model, id: &OperationId) -> Error {
    Error::invalid(format!("the model {} has no operation {id}", model.name))
}

/// The adders that a plan uses, by index.
#[must_use]
pub fn adders(plan: &Plan) -> Vec<usize> {
    let mut used: Vec<usize> = plan.nodes.iter().map(|node| node.adder).collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// The model with exactly as many carry bits in these adders as suffice for an operation.
///
/// # Errors
/// If the model has no such operation, or an adder has no closed form for its carry bits.
pub fn with_sufficient_carry(model: &Model, id: &OperationId, used: &[usize]) -> Result<Model, Error> {
    let (_, plan) = model.plan(id).ok_or_else(|| missing(model, id))?;
    let mut base = model.clone();
    for number in used {
        let adder = &model.adders[*number];
        let nodes = plan.nodes.iter().filter(|node| node.adder == *number);
        let needed: Option<Vec<u32>> =
            nodes.map(|node| sufficient_carry_bits(adder, node, id, &model.adders, &plan.nodes)).collect();
        let unknown = || Error::unsupported(format!("the adder {} has no closed form for its carry bits", adder.name));
        base.adders[*number].carry_bits = Some(needed.and_then(|bits| bits.into_iter().max()).ok_or_else(unknown)?);
    }
    Ok(base)
}

/// The models in which one parameter of one of these adders has a neighbouring value, for the parameters whose key is
/// `wanted`.
#[must_use]
pub fn of_parameters(base: &Model, used: &[usize], wanted: impl Fn(&str) -> bool) -> Vec<Neighbour> {
    let mut found = Vec::new();
    let mut change = |what: String, change: &dyn Fn(&mut Model)| {
        let mut model = base.clone();
        change(&mut model);
        found.push(Neighbour { what, model });
    };
    for number in used.iter().copied() {
        for parameter in PARAMETERS.iter().filter(|parameter| wanted(parameter.key)) {
            for (to, what) in parameter.proved_neighbours(&base.adders[number]) {
                change(what, &|model| (parameter.set)(&mut model.adders[number], to));
            }
        }
        for parameter in RULE.iter().filter(|parameter| wanted(parameter.key)) {
            for (to, what) in
                base.adders[number].grid.first().into_iter().flat_map(|rule| parameter.proved_neighbours(rule))
            {
                change(what, &|model| (parameter.set)(&mut model.adders[number].grid[0], to));
            }
        }
    }
    found
}
