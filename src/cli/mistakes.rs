//! Explanations of command lines that clap rejects: one sentence with a suggestion.

use std::{error::Error as _, ffi::OsString, path::Path};

use clap::{
    Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::session::synonyms;

use super::{
    arguments,
    choose::{select, similar::nearest, target::Search},
    failure::Failure,
};

/// Options that people try, with their equivalents here.
const MEANT: [(&str, &str); 23] = [
    ("--gpu", "--device cuda:0"),
    ("--cuda", "--device cuda:0"),
    ("--vulkan", "--device vulkan:0"),
    ("--cpu", "--device cpu:0"),
    ("--sim", "--device sim:h100"),
    ("--device-id", "--device cuda:0"),
    ("--devices", "--device"),
    ("-d", "--device"),
    ("--card", "--device"),
    ("--unit", "--device"),
    ("--operation", "--op"),
    ("--dtype", "--op"),
    ("--precision", "--op"),
    ("--probes", "--probe"),
    ("--test", "--probe"),
    ("--output", "--out"),
    ("-o", "--out"),
    ("--json", "--format json"),
    ("--html", "--format html"),
    ("--csv", "--format csv"),
    ("--markdown", "--format markdown"),
    ("--dots", "--count"),
    ("--continue", "--resume"),
];

/// Returns a better explanation of a mistake than clap's own; `None` if there is none.
pub(super) fn answer(error: &clap::Error, given: &[OsString]) -> Option<Failure> {
    let mut whole = arguments::command();
    whole.build();
    let words = given.iter().skip(1).map(|word| word.to_string_lossy());
    let chosen = words.filter_map(|word| whole.find_subcommand(word.as_ref())).next();
    let command = chosen.unwrap_or(&whole);
    let one = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let help = || {
        format!(
            "`mxprobe {}--help` shows the options",
            chosen.map_or_else(String::new, |of| format!("{} ", of.get_name()))
        )
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => Some(no_command(one(ContextKind::InvalidSubcommand)?, &whole)),
        ErrorKind::UnknownArgument => {
            let word = one(ContextKind::InvalidArg)?;
            if word.starts_with('-') {
                Some(no_option(word, one(ContextKind::SuggestedArg), command).help(help()))
            } else {
                Some(no_place(word, command).help(help()))
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
            let names: Vec<String> = missing.iter().map(|name| format!("`{}`", plain(name))).collect();
            let (last, others) = names.split_last()?;
            let what = match others {
                [] => format!("{last} is missing{}", purpose(missing, command)),
                others => format!("{} and {last} are missing", others.join(", ")),
            };
            let example = example(missing, command.get_name());
            Some(Failure::usage(what).help(example.map_or_else(help, |example| format!("for example `{example}`"))))
        }
        ErrorKind::InvalidValue => {
            let (value, name) = (one(ContextKind::InvalidValue)?, one(ContextKind::InvalidArg)?);
            let option = plain(name);
            let option = option.split(' ').next().unwrap_or(&option);
            let option = format!("`{option}`");
            if value.is_empty() {
                return Some(Failure::usage(format!("`{}` has no value", plain(name))).help(help()));
            }
            let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) else { return None };
            let near = nearest(value, valid.iter().map(String::as_str));
            let all = valid.join(", ");
            let failure = match near {
                Some(near) => Failure::usage(format!("`{value}` is not a value of {option}; did you mean `{near}`?"))
                    .cause(format!("the values are {all}")),
                None => Failure::usage(format!("`{value}` is not a value of {option}: {all}")),
            };
            Some(failure.help(help()))
        }
        ErrorKind::ValueValidation => {
            let name = plain(one(ContextKind::InvalidArg)?);
            let name = name.split(' ').next().unwrap_or(&name);
            let value = one(ContextKind::InvalidValue).unwrap_or_default();
            error.source().map(|source| Failure::usage(format!("`{name}`: {}", reason(source, value))).help(help()))
        }
        _ => None,
    }
}

/// Strips the brackets from an argument's name: `--out MODEL.toml`.
fn plain(name: &str) -> String {
    name.replace(['<', '>', '[', ']'], "").trim_end_matches("...").to_owned()
}

/// Returns the first example of a command that has every missing option, otherwise the first one that has any of them.
fn example(missing: &[String], command: &str) -> Option<&'static str> {
    let names: Vec<String> = missing.iter().map(|name| plain(name)).collect();
    let first = names.iter().filter_map(|name| name.split([' ', '|']).next());
    let options: Vec<&str> = first.filter(|name| name.starts_with("--")).collect();
    let has = |example: &str, option: &str| example.split(' ').any(|word| word == option);
    let all = arguments::examples(command).find(|example| options.iter().all(|option| has(example, option)));
    all.or_else(|| arguments::examples(command).find(|example| options.iter().any(|option| has(example, option))))
}

