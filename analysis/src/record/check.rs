//! Reads saved reports, and finds and locates their problems.

use std::{collections::BTreeSet, fmt, sync::Arc};

use mxprobe_api::{Format, OperationId, ScalarFunction};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    evidence::EvidenceRecord,
    finding::{FindingRecord, OperationReport},
    fleet::{FLEET_SCHEMA, FleetReport},
    quick,
    report::{LIST_SCHEMA, Listing, Report, SCHEMA},
    screening::{SCREEN_SCHEMA, ScreenReport},
    throughput::{BENCH_SCHEMA, BenchReport},
    unique::Unique,
};
use crate::{clock, findings::Outcome, plain::counted};

/// A problem and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path in the JSON, such as `operations[0].findings[2].value`; empty for the whole document.
    pub path: String,
    /// The problem.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, reason } = self;
        if path.is_empty() { write!(f, "{reason}") } else { write!(f, "{path}: {reason}") }
    }
}

impl std::error::Error for Problem {}

fn problem(path: impl Into<String>, reason: impl Into<String>) -> Problem {
    Problem { path: path.into(), reason: reason.into() }
}

/// Reads one report, or an array of them. Unknown keys are ignored.
///
/// # Errors
/// The first problem, if this is not a report of this major version.
pub fn read_reports(text: &str) -> Result<Vec<Report>, Problem> {
    read_shared(&Arc::new(text.to_owned()))
}

/// Like [`read_reports`]; the reports share the text, in which their evidence stays until it is asked for.
///
/// # Errors
/// The first problem, if this is not a report of this major version.
pub fn read_shared(text: &Arc<String>) -> Result<Vec<Report>, Problem> {
    match quick::reports(text, DEEPEST, &|schema| is_readable_as(schema, SCHEMA)) {
        Some(found) => Ok(found),
        None => read_values(text, SCHEMA),
    }
}

/// Whether a text starts as a report does, or an array of them: with the name of the schema. It is then not a document
/// of another kind, though it may not be a report either.
pub fn starts_as_report(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"[").unwrap_or(text);
    let tokens: [&[u8]; 4] = [b"{", b"\"schema\"", b":", b"\"mxprobe-report/"];
    tokens.into_iter().try_fold(text, |text, token| text.trim_ascii_start().strip_prefix(token)).is_some()
}

/// Reads a document with the schema `wanted`, such as [`IDENTIFICATION_SCHEMA`](super::IDENTIFICATION_SCHEMA). Unknown
/// keys are ignored.
///
/// # Errors
/// The first problem, if this is not a document of this schema and major version.
pub fn read_as<T: DeserializeOwned>(text: &str, wanted: &str) -> Result<T, Problem> {
    read(parse(text)?, wanted)
}

