//! `site`: web pages about all units, from models and saved reports.

use std::{fs, sync::Mutex};

use mxprobe_models::{Model, load, shipped};

use crate::{
    aside::locked,
    cli::{
        arguments::{Screen, Site},
        commands::papers::computed,
        failure::{Failure, INTERRUPTED, Outcome},
        io::{input, interrupt::Interrupt, output, progress::Progress},
    },
    site::{Subject, classes, files, modelled, saved},
};

/// The seed of the proofs' search for a difference.
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
    let total = models.iter().map(|model| model.operations.len()).sum();
    let progress = Mutex::new(Progress::new(screen, total));
    let tell = |done: usize, _: usize| {
        locked(&progress).advance(done, "operations of models");
    };
    let interrupt = Interrupt::listen();
    let modelled = modelled(&models, &|| interrupt.is_set(), &tell);
    drop(progress);
    if interrupt.is_set() {
        return Ok(INTERRUPTED);
    }
    let subjects: Vec<Subject> = saved(reports).into_iter().chain(modelled).collect();
    if subjects.is_empty() {
        return Err(Failure::usage("there is nothing to write pages about: no report of a device, and no model"));
    }
    let progress = Progress::of_one(screen, "searching for units that compute the same".to_owned());
    let classes = classes(&models, SEED);
    drop(progress);
    let papers = (arguments.models.is_empty() && !arguments.without_models).then(|| computed(None, None, screen));
    let papers = match papers.transpose()? {
        Some(None) => return Ok(INTERRUPTED),
        found => found.flatten(),
    };
    let pages = files(&subjects, &classes, papers.as_ref());
    for (name, text) in &pages {
        output::replace(&arguments.folder.join(name), text)?;
    }
    if !screen.quiet {
        output::note(format!("{} pages; the first is {}", pages.len(), arguments.folder.join("index.html").display()));
    }
    Ok(0)
}
