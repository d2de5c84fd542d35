//! External programs that speak the device protocol: `exec:COMMAND ARGUMENTS`.

use std::{process::Command, sync::Arc, time::Duration};

use crate::{isolate::Described, report::RefusalRecord, session};
use mxprobe_api::{Error, Sizes};

use crate::cli::{
    choose::{
        process,
        target::{Origin, PROGRAMS, Program, Target},
    },
    failure::Failure,
};

/// The time limit for a program to list its devices: it may have to load a framework.
const DISCOVERY: Duration = Duration::from_secs(120);

/// The maximum number of a program's devices that an error lists.
const MOST_LISTED: usize = 12;

impl Program {
    /// Returns a function that builds the command to start the program.
    pub(crate) fn starts(&self) -> impl Fn() -> Command + Send + Sync + use<> {
        starts(self.words.clone())
    }
}

fn starts(words: Vec<String>) -> impl Fn() -> Command + Send + Sync {
    move || {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// The error for a selector without a command.
pub(crate) fn no_command(text: &str) -> Failure {
    Failure::usage(format!("`{text}` names no program: the form is {PROGRAMS}:COMMAND ARGUMENTS"))
        .help("for example `--device 'exec:python3 worker.py'`; docs/protocol.md describes the protocol")
}

/// Returns a function that builds the command of a selector's program, if the selector names a program.
pub(crate) fn starts_of(
    selector: &str,
) -> Result<Option<impl Fn() -> Command + Send + Sync + 'static + use<>>, Failure> {
    let Some(command) = selector.strip_prefix(PROGRAMS).and_then(|rest| rest.strip_prefix(':')) else {
        return Ok(None);
    };
    let (_, command) = chosen(command)?;
    let words = words(command)?;
    can_start(&words, command)?;
    Ok(Some(starts(words)))
}

/// Returns the devices of a command, and its refusals. `[NAME]` before the command chooses one of its devices.
pub(crate) fn devices(command: &str, sizes: &Sizes) -> Result<(Vec<Target>, Vec<RefusalRecord>), Failure> {
    let (name, command) = chosen(command)?;
    let words = words(command)?;
    let of_program = |error: Error| {
        Failure::no_device(format!("`{PROGRAMS}:{command}`: {error}")).help(format!(
            "`mxprobe conformance --device '{PROGRAMS}:{command}'` checks that a program follows the protocol"
        ))
    };
    can_start(&words, command)?;
    let found = process::of(starts(words.clone()), DISCOVERY, false, || None).discover(None).map_err(of_program)?;
    let refusals: Vec<RefusalRecord> = found.refusals.iter().map(RefusalRecord::from).collect();
    let several = found.devices.len() > 1;
    let target = |described: Described| {
        let (device, has_free_sizes) = (described.info.selector.clone(), !described.free.is_empty());
        let mut listed = session::listed(&described.with(sizes));
        listed.device.selector =
            if several { format!("{PROGRAMS}:[{device}] {command}") } else { format!("{PROGRAMS}:{command}") };
        Target {
            origin: Origin::Program(Arc::new(Program { words: words.clone(), device })),
            selector: listed.device.selector.clone(),
            listed,
            sizes: has_free_sizes.then(|| sizes.clone()),
        }
    };
    let known: Vec<String> = found.devices.iter().map(|device| device.info.selector.clone()).collect();
    let meant = found.devices.into_iter().filter(|device| name.is_none_or(|name| device.info.selector == name));
    let targets: Vec<Target> = meant.map(target).collect();
    if !targets.is_empty() {
        return Ok((targets, refusals));
    }
    let mut failure = match name {
        Some(name) => Failure::usage(format!("`{PROGRAMS}:{command}` has no device `{name}`")),
        None => Failure::no_device(format!("`{PROGRAMS}:{command}` has no device")),
    };
    for device in known.iter().take(MOST_LISTED) {
        failure = failure.cause(format!("it has {PROGRAMS}:[{device}] {command}"));
    }
    for refusal in &refusals {
        failure = failure.cause(format!("{}: {}", refusal.what, refusal.reason));
    }
    Err(failure)
}

/// Splits `[NAME] COMMAND` into the chosen device, if any, and the command.
fn chosen(text: &str) -> Result<(Option<&str>, &str), Failure> {
    let Some(rest) = text.strip_prefix('[') else { return Ok((None, text.trim())) };
    match rest.split_once(']') {
        Some((name, command)) => Ok((Some(name), command.trim())),
        None => Err(Failure::usage(format!("`{PROGRAMS}:{text}` has no `]` after the name of a device"))),
    }
}

/// Splits a command into words, as a shell would.
pub(crate) fn words(command: &str) -> Result<Vec<String>, Failure> {
    match shlex::split(command) {
        Some(words) if !words.is_empty() => Ok(words),
        Some(_) => Err(no_command(&format!("{PROGRAMS}:{command}"))),
        None => Err(Failure::usage(format!("`{PROGRAMS}:{command}` has an unclosed quote, or a trailing `\\`"))),
    }
}

/// Checks that the program exists, so that a typing mistake is not reported as a failure of the device.
fn can_start(words: &[String], command: &str) -> Result<(), Failure> {
    let program = std::path::Path::new(&words[0]);
    let is_there = if program.components().count() > 1 {
        program.exists()
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let endings = ["", std::env::consts::EXE_SUFFIX];
        std::env::split_paths(&path)
            .any(|folder| endings.iter().any(|ending| folder.join(format!("{}{ending}", words[0])).is_file()))
    };
    if is_there {
        return Ok(());
    }
    let place =
        if program.components().count() > 1 { "the file does not exist" } else { "it is not in any directory of PATH" };
    Err(Failure::usage(format!("`{PROGRAMS}:{command}`: the program `{}` cannot be started: {place}", words[0])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_as_by_a_shell_and_may_name_a_device() {
        assert_eq!(words(r#"python3 'my worker.py' --a="b c""#).unwrap(), ["python3", "my worker.py", "--a=b c"]);
        assert_eq!(chosen("[npu:1] ./worker x").unwrap(), (Some("npu:1"), "./worker x"));
        assert_eq!(chosen(" ./worker").unwrap(), (None, "./worker"));
        for text in ["[npu:1 ./worker", "'./worker", "", "  "] {
            let failure = chosen(text).and_then(|(_, command)| words(command)).unwrap_err().to_string();
            assert!(failure.contains(&format!("`{PROGRAMS}:{}", text.trim())), "{failure}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_the_mistake_of_who_typed_it() {
        for command in ["no-such-program-of-anybody", "./no/such/file --x"] {
            let words = words(command).unwrap();
            let failure = can_start(&words, command).unwrap_err().to_string();
            assert!(failure.contains(&format!("the program `{}` cannot be started", words[0])), "{failure}");
        }
    }
}
