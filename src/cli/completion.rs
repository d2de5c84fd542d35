//! Shell completions for the word being typed: names of devices, models, recipes, operations and probes.
//!
//! Only models are read, never hardware: a completion must not wait for a driver.

use std::{collections::BTreeSet, ffi::OsStr, path::Path};

use clap::Command;
use clap_complete::{
    engine::{ArgValueCompleter, CompletionCandidate},
    env::{CompleteEnv, Shells},
};

use mxprobe_models::recipe::Recipe;

use crate::{glossary, probes};

use super::{
    arguments,
    choose::{
        recipes::PREFIX,
        registry::{self, MODELS},
    },
    failure::Failure,
};

/// The environment variable by which a shell's script requests completions.
const ASKED: &str = "MXPROBE_COMPLETE";

/// Words for formats that `--op` accepts, in addition to the formats themselves.
const FORMATS: [&str; 6] = ["fp8", "fp16", "bf16", "tf32", "int8", "f16->f32"];

/// Answers a shell that requests completions; returns whether it did.
pub(super) fn answer(given: &[std::ffi::OsString]) -> Result<bool, Failure> {
    let words: Vec<String> = given.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = move || completed(arguments::command(), &words);
    let folder = std::env::current_dir().ok();
    CompleteEnv::with_factory(command)
        .var(ASKED)
        .try_complete(given.iter().cloned(), folder.as_deref())
        .map_err(|error| Failure::usage(error.to_string().trim_end().trim_start_matches("error: ")))
}

/// Returns the script by which a shell requests completions; `None` if the shell does not support this.
pub(super) fn script(shell: &str) -> Option<Vec<u8>> {
    let shells = Shells::builtins();
    let mut script = Vec::new();
    shells.completer(shell)?.write_registration(ASKED, "mxprobe", "mxprobe", "mxprobe", &mut script).ok()?;
    Some(script)
}

/// Adds the possible names to the command's arguments. `words` are those typed so far.
fn completed(command: Command, words: &[String]) -> Command {
    let device = words.windows(2).rfind(|pair| pair[0] == "--device").map(|pair| pair[1].clone());
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let with = |command: Command, name: &str| {
        let device = device.clone();
        command.mut_args(move |argument| {
            let id = argument.get_id().as_str().to_owned();
            match (id.as_str(), name) {
                ("device", _) => offered(argument, devices),
                ("model" | "expect", _) => offered(argument, models),
                ("models", "distinguish") => offered(argument, || [models(), recipes(PREFIX)].concat()),
                ("files", "compare") => argument.add(ArgValueCompleter::new(|typed: &OsStr| {
                    let mut found = matching(typed, [models(), recipes(PREFIX)].concat());
                    found.extend(paths(typed));
                    found
                })),
                ("backend", _) => offered(argument, || registry::names().into_iter().map(str::to_owned).collect()),
                ("probe", _) => offered(argument, probe_names),
                ("op", _) => {
                    let device = device.clone();
                    offered(argument, move || operations(device.as_deref()))
                }
                ("name", "explain") => offered(argument, entries),
                ("recipe", _) => offered(argument, || recipes("")),
                _ => argument,
            }
        })
    };
    let mut command = with(command, "mxprobe");
    for name in &names {
        command = command.mut_subcommand(name, |command| with(command, name));
    }
    command
}

/// Offers these names for an argument.
fn offered(argument: clap::Arg, names: impl Fn() -> Vec<String> + Send + Sync + 'static) -> clap::Arg {
    argument.add(ArgValueCompleter::new(move |typed: &OsStr| matching(typed, names())))
}

/// Returns the names that start with the typed text.
fn matching(typed: &OsStr, names: Vec<String>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    names.into_iter().filter(|name| name.starts_with(typed.as_ref())).map(CompletionCandidate::new).collect()
}

/// Returns the reports and directories that start with the typed text.
fn paths(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let (folder, start) = typed.rsplit_once('/').map_or(("", typed.as_ref()), |(folder, start)| (folder, start));
    let place = if folder.is_empty() && !typed.starts_with('/') { "." } else { folder };
    let place = if place.is_empty() { "/" } else { place };
    let Ok(entries) = std::fs::read_dir(Path::new(place)) else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_folder = entry.path().is_dir();
        if name.starts_with(start) && (is_folder || name.ends_with(".json")) {
            let head = &typed[..typed.len() - start.len()];
            found.push(format!("{head}{name}{}", if is_folder { "/" } else { "" }));
        }
    }
    found.sort();
    found.into_iter().map(CompletionCandidate::new).collect()
}

fn models() -> Vec<String> {
    let models = mxprobe_models::shipped().iter();
    models.flat_map(|model| std::iter::once(&model.name).chain(&model.aliases)).cloned().collect()
}

/// Lists the recipes, alone and with each of their cases, after a prefix.
fn recipes(prefix: &str) -> Vec<String> {
    let of_one = |recipe: &Recipe| {
        let cases: BTreeSet<String> =
            recipe.cases.iter().map(|case| format!("{prefix}{}@{}", recipe.name, case.name)).collect();
        std::iter::once(format!("{prefix}{}", recipe.name)).chain(cases).collect::<Vec<String>>()
    };
    mxprobe_models::recipe::shipped().iter().flat_map(of_one).collect()
}

/// Lists the models with and without their backend, and the backends of hardware.
fn devices() -> Vec<String> {
    let mut names = models();
    names.extend(mxprobe_models::shipped().iter().map(|model| format!("{MODELS}:{}", model.name)));
    names.extend(registry::names().into_iter().filter(|name| *name != MODELS).map(|name| format!("{name}:")));
    names
}

/// Lists the probes, and the words before their dots.
fn probe_names() -> Vec<String> {
    let names: BTreeSet<String> = probes::all()
        .flat_map(|probe| [Some(probe.name), probe.name.split_once('.').map(|(group, _)| group)])
        .flatten()
        .map(str::to_owned)
        .collect();
    names.into_iter().collect()
}

/// Lists the operations of the model that `--device` names, or else those of every model.
fn operations(device: Option<&str>) -> Vec<String> {
    let name = device.map(|device| device.strip_prefix("sim:").unwrap_or(device));
    let chosen = name.and_then(|name| mxprobe_models::load(name).ok());
    let all: Vec<&mxprobe_models::Model> = match &chosen {
        Some(model) => vec![model],
        None => mxprobe_models::shipped().iter().collect(),
    };
    let ids: BTreeSet<String> =
        all.into_iter().flat_map(|model| model.operations.keys().map(ToString::to_string)).collect();
    FORMATS.into_iter().map(str::to_owned).chain(ids).collect()
}

/// Lists everything that `explain` knows.
fn entries() -> Vec<String> {
    glossary::entries().into_iter().map(|entry| entry.name).chain(models()).chain(recipes("")).collect()
}
