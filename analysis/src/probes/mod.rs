//! The questions, one file each, and the order in which they are asked.
//!
//! A probe asks a [`Subject`] (an operation of a device) and answers with findings. Later questions build on the
//! findings of earlier ones (`facts`): probes neither use constants that hold for one alignment width only nor depend on
//! the vendor.

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
pub(crate) use order::summation_above_floors;
pub use subject::{Leaf, Subject};
pub use tree::{Joint, Tree};

use crate::{
    findings::{self, AppliesTo, Finding, Outcome, Probed, settle},
    scalars,
};
use ask::{Ask, Probe, Question};
use facts::Facts;

/// The questions about matrix operations, in the order in which they are asked.
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

/// The probe that finds the summation tree.
pub const ORDER_TREE: &str = steps::TREE;

/// The probe that describes the summation tree step by step.
pub const ORDER_BLOCKS: &str = steps::BLOCKS.name;

/// All probes, of matrix operations and then of scalar arithmetic, without duplicates, in the order in which they are
/// asked.
pub fn all() -> impl Iterator<Item = &'static findings::Probe> {
    let of_matrices = PROBES.iter().map(|probe| *probe as &findings::Probe);
    let is_new = |name: &str| PROBES.iter().all(|probe| probe.name != name);
    let of_scalars = scalars::PROBES.iter().filter(move |probe| is_new(probe.name));
    of_matrices.chain(of_scalars.map(|probe| *probe as &findings::Probe))
}

/// The probe with this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static findings::Probe> {
    all().find(|probe| probe.name == name)
}

/// Asks the questions about one operation; `wanted` selects findings by their probe's name (all, if `None`).
///
/// Never fails: a device error becomes a finding with the outcome `failed`, and after a lost device the rest is
/// `skipped`. The exact layout self-test comes first; if it fails, only questions that need no computation follow.
#[must_use]
pub fn probe(device: &dyn Device, operation: &Operation, wanted: Option<&dyn Fn(&str) -> bool>) -> Probed {
    let started = Instant::now();
    let subject = Subject::new(device, operation);
    let (mut findings, _) = findings(&subject);
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

/// The order of summation, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Summation {
    /// The tree, if the formats are wide enough to determine it.
    pub tree: Option<Tree>,
    /// The products that join c's sum, step by step; empty if not even that is known.
    pub blocks: Vec<Vec<usize>>,
    /// A description, or the reason why the order is not known.
    pub statement: String,
}

impl Summation {
    /// The order among these findings and facts; `None` if it was not asked for, or the device failed.
    fn of(findings: &[Finding], facts: Facts) -> Option<Self> {
        let found = findings.iter().find(|finding| finding.probe == order::TREE.name)?;
        if matches!(found.outcome, Outcome::Failed | Outcome::Skipped) {
            return None;
        }
        let statement = found.reason.clone().unwrap_or_else(|| found.statement.clone());
        let structure = facts.structure.map(|structure| (structure.tree, structure.blocks));
        let (tree, blocks) = structure.unwrap_or_default();
        Some(Self { tree, blocks, statement })
    }
}

/// Asks every question that applies to a subject, as [`probe`] does. Returns the findings, and the order of summation if it
/// was asked for and the device did not fail.
pub fn findings(subject: &Subject<'_>) -> (Vec<Finding>, Option<Summation>) {
    let mut findings = Vec::new();
    let facts = ask_all(subject, &mut findings);
    let order = Summation::of(&findings, facts);
    (findings, order)
}

/// Asks only for the order of summation and the questions it depends on.
///
/// # Errors
/// Errors of the device.
pub fn summation(subject: &Subject<'_>) -> Result<Summation, Error> {
    let mut facts = Facts::default();
    subnormals::ask_inputs(subject, &mut Vec::new())?;
    let mut findings = Vec::new();
    order::ask(subject, &mut facts, &mut findings)?;
    Ok(Summation::of(&findings, facts).unwrap_or_default())
}

/// Asks whether the same dot gives the same bits repeatedly, at every position, and whatever the other rows and columns
/// hold: one finding each, whose value is `true` or `false`.
///
/// # Errors
/// Errors of the device.
pub fn steadiness(subject: &Subject<'_>) -> Result<Vec<Finding>, Error> {
    let mut found = Vec::new();
    position::steadiness(subject, &mut found)?;
    Ok(found)
}

/// Asks every question that applies to the operation, and returns what they need of each other. If a question fails, its
/// findings so far are kept, its other probes fail with the same reason, and later questions are skipped if the device is
/// gone.
fn ask_all(subject: &Subject<'_>, findings: &mut Vec<Finding>) -> Facts {
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
            Ask::Along => unreachable!("a question precedes it"),
        }
    }
    facts
}

/// Asks one question; returns the reason to skip all later ones, if there is one.
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
    fn the_order_among_all_findings_is_the_one_that_is_asked_for_alone() {
        for (name, operation) in [
            ("h100", "mma.m16n8k16.f32.f16.f16.f32"),
            ("rdna4", "wmma.m16n16k16.f16.f16.f16.f16.wave32"),
            ("serial", "dot.m1n1k16.f32.f32.f32.f32"),
            // The order does not show.
            ("b200", "tcgen05.m128n8k64.f32.e2m1.e2m1.f32.block32.ue8m0"),
        ] {
            let model = mxprobe_models::shipped().iter().find(|model| model.name == name).unwrap();
            let device = mxprobe_sim::ModelDevice::new(model.clone());
            let operation = &mxprobe_api::Device::operations(&device)[&operation.parse().unwrap()];
            let subject = Subject::new(&device, operation);
            let (findings, order) = super::findings(&subject);
            assert_eq!(findings, probe(&device, operation, None).findings, "{name}");
            let alone = summation(&Subject::new(&device, operation)).unwrap();
            assert_eq!(format!("{:?}", order.unwrap()), format!("{alone:?}"), "{name}");
            assert_eq!(alone.tree.is_some(), name != "b200");
        }
    }

    #[test]
    fn the_order_of_a_long_sum_of_a_narrow_format_is_found_in_parts() {
        let model = mxprobe_models::load("fma-chain").unwrap();
        let device = mxprobe_sim::ModelDevice::new(model);
        let operation = &mxprobe_api::Device::operations(&device)[&"dot.m1n1k64.f16.f16.f16.f16".parse().unwrap()];
        let subject = Subject::new(&device, operation);
        let tree = summation(&subject).unwrap().tree.unwrap();
        // M at every pair of 65 terms, and too little room below it for more than one value at a time.
        assert!(subject.asked() > 100_000, "{}", subject.asked());
        let terms: Vec<Vec<usize>> = (0..64).map(|k| vec![k]).collect();
        assert_eq!((tree.nodes().len(), tree.blocks()), (64, terms));
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
