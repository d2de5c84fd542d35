//! Reads the files of a fleet: reports, screens, and logs of screens.

use std::{
    borrow::Cow,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::answers::{Answers, BriefOperation, Known};
use crate::report::{FLEET_SCHEMA, Health, SCREEN_SCHEMA};

/// A file, and the machine it belongs to unless it names one itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// The first folder below the given one, else the file's name without its extension.
    pub node: String,
}

/// Lists the given files, and the `.json` and `.jsonl` files below the given folders, in no particular order.
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
        // A link to a folder is not followed, since links may form a cycle.
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

/// The content of one report or screen of a device.
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

/// The part of a report that is compared.
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

/// Reads a file.
///
/// # Errors
/// The reason why it is neither a report nor a screen.
pub(super) fn read(source: &Source, known: &Known) -> Result<Vec<Read>, String> {
    let text = fs::read_to_string(&source.path).map_err(|error| error.to_string())?;
    let text = text.trim_start_matches('\u{feff}');
    if source.path.extension().is_some_and(|extension| extension == "jsonl") {
        let of_line = |line: &str| match serde_json::from_str(line) {
            Ok(line) => of_screen(&line, source),
            Err(error) => Some(Err(format!("a line is not one of a log of screens: {error}"))),
        };
        return text.lines().filter(|line| !line.trim().is_empty()).filter_map(of_line).collect();
    }
    let several = text.trim_start().starts_with('[');
    let read;
    let schema = match schema_of(text) {
        Some(schema) => schema,
        None => {
            let found: Vec<Value> = several_or_one(text, several)?;
            read = found.into_iter().next().ok_or("it is empty")?;
            read["schema"].as_str().ok_or("it has no schema")?
        }
    };
    if is_version_of(schema, SCREEN_SCHEMA) {
        let screens: Vec<Value> = several_or_one(text, several)?;
        return screens.iter().filter_map(|screen| of_screen(screen, source)).collect();
    }
    if is_version_of(schema, FLEET_SCHEMA) {
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

/// Whether a schema is a version of another, of the same major number.
fn is_version_of(schema: &str, wanted: &str) -> bool {
    schema.split('.').next() == wanted.split('.').next()
}

/// The schema of a text that begins with it, as every document of this program does, without parsing the rest.
fn schema_of(text: &str) -> Option<&str> {
    let (before, rest) = text.split_once("\"schema\"")?;
    let begins = before.bytes().all(|byte| byte.is_ascii_whitespace() || matches!(byte, b'{' | b'['));
    let (_, rest) = rest.split_once('"')?;
    rest.split('"').next().filter(|_| begins)
}

/// Parses a document, or the elements of an array of documents.
fn several_or_one<'a, T: Deserialize<'a>>(text: &'a str, several: bool) -> Result<Vec<T>, String> {
    let wrong = |error: serde_json::Error| error.to_string();
    if !several {
        return Ok(vec![serde_json::from_str(text).map_err(wrong)?]);
    }
    let parts: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
    parts.into_iter().map(|part| serde_json::from_str(part.get()).map_err(wrong)).collect()
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

/// Reads a screen or a line of a log of screens; `None` if bits were inverted on purpose.
///
/// A screen has an object for its device, and wrong bits and failures in each operation. A line has all of that at the
/// top level.
fn of_screen(screen: &Value, source: &Source) -> Option<Result<Read, String>> {
    if !screen["injected"].is_null() {
        return None;
    }
    let is_line = screen["device"].is_string();
    let device = if is_line { screen } else { &screen["device"] };
    let text =
        |value: &Value, name: &str| value.as_str().map(str::to_owned).ok_or_else(|| format!("a screen has no {name}"));
    let read = || -> Result<Read, String> {
        let driver = &device["driver"];
        let driver = match (driver["name"].as_str(), driver["version"].as_str()) {
            (Some(name), Some(version)) => Some(format!("{name} {version}")),
            _ => driver.as_str().map(str::to_owned),
        };
        let verdict = &screen["verdict"];
        let known = [Health::Healthy, Health::Unknown, Health::Wrong];
        let verdict = known.into_iter().find(|health| verdict == health.name());
        Ok(Read {
            node: screen["node"].as_str().unwrap_or(&source.node).to_owned(),
            selector: text(&device["selector"], "selector")?,
            backend: text(&device["backend"], "backend")?,
            fingerprint: text(&device["fingerprint"], "fingerprint")?,
            name: text(if is_line { &screen["device"] } else { &device["name"] }, "name")?,
            driver,
            start: text(if is_line { &screen["time"] } else { &screen["time"]["start"] }, "time")?,
            what: What::Screen(verdict.ok_or("a screen has no verdict")?, said(screen)),
        })
    };
    Some(read())
}

/// Describes what is wrong or could not be compared, operation by operation.
fn said(screen: &Value) -> Vec<String> {
    let list = |name: &str| screen[name].as_array().cloned().unwrap_or_default();
    let words = |id: &Value, place: &Value, reason: &Value| {
        let id = id.as_str().unwrap_or_default();
        if let Some(place) = place.as_array() {
            let place: Vec<&str> = place.iter().filter_map(Value::as_str).collect();
            return Some(format!("{id}: {}", place.join(", ")));
        }
        reason.as_str().map(|reason| format!("{id}: {reason}"))
    };
    let of_lines = list("wrong").into_iter().chain(list("failed"));
    let of_lines = of_lines.filter_map(|of| words(&of["operation"], &of["place"], &of["reason"]));
    let operations = list("operations");
    // An operation without a model says nothing about the device.
    let judged = operations.iter().filter(|of| of["model"].is_string());
    let of_screen = judged.filter_map(|of| words(&of["id"], &of["wrong"]["place"], &of["failed"]));
    of_lines.chain(of_screen).collect()
}
