//! `identify`: the model of whatever computes.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use mxprobe::{
    identify::{self, Arithmetic, Effort, NanBits, Outcome as Ending, disagreements, equals, model_of, parameters},
    report::{
        Host, IDENTIFICATION_SCHEMA, IdentificationOutcome, IdentificationReport, IdentifiedOperation, Time, Tool,
    },
};
use mxprobe_api::{Device, Error, Operation, OperationId};
use mxprobe_sim::Model;

use super::{
    Outcome,
    arguments::{Identify, Printed, Screen, given},
    each,
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO},
    isolation::Interrupt,
    output,
    select::Target,
    worker::{Answer, Request},
};

/// Identifies operations of one device and writes their model.
pub(crate) fn identify(arguments: &Identify, screen: Screen) -> Outcome {
    let inputs = &arguments.inputs;
    let target = each::one_target(&arguments.device, !inputs.no_isolation)?;
    let operations = each::operations(&arguments.op, &target)?;
    output::can_write(&arguments.out)?;
    let name = model_name(&arguments.out)?;
    let start = Instant::now();
    let mut found: Vec<IdentifiedOperation> = Vec::new();
    let mut take = |answer: Answer| -> Result<bool, Failure> {
        match answer {
            Answer::Progress(words) => {
                each::progress(screen, &words);
                Ok(false)
            }
            Answer::Identified(operation) => {
                if arguments.inputs.format == Printed::Table {
                    output::print(text(&operation, screen).as_bytes())?;
                }
                found.push(*operation);
                Ok(true)
            }
            _ => Ok(false),
        }
    };
    let ids: Vec<OperationId> = operations.iter().map(|operation| operation.id.clone()).collect();
    let interrupted = if each::is_isolated(&target, inputs) {
        let request = |operations| Request::Identify {
            backend: target.entry.name.to_owned(),
            device: target.selector.clone(),
            operations,
            seed: inputs.seed,
            nan: arguments.nan,
        };
        let mut lost = Vec::new();
        let mut hear = |id: &OperationId, reason: &str| {
            lost.push(failed(id, reason, Duration::ZERO));
            Ok(())
        };
        let interrupt = Interrupt::listen();
        let interrupted = each::isolated(&operations, inputs.timeout, &request, &mut take, &mut hear, &interrupt)?;
        for operation in lost {
            take(Answer::Identified(Box::new(operation)))?;
        }
        interrupted
    } else {
        let device = target.entry.open(&target.selector).map_err(Failure::no_device)?;
        identify_each(device.as_ref(), &ids, (inputs.seed, arguments.nan), &mut |answer| {
            take(clone_of(answer))?;
            Ok(())
        })?;
        false
    };
    let model = write(&target, &arguments.out, &name, &found)?;
    let mut time = Time::starting();
    time.elapsed_since(start, 0);
    time.interrupted = interrupted;
    let report = IdentificationReport {
        schema: IDENTIFICATION_SCHEMA.into(),
        tool: Tool::this(given()),
        time,
        host: Host::this(),
        device: target.listed.device.clone(),
        model: model.map(|()| arguments.out.display().to_string()),
        nan: arguments.nan,
        operations: found,
    };
    match inputs.format {
        Printed::Json => output::print_json(&report)?,
        Printed::Table => output::print(summary(&report).as_bytes())?,
    };
    Ok(code(&report))
}

fn code(report: &IdentificationReport) -> u8 {
    let any = |outcome| report.operations.iter().any(|operation| operation.outcome == outcome);
    if report.time.interrupted {
        INTERRUPTED
    } else if any(IdentificationOutcome::Failed) {
        INCOMPLETE
    } else if any(IdentificationOutcome::Outside) || any(IdentificationOutcome::Unrepeatable) {
        NO
    } else {
        0
    }
}

