//! `identify`: the model of whatever computes.

use std::time::{Duration, Instant};

use crate::{
    identify::{self, Arithmetic, Effort, NanBits, Outcome as Ending, disagreements, equals, model_of, parameters},
    report::{
        Block, EvidenceRecord, Host, IDENTIFICATION_SCHEMA, IdentificationOutcome, IdentificationReport,
        IdentifiedOperation, Outcome as Ended, Time, Tool, identified, identified_of, to_json,
    },
};
use mxprobe_api::{Device, Error, Operation, OperationId};

use crate::cli::{
    arguments::{Format, Identify, Screen, given},
    choose::{
        limits::Limits,
        reach::{Isolation, reach},
        target::Search,
    },
    commands::{
        each::{self, Listener},
        identified::ModelFile,
    },
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO, Outcome},
    io::{interrupt::Interrupt, output},
};

/// Identifies operations of one device and writes their model.
pub(crate) fn identify(arguments: &Identify, screen: Screen) -> Outcome {
    let inputs = &arguments.inputs;
    let target = each::one_target(&arguments.device, &Search::by(&inputs.reach, &arguments.op))?;
    let operations = each::operations(&arguments.op, &target)?;
    output::can_write(&arguments.out)?;
    if let Some(path) = &arguments.report {
        output::is_for_json(path)?;
        output::can_write(path)?;
    }
    let start = Instant::now();
    let mut report = IdentificationReport {
        schema: IDENTIFICATION_SCHEMA.into(),
        tool: Tool::this(given()),
        time: Time::starting(),
        host: Host::this(),
        device: target.listed.device.clone(),
        model: None,
        nan: arguments.nan,
        operations: Vec::new(),
    };
    report.time.interrupted = true;
    let file = ModelFile::new(&target, &arguments.out)?;
    let mut grows = Grows { arguments, screen, start, file, report };
    let limits = Limits::new(inputs.reach.timeout, None, Interrupt::listen());
    let effort = Effort { seed: inputs.seed, nan: arguments.nan, ..Effort::default() };
    let ask = move |device: &dyn Device, id: &OperationId, progress: &dyn Fn(&str)| {
        identify_one(device, id, effort, progress)
    };
    let ids: Vec<OperationId> = operations.iter().map(|operation| operation.id.clone()).collect();
    let isolation = Isolation { wanted: !inputs.reach.no_isolation, forward_stderr: false };
    let interrupted = each::each(reach(&target, isolation, &limits), &ids, &limits, ask, &mut grows)?;
    grows.report.time.interrupted = interrupted;
    grows.save()?;
    let report = grows.report;
    match inputs.format {
        Format::Table => output::show_part(&[Block::words(identified_of(&report))], screen.unwrapped())?,
        format => output::show(&report, format, screen)?,
    };
    Ok(code(&report))
}

/// A report and a model file that are saved after every operation.
struct Grows<'a> {
    arguments: &'a Identify,
    screen: Screen,
    start: Instant,
    file: ModelFile<'a>,
    report: IdentificationReport,
}

impl Grows<'_> {
    fn save(&mut self) -> Result<(), Failure> {
        self.report.time.elapsed_since(self.start, 0);
        self.arguments.report.as_ref().map_or(Ok(()), |path| output::replace(path, &to_json(&self.report)))
    }

    fn add(&mut self, found: IdentifiedOperation) -> Result<(), Failure> {
        if self.arguments.inputs.format == Format::Table {
            output::show_part(&identified(&found, self.screen.verbose), self.screen.unwrapped())?;
        }
        self.file.add(&found)?;
        self.report.model = self.file.is_written().then(|| self.arguments.out.display().to_string());
        self.report.operations.push(found);
        self.save()
    }
}

impl Listener<IdentifiedOperation> for Grows<'_> {
    fn answered(&mut self, found: IdentifiedOperation) -> Result<(), Failure> {
        self.add(found)
    }

    fn missing(&mut self, id: &OperationId, ending: Ended, reason: &str) -> Result<(), Failure> {
        self.add(failed(id, &each::unanswered(ending, reason), Duration::ZERO))
    }

    fn progress(&mut self, words: &str) {
        each::progress(self.screen, words);
    }
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

/// Identifies one operation.
fn identify_one(device: &dyn Device, id: &OperationId, effort: Effort, progress: &dyn Fn(&str)) -> IdentifiedOperation {
    let start = Instant::now();
    let missing = || Error::invalid(format!("{} has no operation {id} any more", device.info().selector));
    progress(&format!("{} {id}", device.info().selector));
    let step = |text: &str| progress(&format!("  {text}"));
    let operation = device.operations().get(id).ok_or_else(missing);
    let found = operation.and_then(|operation| one(device, operation, effort, &step, start));
    found.unwrap_or_else(|error| failed(id, &error.to_string(), start.elapsed()))
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
        evidence: EvidenceRecord::all(&found.counterexamples, &operation.id),
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
            record.evidence = EvidenceRecord::all(evidence, &operation.id);
        }
        Ending::Outside { evidence, nearest, explained, of, only_nan } => {
            record.outcome = IdentificationOutcome::Outside;
            let nan = if *only_nan { NanBits::HINT } else { "" };
            record.reason = Some(format!("nothing that a model file can say explains every dot{nan}"));
            describe(&mut record, nearest);
            record.evidence = EvidenceRecord::all(evidence, &operation.id);
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