/// Returns why a value is not valid, with the value: the messages of the standard library do not contain it.
fn reason(source: &(dyn std::error::Error + 'static), value: &str) -> String {
    if source.is::<std::num::ParseIntError>() {
        format!("`{value}` is not a whole number, or is too large")
    } else if source.is::<std::num::ParseFloatError>() {
        format!("`{value}` is not a number")
    } else {
        source.to_string()
    }
}

/// Describes the purpose of a missing argument, in brackets.
fn purpose(missing: &[String], command: &Command) -> String {
    let is_it = |argument: &&clap::Arg| missing.iter().any(|name| argument.to_string() == *name);
    let help = command.get_arguments().find(is_it).and_then(clap::Arg::get_help).map(ToString::to_string);
    let first = help.as_deref().and_then(|help| help.split([':', ';', ',']).next()).map(str::to_lowercase);
    first.map_or_else(String::new, |words| format!(" ({words})"))
}

/// Commands that nobody types by mistake for another.
const SELDOM_MEANT: [&str; 6] = ["schema", "validate", "completions", "man", "worker", "help"];

/// Lists the commands, for an unknown command name.
pub(crate) fn the_commands(whole: &Command) -> String {
    let names = whole.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    let (seldom, names): (Vec<&str>, Vec<&str>) = names.partition(|name| SELDOM_MEANT.contains(name));
    format!("the commands are {}, and {} more", names.join(", "), seldom.len())
}

/// The error for an unknown command.
fn no_command(word: &str, whole: &Command) -> Failure {
    let names = || whole.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    let meant = if word.ends_with(".json") && Path::new(word).is_file() {
        Some(format!("mxprobe report {word}"))
    } else if is_device(word) {
        Some(format!("mxprobe run --device {}", quoted(word)))
    } else {
        nearest(word, names()).map(str::to_owned)
    };
    match meant {
        Some(meant) => Failure::usage(format!("no command `{word}`; did you mean `{meant}`?")),
        None => Failure::usage(format!("no command `{word}`; {}", the_commands(whole))),
    }
    .help("`mxprobe --help` lists the commands")
}

/// The error for an unknown option.
fn no_option(word: &str, suggested: Option<&str>, command: &Command) -> Failure {
    let bare = word.split('=').next().unwrap_or(word);
    let has = |option: &str| {
        let name = option.split(' ').next().unwrap_or(option).trim_start_matches("--");
        command.get_arguments().any(|argument| argument.get_long() == Some(name))
    };
    let known = MEANT.iter().find(|(tried, meant)| *tried == bare && has(meant)).map(|(_, meant)| (*meant).to_owned());
    let longs: Vec<String> =
        command.get_arguments().filter_map(clap::Arg::get_long).map(|long| format!("--{long}")).collect();
    let near = || nearest(bare, longs.iter().map(String::as_str)).map(str::to_owned);
    match known.or_else(|| suggested.map(str::to_owned)).or_else(near) {
        Some(meant) => Failure::usage(format!("no option `{bare}`; did you mean `{meant}`?")),
        None => Failure::usage(format!("`{}` has no option `{bare}`", command.get_name())),
    }
}

/// The error for a positional argument that the command does not take.
fn no_place(word: &str, command: &Command) -> Failure {
    let name = command.get_name();
    let has = |option: &str| command.get_arguments().any(|argument| argument.get_long() == Some(option));
    if has("device") && is_device(word) {
        return Failure::usage(format!("`{name}` takes a device as an option: `--device {}`", quoted(word)));
    }
    if has("op") && (synonyms::formats(word).is_some() || word.parse::<mxprobe_api::OperationId>().is_ok()) {
        return Failure::usage(format!("`{name}` takes an operation as an option: `--op {}`", quoted(word)));
    }
    Failure::usage(format!("`{name}` takes no argument `{word}`"))
}

/// Whether a word is the name of a device or a model.
fn is_device(word: &str) -> bool {
    matches!(select::find(word, &Search::new(true, None, &[])), Ok(Some(_)))
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}
