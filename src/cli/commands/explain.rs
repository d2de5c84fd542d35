//! `explain`: the meaning of a probe, a model, a recipe, a format, a family of operations or a field of the report.

use crate::{
    glossary::{
        self, EXPLANATION_SCHEMA, Entry, Explained, Explanation, FieldInWords, Kind, ModelInWords, TraceInWords,
    },
    report::{self, this_tool},
};
use mxprobe_models::{Trace, recipe};
use serde_json::Value;

use crate::cli::{
    arguments::{Explain, Screen, given},
    choose::{
        models, recipes,
        registry::MODELS,
        select,
        similar::{did_you_mean, similar},
    },
    failure::{Failure, Outcome},
    io::{dot_lines::Dots, input, output},
};

/// Explains a name in every sense that it has, or lists the names that start with it.
pub(crate) fn explain(arguments: &Explain, screen: Screen) -> Outcome {
    let mut found = Explanation {
        schema: EXPLANATION_SCHEMA.into(),
        tool: this_tool(&given()),
        name: arguments.name.clone(),
        entries: Vec::new(),
        models: Vec::new(),
        fields: Vec::new(),
        traces: Vec::new(),
    };
    let mut brief = false;
    if arguments.trace {
        found.traces = traces(arguments)?;
    } else if let (Some(number), Some(format)) = (&arguments.name, &arguments.number) {
        let format = mxprobe_api::Format::named(format).map_err(Failure::usage)?;
        found.entries = vec![glossary::number(number, format).map_err(Failure::usage)?];
    } else if let Some(name) = arguments.name.as_deref() {
        found.entries = glossary::explain(name);
        found.models = match recipe(name)? {
            Some(recipe) => vec![recipe],
            None => model(name)?.into_iter().collect(),
        };
        // A term may also be the name of a group of probes.
        if !found.entries.is_empty() && found.entries.iter().all(|entry| entry.kind == Kind::Term) {
            found.entries.extend(begun(name));
        }
        if found.entries.is_empty() && found.models.is_empty() {
            brief = true;
            found.entries = begun(name);
        }
        if found.entries.is_empty() && found.models.is_empty() {
            found.fields = fields(name);
        }
        if found.entries.is_empty() && found.models.is_empty() && found.fields.is_empty() {
            return Err(unknown(name));
        }
    } else {
        brief = !arguments.all;
        found.entries = glossary::entries();
    }
    let screen = if brief || arguments.trace { screen.for_lines() } else { screen };
    output::show(&Explained { found: &found, brief }, arguments.format.into(), screen)
}

/// Returns the probes whose names start with a name, or match it as a pattern.
fn begun(name: &str) -> Vec<Entry> {
    let patterns = [name.to_lowercase()];
    let is_meant = |entry: &Entry| entry.kind == Kind::Probe && select::is_wanted(&patterns, &entry.name);
    glossary::entries().into_iter().filter(is_meant).collect()
}

fn unknown(name: &str) -> Failure {
    let entries = glossary::entries();
    let models = mxprobe_models::shipped().iter().map(|model| model.name.as_str());
    let models = models.chain(recipe::shipped().iter().map(|recipe| recipe.name.as_str()));
    let schemas = [report::schema(), report::list_schema()];
    let fields = schemas.iter().flat_map(parts).filter_map(|(_, part)| part.get("properties")?.as_object());
    let fields = fields.flat_map(|properties| properties.keys().map(String::as_str));
    let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let other_names: Vec<String> = glossary::other_names().map(str::to_owned).collect();
    names.extend(other_names.iter().map(String::as_str));
    names.extend(models);
    names.extend(fields);
    let formats = glossary::formats_called(name);
    let meant: Vec<&str> = if formats.is_empty() { similar(name, names) } else { formats.to_vec() };
    Failure::usage(match did_you_mean(&meant) {
        Some(meant) => format!("no entry for `{name}`; {meant}"),
        None => format!("no entry for `{name}`"),
    })
    .help("`mxprobe explain` lists the names, `mxprobe list --backend sim` the models, `mxprobe schema` every field")
}

/// Returns a schema and its types, each with its name.
fn parts(schema: &Value) -> Vec<(&str, &Value)> {
    let title = schema.get("title").and_then(Value::as_str).unwrap_or("Report");
    let types = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
    std::iter::once((title, schema)).chain(types.map(|(name, part)| (name.as_str(), part))).collect()
}

