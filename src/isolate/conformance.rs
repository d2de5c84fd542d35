//! The checks that every program that speaks the protocol must pass, whatever its devices compute.

use std::{collections::BTreeSet, time::Duration};

use mxprobe_api::Error;
use serde_json::json;

use super::{
    protocol::{Answer, PROTOCOL},
    remote::{Found, Program},
};

/// The checks of a program, in the order in which an author meets them: a name and the requirement.
pub const PROGRAM_CHECKS: [(&str, &str); 4] = [
    ("discover", "the program starts, and answers `discover` with `found`"),
    ("devices", "it has a device; each has a selector of its own, a name, and operations, each of them once"),
    (
        "unknown",
        "keys that the protocol does not have are ignored, and a request that it does not have is answered `failed`",
    ),
    ("end", "the program ends when its standard input closes"),
];

/// How long a program may take to exit.
const FAREWELL: Duration = Duration::from_secs(10);

/// Runs the checks of a program. Each entry is `None` if the check passed, or describes the failure; there are fewer
/// entries than checks if a failure makes the remaining ones impossible.
#[must_use]
pub fn check_program(program: &Program) -> Vec<Option<String>> {
    let found = match program.discover(None) {
        Ok(found) => found,
        Err(error) => return vec![Some(error.to_string())],
    };
    let devices = devices(&found).err();
    let is_fatal = devices.is_some();
    let mut outcomes = vec![None, devices];
    if !is_fatal {
        outcomes.push(unknown(program).err());
        outcomes.push(end(program).err());
    }
    outcomes
}

fn devices(found: &Found) -> Result<(), String> {
    if found.devices.is_empty() {
        let reasons = found.refusals.iter().map(|refusal| format!("; {}: {}", refusal.what, refusal.reason));
        return Err(format!("it has no device{}", reasons.collect::<String>()));
    }
    let mut selectors = BTreeSet::new();
    for device in &found.devices {
        let selector = &device.info.selector;
        if !selectors.insert(selector) {
            return Err(format!("two devices have the selector `{selector}`"));
        }
        if device.info.name.trim().is_empty() {
            return Err(format!("the name of the device `{selector}` is empty"));
        }
        if device.operations.is_empty() && device.free.is_empty() && device.scalars.is_empty() {
            return Err(format!("the device `{selector}` has no operation"));
        }
        let patterns = device.free.iter().map(|free| free.pattern().to_owned());
        let ids = device.operations.iter().map(|operation| operation.id.to_string());
        let mut known = BTreeSet::new();
        for id in ids.chain(patterns) {
            if known.contains(&id) {
                return Err(format!("the device `{selector}` has the operation `{id}` twice"));
            }
            known.insert(id);
        }
    }
    Ok(())
}

fn unknown(program: &Program) -> Result<(), String> {
    let said = |error: Error| error.to_string();
    let mut process = program.start().map_err(said)?;
    let discover = json!({"ask": "discover", "protocol": PROTOCOL, "a_key_of_tomorrow": [1, {"two": null}]});
    match program.ask(&mut process, discover).map_err(|error| format!("to `discover` with one more key: {error}"))? {
        Answer::Found { .. } => {}
        other => return Err(format!("`discover` with one more key is answered {}", shown(&other))),
    }
    let tomorrow = json!({"ask": "a_request_of_tomorrow"});
    match program.ask(&mut process, tomorrow).map_err(|error| format!("to a request of tomorrow: {error}"))? {
        Answer::Failed { .. } => Ok(()),
        other => Err(format!("a request that the protocol does not have is answered {}", shown(&other))),
    }
}

fn shown(answer: &Answer) -> String {
    let text = serde_json::to_string(answer).unwrap_or_default();
    text.chars().take(120).collect()
}

fn end(program: &Program) -> Result<(), String> {
    let mut process = program.start().map_err(|error| error.to_string())?;
    let discover = json!({"ask": "discover", "protocol": PROTOCOL});
    program.ask(&mut process, discover).map_err(|error| error.to_string())?;
    if process.ends(FAREWELL) {
        return Ok(());
    }
    Err(format!("it is still running {} s after its standard input closed", FAREWELL.as_secs()))
}
