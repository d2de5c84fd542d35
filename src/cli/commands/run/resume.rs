//! `run --resume`: continues a report that was left unfinished.

use std::path::Path;

use crate::report::{Report, Resumption, build_version, check, now};
use mxprobe_api::OperationId;

use crate::cli::{
    arguments::{Devices, Screen},
    choose::{
        plan::Job,
        select,
        target::{Search, Target},
    },
    commands::resumed::same,
    failure::Failure,
    io::{input, journal, output},
};

/// Plans the operations that are left to ask, device by device, in the order of the file.
pub(crate) fn jobs(file: &Path, devices: &Devices, screen: Screen) -> Result<Vec<Job>, Failure> {
    let reports = read(file)?;
    let mut left = Vec::new();
    for report in &reports {
        let ids = report.unfinished().ok_or_else(|| {
            Failure::usage(format!(
                "`{}` does not contain the plan of the run on {}",
                file.display(),
                report.device.selector
            ))
            .help("reports of `mxprobe run` have a `plan`; without one, probe the device again")
        })?;
        left.push(ids.into_iter().cloned().collect::<Vec<_>>());
    }
    let targets = targets(devices, &reports, &left)?;
    let mut jobs = Vec::new();
    for (report, left) in reports.into_iter().zip(left) {
        jobs.push(job(file, report, &left, &targets)?);
    }
    if jobs.iter().all(|job| job.target.is_none()) && !screen.quiet {
        output::note(format!("note: nothing is left to ask in `{}`", file.display()));
    }
    Ok(jobs)
}

fn read(file: &Path) -> Result<Vec<Report>, Failure> {
    if file == Path::new("-") || file.is_dir() {
        return Err(Failure::usage(format!("`{}` is not a file that a run can resume", file.display()))
            .help("name the file that `--out` wrote; for a directory, one of its files"));
    }
    let text = input::read(file)?;
    let wrong = |problem: &check::Problem| Failure::usage(format!("`{}` cannot be resumed: {problem}", file.display()));
    check::check(&text).map_err(|problems| wrong(&problems[0]).help("`mxprobe validate FILE` lists every problem"))?;
    let mut reports = check::read_reports(&text).map_err(|problem| wrong(&problem))?;
    journal::replay(file, &mut reports);
    Ok(reports)
}

/// Returns the devices that are present now: those named by `--device`, or else those of the unfinished reports.
fn targets(devices: &Devices, reports: &[Report], left: &[Vec<OperationId>]) -> Result<Vec<Target>, Failure> {
    let of_reports = || {
        let open = reports.iter().zip(left).filter(|(_, left)| !left.is_empty());
        open.map(|(report, _)| report.device.selector.clone()).collect()
    };
    let selectors: Vec<String> = if devices.device.is_empty() { of_reports() } else { devices.device.clone() };
    if selectors.is_empty() {
        return Ok(Vec::new());
    }
    let mut search = Search::of(devices, &[]);
    search.sizes.ids.extend(left.iter().flatten().cloned());
    let (targets, _) = select::named(&selectors, &[], &search)?;
    Ok(targets)
}

fn job(file: &Path, mut report: Report, left: &[OperationId], targets: &[Target]) -> Result<Job, Failure> {
    if left.is_empty() {
        return Ok(Job { target: None, operations: Vec::new(), report });
    }
    let target = same(file, &report.device, targets)?;
    let known = |id: &OperationId| {
        target.listed.operations.iter().chain(&target.listed.scalars).find(|operation| operation.id == *id).cloned()
    };
    let mut operations = Vec::new();
    for id in left {
        match known(id) {
            Some(operation) => operations.push(operation),
            None => output::note(format!("note: {} has no operation {id} any more", target.selector)),
        }
    }
    report.time.interrupted = true;
    report.resumed.push(Resumption { time: now(), version: build_version(), operations: operations.len() });
    Ok(Job { target: Some(target.clone()), operations, report })
}
