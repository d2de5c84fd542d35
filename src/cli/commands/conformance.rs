//! `conformance`: what is wrong with a device, or with a program that speaks the device protocol, in the order in which
//! its author encounters it.

use std::time::Duration;

use crate::{
    isolate::{PROGRAM_CHECKS, check_program},
    report::{Block, Cell, Layout, Outcome as Ending, Page, Row, Show, Tone, to_json},
    scalars,
};
use mxprobe_api::{Device, OperationId};
use mxprobe_conformance::{ABILITY_CHECKS, CHECKS, Violation, check_operation, check_scalar};
use serde::Serialize;

use crate::cli::{
    arguments::{Conformance, Screen},
    choose::{
        limits::Limits,
        process, program,
        reach::{Isolation, reach},
        select,
        target::Search,
    },
    commands::each::{self, Listener},
    failure::{Failure, INTERRUPTED, NO, Outcome},
    io::{interrupt::Interrupt, output, progress::Progress},
};

/// The time limit for a request that computes nothing.
const REQUEST: Duration = Duration::from_secs(60);

/// Checks a device.
pub(crate) fn conformance(arguments: &Conformance, screen: Screen) -> Outcome {
    let interrupt = Interrupt::listen();
    let limits = Limits::new(arguments.reach.timeout, None, interrupt);
    let mut found =
        CheckedDevice { device: arguments.device.clone(), name: None, program: Vec::new(), operations: Vec::new() };
    if let Some(starts) = program::starts_of(&arguments.device)? {
        let stop = limits.clone();
        let program = process::of(starts, REQUEST.min(limits.request), screen.aloud, move || stop.stop());
        found.program = check_program(&program).into_iter().zip(PROGRAM_CHECKS).map(Into::into).collect();
    }
    let mut interrupted = limits.interrupt.is_set();
    if !interrupted && found.program.iter().all(|check| check.found.is_none()) {
        let target = each::one_target(&arguments.device, &Search::by(&arguments.reach, &arguments.op))?;
        found.name = Some(target.listed.device.name.clone());
        let asked = select::asked(&arguments.op, &target.listed);
        if asked.is_empty() {
            return Err(select::no_operation(&arguments.op, &[&target.listed]));
        }
        let ids: Vec<OperationId> = asked.into_iter().map(|operation| operation.id.clone()).collect();
        let isolation = Isolation { wanted: !arguments.reach.no_isolation, forward_stderr: screen.aloud };
        let mut progress = Progress::new(screen, ids.len());
        progress.begin(each::steps(&target.selector, &ids));
        let mut heard = Heard { found: &mut found, progress };
        interrupted = each::each(reach(&target, isolation, &limits), &ids, &limits, ask, &mut heard)?;
    }
    let holds = found.holds();
    output::show(&found, arguments.format.into(), screen.for_lines())?;
    Ok(if interrupted {
        INTERRUPTED
    } else if holds {
        0
    } else {
        NO
    })
}

fn ask(device: &dyn Device, id: &OperationId, _: &dyn Fn(&str)) -> Checked {
    let violations = match device.operations().get(id) {
        Some(operation) => check_operation(device, operation),
        None => scalars::named(device, id).map(|scalar| check_scalar(device, scalar)).unwrap_or_default(),
    };
    Checked { id: id.clone(), violations: causes(&violations).map(Check::from).collect(), unasked: None }
}

/// Filters out violations caused by an earlier one: a device that died once gives the same error to every later
/// request.
fn causes(violations: &[Violation]) -> impl Iterator<Item = &Violation> {
    let cause = |violation: &Violation| violation.found.split_once(": ").map(|(_, cause)| cause.to_owned());
    violations.iter().enumerate().filter_map(move |(at, violation)| {
        let known = cause(violation)
            .is_some_and(|own| violations[..at].iter().any(|before| cause(before).as_ref() == Some(&own)));
        (!known).then_some(violation)
    })
}

/// The results for a device.
#[derive(Serialize)]
struct CheckedDevice {
    device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The checks of the program that provides the device, if another program does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    program: Vec<Check>,
    operations: Vec<Checked>,
}

/// A check, and the violation found if it does not hold.
#[derive(Serialize)]
struct Check {
    name: &'static str,
    /// The requirement.
    wanted: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<String>,
}

/// The violations of an operation.
#[derive(Serialize)]
struct Checked {
    id: OperationId,
    violations: Vec<Check>,
    /// Why it was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    unasked: Option<String>,
}

impl From<(Option<String>, (&'static str, &'static str))> for Check {
    fn from((found, (name, wanted)): (Option<String>, (&'static str, &'static str))) -> Self {
        Self { name, wanted, found }
    }
}

impl From<&Violation> for Check {
    fn from(violation: &Violation) -> Self {
        let known = CHECKS.iter().chain(ABILITY_CHECKS).find(|(name, _)| *name == violation.check);
        let wanted = known.map_or("", |(_, wanted)| *wanted);
        Self { name: violation.check, wanted, found: Some(violation.found.clone()) }
    }
}

impl CheckedDevice {
    fn holds(&self) -> bool {
        self.program.iter().all(|check| check.found.is_none())
            && self.operations.iter().all(|of| of.violations.is_empty() && of.unasked.is_none())
    }
}

/// Collects the results of each operation.
struct Heard<'a> {
    found: &'a mut CheckedDevice,
    progress: Progress,
}

impl Listener<Checked> for Heard<'_> {
    type Error = Failure;

    fn answered(&mut self, checked: Checked) -> Result<(), Failure> {
        self.found.operations.push(checked);
        self.progress.step();
        Ok(())
    }

    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Failure> {
        let unasked = Some(each::unanswered(ending, reason));
        self.answered(Checked { id: id.clone(), violations: Vec::new(), unasked })
    }
}

impl Show for CheckedDevice {
    fn page(&self, _: bool) -> Page {
        let title = self.name.as_ref().map_or_else(|| self.device.clone(), |name| format!("{}  {name}", self.device));
        let mut blocks: Vec<Block> = Block::titled(1, &title).into();
        if !self.program.is_empty() {
            let unasked = PROGRAM_CHECKS.iter().skip(self.program.len());
            let unasked = unasked.map(|(name, wanted)| line(name, Tone::Muted, "not asked", wanted));
            blocks.push(table(self.program.iter().map(Check::row).chain(unasked)));
        }
        for checked in &self.operations {
            blocks.push(Block::Gap);
            blocks.extend(Block::titled(2, checked.id.to_string()));
            blocks.push(match &checked.unasked {
                Some(reason) => Block::Words(Tone::Failure, reason.clone()),
                None if checked.violations.is_empty() => Block::words("nothing is wrong"),
                None => table(checked.violations.iter().map(Check::row)),
            });
        }
        Page { title, blocks }
    }

    fn json(&self) -> String {
        to_json(self)
    }
}

impl Check {
    fn row(&self) -> Row {
        match &self.found {
            None => line(self.name, Tone::Plain, "holds", self.wanted),
            Some(found) => line(self.name, Tone::Failure, found, &format!("wanted: {}", self.wanted)),
        }
    }
}

fn table(rows: impl Iterator<Item = Row>) -> Block {
    Block::Inset(vec![Block::laid_out(Layout::Hanging, ["check", "result"], rows)])
}

fn line(name: &str, tone: Tone, result: &str, wanted: &str) -> Row {
    Row { tone, ..Row::plain(vec![Cell::code(name), Cell::words(format!("{result}: {wanted}"))]) }
}
