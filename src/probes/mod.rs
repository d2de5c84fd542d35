//! The questions, one file each, and the order in which they are asked.
//!
//! A probe asks a [`Subject`] (an operation of a device) and answers with findings. What one question finds the next ones
//! build on (`facts`): no probe uses a constant that is right for one alignment width only, and none knows a vendor.

mod accumulator;
mod alignment;
mod ask;
mod below;
mod blocks;
mod code;
mod facts;
mod integers;
mod monotone;
mod number;
mod once;
mod order;
mod position;
mod products;
mod rounding;
mod scalar_unit;
mod scales;
mod self_test;
mod specials;
mod steps;
mod subject;
mod subnormals;
mod sums;
mod threads;
mod tree;
mod zero_product;

use std::time::Instant;

use mxprobe_api::{Device, Error, Operation};

pub use number::Number;
pub use subject::{Leaf, Subject};
pub use tree::{Joint, Tree};

use crate::{
    findings::{self, AppliesTo, Finding, Outcome, Probed, settle},
    scalars,
};
use ask::{Ask, Probe, Question};
use facts::Facts;

/// The questions of matrix operations, in the order in which they are asked.
const PROBES: &[&Probe] = &[
    &self_test::PROBE,
    &position::DETERMINISM,
    &position::POSITION,
    &position::INDEPENDENCE,
    &subnormals::A,
    &subnormals::B,
    &subnormals::C,
    &order::TREE,
    &steps::BLOCKS,
    &steps::PRODUCTS_AT_ONCE,
    &alignment::FRACTION_BITS,
    &below::PROBE,
    &alignment::C_FRACTION_BITS,
    &zero_product::PROBE,
    &rounding::FRACTION_BITS,
    &rounding::RESULT,
    &once::PROBE,
    &rounding::BETWEEN_BLOCKS,
    &products::BITS_READ_A,
    &products::BITS_READ_B,
    &products::EXACT,
    &products::EXPONENT,
    &products::OVERFLOW,
    &sums::NORMALISATION,
    &sums::CARRY,
    &monotone::PROBE,
    &subnormals::D,
    &subnormals::TININESS,
    &accumulator::RANGE_WITHIN_BLOCK,
    &accumulator::RANGE_BETWEEN_BLOCKS,
    &accumulator::SMALLEST_PRODUCTS,
    &specials::NAN,
    &specials::INFINITY,
    &specials::ZERO,
    &integers::EXACT,
    &integers::OVERFLOW,
    &integers::SATURATION_STAGE,
    &scales::VALUE,
    &scales::COVER,
    &scales::SPECIALS,
    &threads::PROBE,
    &scalar_unit::PROBE,
    &code::INSTRUCTION,
    &code::EMULATION,
];

/// The probe that finds the summation tree, and that which says it step by step.
pub(crate) const ORDER_TREE: &str = steps::TREE;
pub(crate) const ORDER_BLOCKS: &str = steps::BLOCKS.name;

/// Every probe, of matrix operations and then of scalar arithmetic, each name once, in the order in which they are asked.
pub fn all() -> impl Iterator<Item = &'static findings::Probe> {
    let of_matrices = PROBES.iter().map(|probe| *probe as &findings::Probe);
    let is_new = |name: &str| PROBES.iter().all(|probe| probe.name != name);
    let of_scalars = scalars::PROBES.iter().filter(move |probe| is_new(probe.name));
    of_matrices.chain(of_scalars.map(|probe| *probe as &findings::Probe))
}

/// The probe of a name.
#[must_use]
pub fn named(name: &str) -> Option<&'static findings::Probe> {
    all().find(|probe| probe.name == name)
}

/// Asks the questions about one operation; `wanted` tells by its name which findings to keep (all, if `None`).
///
/// Never fails: a device error becomes a finding whose outcome is `failed`, and what comes after a lost device is
/// `skipped`. The exact layout self-test comes first; where it fails nothing else is asked.
#[must_use]
pub fn probe(device: &dyn Device, operation: &Operation, wanted: Option<&dyn Fn(&str) -> bool>) -> Probed {
    let started = Instant::now();
    let subject = Subject::new(device, operation);
    let mut findings = Vec::new();
    ask_all(&subject, &mut findings);
    if let Some(wanted) = wanted {
        findings.retain(|finding| wanted(&finding.probe) || finding.outcome == Outcome::Failed);
    }
    Probed {
        operation: operation.clone(),
        kernel_sha256: device.code().and_then(|code| code.kernel_hash(operation)),
        findings,
        dots: subject.asked(),
        duration_ns: crate::clock::elapsed_ns(started),
    }
}

/// The order of summation, as far as it shows.
#[derive(Clone, Debug)]
pub struct Summation {
    /// The tree, where the formats are wide enough to show it.
    pub tree: Option<Tree>,
    /// Products that join c's sum, step by step; empty where not even that shows.
    pub blocks: Vec<Vec<usize>>,
    /// In words; or why it does not show.
    pub statement: String,
}

