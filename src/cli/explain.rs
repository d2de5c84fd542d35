//! `explain`: what a probe, a model or a field of the report means.

use std::fmt::Write as _;

use mxprobe::{probes::PROBES, report};
use mxprobe_sim::Trace;
use serde_json::Value;

use super::{
    Outcome, arguments::Explain, dots::Dots, failure::Failure, input, models, output, registry::MODELS, select,
};

/// Explains a name.
pub(crate) fn explain(arguments: &Explain) -> Outcome {
    if arguments.trace {
        return trace(arguments);
    }
    let Some(name) = arguments.name.as_deref() else { return list_probes("*") };
    if PROBES.iter().any(|(probe, _)| is_meant(name, probe)) {
        return list_probes(name);
    }
    if let Some(text) = model(name)? {
        return output::print(text.as_bytes());
    }
    let fields = fields(name);
    if !fields.is_empty() {
        return output::print(fields.as_bytes());
    }
    Err(Failure::usage(format!("there is nothing called `{name}`: no probe, no model, no field of the report")).help(
        "`mxprobe explain` lists the probes, `mxprobe list --backend sim` the models, `mxprobe schema` the fields",
    ))
}

/// How a model computes dots.
fn trace(arguments: &Explain) -> Outcome {
    // The arguments require both.
    let (device, op) = (arguments.device.as_deref().unwrap_or_default(), arguments.op.as_deref().unwrap_or_default());
    let chosen = models::chosen(device)?;
    let id = &select::one_operation(op, &chosen.listed)?.id;
    let operation = &chosen.model.operations[id];
    let lines = match &arguments.dot {
        Some(line) => line.clone(),
        None => input::read(std::path::Path::new("-"))?,
    };
    let mut dots = Dots::new(operation);
    for (number, line) in lines.lines().enumerate() {
        dots.read(line.as_bytes()).map_err(|error| error.on_line(number + 1, line.as_bytes(), operation))?;
    }
    for at in 0..dots.count {
        let dot = dots.dot(at);
        let trace = Trace::of(&chosen.model, id, dot).expect("the model has the operation");
        let between = if at > 0 { "\n" } else { "" };
        output::print(format!("{between}{}", trace.text(&chosen.model, id, dot)).as_bytes())?;
    }
    Ok(0)
}

fn is_meant(pattern: &str, probe: &str) -> bool {
    select::is_wanted(&[pattern.to_owned()], probe)
}

fn list_probes(pattern: &str) -> Outcome {
    let mut text = String::new();
    let chosen = || PROBES.iter().filter(|(name, _)| is_meant(pattern, name));
    let width = chosen().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, asks) in chosen() {
        let _ = writeln!(text, "{name:width$}  {asks}");
    }
    output::print(text.as_bytes())
}

/// A model in words. `None` if there is no model of this name; an error if it is a model file with a mistake.
fn model(name: &str) -> Result<Option<String>, Failure> {
    let prefix = format!("{MODELS}:");
    let bare = name.strip_prefix(&prefix);
    match mxprobe_sim::load(bare.unwrap_or(name)) {
        Ok(model) => Ok(Some(model.explain())),
        Err(error) if bare.is_some() || name.contains('/') || name.ends_with(".toml") => Err(Failure::usage(error)),
        Err(_) => Ok(None),
    }
}

/// What the schemas say of the fields of a name.
fn fields(name: &str) -> String {
    let mut text = String::new();
    for schema in [report::schema(), report::list_schema()] {
        let empty = serde_json::Map::new();
        let parts = schema.get("$defs").and_then(Value::as_object).unwrap_or(&empty);
        let title = schema.get("title").and_then(Value::as_str).unwrap_or("Report");
        let whole = std::iter::once((title, &schema));
        for (part, schema) in whole.chain(parts.iter().map(|(part, schema)| (part.as_str(), schema))) {
            let description = schema.pointer(&format!("/properties/{name}/description")).and_then(Value::as_str);
            if let Some(description) = description {
                let line = format!("{part}.{name}  {}\n", description.replace('\n', " "));
                if !text.contains(&line) {
                    text += &line;
                }
            }
        }
    }
    text
}
