//! `distinguish`: dots on which models differ, or proofs that there are none.

mod algorithm;
mod inputs;
mod pair;
mod property;
mod several;

use crate::cli::{
    arguments::{Distinguish, Screen},
    choose::models,
    commands::recipes::{self, Question},
    failure::{Failure, Outcome},
};

/// Compares two or more models on an operation, determines properties of one, or compares two algorithms over one.
pub(crate) fn distinguish(arguments: &Distinguish, screen: Screen) -> Outcome {
    if arguments.models.iter().any(|name| recipes::is_recipe(name)) {
        let k = arguments.products.map_or(recipes::USUAL_K, |k| k as usize);
        let question = Question { op: Some(&arguments.op), k, seed: arguments.seed, budget: arguments.budget };
        return recipes::compare(&arguments.models, &question, arguments.format.into(), screen);
    }
    let chosen = arguments.models.iter().map(|name| models::chosen(name)).collect::<Result<Vec<_>, _>>()?;
    if !arguments.algorithm.is_empty() {
        return algorithm::distinguish(chosen, arguments, screen);
    }
    if !arguments.property.is_empty() {
        return property::distinguish(chosen, arguments, screen);
    }
    match <[_; 2]>::try_from(chosen) {
        Ok(two) => pair::distinguish(two, arguments, screen),
        Err(chosen) if chosen.len() == 1 => Err(Failure::usage(format!(
            "only one model, `{}`: a comparison takes two or more",
            arguments.models[0]
        ))
        .help(
            "name another model, ask for its properties with `--property`, or compare algorithms with `--algorithm`",
        )),
        Err(chosen) => several::distinguish(chosen, arguments, screen),
    }
}
