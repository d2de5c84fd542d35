//! `report`: a saved report, rendered.

use mxprobe::report::{Report, check, render};

use super::{
    Outcome,
    arguments::{Format, Screen, View},
    failure::Failure,
    input, output,
};

/// Shows a saved report.
pub(crate) fn view(arguments: &View, screen: Screen) -> Outcome {
    let text = input::read(&arguments.file)?;
    let reports: Vec<Report> = check::read_reports(&text).map_err(|problem| {
        Failure::usage(format!("`{}` is no report: {problem}", arguments.file.display()))
            .help("`mxprobe validate FILE` says the same; `mxprobe schema` prints what a report looks like")
    })?;
    match arguments.format {
        Format::Json => match reports.as_slice() {
            [one] => output::print_json(one),
            several => output::print_json(&several),
        },
        Format::Table => {
            let tables: Vec<String> = reports.iter().map(|report| render(report, screen.style)).collect();
            output::print(tables.join("\n").as_bytes())
        }
    }
}
