//! `verify`: a device against a model, bit for bit.

use std::time::{Duration, Instant};

use mxprobe::{
    identify::{self, Comparison, decimal},
    report::{Evidence, Host, Time, Tool, VERIFICATION_SCHEMA, VerificationReport, VerifiedOperation},
};
use mxprobe_api::{Device, Error, Format as NumberFormat, OperationId};
use mxprobe_sim::Model;

use super::{
    Outcome,
    arguments::{Printed, Screen, Verify, given},
    each,
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO},
    isolation::Interrupt,
    output,
    select::Target,
    worker::{Answer, Request},
};

/// Compares operations of one device with a model.
pub(crate) fn verify(arguments: &Verify, screen: Screen) -> Outcome {
    let inputs = &arguments.inputs;
    let model = mxprobe_sim::load(&arguments.model).map_err(Failure::usage)?;
    let target = each::one_target(&arguments.device, !inputs.no_isolation)?;
    let ids = common(arguments, &target, &model)?;
    let operations: Vec<_> =
        target.listed.operations.iter().filter(|operation| ids.contains(&operation.id)).cloned().collect();
    let start = Instant::now();
    let mut found: Vec<VerifiedOperation> = Vec::new();
    let mut take = |answer: Answer| -> Result<bool, Failure> {
        match answer {
            Answer::Progress(words) => {
                each::progress(screen, &words);
                Ok(false)
            }
            Answer::Verified(operation) => {
                if inputs.format == Printed::Table {
                    output::print(text(&operation).as_bytes())?;
                }
                found.push(*operation);
                Ok(true)
            }
            _ => Ok(false),
        }
    };
    let interrupted = if each::is_isolated(&target, inputs) {
        let request = |operations| Request::Verify {
            backend: target.entry.name.to_owned(),
            device: target.selector.clone(),
            operations,
            model: arguments.model.clone(),
            count: arguments.count,
            seed: inputs.seed,
            nan: arguments.nan,
        };
        let mut lost = Vec::new();
        let mut hear = |id: &OperationId, reason: &str| {
            lost.push(failed(id, reason));
            Ok(())
        };
        let interrupt = Interrupt::listen();
        let interrupted = each::isolated(&operations, inputs.timeout, &request, &mut take, &mut hear, &interrupt)?;
        for operation in lost {
            take(Answer::Verified(Box::new(operation)))?;
        }
        interrupted
    } else {
        let device = target.entry.open(&target.selector).map_err(Failure::no_device)?;
        let comparison = Comparison { count: arguments.count, seed: inputs.seed, nan: arguments.nan };
        verify_each(device.as_ref(), &ids, &model, comparison, &mut |answer| {
            take(match answer {
                Answer::Verified(operation) => Answer::Verified(operation.clone()),
                Answer::Progress(words) => Answer::Progress(words.clone()),
                _ => return Ok(()),
            })?;
            Ok(())
        })?;
        false
    };
    let mut time = Time::starting();
    time.elapsed_since(start, 0);
    time.interrupted = interrupted;
    let report = VerificationReport {
        schema: VERIFICATION_SCHEMA.into(),
        tool: Tool::this(given()),
        time,
        host: Host::this(),
        device: target.listed.device.clone(),
        model: arguments.model.clone(),
        nan: arguments.nan,
        operations: found,
    };
    if inputs.format == Printed::Json {
        output::print_json(&report)?;
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

/// Compares operations in their order.
pub(crate) fn verify_each(
    device: &dyn Device,
    operations: &[OperationId],
    model: &Model,
    comparison: Comparison,
    answer: &mut dyn FnMut(&Answer) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for id in operations {
        let missing = || Error::invalid(format!("{} has no operation {id} any more", device.info().selector));
        let operation = device.operations().get(id).ok_or_else(missing);
        let words = std::cell::RefCell::new(&mut *answer);
        let told = std::cell::Cell::new(Instant::now());
        let progress = |dots: u64| {
            if told.get().elapsed() > Duration::from_secs(1) {
                told.set(Instant::now());
                // Whoever stopped listening is noticed at the next answer.
                let _ = (words.borrow_mut())(&Answer::Progress(format!("{id}: {} dots", dots)));
            }
        };
        let found = operation.and_then(|operation| identify::verify(device, operation, model, comparison, &progress));
        let lost = found.as_ref().is_err_and(Error::is_device_lost);
        let found = found.unwrap_or_else(|error| failed(id, &error.to_string()));
        answer(&Answer::Verified(Box::new(found)))?;
        if lost {
            answer(&Answer::Refused("the device was lost".into()))?;
            break;
        }
    }
    Ok(())
}

fn failed(id: &OperationId, reason: &str) -> VerifiedOperation {
    VerifiedOperation {
        id: id.clone(),
        dots: 0,
        mismatches: 0,
        other_nan: 0,
        evidence: Vec::new(),
        failed: Some(reason.to_owned()),
        duration_ns: 0,
    }
}

/// One operation for people.
pub(crate) fn text(operation: &VerifiedOperation) -> String {
    let seconds = Duration::from_nanos(operation.duration_ns).as_secs_f64();
    let mut lines = vec![match (&operation.failed, operation.mismatches) {
        (Some(reason), _) => format!("{}: failed: {reason}", operation.id),
        (None, 0) => {
            let nan = match operation.other_nan {
                0 => String::new(),
                count => format!(" ({count} NaN of other bits)"),
            };
            format!("{}: {} dots, no mismatch{nan}, {seconds:.1} s", operation.id, operation.dots)
        }
        (None, wrong) => {
            format!("{}: {} of {} dots differ; the first, made simple:", operation.id, wrong, operation.dots)
        }
    }];
    for evidence in &operation.evidence {
        lines.extend(evidence_lines(&operation.id, evidence).into_iter().map(|line| format!("  {line}")));
    }
    lines.join("\n") + "\n"
}

/// One dot with bits and decimals: the products that are not zero, c, d and what rivals say.
pub(crate) fn evidence_lines(id: &OperationId, evidence: &Evidence) -> Vec<String> {
    let show = |format: NumberFormat, text: &str| match format.parse_hex(text) {
        Ok(bits) => format!("{text} ({})", decimal(format, bits)),
        Err(_) => text.to_owned(),
    };
    let is_zero = |format: NumberFormat, text: &str| format.parse_hex(text) == Ok(0);
    let mut lines = vec![evidence.about.clone()];
    for (k, (a, b)) in evidence.a.iter().zip(&evidence.b).enumerate() {
        if !is_zero(id.a, a) || !is_zero(id.b, b) {
            lines.push(format!("  k {k}: a {}, b {}", show(id.a, a), show(id.b, b)));
        }
    }
    if let (Some(scale), Some(a), Some(b)) = (id.block_scale(), &evidence.scale_a, &evidence.scale_b) {
        for (block, (a, b)) in a.iter().zip(b).enumerate() {
            lines.push(format!("  scales {block}: a {}, b {}", show(scale.format, a), show(scale.format, b)));
        }
    }
    lines.push(format!("  c {}", show(id.c, &evidence.c)));
    lines.push(format!("  d {}", show(id.d, &evidence.d)));
    for rival in &evidence.rivals {
        lines.push(format!("  {}: {}", rival.answer, show(id.d, &rival.d)));
    }
    lines
}