/// Traces how a model computes dots.
fn traces(arguments: &Explain) -> Result<Vec<TraceInWords>, Failure> {
    if let Some(name) = &arguments.recipe {
        return recipe_traces(arguments, name);
    }
    // The arguments require both.
    let (device, op) = (arguments.device.as_deref().unwrap_or_default(), arguments.op.as_deref().unwrap_or_default());
    let chosen = models::chosen(device)?;
    let id = &select::one_operation(op, &chosen.listed)?.id;
    let operation = &chosen.model.operations[id];
    let lines = dots_of(arguments)?;
    let mut dots = Dots::new(operation.clone());
    for (number, line) in lines.lines().enumerate() {
        dots.read(line.as_bytes()).map_err(|error| error.on_line(number + 1, line.as_bytes(), operation))?;
    }
    if let Some(rounded) = dots.rounded.take() {
        output::note(format!("note: {rounded}"));
    }
    let traced = (0..dots.count).map(|at| {
        let trace = Trace::of(&chosen.model, id, dots.dot(at)).expect("the model has the operation");
        let text = trace.text(&chosen.model, id, dots.dot(at));
        let lines = text.lines().map(str::to_owned).collect();
        TraceInWords { model: chosen.name.clone(), operation: id.to_string(), lines }
    });
    Ok(traced.collect())
}

/// Returns the dots to trace, as lines of JSON.
fn dots_of(arguments: &Explain) -> Result<String, Failure> {
    match &arguments.dot {
        Some(line) => Ok(line.clone()),
        None => input::read(std::path::Path::new("-")),
    }
}

/// Traces how a recipe computes elements, each from a dot with any number of products.
fn recipe_traces(arguments: &Explain, name: &str) -> Result<Vec<TraceInWords>, Failure> {
    let chosen = recipes::chosen(name)?;
    let id = chosen.operation(arguments.op.as_deref())?;
    let lines = dots_of(arguments)?;
    let mut traced = Vec::new();
    for (number, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        // The length of a dot is that of its A.
        let parsed: Value = serde_json::from_str(line).unwrap_or_default();
        let k = parsed["a"].as_array().map_or(0, Vec::len);
        let mut operation = chosen.model.operations[&id].clone();
        operation.id.shape.k = u32::try_from(k).map_err(|_| Failure::usage(format!("{k} products are too many")))?;
        let program = chosen.program_of_element(&id, k)?;
        operation.id.c = program.c_format();
        let mut dots = Dots::new(operation.clone());
        dots.read(line.as_bytes()).map_err(|error| error.on_line(number + 1, line.as_bytes(), &operation))?;
        if let Some(rounded) = dots.rounded.take() {
            output::note(format!("note: {rounded}"));
        }
        let given = recipes::inputs(program.case(), &arguments.input)?;
        let trace = program.trace(&chosen.recipe, &chosen.model, dots.dot(0), &given).map_err(Failure::of_device)?;
        traced.push(TraceInWords { model: chosen.name.clone(), operation: id.to_string(), lines: trace.lines });
    }
    Ok(traced)
}

/// Describes a model. `None` if no model has this name; an error for a faulty model file.
fn model(name: &str) -> Result<Option<ModelInWords>, Failure> {
    let prefix = format!("{MODELS}:");
    let bare = name.strip_prefix(&prefix);
    match mxprobe_models::load(bare.unwrap_or(name)) {
        Ok(model) => {
            let lines = model.explain().lines().map(str::to_owned).collect();
            Ok(Some(ModelInWords { name: model.name.clone(), lines }))
        }
        Err(error) if bare.is_some() || name.contains('/') || name.ends_with(".toml") => Err(Failure::usage(error)),
        Err(_) => Ok(None),
    }
}

/// Describes a shipped recipe of that name, or that of a file after `recipe:`: its cases with their default numbers.
fn recipe(name: &str) -> Result<Option<ModelInWords>, Failure> {
    let bare = name.strip_prefix(recipes::PREFIX);
    let (recipe, model) = match recipe::load(bare.unwrap_or(name)) {
        Ok(found) if bare.is_some() || !name.ends_with(".toml") => found,
        Err(error) if bare.is_some() => return Err(Failure::usage(error)),
        _ => return Ok(None),
    };
    let lines = recipe.explain(&model).map_err(Failure::usage)?;
    Ok(Some(ModelInWords { name: recipe.name.clone(), lines }))
}

/// Returns the descriptions that the schemas give to fields with this name.
fn fields(name: &str) -> Vec<FieldInWords> {
    let mut found: Vec<FieldInWords> = Vec::new();
    for schema in [report::schema(), report::list_schema()] {
        for (part, schema) in parts(&schema) {
            let description = schema.pointer(&format!("/properties/{name}/description")).and_then(Value::as_str);
            if let Some(description) = description {
                let field =
                    FieldInWords { field: format!("{part}.{name}"), description: description.replace('\n', " ") };
                if !found.contains(&field) {
                    found.push(field);
                }
            }
        }
    }
    found
}
