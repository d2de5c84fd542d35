//! Files of a fleet: reports, screens, and logs of screens.

use std::{
    borrow::Cow,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;

use super::answers::{Answers, BriefOperation, Known};
use crate::report::{FLEET_SCHEMA, Health, SCREEN_SCHEMA, ScreenReport};

/// A file, and the machine that it is of if it does not say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// The first folder below the one that was named, else the file's name without its ending.
    pub node: String,
}

/// The `.json` and `.jsonl` files of paths: files as they are, folders with all that is below them, in the order of names.
///
/// # Errors
/// Those of the system, with the path.
pub fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, (PathBuf, io::Error)> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            below(path, None, &mut found)?;
        } else {
            found.push(Source { path: path.clone(), node: stem(path) });
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn below(folder: &Path, node: Option<&str>, found: &mut Vec<Source>) -> Result<(), (PathBuf, io::Error)> {
    let failed = |error| (folder.to_owned(), error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        // A link to a folder is not followed: it may lead in a circle.
        if entry.file_type().map_err(failed)?.is_dir() {
            let name = entry.file_name().to_string_lossy().into_owned();
            below(&path, Some(node.unwrap_or(&name)), found)?;
        } else if path.extension().is_some_and(|extension| extension == "json" || extension == "jsonl") {
            let node = node.map_or_else(|| stem(&path), str::to_owned);
            found.push(Source { path, node });
        }
    }
    Ok(())
}

/// What one report or screen says of a device.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) node: String,
    pub(super) selector: String,
    pub(super) backend: String,
    pub(super) fingerprint: String,
    pub(super) name: String,
    pub(super) driver: Option<String>,
    pub(super) start: String,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Report(Arc<Answers>),
    Screen(Health, Vec<String>),
}

/// A report as far as it is compared.
#[derive(Deserialize)]
struct Brief<'a> {
    #[serde(borrow)]
    schema: Cow<'a, str>,
    node: Option<String>,
    device: BriefDevice,
    time: BriefTime,
    #[serde(borrow, default)]
    operations: Vec<BriefOperation<'a>>,
}

#[derive(Deserialize)]
struct BriefDevice {
    backend: String,
    selector: String,
    name: String,
    fingerprint: String,
    driver: Option<BriefDriver>,
}

#[derive(Deserialize)]
struct BriefDriver {
    name: String,
    #[serde(default)]
    version: String,
}

#[derive(Deserialize)]
struct BriefTime {
    start: String,
}

/// A line of a log of screens.
#[derive(Deserialize)]
struct Line {
    node: Option<String>,
    time: String,
    backend: String,
    selector: String,
    device: String,
    fingerprint: String,
    driver: Option<String>,
    verdict: Health,
    injected: Option<serde_json::Value>,
    #[serde(default)]
    wrong: Vec<WrongLine>,
    #[serde(default)]
    failed: Vec<FailedLine>,
}

#[derive(Deserialize)]
struct WrongLine {
    operation: String,
    place: Vec<String>,
}

#[derive(Deserialize)]
struct FailedLine {
    operation: String,
    reason: Option<String>,
}

/// The schema of a document whose keys are in another order.
#[derive(Deserialize)]
struct Schema<'a> {
    #[serde(borrow)]
    schema: Cow<'a, str>,
}