/// Checks what the schema cannot express in a report, an array of reports or a listing: that every number has the width
/// of its format, that a finding has a value if and only if it was measured, and a reason if it was not, and that no
/// operation or probe appears twice. Returns a short description of the document.
///
/// # Errors
/// All problems, in the order of the text.
pub fn check(text: &str) -> Result<String, Vec<Problem>> {
    let value = parse(text).map_err(|found| vec![found])?;
    if first_schema(&value).is_some_and(|schema| is_named(schema, BENCH_SCHEMA)) {
        let problems = BenchReport::problems;
        return check_all(value, BENCH_SCHEMA, problems, |report| {
            let operations = counted(report.operations.len(), "operation");
            format!("the throughput of {operations} of {}", report.device.selector)
        });
    }
    if first_schema(&value).is_some_and(|schema| is_named(schema, SCREEN_SCHEMA)) {
        return check_all(value, SCREEN_SCHEMA, ScreenReport::problems, |screen| {
            let operations = counted(screen.operations.len(), "operation");
            format!("a screen of {} with {operations}: {}", screen.device.selector, screen.verdict)
        });
    }
    if first_schema(&value).is_some_and(|schema| is_named(schema, FLEET_SCHEMA)) {
        return check_all(value, FLEET_SCHEMA, FleetReport::problems, |fleet| {
            format!("a fleet of {}", counted(fleet.nodes, "machine"))
        });
    }
    if let Some(LIST) = value.get("schema").and_then(Value::as_str).and_then(|schema| schema.split('/').next()) {
        let listing: Listing = read(value, LIST_SCHEMA).map_err(|found| vec![found])?;
        return Ok(format!("a listing of {}", counted(listing.devices.len(), "device")));
    }
    let reports = read_reports(text).map_err(|found| vec![found])?;
    let bundle = value.is_array();
    let mut problems = Vec::new();
    for (at, report) in reports.iter().enumerate() {
        let found = check_report(report);
        let prefix = if bundle { format!("[{at}]") } else { String::new() };
        problems.extend(found.into_iter().map(|found| within(&prefix, found)));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let operations: usize = reports.iter().map(|report| report.operations.len()).sum();
    Ok(match reports.as_slice() {
        [one] if one.device.emulated => {
            format!("a report of a double of {} with {}", one.device.selector, counted(operations, "operation"))
        }
        [one] => format!("a report of {} with {}", one.device.selector, counted(operations, "operation")),
        several => format!("{} with {}", counted(several.len(), "report"), counted(operations, "operation")),
    })
}

const LIST: &str = "mxprobe-list";

/// Whether a schema has the name of another, whatever its version.
fn is_named(schema: &str, wanted: &str) -> bool {
    schema.split('/').next() == wanted.split('/').next()
}

/// Checks one document of a schema, or an array of them, with paths and reasons of its own problems.
fn check_all<T: DeserializeOwned>(
    value: Value,
    wanted: &str,
    problems_of: impl Fn(&T) -> Vec<(String, String)>,
    say: impl Fn(&T) -> String,
) -> Result<String, Vec<Problem>> {
    let values = match value {
        Value::Array(values) => values,
        value => vec![value],
    };
    let is_one = values.len() == 1;
    let (mut problems, mut said) = (Vec::new(), Vec::new());
    for (at, value) in values.into_iter().enumerate() {
        let prefix = if is_one { String::new() } else { format!("[{at}]") };
        match read::<T>(value, wanted) {
            Ok(report) => {
                let found = problems_of(&report).into_iter().map(|(path, reason)| problem(path, reason));
                problems.extend(found.map(|found| within(&prefix, found)));
                said.push(say(&report));
            }
            Err(found) => problems.push(within(&prefix, found)),
        }
    }
    if problems.is_empty() { Ok(said.join(", and ")) } else { Err(problems) }
}

/// Names the kind of document that a schema such as `mxprobe-bench/1.0` describes.
#[must_use]
pub fn kind_of_schema(schema: &str) -> Option<&'static str> {
    Some(match schema.split('/').next()? {
        "mxprobe-report" => "a report",
        "mxprobe-screen" => "a screen",
        "mxprobe-fleet" => "a fleet",
        "mxprobe-bench" => "a bench file",
        "mxprobe-growth" => "a growth file",
        "mxprobe-list" => "a listing",
        "mxprobe-comparison" | "mxprobe-bench-comparison" | "mxprobe-growth-comparison" => "a comparison",
        "mxprobe-identification" => "an identification",
        "mxprobe-verification" => "a verification",
        "mxprobe-distinction" => "a distinction",
        "mxprobe-classes" => "classes of models",
        "mxprobe-algorithms" => "a comparison of algorithms",
        "mxprobe-properties" => "properties of a model",
        "mxprobe-explanation" => "an explanation",
        _ => return None,
    })
}

/// Names the kind of a saved file from its own schema, or that of its first element; `None` if there is none.
#[must_use]
pub fn kind(text: &str) -> Option<&'static str> {
    kind_of_schema(first_schema(&parse(text).ok()?)?)
}

/// Reads one document with the schema `wanted`, or an array of them.
///
/// # Errors
/// The first problem, if a document is not of this schema and major version.
pub fn read_all<T: DeserializeOwned>(text: &str, wanted: &str) -> Result<Vec<T>, Problem> {
    match quick::documents(text, DEEPEST, &|schema| is_readable_as(schema, wanted)) {
        Some(found) => Ok(found),
        None => read_values(text, wanted),
    }
}

/// Whether a schema has the name and the major version of another.
fn is_readable_as(schema: &str, wanted: &str) -> bool {
    version(schema).is_some_and(|found| Some(found) == version(wanted))
}

/// Like [`read_all`], by way of a tree of values.
fn read_values<T: DeserializeOwned>(text: &str, wanted: &str) -> Result<Vec<T>, Problem> {
    match parse(text)? {
        Value::Array(values) => values
            .into_iter()
            .enumerate()
            .map(|(at, value)| read(value, wanted).map_err(|found| within(&format!("[{at}]"), found)))
            .collect(),
        value => Ok(vec![read(value, wanted)?]),
    }
}

/// Returns the schema that a document names, itself or in its first element.
fn first_schema(value: &Value) -> Option<&str> {
    value.get(0).unwrap_or(value).get("schema").and_then(Value::as_str)
}

