//! Output for schedulers and monitors: a line of a log, a line for node-problem-detector, metrics for Prometheus.

use serde_json::json;

use crate::{
    clock, plain,
    report::{Health, ScreenReport, ScreenedOperation, unit_noun},
};

/// A screen as one line of JSON, with a line end, for the log of a scheduler.
#[must_use]
pub fn log_line(report: &ScreenReport) -> String {
    let wrong: Vec<_> = report
        .operations
        .iter()
        .filter_map(|operation| {
            let wrong = operation.wrong.as_ref()?;
            let repeats = wrong.again.map(|again| json!({ "blocks": again.blocks, "wrong": again.wrong }));
            Some(json!({ "operation": operation.id, "place": wrong.place, "blocks": wrong.blocks, "again": repeats }))
        })
        .collect();
    let failed: Vec<_> = report
        .operations
        .iter()
        .filter(|operation| operation.health() == Some(Health::Unknown))
        .map(|operation| json!({ "operation": operation.id, "reason": operation.failed }))
        .collect();
    let mut line = json!({
        "schema": "mxprobe-screen-line/1",
        "time": report.time.start,
        "tool_version": report.tool.version,
        "backend": report.device.backend,
        "selector": report.device.selector,
        "device": report.device.name,
        "fingerprint": report.device.fingerprint,
        "driver": report.device.driver.as_ref().map(|driver| format!("{} {}", driver.name, driver.version)),
        "verdict": report.verdict,
        "duration_ns": report.time.duration_ns,
        "dots": report.dots(),
        "operations": report.operations.len(),
        "wrong": wrong,
        "failed": failed,
    });
    if let Some(node) = &report.node {
        line["node"] = json!(node);
    }
    if report.injected.is_some() {
        line["injected"] = json!(report.injected);
    }
    line.to_string() + "\n"
}

/// Says in a few words what is wrong with an operation.
fn words(operation: &ScreenedOperation) -> Option<String> {
    let wrong = operation.wrong.as_ref().map(|wrong| wrong.place.join(", "));
    let said = wrong.or_else(|| operation.failed.clone().filter(|_| operation.model.is_some()))?;
    Some(format!("{}: {said}", operation.id))
}

/// One line for node-problem-detector, which shows only its beginning: the verdict comes first, then the place of the
/// fault.
#[must_use]
pub fn problem_line(report: &ScreenReport) -> String {
    let selector = &report.device.selector;
    let operations = plain::counted(report.operations.len() as u64, "operation");
    let line = match report.verdict {
        Health::Healthy => format!("{selector} healthy: {} results of {operations} are right", report.dots()),
        verdict => {
            let meant = report.operations.iter().filter(|operation| operation.health() == Some(verdict));
            let first = meant.clone().find_map(words).unwrap_or_else(|| "nothing was compared".to_owned());
            let more = meant.count().saturating_sub(1);
            let more = if more == 0 { String::new() } else { format!("; and {more} more") };
            format!("{selector} {verdict} {first}{more}")
        }
    };
    plain::one_line(&line).into_owned() + "\n"
}

/// Escapes a label's value for the text format of Prometheus.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Metrics of all devices for the textfile collector of Prometheus' node exporter.
#[must_use]
pub fn prometheus(reports: &[ScreenReport]) -> String {
    let mut text = String::new();
    let mut family = |name: &str, help: &str, samples: Vec<(String, String)>| {
        text += &format!("# HELP mxprobe_screen_{name} {help}\n# TYPE mxprobe_screen_{name} gauge\n");
        for (labels, value) in samples {
            text += &format!("mxprobe_screen_{name}{{{labels}}} {value}\n");
        }
    };
    let device = |report: &ScreenReport| {
        let node = report.node.as_ref().map(|node| format!(",node=\"{}\"", label(node))).unwrap_or_default();
        let (selector, name) = (label(&report.device.selector), label(&report.device.name));
        let injected = if report.injected.is_some() { ",injected=\"true\"" } else { "" };
        format!("device=\"{selector}\",name=\"{name}\"{node}{injected}")
    };
    let each = |value: &dyn Fn(&ScreenReport) -> String| -> Vec<(String, String)> {
        reports.iter().map(|report| (device(report), value(report))).collect()
    };
    let verdict = |report: &ScreenReport| match report.verdict {
        Health::Healthy => "0".to_owned(),
        Health::Wrong => "1".to_owned(),
        Health::Unknown => "2".to_owned(),
    };
    family("verdict", "0 healthy, 1 wrong bits, 2 could not judge", each(&verdict));
    let start = |report: &ScreenReport| {
        clock::seconds(&report.time.start).map_or_else(|| "NaN".to_owned(), |seconds| seconds.to_string())
    };
    family("start_seconds", "When the screen began, in seconds since 1970", each(&start));
    let duration = |report: &ScreenReport| format!("{:?}", report.time.duration_ns as f64 / 1e9);
    family("duration_seconds", "How long the screen took", each(&duration));
    let of = |report: &ScreenReport, operation: &ScreenedOperation| {
        format!("{},operation=\"{}\"", device(report), label(&operation.id.to_string()))
    };
    let mut dots = Vec::new();
    let mut wrong = Vec::new();
    for report in reports {
        for operation in &report.operations {
            dots.push((of(report, operation), operation.dots.to_string()));
            for unit in &operation.units {
                let noun = unit_noun(&report.device.properties);
                let core = unit.unit.map(|unit| format!(",{noun}=\"{unit}\"")).unwrap_or_default();
                wrong.push((of(report, operation) + &core, unit.wrong_blocks.to_string()));
            }
        }
    }
    family("results", "Results that were compared", dots);
    family("wrong_blocks", "Blocks of results whose digest was wrong", wrong);
    text
}
