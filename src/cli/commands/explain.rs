//! `explain`: what a probe, a model, a format, a family of operations or a field of the report means.

use std::fmt::Write as _;

use mxprobe::{
    glossary, probes,
    report::{self, wrap},
};
use mxprobe_models::Trace;
use serde_json::Value;

use crate::cli::{
    arguments::{Explain, Screen, TextFormat},
    choose::{
        models,
        registry::MODELS,
        select,
        similar::{may_be_meant, similar},
    },
    failure::{Failure, Outcome},
    io::{dot_lines::Dots, input, output},
};

/// Explains a name: in every sense that it has, or the names that it is the beginning of.
pub(crate) fn explain(arguments: &Explain, screen: Screen) -> Outcome {
    if arguments.trace {
        return trace(arguments);
    }
    if arguments.all {
        return output::print(entries(&glossary::entries(), arguments.format, screen).as_bytes());
    }
    let Some(name) = arguments.name.as_deref() else { return output::print(everything().as_bytes()) };
    let mut text = entries(&glossary::explain(name), arguments.format, screen);
    if let Some(model) = model(name)? {
        text += &model;
    }
    if text.is_empty() {
        text = questions(|probe| select::is_wanted(&[name.to_lowercase()], probe));
    }
    if text.is_empty() {
        text = fields(name);
    }
    if !text.is_empty() {
        return output::print(text.as_bytes());
    }
    Err(Failure::usage(format!(
        "there is nothing called `{name}`: no probe, no model, no format, no family of operations, no field of the report"
    ))
    .help(format!(
        "{}`mxprobe explain` lists the names, `mxprobe list --backend sim` the models, `mxprobe schema` every field",
        meant(name)
    )))
}

/// What may be meant by a name that is none: the formats that others call so, else names like it.
fn meant(name: &str) -> String {
    let formats = glossary::formats_called(name);
    if !formats.is_empty() {
        return may_be_meant(formats);
    }
    let entries = glossary::entries();
    let models = mxprobe_models::shipped().iter().map(|model| model.name.as_str());
    let schemas = [report::schema(), report::list_schema()];
    let fields = schemas.iter().flat_map(parts).filter_map(|(_, part)| part.get("properties")?.as_object());
    let fields = fields.flat_map(|properties| properties.keys().map(String::as_str));
    may_be_meant(&similar(name, entries.iter().map(|entry| entry.name.as_str()).chain(models).chain(fields)))
}

/// A schema and the types that it is made of, each with its name.
fn parts(schema: &Value) -> Vec<(&str, &Value)> {
    let title = schema.get("title").and_then(Value::as_str).unwrap_or("Report");
    let types = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
    std::iter::once((title, schema)).chain(types.map(|(name, part)| (name.as_str(), part))).collect()
}

/// Entries in full; nothing of none.
fn entries(entries: &[glossary::Entry], format: TextFormat, screen: Screen) -> String {
    match format {
        _ if entries.is_empty() => String::new(),
        TextFormat::Text => entries.iter().map(|entry| full(entry, screen.style.width)).collect(),
        TextFormat::Markdown => glossary::markdown(entries),
    }
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

/// Probes with their questions.
fn questions(is_meant: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let chosen = || probes::all().filter(|probe| is_meant(probe.name));
    let width = chosen().map(|probe| probe.name.len()).max().unwrap_or(0);
    for probe in chosen() {
        let _ = writeln!(text, "{:width$}  {}", probe.name, probe.question);
    }
    text
}

/// Every name that can be explained.
fn everything() -> String {
    let mut text = questions(|_| true);
    let entries = glossary::entries();
    for (kind, title) in [
        (glossary::Kind::Format, "formats"),
        (glossary::Kind::Family, "families of operations"),
        (glossary::Kind::Field, "fields of the report"),
    ] {
        let names = entries.iter().filter(|entry| entry.kind == kind).map(|entry| entry.name.as_str());
        let names = names.collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "\n{title}");
        wrap(&names, WIDTH).iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text
}

/// Lists of names are this wide.
const WIDTH: usize = 96;

/// One name in full.
fn full(entry: &glossary::Entry, width: usize) -> String {
    let mut text = format!("{} ({})\n", entry.name, entry.kind.name());
    let mut hang = |label: &str, words: &str| {
        let indent = label.len();
        for (number, line) in wrap(words, width.saturating_sub(indent).max(WIDTH / 3)).iter().enumerate() {
            let before = if number == 0 { label.to_owned() } else { " ".repeat(indent) };
            text.push_str(&format!("{before}{line}\n"));
        }
    };
    hang("  ", &entry.about);
    hang("  how: ", &entry.how);
    for (value, meaning) in &entry.answers {
        hang("    ", &format!("{value}: {meaning}"));
    }
    hang("  source: ", &entry.source);
    text
}

/// A model in words. `None` if there is no model of this name; an error if it is a model file with a mistake.
fn model(name: &str) -> Result<Option<String>, Failure> {
    let prefix = format!("{MODELS}:");
    let bare = name.strip_prefix(&prefix);
    match mxprobe_models::load(bare.unwrap_or(name)) {
        Ok(model) => Ok(Some(model.explain())),
        Err(error) if bare.is_some() || name.contains('/') || name.ends_with(".toml") => Err(Failure::usage(error)),
        Err(_) => Ok(None),
    }
}

/// What the schemas say of the fields of a name.
fn fields(name: &str) -> String {
    let mut text = String::new();
    for schema in [report::schema(), report::list_schema()] {
        for (part, schema) in parts(&schema) {
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
