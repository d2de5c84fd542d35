//! `compare`: how devices differ: saved reports, models, and devices of this machine.

use std::path::{Path, PathBuf};

use crate::report::{Comparisons, Report, compare};

use super::run;
use crate::cli::{
    arguments::{Compare, Screen},
    commands::{
        measured,
        recipes::{self, Question},
    },
    failure::{Failure, INTERRUPTED, NO, Outcome},
    io::{input, interrupt::Interrupt, output},
};

/// Compares reports: 0 if no difference was found, 1 if there is one. When interrupted, it compares what was found so
/// far.
pub(crate) fn show(arguments: &Compare, screen: Screen) -> Outcome {
    let names: Vec<String> = arguments.compared.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.iter().any(|name| recipes::is_recipe(name)) {
        if arguments.format.is_rows() {
            return Err(Failure::usage("`--format csv`: a comparison of recipes has no rows"));
        }
        let question = Question { op: None, k: recipes::USUAL_K, seed: 1, budget: recipes::COMPARE_BUDGET };
        return recipes::compare(&names, &question, arguments.format, screen);
    }
    let files: Vec<PathBuf> = arguments.compared.iter().filter(|name| is_file(name)).cloned().collect();
    input::reads_once(&files)?;
    if let Some(measured) = measured::read(&files)? {
        if let Some(out) = &arguments.out {
            output::is_none_of(out, &files)?;
        }
        let (text, code) = measured.compared(arguments.format.form(screen))?;
        match &arguments.out {
            Some(path) => output::replace(path, &text)?,
            None => output::print(text.as_bytes()).map(|_| ())?,
        }
        return Ok(code);
    }
    let mut given = Vec::new();
    let mut read = Vec::new();
    let mut saved = input::reports(&files)?.into_iter().peekable();
    let mut places = 0..files.len();
    for name in &arguments.compared {
        if is_file(name) {
            let place = places.next();
            while let Some(found) = saved.next_if(|found| Some(found.given) == place) {
                let source = found.path.display().to_string();
                given.extend(found.reports.into_iter().map(|report| Given::Report(source.clone(), Box::new(report))));
                read.push(found.path);
            }
        } else {
            given.push(Given::Device(name.to_string_lossy().into_owned()));
        }
    }
    let is_one_device = matches!(given.as_slice(), [Given::Device(name)] if !is_several(name));
    if matches!(given.as_slice(), [] | [Given::Report(..)]) || is_one_device {
        let count = match given.first() {
            None => "no report".to_owned(),
            Some(Given::Report(source, _)) => format!("only one report, `{source}`"),
            Some(Given::Device(name)) => format!("only one device, `{name}`"),
        };
        return Err(Failure::usage(format!("there is {count}, but a comparison takes two or more"))
            .help("name another one: `mxprobe compare a100 h100`, `mxprobe compare before.json after.json`"));
    }
    if let Some(out) = &arguments.out {
        output::is_none_of(out, &read)?;
    }
    let names: Vec<String> = given.iter().filter_map(Given::device).collect();
    let interrupt = Interrupt::listen();
    let mut probed = run::reports(&names, screen, interrupt.clone())?.into_iter();
    let mut reports: Vec<(String, Report)> = Vec::new();
    for one in given {
        match one {
            Given::Report(source, report) => reports.push((source, *report)),
            Given::Device(name) => {
                let found = probed.next().unwrap_or_default();
                reports.extend(found.into_iter().map(|report| (name.clone(), report)));
            }
        }
    }
    let comparison = compare(&reports);
    let shown = Comparisons { found: &comparison, reports: &reports, listed: screen.verbose, all: arguments.all };
    let text = arguments.format.form(screen).text(&shown);
    match &arguments.out {
        Some(path) => output::replace(path, &text)?,
        None => output::print(text.as_bytes()).map(|_| ())?,
    }
    let differ = comparison.differ;
    // Freeing everything one by one takes longer than the end of the process.
    std::mem::forget((reports, comparison));
    Ok(match differ {
        _ if interrupt.is_set() => INTERRUPTED,
        true => NO,
        false => 0,
    })
}

/// One of the things to compare.
enum Given {
    /// A saved report, with its source.
    Report(String, Box<Report>),
    /// A device to probe now.
    Device(String),
}

impl Given {
    fn device(&self) -> Option<String> {
        match self {
            Self::Report(..) => None,
            Self::Device(name) => Some(name.clone()),
        }
    }
}

/// Whether a selector may select several devices.
fn is_several(selector: &str) -> bool {
    selector.ends_with(":all")
}

/// Whether an argument is a file rather than a device: it exists, or has the form of a path.
fn is_file(name: &Path) -> bool {
    let text = name.to_string_lossy();
    if text == "-" || name.exists() {
        return true;
    }
    let is_selector =
        text.split_once(':').is_some_and(|(backend, _)| backend.bytes().all(|byte| byte.is_ascii_lowercase()));
    !is_selector
        && (text.contains(std::path::MAIN_SEPARATOR)
            || PathBuf::from(name).extension().is_some_and(|end| end == "json"))
}
