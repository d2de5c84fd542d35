//! Whole sessions: one report on every selected operation.

use std::time::{Duration, Instant};

use crate::{
    findings::Outcome as Ending,
    identify::{Comparison, Effort, NanBits},
    isolate::Described,
    report::{
        Conditions, DeviceRecord, Host, IDENTIFICATION_SCHEMA, IdentificationReport, IdentifiedOperation, ListedDevice,
        OperationRecord, OperationReport, Plan, RefusalRecord, Report, Request, SCHEMA, Time, VERIFICATION_SCHEMA,
        VerificationReport, VerifiedOperation, this_tool,
    },
    scalars,
};
use mxprobe_api::{Device, Error, OperationId};
use mxprobe_models::Model;

use super::{
    ask::{Expected, identify_one, probe, unidentified, unverified, verify_one},
    each::{Asked, Listener, Stop, each, threads_each, unanswered},
    identified::IdentifiedModel,
    patterns,
};

/// Describes a device as listings do.
#[must_use]
pub fn listed(device: &Described) -> ListedDevice {
    ListedDevice {
        device: DeviceRecord::from(&device.info),
        operations: device.operations.iter().map(OperationRecord::from).collect(),
        scalars: device.scalars.iter().map(|scalar| OperationRecord::from(&scalars::operation(scalar))).collect(),
        refusals: device.refusals.iter().map(RefusalRecord::from).collect(),
    }
}

/// Starts the report of a run, without operations. `arguments` are the program's, for the report.
#[must_use]
pub fn begin(listed: &ListedDevice, plan: Plan, arguments: &[String]) -> Report {
    Report {
        schema: SCHEMA.into(),
        tool: this_tool(arguments),
        time: Time::starting(),
        host: Host::this(),
        notes: Vec::new(),
        device: listed.device.clone(),
        conditions: Conditions::default(),
        plan: Some(plan),
        resumed: Vec::new(),
        refusals: listed.refusals.clone(),
        summary: None,
        operations: Vec::new(),
    }
}

/// A device, the operations to ask about, and a receiver of progress.
pub struct Session<'a> {
    /// The device.
    pub asked: Asked,
    /// Patterns of operations; all operations if empty.
    pub operations: Vec<String>,
    /// The program's arguments, for the report.
    pub arguments: Vec<String>,
    /// Returns a reason to stop, if there is one.
    pub stop: &'a dyn Fn() -> Option<Stop>,
    /// Receives the number of operations done, their total, and a description of the current one.
    pub progress: &'a mut dyn FnMut(usize, usize, &str),
}

impl Session<'_> {
    fn listed(&self) -> ListedDevice {
        listed(&Described::of(self.asked.device.as_ref()))
    }

    /// The operations to ask about; an error if there is none.
    fn chosen(&self, found: &[&OperationRecord]) -> Result<Vec<OperationRecord>, Error> {
        let info = self.asked.device.info();
        if found.is_empty() {
            let names: Vec<String> = self.operations.iter().map(|pattern| format!("`{pattern}`")).collect();
            return Err(Error::invalid(format!("{} has no operation {}", info.selector, names.join(", "))));
        }
        Ok(found.iter().copied().cloned().collect())
    }

    /// Asks about each operation; returns the answers, and whether it was interrupted.
    fn each<A: Send + 'static>(
        &mut self,
        operations: &[OperationRecord],
        ask: impl Fn(&dyn Device, &OperationId, &dyn Fn(&str)) -> A + Send + Sync + 'static,
        missing: &dyn Fn(&OperationRecord, Ending, &str) -> A,
    ) -> (Vec<A>, bool) {
        let ids: Vec<OperationId> = operations.iter().map(|operation| operation.id.clone()).collect();
        let mut heard = Heard { answers: Vec::new(), operations, missing, progress: &mut *self.progress };
        heard.progress("");
        let Ok(interrupted) = each(Ok(self.asked.clone()), &ids, self.stop, ask, &mut heard);
        (heard.answers, interrupted)
    }
}

struct Heard<'a, A> {
    answers: Vec<A>,
    operations: &'a [OperationRecord],
    missing: &'a dyn Fn(&OperationRecord, Ending, &str) -> A,
    progress: &'a mut dyn FnMut(usize, usize, &str),
}

impl<A> Listener<A> for Heard<'_, A> {
    type Error = std::convert::Infallible;

    fn answered(&mut self, answer: A) -> Result<(), Self::Error> {
        self.answers.push(answer);
        self.progress("");
        Ok(())
    }

    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Self::Error> {
        let operation = self.operations.iter().find(|operation| operation.id == *id);
        self.answers.extend(operation.map(|operation| (self.missing)(operation, ending, reason)));
        Ok(())
    }

    fn progress(&mut self, words: &str) {
        let at = self.answers.len();
        let id = self.operations.get(at).map(|operation| operation.id.to_string()).unwrap_or_default();
        let words = if words.is_empty() { id } else { words.to_owned() };
        (self.progress)(at, self.operations.len(), &words);
    }
}

