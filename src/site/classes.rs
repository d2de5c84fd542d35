//! Operations with the same arithmetic on any unit: proved equal on every input.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use mxprobe_api::{Operation, OperationId};
use mxprobe_models::Model;

use crate::{
    aside::divided,
    dots::{Dot, Draw},
    in_order::InOrder,
    proof::{
        canonical::canonical,
        conditions::Conditions,
        decide::{Comparison, Effort, Verdict},
    },
};

/// Operations of several units that give the same bits for every input, including NaN and infinities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Their arithmetic, as an id of no particular unit: formats, k and block scales are those of the members.
    pub computes: OperationId,
    /// The operations: a model's name, and the operation's id.
    pub members: Vec<(String, OperationId)>,
}

/// The number of dots drawn to tell most operations apart.
const DRAWN: usize = 2_000;
/// The number of dots that are tried before a proof is attempted.
const TRIES: u64 = 20_000;
/// The time limit of each proof.
const PATIENCE: Duration = Duration::from_secs(2);

/// Operations of a model that have the same arithmetic according to its file.
type Candidate<'a> = (&'a Model, Vec<OperationId>);

/// Sorts the operations of these models into classes, including those with one member. Operations are compared if their
/// formats, k and block scales are the same. They share a class only if a proof is found; `seed` determines the search.
#[must_use]
pub fn classes(models: &[Model], seed: u64) -> Vec<Class> {
    let mut kinds: BTreeMap<OperationId, Vec<Candidate<'_>>> = BTreeMap::new();
    for model in models {
        for unit in &model.units {
            let mut alike: BTreeMap<OperationId, Vec<OperationId>> = BTreeMap::new();
            for id in &unit.operations {
                alike.entry(bare(id)).or_default().push(id.clone());
            }
            for (computes, ids) in alike {
                kinds.entry(computes).or_default().push((model, ids));
            }
        }
    }
    // The longest sums first, so that no single one holds up the end.
    let mut kinds: Vec<(OperationId, Vec<Candidate<'_>>)> = kinds.into_iter().collect();
    kinds.order_by_key(|(computes, _)| std::cmp::Reverse(computes.shape.k));
    let classes_at = |at: usize| classes_of(&kinds[at].0, &kinds[at].1, seed);
    let found =
        divided(kinds.len(), mxprobe_models::threads(), |places| places.flat_map(classes_at).collect::<Vec<Class>>());
    let mut found = found.concat();
    found.sort_by(|left, right| left.members.cmp(&right.members));
    found
}

/// Sorts operations with the same formats, k and block scales into classes.
fn classes_of(computes: &OperationId, candidates: &[Candidate<'_>], seed: u64) -> Vec<Class> {
    let dots: Vec<Dot> = Draw::new(computes, seed).take(DRAWN).collect();
    let mut classes: Vec<(Model, Class)> = Vec::new();
    for (model, ids) in candidates {
        let Some(reduced) = reduced(model, &ids[0], computes) else { continue };
        let members = ids.iter().map(|id| (model.name.clone(), id.clone()));
        match classes.iter_mut().find(|(known, _)| are_equal([known, &reduced], computes, &dots, seed)) {
            Some((_, class)) => class.members.extend(members),
            None => classes.push((reduced, Class { computes: computes.clone(), members: members.collect() })),
        }
    }
    classes.into_iter().map(|(_, class)| class).collect()
}

/// The arithmetic of an operation: its formats, k and block scales, without its unit's names and tile size.
fn bare(id: &OperationId) -> OperationId {
    let bare = OperationId::new("dot", (1, 1, id.shape.k), id.d, id.a, id.b, id.c);
    match id.block_scale() {
        Some(scale) => bare.with(&format!("block{}", scale.block)).with(scale.format.name()),
        None => bare,
    }
}

/// The model reduced to one operation, with an id shared by all models.
fn reduced(model: &Model, id: &OperationId, computes: &OperationId) -> Option<Model> {
    let operation = model.operations.get(id)?;
    let mut unit = model.unit(id)?.clone();
    unit.operations = vec![computes.clone()];
    let operation = Operation { id: computes.clone(), ..operation.clone() };
    Some(Model { units: vec![unit], operations: [(computes.clone(), operation)].into(), ..model.clone() })
}

/// Whether a proof is found that both give the same bits.
fn are_equal(models: [&Model; 2], id: &OperationId, dots: &[Dot], seed: u64) -> bool {
    let forms = models.map(|model| {
        let (unit, plan) = model.plan(id)?;
        let form = canonical(&model.adders, unit, &plan, id);
        Some((form.adders, form.plan, form.unit.flush))
    });
    if let [Some(one), Some(other)] = &forms
        && one == other
    {
        return true;
    }
    let Ok(comparison) = Comparison::new(models, id) else { return false };
    if dots.iter().any(|dot| comparison.rivals().differ(dot)) {
        return false;
    }
    let effort =
        Effort { seed, tries: TRIES, conditions: Conditions::ANY, closed_form: true, end: Instant::now() + PATIENCE };
    matches!(comparison.decide(&effort), Verdict::Equal(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxprobe_models::load;

    fn class_of<'a>(classes: &'a [Class], model: &str, id: &str) -> &'a Class {
        let id: OperationId = id.parse().unwrap();
        let is_it = |(name, known): &(String, OperationId)| name == model && *known == id;
        classes.iter().find(|class| class.members.iter().any(is_it)).unwrap()
    }

    #[test]
    fn units_that_compute_the_same_are_proved_to_and_those_that_differ_are_apart() {
        let models = ["v100", "a100", "h100"].map(|name| load(name).unwrap());
        let classes = classes(&models, 1);
        let of = |model: &str, id: &str| {
            class_of(&classes, model, id).members.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        // An FMA chain in f64 is the same on both; sums of f16 keep 24 bits on one and 25 on the other.
        let f64_chain = of("a100", "mma.m8n8k4.f64.f64.f64.f64");
        assert!(f64_chain.contains(&"h100".to_owned()), "{f64_chain:?}");
        let f16 = of("a100", "mma.m16n8k16.f32.f16.f16.f32");
        assert!(!f16.contains(&"h100".to_owned()) && f16.iter().all(|name| name == "a100"), "{f16:?}");
        // Families of one unit share its arithmetic.
        let hopper = class_of(&classes, "h100", "wgmma.m64n8k16.f32.f16.f16.f32");
        let mma: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
        assert!(hopper.members.contains(&("h100".into(), mma)), "{hopper:?}");
        // Each operation is in one class.
        let members: usize = classes.iter().map(|class| class.members.len()).sum();
        assert_eq!(members, models.iter().map(|model| model.operations.len()).sum::<usize>());
    }
}
