//! `compare`: what differs between reports.

use crate::report::{Comparisons, compare};

use crate::cli::{
    arguments::{Compare, Screen},
    commands::measured,
    failure::{Failure, NO, Outcome},
    io::{input, output},
};

/// Compares reports: 0 if no difference was found, 1 if there is one.
pub(crate) fn show(arguments: &Compare, screen: Screen) -> Outcome {
    if let Some(measured) = measured::read(&arguments.files)? {
        if let Some(out) = &arguments.out {
            output::is_none_of(out, &arguments.files)?;
        }
        let (text, code) = measured.compared(arguments.format.form(screen))?;
        match &arguments.out {
            Some(path) => output::replace(path, &text)?,
            None => output::print(text.as_bytes()).map(|_| ())?,
        }
        return Ok(code);
    }
    let mut reports = Vec::new();
    let mut read = Vec::new();
    for found in input::reports(&arguments.files)? {
        let source = found.path.display().to_string();
        read.push(found.path);
        reports.extend(found.reports.into_iter().map(|report| (source.clone(), report)));
    }
    if reports.len() < 2 {
        let count = if reports.len() == 1 { "only one report" } else { "no report" };
        return Err(Failure::usage(format!("there is {count}, and a comparison takes two or more"))
            .help("`mxprobe run --out FILE` writes a report; a file may hold an array of them"));
    }
    if let Some(out) = &arguments.out {
        output::is_none_of(out, &read)?;
    }
    let comparison = compare(&reports);
    let text = arguments.format.form(screen).text(&Comparisons { found: &comparison, all: arguments.all });
    match &arguments.out {
        Some(path) => output::replace(path, &text)?,
        None => output::print(text.as_bytes()).map(|_| ())?,
    }
    Ok(if comparison.differ { NO } else { 0 })
}
