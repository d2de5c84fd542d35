//! `verify`: a device against a model, bit for bit.

use std::time::Instant;

use crate::{
    identify::Comparison,
    report::{
        Host, Outcome as Ending, Time, Tool, VERIFICATION_SCHEMA, VerificationReport, VerifiedOperation, to_json,
        verified,
    },
    session::{unverified, verify_one},
};
use mxprobe_api::{Device, OperationId};
use mxprobe_models::Model;

use crate::cli::{
    arguments::{Format, Screen, Verify, given},
    choose::{
        limits::Limits,
        models,
        reach::{Isolation, reach},
        target::{Search, Target},
    },
    commands::each::{self, Listener},
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO, Outcome},
    io::{interrupt::Interrupt, output},
};

/// Compares operations of one device with a model.
pub(crate) fn verify(arguments: &Verify, screen: Screen) -> Outcome {
    let inputs = &arguments.inputs;
    let model = models::load(&arguments.model)?;
    let target = each::one_target(&arguments.device, &Search::by(&inputs.reach, &arguments.op))?;
    let ids = common(arguments, &target, &model)?;
    if let Some(path) = &arguments.out {
        output::is_for_json(path)?;
        output::can_write(path)?;
    }
    let start = Instant::now();
    let mut report = VerificationReport {
        schema: VERIFICATION_SCHEMA.into(),
        tool: Tool::this(given()),
        time: Time::starting(),
        host: Host::this(),
        device: target.listed.device.clone(),
        model: arguments.model.clone(),
        nan: arguments.nan,
        operations: Vec::new(),
    };
    report.time.interrupted = true;
    let mut grows = Grows { arguments, screen, start, report };
    let limits = Limits::new(inputs.reach.timeout, None, Interrupt::listen());
    let comparison = Comparison { count: arguments.count, seed: inputs.seed, nan: arguments.nan };
    let ask = move |device: &dyn Device, id: &OperationId, progress: &dyn Fn(&str)| {
        verify_one(device, id, &model, comparison, progress)
    };
    let isolation = Isolation { wanted: !inputs.reach.no_isolation, forward_stderr: false };
    let interrupted = each::each(reach(&target, isolation, &limits), &ids, &limits, ask, &mut grows)?;
    grows.report.time.interrupted = interrupted;
    grows.save()?;
    let report = grows.report;
    if inputs.format != Format::Table {
        output::show(&report, inputs.format, screen)?;
    }
    Ok(if interrupted {
        INTERRUPTED
    } else if report.operations.iter().any(|operation| operation.mismatches > 0) {
        NO
    } else if report.operations.iter().any(|operation| operation.failed.is_some()) {
        INCOMPLETE
    } else {
        0
    })
}

/// A report that is saved after every operation.
struct Grows<'a> {
    arguments: &'a Verify,
    screen: Screen,
    start: Instant,
    report: VerificationReport,
}

impl Grows<'_> {
    fn save(&mut self) -> Result<(), Failure> {
        self.report.time.elapsed_since(self.start, 0);
        self.arguments.out.as_ref().map_or(Ok(()), |path| output::replace(path, &to_json(&self.report)))
    }

    fn add(&mut self, found: VerifiedOperation) -> Result<(), Failure> {
        if self.arguments.inputs.format == Format::Table {
            output::show_part(&verified(&found), self.screen.unwrapped())?;
        }
        self.report.operations.push(found);
        self.save()
    }
}

impl Listener<VerifiedOperation> for Grows<'_> {
    type Error = Failure;

    fn answered(&mut self, found: VerifiedOperation) -> Result<(), Failure> {
        self.add(found)
    }

    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Failure> {
        self.add(unverified(id, &each::unanswered(ending, reason)))
    }

    fn progress(&mut self, words: &str) {
        each::progress(self.screen, words);
    }
}

/// The operations that are asked for, and that the device and the model have; without `--op` whatever both have.
fn common(arguments: &Verify, target: &Target, model: &Model) -> Result<Vec<OperationId>, Failure> {
    let asked = each::operations(&arguments.op, target)?;
    let both: Vec<OperationId> = asked
        .iter()
        .filter(|operation| model.operations.contains_key(&operation.id))
        .map(|operation| operation.id.clone())
        .collect();
    if !both.is_empty() && (arguments.op.is_empty() || both.len() == asked.len()) {
        return Ok(both);
    }
    let missing = asked.iter().find(|operation| !model.operations.contains_key(&operation.id));
    let missing = missing.map_or_else(String::new, |operation| operation.id.to_string());
    let mut failure = Failure::usage(format!("the model `{}` has no operation {missing}", arguments.model));
    for id in model.operations.keys().take(12) {
        failure = failure.cause(format!("it has {id}"));
    }
    Err(failure.help("`mxprobe list -v --backend sim` shows the operations of every model"))
}
