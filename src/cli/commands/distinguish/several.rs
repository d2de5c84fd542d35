//! `distinguish` for more than two models: which are equal, and dots that distinguish the others.

use std::time::Instant;

use mxprobe_models::Model;

use super::inputs::{TRIES, conditions, without_files};
use crate::cli::{
    arguments::{Distinguish, Screen, given},
    choose::{common, models::Chosen},
    failure::{Failure, INCOMPLETE, NO, Outcome},
    io::{output, progress::Progress},
};
use crate::{
    proof::{decide::Effort, panel},
    session::Classes,
};

/// Compares every pair of models on an operation.
pub(super) fn distinguish(mut chosen: Vec<Chosen>, arguments: &Distinguish, screen: Screen) -> Outcome {
    let start = Instant::now();
    without_files(arguments, &format!("are {}", chosen.len()))?;
    let (id, others) = common::operation_of_all(&arguments.op, &chosen)?;
    let conditions = conditions(arguments, &id)?;
    let mut counterparts = std::collections::BTreeMap::new();
    for (chosen, counterpart) in chosen[1..].iter_mut().zip(others) {
        let Some(counterpart) = counterpart else { continue };
        common::rename(&mut chosen.model, &counterpart, &id);
        counterparts.insert(chosen.name.clone(), counterpart);
    }
    let names: Vec<&str> = chosen.iter().map(|chosen| chosen.name.as_str()).collect();
    let models: Vec<&Model> = chosen.iter().map(|chosen| &chosen.model).collect();
    let progress = Progress::of_one(screen, format!("comparing {} on {id}", names.join(", ")));
    let end = start + arguments.budget;
    let effort = Effort { seed: arguments.seed, tries: TRIES, conditions, closed_form: true, end };
    let several = panel::compare(&models, &id, &effort).map_err(Failure::usage)?;
    drop(progress);
    let found = Classes {
        names,
        id: &id,
        counterparts,
        conditions,
        several: &several,
        took: start.elapsed(),
        arguments: given(),
    };
    output::show(&found, arguments.format.into(), screen.for_lines())?;
    Ok(match (several.is_decided(), several.classes.len()) {
        (false, _) => INCOMPLETE,
        (true, 1) => 0,
        (true, _) => NO,
    })
}
