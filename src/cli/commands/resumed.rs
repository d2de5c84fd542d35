//! Input of `--resume`: a saved result that is unfinished, and the device that it belongs to.

use std::path::Path;

use crate::report::{DeviceRecord, Kind, Resumption, build_version, check, now};
use mxprobe_api::OperationId;
use serde::de::DeserializeOwned;

use crate::cli::{
    arguments::{Reach, Screen},
    choose::{
        model_file::DIGEST,
        select,
        target::{Search, Target},
    },
    failure::Failure,
    io::{input, output},
};

/// Reads an unfinished result with this schema.
///
/// # Errors
/// If the file is not such a result.
pub(crate) fn read<T: DeserializeOwned>(file: &Path, schema: &str) -> Result<T, Failure> {
    if file == Path::new("-") || file.is_dir() {
        return Err(Failure::usage(format!("`{}` is not a file that can be resumed", file.display()))
            .help("name the JSON file that the interrupted command wrote"));
    }
    check::read_as(&input::read(file)?, schema)
        .map_err(|problem| Failure::usage(format!("`{}` cannot be resumed: {problem}", file.display())))
}

/// Returns the unfinished operations of a result, or why it cannot be resumed.
pub(crate) fn left(file: &Path, unfinished: Option<Vec<&OperationId>>) -> Result<Vec<OperationId>, Failure> {
    let left = unfinished.ok_or_else(|| {
        Failure::usage(format!("`{}` does not say which operations were asked for", file.display()))
            .help("files of an older mxprobe cannot be resumed: start again")
    })?;
    Ok(left.into_iter().cloned().collect())
}

/// Returns the device of a saved result: the one named by `--device`, or else by the result. `MXPROBE_DEVICE` is
/// ignored. Operations that the device no longer has are reported on standard error and removed from `left`.
///
/// # Errors
/// If the device is not present, or is a different one.
pub(crate) fn target(
    file: &Path,
    of: &DeviceRecord,
    device: Option<&str>,
    reach: &Reach,
    left: &mut Vec<OperationId>,
) -> Result<Target, Failure> {
    let environment = std::env::var("MXPROBE_DEVICE").ok();
    let given = device.filter(|given| environment.as_deref() != Some(*given));
    let mut search = Search::by(reach, &[]);
    search.sizes.ids.extend(left.iter().cloned());
    let (targets, _) = select::named(&[given.unwrap_or(&of.selector).to_owned()], &[], &search)?;
    let target = same(file, of, &targets)?.clone();
    left.retain(|id| {
        let is_there = target.listed.operations.iter().any(|operation| operation.id == *id);
        if !is_there {
            output::note(format!("note: {} has no operation {id} any more", target.selector));
        }
        is_there
    });
    Ok(target)
}

/// Builds the entry of a run that continues with a number of operations.
pub(crate) fn resumption(operations: usize) -> Resumption {
    Resumption { time: now(), version: build_version(), operations }
}

/// Reports that nothing is left to ask.
pub(crate) fn note_finished(file: &Path, screen: Screen) {
    if !screen.quiet {
        output::note(format!("note: nothing is left to ask in `{}`", file.display()));
    }
}

/// Finds the device of a report among those present.
pub(crate) fn same<'a>(file: &Path, of: &DeviceRecord, targets: &'a [Target]) -> Result<&'a Target, Failure> {
    let is_same = |target: &&Target| difference(of, &target.listed.device).is_none();
    let own = targets.iter().filter(|target| target.selector == of.selector).find(is_same);
    if let Some(target) = own.or_else(|| targets.iter().find(is_same)) {
        return Ok(target);
    }
    let found = targets.iter().find(|target| target.selector == of.selector).or(targets.first());
    let there = found.map_or_else(String::new, |target| {
        let difference = difference(of, &target.listed.device).unwrap_or_default();
        format!(", and {} is {difference}", target.selector)
    });
    let driver =
        of.driver.as_ref().map_or_else(String::new, |driver| format!(" with {} {}", driver.name, driver.version));
    let failure =
        Failure::usage(format!("`{}` is a report of {} ({}){driver}{there}", file.display(), of.name, of.fingerprint));
    Err(failure.help("a report belongs to one device with one driver; `--device SELECTOR` selects that device"))
}

/// Describes the difference between a device and that of a record; `None` if they are the same.
fn difference(of: &DeviceRecord, now: &DeviceRecord) -> Option<String> {
    // The name of a model depends on the selector that was used.
    let same_name = of.name == now.name || (of.kind == Kind::Model && now.kind == Kind::Model);
    if of.backend != now.backend || of.fingerprint != now.fingerprint || !same_name {
        return Some(format!("{} ({})", now.name, now.fingerprint));
    }
    if of.emulated != now.emulated {
        return Some(if now.emulated { "a double of it" } else { "not a double" }.to_owned());
    }
    let model = |device: &DeviceRecord| device.properties.get(DIGEST).cloned();
    if let (Some(was), Some(is)) = (model(of), model(now))
        && was != is
    {
        return Some(format!("a file that was changed since (SHA-256 {was} then, {is} now)"));
    }
    match &now.driver {
        driver if *driver == of.driver => None,
        Some(driver) => Some(format!("the same with {} {}", driver.name, driver.version)),
        None => Some("the same without a driver".to_owned()),
    }
}
