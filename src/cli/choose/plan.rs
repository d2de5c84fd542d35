//! The plan of a run: the devices, their operations, and notes about the choice.

use crate::{
    probes,
    report::{Kind, OperationRecord, Plan as Planned, Report},
    session,
};

use crate::cli::{
    arguments::{Devices, Run, Screen, given},
    choose::{
        catalog::{self, Found},
        registry::MODELS,
        select,
        similar::{did_you_mean, similar},
        target::{Search, Target},
    },
    failure::Failure,
    io::output,
};

/// The models that replace missing hardware; the first that exists is used.
const STAND_INS: [&str; 2] = ["sim:v100", "sim:fma-chain"];

/// The devices to probe, with notes about the choice.
pub(crate) struct Plan {
    pub(crate) targets: Vec<Target>,
    pub(crate) found: Vec<Found>,
    /// For standard error.
    pub(crate) notes: Vec<String>,
    /// Set if no device was found and a model stands in. For the report.
    pub(crate) stand_in: Option<String>,
}

/// A device, the operations to ask, and the report that receives the answers.
pub(crate) struct Job {
    /// The device; `None` if nothing is left to ask.
    pub(crate) target: Option<Target>,
    pub(crate) operations: Vec<OperationRecord>,
    pub(crate) report: Report,
}

/// Plans a run that does not resume another.
pub(crate) fn jobs(arguments: &Run, screen: Screen) -> Result<Vec<Job>, Failure> {
    arguments.probe.iter().try_for_each(|wanted| check_probe(wanted))?;
    let plan = plan(&arguments.devices, &arguments.op)?;
    if !screen.quiet {
        for note in &plan.notes {
            output::note(format!("note: {note}"));
        }
    }
    let mut jobs = Vec::new();
    for target in &plan.targets {
        let operations: Vec<_> = select::asked(&arguments.op, &target.listed).into_iter().cloned().collect();
        if !operations.is_empty() {
            let report = begin(target, &plan, &operations, arguments);
            jobs.push(Job { target: Some(target.clone()), operations, report });
        } else if target.listed.operations.is_empty() && target.listed.scalars.is_empty() && !screen.quiet {
            let reasons = target.listed.refusals.iter().map(|refusal| refusal.reason.as_str());
            let reasons: Vec<&str> = reasons.collect();
            output::note(format!("note: {} has no operation: {}", target.selector, reasons.join("; ")));
        } else if plan.targets.len() > 1 && !screen.quiet {
            output::note(format!("note: {} has no operation {}", target.selector, arguments.op.join(", ")));
        }
    }
    if jobs.is_empty() {
        let listed: Vec<_> = plan.targets.iter().map(|target| &target.listed).collect();
        if arguments.op.is_empty() {
            return Err(select::no_usable(&refused(&listed, &plan.found), "this run"));
        }
        return Err(select::no_operation(&arguments.op, &listed));
    }
    Ok(jobs)
}

/// Checks a probe pattern: one that matches nothing is a mistake, not an empty report.
fn check_probe(wanted: &str) -> Result<(), Failure> {
    session::patterns::check_probe(wanted).map_err(|error| {
        let names = probes::all().map(|probe| probe.name);
        match did_you_mean(&similar(wanted, names)) {
            Some(meant) => Failure::usage(format!("no probe `{wanted}`; {meant}")),
            None => Failure::usage(error),
        }
        .help("`mxprobe explain` says what each probe asks")
    })
}

/// Chooses the devices: the named ones, or else every device of the named backends, or else all hardware, or else a
/// model.
pub(crate) fn plan(devices: &Devices, operations: &[String]) -> Result<Plan, Failure> {
    let search = Search::of(devices, operations);
    let selectors = devices.selectors();
    if !selectors.is_empty() {
        let (targets, found) = select::named(&selectors, &devices.backend, &search)?;
        return Ok(Plan { targets, found, notes: Vec::new(), stand_in: None });
    }
    let entries = select::entries(&devices.backend)?;
    let drivers: Vec<_> = entries.iter().copied().filter(|entry| entry.name != MODELS).collect();
    let found = catalog::discover(&drivers, &search);
    let mut targets = Vec::new();
    let mut notes = Vec::new();
    for (entry, found) in drivers.iter().zip(&found) {
        for listed in &found.devices {
            let device = &listed.device;
            if !devices.backend.is_empty() || device.kind == Kind::Hardware {
                targets.push(found.target(entry, listed));
            } else {
                notes.push(format!(
                    "{} ({}) computes in software and is skipped; `--device {}` probes it",
                    device.selector, device.name, device.selector
                ));
            }
        }
    }
    if devices.backend.is_empty() {
        if targets.iter().all(|target| target.listed.operations.is_empty()) {
            let mut plan = stand_in(&search)?;
            let title = &plan.targets[0].listed.device.name;
            let words = format!("no matrix unit was found; this is the {title}, nothing was measured on silicon");
            let tried = if found.is_empty() { String::new() } else { format!(" ({})", catalog::tried(&found)) };
            plan.notes.push(format!("{words}{tried}"));
            plan.stand_in = Some(words);
            plan.notes.extend(notes);
            plan.found = found;
            // The scalar arithmetic of the devices that were found is asked nevertheless.
            targets.retain(|target| !target.listed.scalars.is_empty());
            targets.append(&mut plan.targets);
            plan.targets = targets;
            return Ok(plan);
        }
    } else if entries.iter().any(|entry| entry.name == MODELS) {
        let plan = stand_in(&search)?;
        notes.push(format!(
            "only the model {} is probed; `--device sim:all` probes every one",
            plan.targets[0].selector
        ));
        targets.extend(plan.targets);
    }
    if targets.is_empty() {
        let names: Vec<String> = devices.backend.iter().map(|name| format!("`--backend {name}`")).collect();
        return Err(select::no_usable(&found, &names.join(" ")));
    }
    Ok(Plan { targets, found, notes, stand_in: None })
}

fn stand_in(search: &Search) -> Result<Plan, Failure> {
    let mut result = Err(Failure::no_device("no model"));
    for name in STAND_INS {
        result = select::named(&[name.to_owned()], &[], search);
        if result.is_ok() {
            break;
        }
    }
    let (targets, found) = result?;
    Ok(Plan { targets, found, notes: Vec::new(), stand_in: None })
}

/// Adds to `found` the refusals of devices that have no operation.
fn refused(listed: &[&crate::report::ListedDevice], found: &[Found]) -> Vec<Found> {
    let mut found = found.to_vec();
    for found in &mut found {
        let devices = listed.iter().filter(|listed| listed.device.backend == found.backend);
        found.refusals.extend(devices.flat_map(|listed| listed.refusals.clone()));
    }
    found
}

fn begin(target: &Target, plan: &Plan, operations: &[OperationRecord], arguments: &Run) -> Report {
    let is_told = |found: &&Found| plan.stand_in.is_some() || found.backend == target.backend();
    let of_backend = plan.found.iter().filter(is_told);
    let planned = Planned {
        operations: operations.iter().map(|operation| operation.id.clone()).collect(),
        patterns: arguments.op.clone(),
        probes: arguments.probe.clone(),
        points: arguments.points,
    };
    let mut report = session::begin(&target.listed, planned, &given());
    report.device.selector.clone_from(&target.selector);
    report.notes = plan.stand_in.iter().filter(|_| target.is_model()).cloned().collect();
    report.refusals.extend(of_backend.flat_map(|found| &found.refusals).cloned());
    report
}
