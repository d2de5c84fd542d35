//! Operations that two models have in common: those with the same id, or else with the same formats and k.

use std::collections::BTreeSet;

use mxprobe_api::{Format, OperationId};
use mxprobe_models::Model;

use crate::{report::OperationRecord, session::synonyms};

use crate::cli::{
    choose::{
        models::Chosen,
        select::{no_operation, operations as matching},
    },
    failure::Failure,
};

/// The maximum number of pairs that an error lists.
const FEW: usize = 8;

/// Returns the operation that a name selects in both models: its id in the first, and its id in the second if that is
/// different.
///
/// Operations correspond if they have the same id, or else if they have the same formats, k and qualifiers: a dot of
/// one is then a dot of the other.
///
/// # Errors
/// If the name selects no operation, none that the models share, or several pairs.
pub(crate) fn operations(name: &str, chosen: [&Chosen; 2]) -> Result<(OperationId, Option<OperationId>), Failure> {
    let [one, other] = chosen;
    let named = [name.to_owned()];
    let of_one: Vec<&OperationId> = ids(&matching(&named, &one.listed));
    let of_other: Vec<&OperationId> = ids(&matching(&named, &other.listed));
    if of_one.is_empty() && of_other.is_empty() {
        return Err(no_operation(&named, &[&one.listed, &other.listed]));
    }
    let pairs = pairs(name, chosen, &of_one, &of_other);
    match pairs.as_slice() {
        [(id, counterpart)] => Ok(((*id).clone(), Some(*counterpart).filter(|other| other != id).cloned())),
        [] => Err(nothing_shared(name, chosen, &of_one, &of_other)),
        several => {
            let names = [&one.name, &other.name];
            let count = several.len();
            let mut failure = Failure::usage(format!(
                "`{name}` matches {count} operations of {} and {}; name one",
                names[0], names[1]
            ));
            for (id, counterpart) in several.iter().take(FEW) {
                let of_other = if id == counterpart { String::new() } else { format!(" and {counterpart}") };
                failure = failure.cause(format!("{id}{of_other}"));
            }
            if count > FEW {
                failure = failure.cause(format!("and {} more", count - FEW));
            }
            Err(failure.help("`--op` takes the id of an operation of either model"))
        }
    }
}

fn ids<'a>(operations: &[&'a OperationRecord]) -> Vec<&'a OperationId> {
    operations.iter().map(|operation| &operation.id).collect()
}

/// Returns the pairs of operations of which the name selects one; only the first for each pair of families, since m and
/// n do not matter to a dot.
fn pairs<'a>(
    name: &str,
    chosen: [&'a Chosen; 2],
    of_one: &[&'a OperationId],
    of_other: &[&'a OperationId],
) -> Vec<(&'a OperationId, &'a OperationId)> {
    let [one, other] = chosen;
    let is_id = |id: &&&OperationId| id.to_string() == name;
    let exact = of_one.iter().find(is_id).or_else(|| of_other.iter().find(is_id));
    if let Some(id) = exact
        && let (Some((one, _)), Some((other, _))) =
            (one.model.operations.get_key_value(*id), other.model.operations.get_key_value(*id))
    {
        return vec![(one, other)];
    }
    // A name that selects operations in both models selects pairs of those; otherwise, pairs of those of one model with
    // any that correspond.
    let all = |chosen: &'a Chosen| chosen.model.operations.keys().collect::<Vec<_>>();
    let (left, right) = match (of_one.is_empty(), of_other.is_empty()) {
        (false, false) => (of_one.to_vec(), of_other.to_vec()),
        (false, true) => (of_one.to_vec(), all(other)),
        _ => (all(one), of_other.to_vec()),
    };
    let same: Vec<_> = left.iter().filter(|id| right.contains(id)).map(|id| (*id, *id)).collect();
    if !same.is_empty() {
        return same;
    }
    let mut families = BTreeSet::new();
    let mut pairs = Vec::new();
    for one in &left {
        for other in right.iter().filter(|other| corresponds(one, other)) {
            if families.insert((&one.family, &other.family, formats(one), one.shape.k, &one.qualifiers)) {
                pairs.push((*one, *other));
            }
        }
    }
    pairs
}

/// Whether a dot of one operation is a dot of the other.
fn corresponds(one: &OperationId, other: &OperationId) -> bool {
    formats(one) == formats(other) && one.shape.k == other.shape.k && one.qualifiers == other.qualifiers
}

fn formats(id: &OperationId) -> [Format; 4] {
    [id.d, id.a, id.b, id.c]
}

/// The error if a name selects operations in one model or both, but none that correspond.
fn nothing_shared(name: &str, chosen: [&Chosen; 2], of_one: &[&OperationId], of_other: &[&OperationId]) -> Failure {
    let [one, other] = chosen.map(|chosen| chosen.name.as_str());
    let failure = Failure::usage(format!("{one} and {other} have no operation `{name}` of the same formats and k"));
    let facts = [(one, of_one), (other, of_other)].map(|(model, ids)| {
        let of: BTreeSet<String> =
            ids.iter().map(|id| format!("{}→{} of k = {}", id.a.name(), id.d.name(), id.shape.k)).collect();
        let of: Vec<String> = of.into_iter().take(FEW).collect();
        if of.is_empty() { format!("{model} has none") } else { format!("{model} has {}", of.join(", ")) }
    });
    let [one, other] = facts;
    let formats = synonyms::formats(name).is_some();
    let help = if formats { "bits of different formats are not the same numbers" } else { "the same k is needed too" };
    failure.cause(one).cause(other).help(format!("dots are compared bit by bit: {help}"))
}

/// Returns the operation that a name selects in every model: its id in the first and, for each other model, its id
/// there if that is different.
///
/// # Errors
/// As for two models, for the first pair that does not share one.
pub(crate) fn operation_of_all(
    name: &str,
    chosen: &[Chosen],
) -> Result<(OperationId, Vec<Option<OperationId>>), Failure> {
    let (first, others) = chosen.split_first().expect("two models or more");
    // The name is either the first model's own, or the id of a later one.
    let mut tried = others.iter().map(|other| operations(name, [first, other]));
    let id = match tried.next().expect("two models or more") {
        Ok((id, _)) => id,
        Err(failure) => tried.find_map(Result::ok).map(|(id, _)| id).ok_or(failure)?,
    };
    let of = |other: &Chosen| operations(&id.to_string(), [first, other]).map(|(_, counterpart)| counterpart);
    Ok((id.clone(), others.iter().map(of).collect::<Result<_, _>>()?))
}

/// Gives an operation of a model the id of its counterpart in another model.
pub(crate) fn rename(model: &mut Model, from: &OperationId, to: &OperationId) {
    let Some(mut operation) = model.operations.get(from).cloned() else { return };
    operation.id = to.clone();
    model.operations.insert(to.clone(), operation);
    if let Some(unit) = model.units.iter_mut().find(|unit| unit.operations.contains(from)) {
        unit.operations.push(to.clone());
    }
}