/// Asks for the order of summation alone, and first what it builds on.
///
/// # Errors
/// What the device reports.
pub fn summation(subject: &Subject<'_>) -> Result<Summation, Error> {
    let mut facts = Facts::default();
    subnormals::ask_inputs(subject, &mut Vec::new())?;
    let mut findings = Vec::new();
    order::ask(subject, &mut facts, &mut findings)?;
    let found = findings.iter().find(|finding| finding.probe == order::TREE.name);
    let statement =
        found.map_or_else(String::new, |finding| finding.reason.clone().unwrap_or_else(|| finding.statement.clone()));
    let (tree, blocks) = facts.structure.map_or_else(Default::default, |structure| (structure.tree, structure.blocks));
    Ok(Summation { tree, blocks, statement })
}

/// The order of summation as values show it that count alone, where smaller ones do not count; `None` if they do.
///
/// # Errors
/// What the device reports.
pub(crate) fn summation_above_floors(subject: &Subject<'_>) -> Result<Option<Tree>, Error> {
    order::heard(subject)
}

/// Asks whether the same dot gives the same bits again, at every position, and whatever stands beside it: a finding each,
/// whose value is `true` or `false`.
///
/// # Errors
/// What the device reports.
pub fn steadiness(subject: &Subject<'_>) -> Result<Vec<Finding>, Error> {
    let mut found = Vec::new();
    position::steadiness(subject, &mut found)?;
    Ok(found)
}

/// Asks every question that concerns the operation. What a failed question had found stays; its other probes fail with the
/// same reason, and those of later questions are skipped if the device is gone.
fn ask_all(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let id = subject.id();
    let concerns = |probe: &&Probe| match probe.applies_to {
        AppliesTo::Every => true,
        AppliesTo::Floating => !id.is_integer(),
        AppliesTo::Integers => id.is_integer(),
        AppliesTo::BlockScales => id.block_scale().is_some(),
        AppliesTo::Scalars => false,
    };
    let probes: Vec<&Probe> = PROBES.iter().copied().filter(concerns).collect();
    let mut facts = Facts::default();
    let mut is_right = true;
    let mut stop = None;
    for probes in probes.chunk_by(|_, next| matches!(next.ask, Ask::Along)) {
        let names: Vec<&str> = probes.iter().map(|probe| probe.name).collect();
        match probes[0].ask {
            Ask::First(ask) => {
                let finding = ask(subject);
                is_right = finding.outcome == Outcome::Measured;
                findings.push(finding);
            }
            Ask::Code(ask) => findings.extend(ask(subject)),
            _ if !is_right => {}
            Ask::Apart(ask) => findings.extend(ask(subject)),
            Ask::Question(ask) => match stop {
                Some(reason) => findings.extend(names.iter().map(|name| Finding::skipped(name, reason))),
                None => stop = ask_one(ask, &names, subject, &mut facts, findings),
            },
            Ask::Along => unreachable!("a question stands before it"),
        }
    }
}

/// Asks one question; why no later one can be asked, if none can.
fn ask_one(
    ask: Question,
    names: &[&str],
    subject: &Subject<'_>,
    facts: &mut Facts,
    findings: &mut Vec<Finding>,
) -> Option<&'static str> {
    let mut found = Vec::new();
    let asked = ask(subject, facts, &mut found);
    findings.extend(found);
    let unsteady = facts.is_unsteady.then_some("the same dot does not always give the same bits");
    asked.err().and_then(|error| settle(findings, names, &error)).or(unsteady)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_stands_once_and_what_is_answered_along_follows_a_question_of_the_same_operations() {
        let names: Vec<&str> = all().map(|probe| probe.name).collect();
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{names:?}");
        for probes in PROBES.chunk_by(|_, next| matches!(next.ask, Ask::Along)) {
            assert!(!matches!(probes[0].ask, Ask::Along), "{}", probes[0].name);
            for probe in probes {
                assert_eq!(probe.applies_to, probes[0].applies_to, "{}", probe.name);
            }
        }
    }

    #[test]
    fn every_function_of_scalar_arithmetic_has_a_probe() {
        use mxprobe_api::{Format, ScalarFunction};

        let functions = ScalarFunction::of_shaders(Format::F32, &Format::ALL).chain(ScalarFunction::FURTHER);
        for function in functions {
            let is_elementary = matches!(function, ScalarFunction::Elementary(_));
            let name = format!("{}.{function}", if is_elementary { "ulp" } else { "function" });
            let group = |probe: &findings::Probe| name == probe.name || name.starts_with(&format!("{}.", probe.name));
            assert!(all().any(group), "{name}");
        }
    }
}