/// Reads a file.
///
/// # Errors
/// Why it is neither a report nor a screen.
pub(super) fn read(source: &Source, known: &Known) -> Result<Vec<Read>, String> {
    let text = fs::read_to_string(&source.path).map_err(|error| error.to_string())?;
    let text = text.trim_start_matches('\u{feff}');
    if source.path.extension().is_some_and(|extension| extension == "jsonl") {
        return text.lines().filter(|line| !line.trim().is_empty()).filter_map(|line| of_line(line, source)).collect();
    }
    let several = text.trim_start().starts_with('[');
    let read;
    let schema = match schema_of(text) {
        Some(schema) => schema,
        None => {
            let found: Vec<Schema<'_>> = several_or_one(text, several)?;
            read = found.into_iter().next().ok_or("it is empty")?;
            &*read.schema
        }
    };
    if schema == SCREEN_SCHEMA {
        let screens: Vec<ScreenReport> = several_or_one(text, several)?;
        return Ok(screens
            .into_iter()
            .filter(|screen| screen.injected.is_none())
            .map(|screen| of_screen(screen, source))
            .collect());
    }
    if schema == FLEET_SCHEMA {
        return Ok(Vec::new());
    }
    if !schema.starts_with("mxprobe-report/") {
        return Err(format!("its schema is `{schema}`, which is neither a report nor a screen"));
    }
    let reports: Vec<Brief<'_>> = several_or_one(text, several)?;
    reports
        .into_iter()
        .map(|report| {
            if report.schema.starts_with("mxprobe-report/") {
                Ok(of_report(report, source, known))
            } else {
                Err(format!("reports and `{}` are mixed in it", report.schema))
            }
        })
        .collect()
}

/// The schema that a text names, without reading all of it, if it begins with that, as every document of this program does.
fn schema_of(text: &str) -> Option<&str> {
    let (before, rest) = text.split_once("\"schema\"")?;
    let begins = before.bytes().all(|byte| byte.is_ascii_whitespace() || matches!(byte, b'{' | b'['));
    let (_, rest) = rest.split_once('"')?;
    rest.split('"').next().filter(|_| begins)
}

fn several_or_one<'a, T: Deserialize<'a>>(text: &'a str, several: bool) -> Result<Vec<T>, String> {
    let read = if several { serde_json::from_str(text) } else { serde_json::from_str(text).map(|one| vec![one]) };
    read.map_err(|error| error.to_string())
}

fn of_report(report: Brief<'_>, source: &Source, known: &Known) -> Read {
    let Brief { node, device, time, operations, .. } = report;
    let driver = device.driver.map(|driver| format!("{} {}", driver.name, driver.version).trim().to_owned());
    Read {
        node: node.unwrap_or_else(|| source.node.clone()),
        selector: device.selector,
        backend: device.backend,
        fingerprint: device.fingerprint,
        name: device.name,
        driver,
        start: time.start,
        what: What::Report(known.get(&operations)),
    }
}

fn of_screen(screen: ScreenReport, source: &Source) -> Read {
    let said = screen.operations.iter().filter_map(|operation| {
        let wrong = operation.wrong.as_ref().map(|wrong| wrong.place.join(", "));
        let failed = operation.failed.clone().filter(|_| operation.health() == Some(Health::Unknown));
        Some(format!("{}: {}", operation.id, wrong.or(failed)?))
    });
    let said = said.collect();
    Read {
        node: screen.node.unwrap_or_else(|| source.node.clone()),
        selector: screen.device.selector,
        backend: screen.device.backend,
        fingerprint: screen.device.fingerprint,
        name: screen.device.name,
        driver: screen.device.driver.map(|driver| format!("{} {}", driver.name, driver.version)),
        start: screen.time.start,
        what: What::Screen(screen.verdict, said),
    }
}

/// A line of a log; `None` if bits were inverted on purpose.
fn of_line(line: &str, source: &Source) -> Option<Result<Read, String>> {
    let line: Line = match serde_json::from_str(line) {
        Ok(line) => line,
        Err(error) => return Some(Err(format!("a line is not one of a log of screens: {error}"))),
    };
    if line.injected.is_some() {
        return None;
    }
    let wrong = line.wrong.iter().map(|wrong| format!("{}: {}", wrong.operation, wrong.place.join(", ")));
    let failed =
        line.failed.iter().filter_map(|failed| Some(format!("{}: {}", failed.operation, failed.reason.as_ref()?)));
    let said = wrong.chain(failed).collect();
    Some(Ok(Read {
        node: line.node.unwrap_or_else(|| source.node.clone()),
        selector: line.selector,
        backend: line.backend,
        fingerprint: line.fingerprint,
        name: line.device,
        driver: line.driver,
        start: line.time,
        what: What::Screen(line.verdict, said),
    }))
}
