//! Checks of a backend as a whole.

use mxprobe_api::{Backend, Discovery, Error};

use crate::{Violation, suite::caught};

/// The checks of a backend as a whole.
pub const BACKEND_CHECKS: &[(&str, &str)] = &[
    ("discovery.repeats", "a second discovery finds the same devices, operations and refusals"),
    ("discovery.selectors", "every selector starts with the backend's name and a colon, and is unique"),
    ("discovery.speaks", "if no device is found, a refusal says why"),
    ("open.unknown", "a device that does not exist is refused as invalid, with its name"),
];

type Run = fn(&dyn Backend) -> Result<(), String>;

const RUNS: [Run; BACKEND_CHECKS.len()] = [discovery_repeats, discovery_selectors, discovery_speaks, open_unknown];

/// Runs [`BACKEND_CHECKS`] on a backend; returns at most one violation for each.
///
/// Does not make any device compute.
#[must_use]
pub fn check_backend(backend: &dyn Backend) -> Vec<Violation> {
    BACKEND_CHECKS
        .iter()
        .zip(RUNS)
        .filter_map(|((name, _), run)| {
            let found = caught(|| run(backend)).err()?;
            Some(Violation { check: name, operation: None, found })
        })
        .collect()
}

fn discovery_repeats(backend: &dyn Backend) -> Result<(), String> {
    let words = |found: &Discovery| -> Vec<String> {
        let devices = found.devices.iter().flat_map(|device| {
            let refusals = device.refusals().iter().map(|refusal| format!("{refusal:?}"));
            let operations = device.operations().values().map(|operation| format!("{operation:?}"));
            [format!("{:?}", device.info())].into_iter().chain(operations).chain(refusals).collect::<Vec<_>>()
        });
        devices.chain(found.refusals.iter().map(|refusal| format!("{refusal:?}"))).collect()
    };
    let (first, second) = (words(&backend.discover()), words(&backend.discover()));
    match first.iter().zip(&second).find(|(first, second)| first != second) {
        Some((first, second)) => Err(format!("first {first}, then {second}")),
        None if first.len() != second.len() => Err(format!("first {} lines, then {}", first.len(), second.len())),
        None => Ok(()),
    }
}

fn discovery_selectors(backend: &dyn Backend) -> Result<(), String> {
    let found = backend.discover();
    let mut seen: Vec<&str> = Vec::new();
    for info in found.devices.iter().map(|device| device.info()) {
        let begins =
            info.selector.split_once(':').is_some_and(|(name, rest)| name == backend.name() && !rest.is_empty());
        if info.backend != backend.name() || !begins {
            return Err(format!("{} of backend {} is found by {}", info.selector, info.backend, backend.name()));
        }
        if seen.contains(&info.selector.as_str()) {
            return Err(format!("{} is listed twice", info.selector));
        }
        seen.push(&info.selector);
    }
    Ok(())
}

fn discovery_speaks(backend: &dyn Backend) -> Result<(), String> {
    let found = backend.discover();
    if found.devices.is_empty() && found.refusals.is_empty() {
        return Err("neither a device nor a refusal".into());
    }
    let silent = |reason: &Error| reason.to_string().is_empty();
    match found.refusals.iter().find(|refusal| refusal.what.is_empty() || silent(&refusal.reason)) {
        Some(refusal) => Err(format!("a refusal without a subject or a reason: {refusal:?}")),
        None => Ok(()),
    }
}

fn open_unknown(backend: &dyn Backend) -> Result<(), String> {
    let name = "no-such-device";
    match backend.open(name) {
        Ok(device) => Err(format!("`{name}` opens {}", device.info().selector)),
        Err(error) if error.is_invalid() && error.to_string().contains(name) => Ok(()),
        Err(error) => Err(format!("`{name}` is refused, but not as invalid or without its name: {error}")),
    }
}