/// Probes operations and scalar arithmetic of a device. `probes` are patterns; if empty, all probes run. `expected` is
/// a model that operations are also compared with.
///
/// ```
/// use mxprobe::session::{Asked, Session, run};
///
/// let session = Session {
///     asked: Asked::of_model(&mxprobe_models::load("v100")?),
///     operations: vec!["mma.m8n8k4.f32.f16.f16.f32".into()],
///     arguments: Vec::new(),
///     stop: &|| None,
///     progress: &mut |_, _, _| {},
/// };
/// let report = run(session, &["alignment.fraction_bits".into()], None)?;
/// assert!(report.operations[0].finding("alignment.fraction_bits").is_some_and(|finding| finding.is(23)));
/// # Ok::<(), mxprobe_api::Error>(())
/// ```
///
/// # Errors
/// If no operation of the device matches the patterns. Errors of the device go into the report.
pub fn run(mut session: Session<'_>, probes: &[String], expected: Option<Expected>) -> Result<Report, Error> {
    let listed = session.listed();
    let operations = session.chosen(&patterns::asked(&session.operations, &listed))?;
    let plan = Plan {
        operations: operations.iter().map(|operation| operation.id.clone()).collect(),
        patterns: session.operations.clone(),
        probes: probes.to_vec(),
        points: None,
    };
    let start = Instant::now();
    let mut report = begin(&listed, plan, &session.arguments);
    let wanted = probes.to_vec();
    let ask =
        move |device: &dyn Device, id: &OperationId, _: &dyn Fn(&str)| probe(device, id, &wanted, expected.as_ref());
    let missing = |operation: &OperationRecord, ending, reason: &str| {
        Some(OperationReport::without_answer(operation, ending, reason))
    };
    let (found, interrupted) = session.each(&operations, ask, &missing);
    found.into_iter().flatten().for_each(|operation| report.put(operation));
    report.time.elapsed_since(start, 0);
    report.time.interrupted = interrupted;
    report.sum_up();
    Ok(report)
}

/// Identifies operations of a device; also returns a model of the identified ones, called `name`, if there are any.
///
/// # Errors
/// If no operation of the device matches the patterns. Errors of the device go into the report.
pub fn identify(
    mut session: Session<'_>,
    effort: Effort,
    name: &str,
) -> Result<(IdentificationReport, Option<Model>), Error> {
    let listed = session.listed();
    let operations = session.chosen(&patterns::operations(&session.operations, &listed))?;
    let start = Instant::now();
    let mut report = IdentificationReport {
        schema: IDENTIFICATION_SCHEMA.into(),
        tool: this_tool(&session.arguments),
        time: Time::starting(),
        host: Host::this(),
        device: listed.device.clone(),
        model: None,
        nan: effort.nan,
        request: Some(Request::new(operations.iter().map(|operation| operation.id.clone()), effort.seed)),
        resumed: Vec::new(),
        operations: Vec::new(),
    };
    let effort =
        Effort { threads: threads_each(session.asked.several, operations.len()).min(effort.threads), ..effort };
    let ask = move |device: &dyn Device, id: &OperationId, progress: &dyn Fn(&str)| {
        identify_one(device, id, effort, progress)
    };
    let missing = |operation: &OperationRecord, ending, reason: &str| -> IdentifiedOperation {
        unidentified(&operation.id, &unanswered(ending, reason), Duration::ZERO)
    };
    let (found, interrupted) = session.each(&operations, ask, &missing);
    let mut model = IdentifiedModel::new(&listed, name);
    for operation in &found {
        model.add(operation)?;
    }
    report.operations = found;
    report.time.elapsed_since(start, 0);
    report.time.interrupted = interrupted;
    let model = if model.is_empty() { None } else { Some(model.model()?) };
    Ok((report, model))
}

/// Compares operations of a device with those of a model, called `name`, bit for bit; without patterns, all operations
/// that both have.
///
/// # Errors
/// If the device or the model lacks an operation that the patterns select. Errors of the device go into the report.
pub fn verify(
    mut session: Session<'_>,
    model: &Model,
    name: &str,
    comparison: Comparison,
) -> Result<VerificationReport, Error> {
    let listed = session.listed();
    let asked = session.chosen(&patterns::operations(&session.operations, &listed))?;
    let lacks = |operation: &&OperationRecord| !model.operations.contains_key(&operation.id);
    let operations: Vec<OperationRecord> = asked.iter().filter(|operation| !lacks(operation)).cloned().collect();
    if let Some(missing) = asked.iter().find(lacks)
        && (operations.is_empty() || !session.operations.is_empty())
    {
        return Err(Error::invalid(format!("the model `{name}` has no operation {}", missing.id)));
    }
    let start = Instant::now();
    let nan: NanBits = comparison.nan;
    let mut report = VerificationReport {
        schema: VERIFICATION_SCHEMA.into(),
        tool: this_tool(&session.arguments),
        time: Time::starting(),
        host: Host::this(),
        device: listed.device.clone(),
        model: name.to_owned(),
        nan,
        request: Some(Request {
            count: Some(comparison.count),
            model_sha256: Some(Request::digest(&model.to_toml())),
            ..Request::new(operations.iter().map(|operation| operation.id.clone()), comparison.seed)
        }),
        resumed: Vec::new(),
        operations: Vec::new(),
    };
    let model = model.clone();
    let ask = move |device: &dyn Device, id: &OperationId, progress: &dyn Fn(&str)| {
        verify_one(device, id, &model, comparison, &|dots| progress(&format!("{id}: {dots} dots")))
    };
    let missing = |operation: &OperationRecord, ending, reason: &str| -> VerifiedOperation {
        unverified(&operation.id, &unanswered(ending, reason))
    };
    let (found, interrupted) = session.each(&operations, ask, &missing);
    report.operations = found;
    report.time.elapsed_since(start, 0);
    report.time.interrupted = interrupted;
    Ok(report)
}
