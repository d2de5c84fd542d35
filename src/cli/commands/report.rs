//! `report`: shows saved reports.

use crate::report::Reports;

use crate::cli::{
    arguments::{Screen, View},
    commands::measured,
    failure::Outcome,
    io::{input, output},
};

/// Shows saved reports.
pub(crate) fn report(arguments: &View, screen: Screen) -> Outcome {
    if let Some(measured) = measured::read(&arguments.files)? {
        if let Some(out) = &arguments.out {
            output::is_none_of(out, &arguments.files)?;
        }
        let text = measured.text(arguments.format.form(screen));
        return match &arguments.out {
            Some(path) => output::replace(path, &text).map(|()| 0),
            None => output::print(text.as_bytes()),
        };
    }
    let (mut reports, mut read) = (Vec::new(), Vec::new());
    for found in input::reports(&arguments.files)? {
        reports.extend(found.reports);
        read.push(found.path);
    }
    if let Some(out) = &arguments.out {
        output::is_none_of(out, &read)?;
    }
    let screen = screen.with_evidence(screen.aloud);
    let text = arguments.format.form(screen).text(&Reports { reports: &reports, listed: screen.verbose });
    // Freeing everything one by one takes longer than the end of the process.
    std::mem::forget(reports);
    match &arguments.out {
        Some(path) => output::replace(path, &text).map(|()| 0),
        None => output::print(text.as_bytes()),
    }
}