fn within(prefix: &str, mut found: Problem) -> Problem {
    let dot = if prefix.is_empty() || found.path.is_empty() || found.path.starts_with('[') { "" } else { "." };
    found.path = format!("{prefix}{dot}{}", found.path);
    found
}

/// The nesting limit. The tree of a long chain of additions is as deep as its k; nothing deeper is a report.
const DEEPEST: usize = 1000;

fn parse(text: &str) -> Result<Value, Problem> {
    from_json(text).map(|Unique(value)| value).map_err(|error| {
        let what = if error.is_data() { "not read" } else { "not JSON" };
        problem("", format!("{what}: {error}"))
    })
}

/// Reads JSON whose lists and objects are nested up to 1000 deep.
///
/// # Errors
/// If the text is not the JSON of such a value, or is nested more deeply, which would overflow the stack.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    if depth(text) > DEEPEST {
        return Err(serde::de::Error::custom(format!("lists and objects are nested deeper than {DEEPEST}")));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Returns the nesting depth of lists and objects.
fn depth(text: &str) -> usize {
    let (mut now, mut most, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                now += 1;
                most = most.max(now);
            }
            b']' | b'}' if !in_text => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// The name and the major version of a schema.
fn version(schema: &str) -> Option<(&str, u32)> {
    let (name, version) = schema.split_once('/')?;
    let (major, minor) = version.split_once('.')?;
    minor.parse::<u32>().ok()?;
    Some((name, major.parse().ok()?))
}

/// Reads a document after checking its version: a document of another major version is not parsed further.
fn read<T: DeserializeOwned>(value: Value, wanted: &str) -> Result<T, Problem> {
    let Some(found) = value.get("schema").and_then(Value::as_str) else {
        return Err(problem("schema", format!("it is missing; this program writes and reads `{wanted}`")));
    };
    let (name, major) = version(wanted).expect("ours is well formed");
    match version(found) {
        Some((found, _)) if found != name => {
            let is = kind_of_schema(found).zip(kind_of_schema(wanted));
            return Err(match is {
                Some((is, wanted)) => problem("", format!("it is {is}, not {wanted}")),
                None => problem("schema", format!("expected `{wanted}`, found `{found}`")),
            });
        }
        None => return Err(problem("schema", format!("`{found}` is not a schema version such as `{wanted}`"))),
        Some((_, found)) if found != major => {
            return Err(problem(
                "schema",
                format!(
                    "this is version {found} of {name}, and this mxprobe ({}) reads version {major} only: use the \
                     mxprobe that wrote it, or regenerate the report",
                    env!("CARGO_PKG_VERSION")
                ),
            ));
        }
        Some(_) => {}
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        problem(if path == "." { String::new() } else { path }, error.inner().to_string())
    })
}

fn check_report(report: &Report) -> Vec<Problem> {
    let mut problems = Vec::new();
    let device = &report.device;
    if device.selector.split(':').next() != Some(device.backend.as_str()) {
        let reason = format!("`{}` is not a selector of the backend `{}`", device.selector, device.backend);
        problems.push(problem("device.selector", reason));
    }
    let resumed = report.resumed.iter().enumerate().map(|(at, part)| (format!("resumed[{at}].time"), &part.time));
    for (path, time) in [("time.start".to_owned(), &report.time.start)].into_iter().chain(resumed) {
        if clock::seconds(time).is_none() {
            problems.push(problem(path, format!("`{time}` is not an RFC 3339 time in UTC")));
        }
    }
    let mut planned = BTreeSet::new();
    for (at, id) in report.plan.iter().flat_map(|plan| &plan.operations).enumerate() {
        if !planned.insert(id) {
            problems.push(problem(format!("plan.operations[{at}]"), format!("`{id}` appears twice")));
        }
    }
    let mut ids = BTreeSet::new();
    for (at, operation) in report.operations.iter().enumerate() {
        let path = format!("operations[{at}]");
        if !ids.insert(&operation.operation.id) {
            problems.push(problem(format!("{path}.id"), format!("`{}` appears twice", operation.operation.id)));
        }
        if report.plan.is_some() && !planned.contains(&operation.operation.id) {
            let reason = format!("`{}` is not among the operations of `plan`", operation.operation.id);
            problems.push(problem(format!("{path}.id"), reason));
        }
        check_operation(operation, &path, &mut problems);
    }
    problems
}

fn check_operation(operation: &OperationReport, path: &str, problems: &mut Vec<Problem>) {
    let mut probes = BTreeSet::new();
    for (at, finding) in operation.findings.iter().enumerate() {
        let path = format!("{path}.findings[{at}]");
        if !probes.insert(&finding.probe) {
            problems.push(problem(format!("{path}.probe"), format!("`{}` appears twice", finding.probe)));
        }
        check_finding(finding, &path, problems);
        for (at, evidence) in finding.evidence.iter().enumerate() {
            check_evidence(evidence, &operation.operation.id, &format!("{path}.evidence[{at}]"), problems);
        }
    }
}