/// Identifies operations in their order, with inputs drawn from a seed, and NaN of any bits alike or not.
pub(crate) fn identify_each(
    device: &dyn Device,
    operations: &[OperationId],
    (seed, nan): (u64, NanBits),
    answer: &mut dyn FnMut(&Answer) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for id in operations {
        let start = Instant::now();
        let missing = || Error::invalid(format!("{} has no operation {id} any more", device.info().selector));
        let operation = device.operations().get(id).ok_or_else(missing);
        answer(&Answer::Progress(format!("{} {id}", device.info().selector)))?;
        let words = std::cell::RefCell::new(&mut *answer);
        let progress = |text: &str| {
            // Whoever stopped listening is noticed at the next answer.
            let _ = (words.borrow_mut())(&Answer::Progress(format!("  {text}")));
        };
        let found = operation
            .and_then(|operation| one(device, operation, Effort { seed, nan, ..Effort::default() }, &progress, start));
        let lost = found.as_ref().is_err_and(|error| error.is_device_lost());
        let found = found.unwrap_or_else(|error| failed(id, &error.to_string(), start.elapsed()));
        answer(&Answer::Identified(Box::new(found)))?;
        if lost {
            answer(&Answer::Refused("the device was lost".into()))?;
            break;
        }
    }
    Ok(())
}

fn one(
    device: &dyn Device,
    operation: &Operation,
    effort: Effort,
    progress: &dyn Fn(&str),
    start: Instant,
) -> Result<IdentifiedOperation, Error> {
    let found = identify::identify(device, operation, effort, progress)?;
    let mut record = IdentifiedOperation {
        id: operation.id.clone(),
        outcome: IdentificationOutcome::Identified,
        reason: None,
        order: found.order.clone(),
        tree: None,
        parameters: Vec::new(),
        rounds: found.rounds as u64,
        dots: found.dots,
        tested: found.tested as u64,
        explained: None,
        readings: found.readings as u64,
        equals: Vec::new(),
        disagreements: Vec::new(),
        evidence: found.counterexamples.clone(),
        model: None,
        duration_ns: 0,
    };
    let describe = |record: &mut IdentifiedOperation, arithmetic: &Arithmetic| {
        record.tree = Some(arithmetic.tree.clone());
        record.parameters = parameters(arithmetic);
    };
    match &found.outcome {
        Ending::Identified(arithmetic) => {
            describe(&mut record, arithmetic);
            let pair = (arithmetic.clone(), operation.clone());
            let model = model_of(device.info(), "identified", "this run", &[pair])?;
            progress("comparing with known models and with the probes");
            record.equals = equals(arithmetic, effort.seed, effort.nan)?;
            record.disagreements = disagreements(device, operation, &model, effort.nan);
            record.model = Some(model.to_toml());
        }
        Ending::Unrepeatable { what, evidence } => {
            record.outcome = IdentificationOutcome::Unrepeatable;
            record.reason = Some(what.clone());
            record.evidence = evidence.iter().cloned().collect();
        }
        Ending::Outside { evidence, nearest, explained, of, only_nan } => {
            record.outcome = IdentificationOutcome::Outside;
            let nan = if *only_nan { NanBits::HINT } else { "" };
            record.reason = Some(format!("nothing that a model file can say explains every dot{nan}"));
            describe(&mut record, nearest);
            record.evidence = evidence.iter().cloned().collect();
            (record.explained, record.tested) = (Some(*explained as u64), *of as u64);
        }
    }
    record.duration_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(record)
}

fn failed(id: &OperationId, reason: &str, took: Duration) -> IdentifiedOperation {
    IdentifiedOperation {
        id: id.clone(),
        outcome: IdentificationOutcome::Failed,
        reason: Some(reason.to_owned()),
        order: None,
        tree: None,
        parameters: Vec::new(),
        rounds: 0,
        dots: 0,
        tested: 0,
        explained: None,
        readings: 0,
        equals: Vec::new(),
        disagreements: Vec::new(),
        evidence: Vec::new(),
        model: None,
        duration_ns: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
    }
}

fn clone_of(answer: &Answer) -> Answer {
    match answer {
        Answer::Identified(operation) => Answer::Identified(operation.clone()),
        Answer::Progress(words) => Answer::Progress(words.clone()),
        _ => Answer::Progress(String::new()),
    }
}

/// The model's name: that of the file.
fn model_name(path: &Path) -> Result<String, Failure> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = stem.chars().map(plain).collect();
    if name.is_empty() {
        return Err(Failure::usage(format!("`{}` is no name of a file", path.display())));
    }
    Ok(name)
}

