//! Whether the recipes of two shapes compute the same sums for every input.

use std::{collections::BTreeMap, time::Duration};

use mxprobe_api::{Error, Format};
use mxprobe_models::recipe::{Program, Recipe, Shapes, Side, Verdict, decide, differences};

use super::{
    recipe,
    run::{Found, GemmIdentification, GemmOutcome},
};

/// How the recipes of two shapes with the same k compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SameRecipe {
    /// Every part of both shapes has a recipe, and all have the same unit, additions and epilogue: their bits are the
    /// same for every input.
    Proved,
    /// Two recipes return different bits for some input. Holds one line for each difference between the two as written.
    Differ(Vec<String>),
    /// Two recipes are written differently, but no input was found on which their bits differ. Holds the same lines.
    Open(Vec<String>),
    /// A part of one shape has no recipe.
    Unknown,
}

/// Time spent searching for an input on which two recipes that are written differently return different bits.
const BUDGET: Duration = Duration::from_secs(5);

/// Compares the recipes of all parts of two shapes with the same k.
///
/// # Errors
/// If the formats of the two are incompatible.
pub fn same_recipe(one: &GemmIdentification, other: &GemmIdentification, seed: u64) -> Result<SameRecipe, Error> {
    let id = &one.operation.id;
    let k = id.shape.sizes().2;
    let parts = one.parts.iter().chain(&other.parts);
    let recipes: Option<Vec<&Found>> = parts
        .map(|part| match &part.outcome {
            GemmOutcome::Identified(found) => Some(found),
            GemmOutcome::Refused { .. } => None,
        })
        .collect();
    let Some((first, others)) = recipes.as_deref().and_then(<[&Found]>::split_first) else {
        return Ok(SameRecipe::Unknown);
    };
    let (recipe, program) = written(first, id.c)?;
    let first = Side { recipe: &recipe, program: &program };
    let mut known = SameRecipe::Proved;
    for other in others {
        let (recipe, program) = written(other, id.c)?;
        let other = Side { recipe: &recipe, program: &program };
        match decide(first, other, k, seed, BUDGET)? {
            Verdict::Equal => {}
            Verdict::Differ(_) => return Ok(SameRecipe::Differ(differences(first, other))),
            Verdict::Open { .. } => known = SameRecipe::Open(differences(first, other)),
        }
    }
    Ok(known)
}

/// Writes a candidate as a recipe with one case, for every shape and with c in the format `c`, and compiles it.
fn written(found: &Found, c: Format) -> Result<(Recipe, Program), Error> {
    let mut adders = Vec::new();
    let case = recipe::case(&found.candidate, ("all", Shapes::default()), c, &mut adders);
    let program = found.candidate.program(c)?;
    let recipe = Recipe {
        name: "identified".to_owned(),
        title: "identified".to_owned(),
        model: found.model().to_owned(),
        aliases: Vec::new(),
        sources: BTreeMap::new(),
        adders,
        cases: vec![case],
    };
    Ok((recipe, program))
}
