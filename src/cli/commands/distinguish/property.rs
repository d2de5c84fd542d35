//! `distinguish --property`: how one model computes, and the results of each other answer.

use std::time::Instant;

use super::inputs::{TRIES, conditions, without_files};
use crate::cli::{
    arguments::{ALL_PROPERTIES, Distinguish, Screen, given},
    choose::{models::Chosen, select},
    failure::{Failure, INCOMPLETE, Outcome},
    io::{output, progress::Progress},
};
use crate::{
    proof::{
        decide::Effort,
        properties::{Answer, Property, ask},
    },
    session::Properties,
};

/// Determines properties of the arithmetic of one model's operation.
pub(super) fn distinguish(chosen: Vec<Chosen>, arguments: &Distinguish, screen: Screen) -> Outcome {
    let start = Instant::now();
    let [chosen] = <[Chosen; 1]>::try_from(chosen).map_err(|chosen| {
        Failure::usage(format!("`--property` takes one model, but there are {}", chosen.len()))
            .help("ask about each model separately, or omit `--property` to compare them")
    })?;
    without_files(arguments, "is one")?;
    let id = select::one_operation(&arguments.op, &chosen.listed)?.id.clone();
    let mut conditions = conditions(arguments, &id)?;
    conditions.finite = true;
    let named =
        |property: &Property| arguments.property.iter().any(|name| name == ALL_PROPERTIES || name == property.name());
    let all = arguments.property.iter().any(|name| name == ALL_PROPERTIES);
    let properties: Vec<Property> = Property::ALL.into_iter().filter(named).collect();
    let progress = Progress::of_one(screen, format!("asking for properties of {} on {id}", chosen.name));
    let end = start + arguments.budget;
    let mut answers = Vec::new();
    for (done, property) in properties.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let waiting = u32::try_from(properties.len() - done).unwrap_or(u32::MAX);
        let end = Instant::now() + left / waiting;
        let effort = Effort { seed: arguments.seed, tries: TRIES, conditions, closed_form: true, end };
        let (answer, took) = ask(&chosen.model, &id, *property, &effort).map_err(Failure::usage)?;
        if let (Answer::DoesNotApply(why), false) = (&answer, all) {
            drop(progress);
            return Err(Failure::usage(format!(
                "{} does not apply to {id} of {}: {why}",
                property.name(),
                chosen.name
            )));
        }
        answers.push((*property, answer, took));
    }
    drop(progress);
    let is_decided = answers.iter().all(|(_, answer, _)| answer.is_decided());
    let found =
        Properties { name: &chosen.name, id: &id, conditions, answers, took: start.elapsed(), arguments: given() };
    output::show(&found, arguments.format.into(), screen.for_lines())?;
    Ok(if is_decided { 0 } else { INCOMPLETE })
}