fn check_finding(finding: &FindingRecord, path: &str, problems: &mut Vec<Problem>) {
    let measured = finding.outcome == Outcome::Measured;
    let mut wrong = |field: &str, reason: &str| problems.push(problem(format!("{path}.{field}"), reason));
    match (measured, &finding.value) {
        (true, None) => wrong("value", "it is missing, but the outcome is `measured`"),
        (false, Some(_)) => wrong("value", "it is present, but the outcome is not `measured`"),
        _ => {}
    }
    match (measured, &finding.reason) {
        (false, None) => wrong("reason", "it is missing, but the outcome is not `measured`"),
        (false, Some(reason)) if reason.is_empty() => wrong("reason", "it is empty"),
        _ => {}
    }
    if measured && finding.statement.is_empty() {
        wrong("statement", "it is empty, but the outcome is `measured`");
    }
}

/// Checks a call of a scalar function, whose operands are in `a`.
fn check_call(evidence: &EvidenceRecord, name: &str, id: &OperationId, path: &str, problems: &mut Vec<Problem>) {
    let function: ScalarFunction = match name.parse() {
        Ok(function) => function,
        Err(error) => return problems.push(problem(format!("{path}.function"), error.to_string())),
    };
    let (arity, to) = (function.arity(), function.result(id.a));
    if evidence.a.len() != arity || !evidence.b.is_empty() || !evidence.c.is_empty() {
        let reason = format!("{function} takes {arity} operands in `a`, and neither `b` nor `c`");
        problems.push(problem(format!("{path}.a"), reason));
    }
    let operands = evidence.a.iter().enumerate().map(|(at, text)| (format!("a[{at}]"), id.a, text));
    let rivals = evidence.rivals.iter().enumerate().map(|(at, rival)| (format!("rivals[{at}].d"), to, &rival.d));
    for (field, format, text) in operands.chain([("d".to_owned(), to, &evidence.d)]).chain(rivals) {
        if let Err(error) = format.parse_hex(text) {
            problems.push(problem(format!("{path}.{field}"), error.to_string()));
        }
    }
}

fn check_evidence(evidence: &EvidenceRecord, id: &OperationId, path: &str, problems: &mut Vec<Problem>) {
    if let Some(name) = &evidence.function {
        return check_call(evidence, name, id, path, problems);
    }
    let mut number = |field: String, format: Format, text: &str| {
        if let Err(error) = format.parse_hex(text) {
            problems.push(problem(format!("{path}.{field}"), error.to_string()));
        }
    };
    for (field, format, numbers) in [("a", id.a, &evidence.a), ("b", id.b, &evidence.b)] {
        for (at, text) in numbers.iter().enumerate() {
            number(format!("{field}[{at}]"), format, text);
        }
    }
    number("c".into(), id.c, &evidence.c);
    number("d".into(), id.d, &evidence.d);
    for (at, rival) in evidence.rivals.iter().enumerate() {
        number(format!("rivals[{at}].d"), id.d, &rival.d);
    }
    let scale = id.block_scale();
    for (field, scales) in [("scale_a", &evidence.scale_a), ("scale_b", &evidence.scale_b)] {
        if let (Some(scale), Some(scales)) = (scale, scales) {
            for (at, text) in scales.iter().enumerate() {
                number(format!("{field}[{at}]"), scale.format, text);
            }
        }
    }
    let k = id.shape.sizes().2;
    for (field, numbers) in [("a", &evidence.a), ("b", &evidence.b)] {
        if numbers.len() != k {
            let reason = format!("it has {} elements, but k of {id} is {k}", numbers.len());
            problems.push(problem(format!("{path}.{field}"), reason));
        }
    }
    for (field, scales) in [("scale_a", &evidence.scale_a), ("scale_b", &evidence.scale_b)] {
        if scales.is_some() != scale.is_some() {
            let reason = if scale.is_some() { "it is missing" } else { "the operation has no block scales" };
            problems.push(problem(format!("{path}.{field}"), reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_trees_are_read_and_deeper_ones_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(DEEPEST)).is_ok());
        assert!(parse(&nested(DEEPEST + 1)).unwrap_err().reason.contains("nested deeper than 1000"));
        assert_eq!(depth(r#"{"a\\\"[[[":["}"]}"#), 2);
    }
}
