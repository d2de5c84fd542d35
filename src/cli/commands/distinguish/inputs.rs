//! The inputs of a question, and how many are tried.

use mxprobe_api::OperationId;

use crate::{
    cli::{arguments::Distinguish, failure::Failure},
    proof::conditions::{Conditions, Exponents},
};

/// The number of dots that the search tries.
pub(super) const TRIES: u64 = 1_000_000;

/// Rejects options for files that exist only for a comparison of two models.
pub(super) fn without_files(arguments: &Distinguish, there_are: &str) -> Result<(), Failure> {
    let files = [("--smt2", &arguments.smt2), ("--dimacs", &arguments.dimacs), ("--proof", &arguments.proof)];
    match files.into_iter().find(|(_, path)| path.is_some()) {
        Some((option, _)) => Err(Failure::usage(format!("{option} takes two models, but there {there_are}"))
            .help("name exactly two models to compare")),
        None => Ok(()),
    }
}

/// Returns the inputs that a question is about.
pub(super) fn conditions(arguments: &Distinguish, id: &OperationId) -> Result<Conditions, Failure> {
    let mut conditions = Conditions { finite: arguments.finite, ..Conditions::ANY };
    for (input, range) in &arguments.exponents {
        let place: &mut Option<Exponents> = match input {
            'a' => &mut conditions.a,
            'b' => &mut conditions.b,
            _ => &mut conditions.c,
        };
        if let Some(before) = place.replace(*range) {
            return Err(Failure::usage(format!("two ranges of exponents of {input}: {before} and {range}"))
                .help("give each of a, b and c at most one range"));
        }
    }
    conditions.check(id).map_err(Failure::usage)?;
    Ok(conditions)
}
