//! `identify`: the model of whatever computes.

use std::time::{Duration, Instant};

use crate::{
    identify::Effort,
    report::{
        Block, Host, IDENTIFICATION_SCHEMA, IdentificationOutcome, IdentificationReport, IdentifiedOperation,
        Outcome as Ended, Time, Tool, identified, identified_of, to_json,
    },
    session::{identify_one, unidentified},
};
use mxprobe_api::{Device, OperationId};

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
    type Error = Failure;

    fn answered(&mut self, found: IdentifiedOperation) -> Result<(), Failure> {
        self.add(found)
    }

    fn missing(&mut self, id: &OperationId, ending: Ended, reason: &str) -> Result<(), Failure> {
        self.add(unidentified(id, &each::unanswered(ending, reason), Duration::ZERO))
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