/// One file for everything that was identified.
fn write(target: &Target, path: &Path, name: &str, found: &[IdentifiedOperation]) -> Result<Option<()>, Failure> {
    let mut parts = Vec::new();
    for operation in found.iter().filter(|operation| operation.outcome == IdentificationOutcome::Identified) {
        let Some(text) = &operation.model else { continue };
        let model = Model::parse("the identified model", text, None).map_err(Failure::incomplete)?;
        let (Some(unit), Some(of)) = (model.units.first(), model.operations.get(&operation.id)) else { continue };
        let arithmetic = Arithmetic {
            operation: operation.id.clone(),
            tree: unit.tree.clone(),
            adders: model.adders.clone(),
            flush: unit.flush,
        };
        let mut of = of.clone();
        let listed = target.listed.operations.iter().find(|listed| listed.id == operation.id);
        if let Some(listed) = listed {
            of.instruction.clone_from(&listed.instruction);
        }
        parts.push((arithmetic, of));
    }
    if parts.is_empty() {
        return Ok(None);
    }
    let device = target.entry.open(&target.selector);
    let info = match device {
        Ok(device) => device.info().clone(),
        Err(error) => return Err(Failure::incomplete(error)),
    };
    let (dots, tested) =
        found.iter().fold((0, 0), |(dots, tested), operation| (dots + operation.dots, tested + operation.tested));
    let driver = info.driver.as_ref().map(|driver| format!(", {} {}", driver.name, driver.version)).unwrap_or_default();
    let date = Time::starting().start;
    let date = date.split('T').next().unwrap_or_default();
    let source = format!(
        "measured on {} ({}{driver}), {date}, by mxprobe {}: {dots} dots asked, {tested} compared with the model, no mismatch",
        info.name,
        info.selector,
        mxprobe::report::build_version(),
    );
    let model = model_of(&info, name, &source, &parts).map_err(Failure::incomplete)?;
    output::replace(path, &model.to_toml())?;
    Ok(Some(()))
}

/// One operation for people.
fn text(operation: &IdentifiedOperation, screen: Screen) -> String {
    let mut lines = vec![format!("{}", operation.id)];
    let mut line = |words: String| lines.push(format!("  {words}"));
    match operation.outcome {
        IdentificationOutcome::Identified => line("identified".into()),
        IdentificationOutcome::Outside => line(
            format!(
                "outside of what a model can say: the nearest candidate explains {} of {} dots",
                operation.explained.unwrap_or(0),
                operation.tested
            ) + operation.reason.as_deref().and_then(|reason| reason.find(';').map(|at| &reason[at..])).unwrap_or(""),
        ),
        IdentificationOutcome::Unrepeatable => {
            line(format!("not repeatable: {}", operation.reason.as_deref().unwrap_or("")))
        }
        IdentificationOutcome::Failed => line(format!("failed: {}", operation.reason.as_deref().unwrap_or(""))),
    }
    if let Some(order) = &operation.order {
        line(format!("order: {order}"));
    }
    if let Some(tree) = &operation.tree {
        let nearest = if operation.outcome == IdentificationOutcome::Identified { "" } else { "nearest " };
        line(format!("{nearest}tree: {tree}"));
    }
    operation.parameters.iter().for_each(|parameter| line(format!("  {parameter}")));
    if operation.dots > 0 {
        line(format!(
            "{} rounds after the tree, {} dots asked, {} readings of the tree tried, {:.1} s",
            operation.rounds,
            operation.dots,
            operation.readings,
            Duration::from_nanos(operation.duration_ns).as_secs_f64()
        ));
    }
    if operation.outcome == IdentificationOutcome::Identified {
        line(format!("tested, not proved: {} dots, no mismatch", operation.tested));
        match operation.equals.as_slice() {
            [] => line("no shipped model gives the same bits".into()),
            equals => line(format!("gives the same bits as {}", equals.join(", "))),
        }
    }
    for words in &operation.disagreements {
        line(format!("the probes differ: {words}"));
    }
    let shown = if screen.verbose || operation.outcome != IdentificationOutcome::Identified { usize::MAX } else { 0 };
    for evidence in operation.evidence.iter().take(shown) {
        super::verify::evidence_lines(&operation.id, evidence).into_iter().for_each(&mut line);
    }
    lines.join("\n") + "\n"
}

fn summary(report: &IdentificationReport) -> String {
    let identified =
        report.operations.iter().filter(|operation| operation.outcome == IdentificationOutcome::Identified).count();
    let written = report.model.as_ref().map(|model| format!("; the model is in {model}")).unwrap_or_default();
    format!("{identified} of {} operations identified{written}\n", report.operations.len())
}
