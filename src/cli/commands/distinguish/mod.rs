//! `distinguish`: dots on which models differ, or proofs that there are none.

mod algorithm;
mod pair;
mod property;
mod several;

use mxprobe_api::OperationId;

use crate::cli::{
    arguments::{Distinguish, Screen},
    choose::models,
    failure::{Failure, Outcome},
};
use crate::proof::conditions::{Conditions, Exponents};

/// Dots that the search tries.
const TRIES: u64 = 1_000_000;

/// Compares two models on an operation, or more; asks for properties of one, or compares two
/// algorithms over one.
pub(crate) fn distinguish(arguments: &Distinguish, screen: Screen) -> Outcome {
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
            "`{}` alone: there is no model to compare it with",
            arguments.models[0]
        ))
        .help(
            "name another model, ask for its properties with `--property`, or compare algorithms with `--algorithm`",
        )),
        Err(chosen) => several::distinguish(chosen, arguments, screen),
    }
}

/// Refuses files that are written of two models alone.
fn without_files(arguments: &Distinguish, there_are: &str) -> Result<(), Failure> {
    let files = [("--smt2", &arguments.smt2), ("--dimacs", &arguments.dimacs), ("--proof", &arguments.proof)];
    match files.into_iter().find(|(_, path)| path.is_some()) {
        Some((option, _)) => Err(Failure::usage(format!("{option} takes two models, and there {there_are}"))
            .help("ask about two models by themselves")),
        None => Ok(()),
    }
}

/// The inputs that a question is about.
fn conditions(arguments: &Distinguish, id: &OperationId) -> Result<Conditions, Failure> {
    let mut conditions = Conditions { finite: arguments.finite, ..Conditions::ANY };
    for (input, range) in &arguments.exponents {
        let place: &mut Option<Exponents> = match input {
            'a' => &mut conditions.a,
            'b' => &mut conditions.b,
            _ => &mut conditions.c,
        };
        if let Some(before) = place.replace(*range) {
            return Err(Failure::usage(format!("two ranges of exponents of {input}: {before} and {range}"))
                .help("give each of a, b and c one range at the most"));
        }
    }
    conditions.check(id).map_err(Failure::usage)?;
    Ok(conditions)
}
