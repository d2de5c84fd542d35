//! `site`: pages of all units, made of models and saved reports.

use std::{fs, sync::Mutex};

use crate::site::{Subject, classes, files, modelled, saved};
use mxprobe_models::{Model, load, shipped};

use crate::cli::{
    arguments::{Screen, Site},
    failure::{Failure, INTERRUPTED, Outcome},
    io::{input, interrupt::Interrupt, output},
};

/// What the proofs' search for a difference draws from.
const SEED: u64 = 1;

/// Writes the pages.
pub(crate) fn site(arguments: &Site, screen: Screen) -> Outcome {
    let unwritable = |error| Failure::usage(format!("`{}` cannot be written: {error}", arguments.folder.display()));
    let reports = input::reports(&arguments.files)?.into_iter().flat_map(|found| found.reports).collect();
    let models: Vec<Model> = match arguments.models.as_slice() {
        _ if arguments.without_models => Vec::new(),
        [] => shipped().to_vec(),
        names => names.iter().map(|name| load(name)).collect::<Result<_, _>>().map_err(Failure::usage)?,
    };
    fs::create_dir_all(&arguments.folder).map_err(unwritable)?;
    let told = Mutex::new(0);
    let tell = |done: usize, all: usize| {
        let tenth = done * 10 / all.max(1);
        let mut told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if tenth > *told && !screen.quiet {
            *told = tenth;
            output::note(format!("asked {done} of {all} operations of models"));
        }
    };
    let interrupt = Interrupt::listen();
    let modelled = modelled(&models, &|| interrupt.is_set(), &tell);
    if interrupt.is_set() {
        return Ok(INTERRUPTED);
    }
    let subjects: Vec<Subject> = saved(reports).into_iter().chain(modelled).collect();
    if subjects.is_empty() {
        return Err(Failure::usage("there is no unit to write a page of: no report of a device, and no model"));
    }
    if !screen.quiet {
        output::note("looking for units that compute the same");
    }
    let classes = classes(&models, SEED);
    let pages = files(&subjects, &classes);
    for (name, text) in &pages {
        output::replace(&arguments.folder.join(name), text)?;
    }
    if !screen.quiet {
        output::note(format!("{} pages; the first is {}", pages.len(), arguments.folder.join("index.html").display()));
    }
    Ok(0)
}
