//! `fleet`: merges reports and screens of many machines.

use std::path::Path;

use crate::{
    fleet::{Merged, drift, sources},
    report::{EarlierFleet, FLEET_SCHEMA, FleetReport, Health, Show},
};
use mxprobe_models::threads;

use crate::cli::{
    arguments::{Fleet, Screen, given},
    failure::{Failure, NO, Outcome},
    io::{input, output},
};

/// Merges files. The exit code is 1 if a device is wrong or deviates from most devices of its kind.
pub(crate) fn fleet(arguments: &Fleet, screen: Screen) -> Outcome {
    if let Some(path) = &arguments.out {
        output::is_for_json(path)?;
        output::can_write(path)?;
    }
    if let Some(path) = &arguments.sqlite {
        can_write_sqlite(path)?;
    }
    let before = arguments.since.as_deref().map(|path| {
        let wrong = |why: String| Failure::usage(format!("`{}` is not a fleet: {why}", path.display()));
        let report: EarlierFleet =
            serde_json::from_str(&input::read(path)?).map_err(|error| wrong(error.to_string()))?;
        if report.schema.split('.').next() == FLEET_SCHEMA.split('.').next() {
            Ok(report)
        } else {
            Err(wrong(format!("its schema is `{}`", report.schema)))
        }
    });
    let before = before.transpose()?;
    let found = sources(&arguments.files)
        .map_err(|(path, error)| Failure::usage(format!("`{}` cannot be read: {error}", path.display())))?;
    let mut report = Merged::read(&found, threads()).report(&given());
    if report.members.is_empty() {
        let failure = Failure::usage("there is neither a report nor a screen");
        let failure = report
            .skipped
            .iter()
            .take(8)
            .fold(failure, |failure, file| failure.cause(format!("{}: {}", file.path, file.reason)));
        return Err(failure.help("name files or folders that `mxprobe run --out` or `mxprobe screen --out` wrote"));
    }
    report.since = before.map(|before| drift(&before, &report));
    if let Some(path) = &arguments.out {
        output::replace(path, &report.json())?;
    }
    if let Some(path) = &arguments.sqlite {
        write_sqlite(&report, path)?;
    }
    output::show(&report, arguments.format, screen.for_lines())?;
    let deviates = report.kinds.iter().any(|kind| kind.classes.len() > 1);
    let is_wrong = report.unhealthy.iter().any(|found| found.verdict == Health::Wrong);
    Ok(if deviates || is_wrong { NO } else { 0 })
}

#[cfg(feature = "sqlite")]
fn can_write_sqlite(path: &Path) -> Result<(), Failure> {
    output::can_write(path)
}

#[cfg(not(feature = "sqlite"))]
fn can_write_sqlite(path: &Path) -> Result<(), Failure> {
    Err(Failure::usage(format!("`--sqlite {}`: this mxprobe was built without SQLite", path.display()))
        .help("`cargo install mxprobe --features sqlite` builds one with it; `--out FILE.json` has the same data"))
}

#[cfg(feature = "sqlite")]
fn write_sqlite(report: &FleetReport, path: &Path) -> Result<(), Failure> {
    crate::fleet::write_sqlite(report, path)
        .map_err(|why| Failure::usage(format!("`{}` cannot be written: {why}", path.display())))
}

#[cfg(not(feature = "sqlite"))]
fn write_sqlite(_: &FleetReport, path: &Path) -> Result<(), Failure> {
    can_write_sqlite(path)
}
