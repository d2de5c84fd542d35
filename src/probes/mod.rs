//! The questions, one file each, and the order in which they are asked.
//!
//! A probe asks a [`Subject`] (an operation of a device) and answers with findings. What one question finds the next ones
//! build on (`facts`): no probe uses a constant that is right for one alignment width only, and none knows a vendor.

mod accumulator;
mod alignment;
mod below;
mod blocks;
mod facts;
pub(crate) mod finding;
mod integers;
mod monotone;
mod number;
mod once;
mod order;
mod position;
mod products;
mod rounding;
mod scales;
mod specials;
mod steps;
mod subject;
mod subnormals;
mod sums;
mod tree;

use std::{collections::BTreeMap, time::Instant};

use mxprobe_api::{Device, Error, Issued, Operation, execute, self_test};

pub use number::Number;
pub use subject::{Leaf, Subject};
pub use tree::{Joint, Tree};

use crate::{
    report::{Finding, OperationReport},
    scalars,
};
use facts::Facts;

/// The probes: the name that findings carry, and what is asked; in the order they are asked.
pub const PROBES: &[(&str, &str)] = &[
    ("self_test", "Do small integers, exact in every format, come back right at every position?"),
    ("determinism", "Does the same input give the same bits again?"),
    ("position", "Does the same dot give the same bits at every position of the tile?"),
    ("independence", "Do other rows and columns leave a result alone?"),
    ("subnormals.a", "Are subnormals of A read, or taken as zero (DAZ)?"),
    ("subnormals.b", "Are subnormals of B read, or taken as zero (DAZ)?"),
    ("subnormals.c", "Are subnormals of C read and returned?"),
    (
        "order.tree",
        "Which terms are added at once, and in what order are blocks and c joined? Nested lists of k and c.",
    ),
    ("order.blocks", "Which products join c's running sum together, step by step?"),
    ("order.products_at_once", "How many products does the widest single addition take?"),
    ("alignment.fraction_bits", "How many bits below the largest exponent survive when terms are aligned?"),
    ("alignment.below", "What becomes of the bits that are shifted out: truncated, floored, rounded, kept as sticky?"),
    ("alignment.c_fraction_bits", "How many bits of c survive beside large products?"),
    ("rounding.fraction_bits", "How many fraction bits does the result really have?"),
    ("rounding.result", "In which direction is the result rounded?"),
    ("rounding.once", "Is a narrow result rounded once, or by way of a wider one?"),
    ("rounding.between_blocks", "How is the sum of one block rounded before the next block?"),
    ("products.bits_read_a", "How many fraction bits of A's register are read, and is the rest cut or rounded?"),
    ("products.bits_read_b", "How many fraction bits of B's register are read, and is the rest cut or rounded?"),
    ("products.exact", "Are products exact, or rounded before they are added?"),
    ("products.exponent", "Is a product of significand 2 or more renormalised before it is aligned?"),
    ("products.overflow", "Does a product beyond the result's range become infinity although the sum is within it?"),
    ("normalisation", "Is a sum normalised after each addition, or once?"),
    ("carry", "Are there enough bits above the largest exponent for the largest sum?"),
    ("monotone", "Can a larger c give a smaller result?"),
    ("accumulator.range_within_block", "May a sum exceed the result's range within a block?"),
    ("accumulator.range_between_blocks", "May a sum exceed the result's range between blocks?"),
    (
        "accumulator.smallest_products",
        "Are products kept that are smaller than the smallest result, where their sum is not?",
    ),
    ("subnormals.d", "Are subnormal results kept, or flushed to zero (FTZ)?"),
    ("subnormals.tininess", "Where results are flushed: is a result tiny by its exact value, or once it is rounded?"),
    ("specials.nan", "Which bits does a NaN result have, and whose payload?"),
    ("specials.infinity", "Do infinities pass, and what does overflow give?"),
    ("specials.zero", "Which sign has a zero result?"),
    ("integers.exact", "Are integer sums exact?"),
    ("integers.overflow", "Do integer sums wrap or saturate?"),
    ("integers.saturation_stage", "Does the whole sum saturate, or each step?"),
    ("scales.value", "Do block scales multiply exactly?"),
    ("scales.cover", "Which k does one block scale cover?"),
    ("scales.specials", "What do a zero and a NaN scale give?"),
    ("instruction", "Which instruction does the driver's code issue?"),
    ("emulation", "Is it the matrix unit at all, or an emulation on other units?"),
    ("scalar_unit", "Does the device's scalar unit give the same bits, added one way or another?"),
    // Of scalar arithmetic.
    ("function.add", "In which direction is a sum rounded, and is it correctly rounded?"),
    ("function.subtract", "In which direction is a difference rounded, and is it correctly rounded?"),
    ("function.multiply", "In which direction is a product rounded, and is it correctly rounded?"),
    ("function.divide", "In which direction is a quotient rounded, and is it correctly rounded?"),
    ("function.square_root", "In which direction is a square root rounded, and is it correctly rounded?"),
    ("function.fma", "Is the fused multiply-add fused, and correctly rounded?"),
    ("function.multiply_add", "Does the compiler contract a·b + c to a fused multiply-add?"),
    ("function.convert", "In which direction does a conversion round, and is it correctly rounded?"),
    ("function.dot4", "Are the steps of a dot product of four terms those that its source says?"),
    ("dot4.error", "How far are the serial, the FMA and the pairwise dot product from the exact value?"),
    ("mode", "Does the arithmetic do what its mode asks for?"),
    ("subnormals.inputs", "Are subnormal inputs read, or taken as zero (DAZ)?"),
    ("subnormals.results", "Are subnormal results kept, or flushed to zero (FTZ)?"),
    ("nan.invalid", "Which bits does the NaN of an invalid operation have?"),
    ("nan.operand", "Which NaN operand's payload is in the result?"),
];

/// Asks the questions about one operation; `wanted` tells by its name which findings to keep (all, if `None`).
///
/// Never fails: a device error becomes a finding whose outcome is `failed`, and what comes after a lost device is
/// `skipped`. The exact layout self-test comes first; where it fails nothing else is asked.
#[must_use]
pub fn probe(device: &dyn Device, operation: &Operation, wanted: Option<&dyn Fn(&str) -> bool>) -> OperationReport {
    let started = Instant::now();
    let subject = Subject::new(device, operation);
    let mut findings = Vec::new();
    match self_test(operation, |batch| execute(device, operation, batch)) {
        Ok(_) => {
            let words = "small integers come back right at every position".to_owned();
            findings.push(Finding::measured("self_test", true.into(), words));
            ask_all(&subject, &mut findings);
            findings.extend(scalars::beside(&subject));
        }
        Err(error) => findings.push(Finding::failed("self_test", error.to_string())),
    }
    findings.extend(instructions(device, operation));
    if let Some(wanted) = wanted {
        findings.retain(|finding| wanted(&finding.probe) || finding.outcome == crate::report::Outcome::Failed);
    }
    OperationReport {
        operation: operation.into(),
        kernel_sha256: device.code().and_then(|code| code.kernel_hash(operation)),
        findings,
        dots: subject.asked(),
        duration_ns: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
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
    let found = findings.iter().find(|finding| finding.probe == "order.tree");
    let statement =
        found.map_or_else(String::new, |finding| finding.reason.clone().unwrap_or_else(|| finding.statement.clone()));
    let blocks = findings.iter().find(|finding| finding.probe == "order.blocks");
    let blocks = blocks.and_then(|finding| serde_json::from_value(finding.value.clone()?).ok()).unwrap_or_default();
    Ok(Summation { tree: facts.structure.and_then(|structure| structure.tree), blocks, statement })
}

/// Asks whether the same dot gives the same bits again, at every position, and whatever stands beside it: a finding each,
/// whose value is `true` or `false`.
///
/// # Errors
/// What the device reports.
pub fn steadiness(subject: &Subject<'_>) -> Result<Vec<Finding>, Error> {
    let mut found = Vec::new();
    position::ask(subject, &mut found)?;
    Ok(found)
}

/// Some probes that are asked together: one needs what another finds, or one batch answers several.
struct Question {
    /// The probes whose findings it may make.
    probes: &'static [&'static str],
    /// Asks them, and adds each finding as soon as it is known.
    ask: fn(&Subject<'_>, &mut Facts, &mut Vec<Finding>) -> Result<(), Error>,
}

/// Asked first: an answer that depends on where or when it is asked tells nothing of the arithmetic.
const POSITION: Question = Question {
    probes: &["determinism", "position", "independence"],
    ask: |subject, _, found| position::ask(subject, found),
};

const FLOATING: [Question; 9] = [
    Question {
        probes: &["subnormals.a", "subnormals.b", "subnormals.c"],
        ask: |subject, _, found| subnormals::ask_inputs(subject, found),
    },
    Question { probes: &["order.tree", "order.blocks", "order.products_at_once"], ask: order::ask },
    Question {
        probes: &["alignment.fraction_bits", "alignment.below", "alignment.c_fraction_bits"],
        ask: alignment::ask,
    },
    Question {
        probes: &["rounding.fraction_bits", "rounding.result", "rounding.once", "rounding.between_blocks"],
        ask: rounding::ask,
    },
    Question {
        probes: &[
            "products.bits_read_a",
            "products.bits_read_b",
            "products.exact",
            "products.exponent",
            "products.overflow",
        ],
        ask: products::ask,
    },
    Question { probes: &["normalisation", "carry", "monotone"], ask: sums::ask },
    Question { probes: &["subnormals.d", "subnormals.tininess"], ask: subnormals::ask_results },
    Question {
        probes: &[
            "accumulator.range_within_block",
            "accumulator.range_between_blocks",
            "accumulator.smallest_products",
        ],
        ask: |subject, facts, found| accumulator::ask(subject, facts, found),
    },
    Question {
        probes: &["specials.nan", "specials.infinity", "specials.zero"],
        ask: |subject, _, found| specials::ask(subject, found),
    },
];

const INTEGERS: [Question; 1] = [Question {
    probes: &["integers.exact", "integers.overflow", "integers.saturation_stage"],
    ask: |subject, _, found| integers::ask(subject, found),
}];

const SCALES: Question = Question {
    probes: &["scales.value", "scales.cover", "scales.specials"],
    ask: |subject, _, found| scales::ask(subject, found),
};

/// Asks every question that concerns the operation. What a failed question had found stays; its other probes fail with the
/// same reason, and those of later questions are skipped if the device is gone.
fn ask_all(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let own: &[Question] = if subject.id().is_integer() { &INTEGERS } else { &FLOATING };
    let scales = subject.id().block_scale().map(|_| &SCALES);
    let mut facts = Facts::default();
    let mut stop = None;
    for question in [&POSITION].into_iter().chain(own).chain(scales) {
        if let Some(reason) = stop {
            findings.extend(question.probes.iter().map(|probe| Finding::skipped(probe, reason)));
            continue;
        }
        let mut found = Vec::new();
        let asked = (question.ask)(subject, &mut facts, &mut found);
        if question.probes == POSITION.probes && found.iter().any(|finding| finding.is(false)) {
            stop = Some("the same dot does not always give the same bits");
        }
        findings.extend(found);
        if let Err(error) = asked {
            stop = finding::settle(findings, question.probes, &error).or(stop);
        }
    }
}

/// Which instruction runs, and whether it is the matrix unit's.
fn instructions(device: &dyn Device, operation: &Operation) -> [Finding; 2] {
    let names = ["instruction", "emulation"];
    let both = |finding: &dyn Fn(&str) -> Finding| names.map(finding);
    match (device.code().map_or(Ok(None), |code| code.issued(operation)), &operation.instruction) {
        (Ok(Some(issued)), _) => [issued_instructions(&issued), emulation(&issued)],
        (Ok(None), Some(instruction)) => {
            both(&|name| Finding::skipped(name, format!("not read from the device; the backend issues {instruction}")))
        }
        (Ok(None), None) => both(&|name| Finding::unsupported(name, "the driver does not show its code")),
        (Err(error), _) if error.is_unsupported() => both(&|name| Finding::unsupported(name, error.to_string())),
        (Err(error), _) => both(&|name| Finding::failed(name, error.to_string())),
    }
}

fn counted(instructions: &BTreeMap<String, usize>) -> String {
    instructions.iter().map(|(name, count)| format!("{count} × {name}")).collect::<Vec<_>>().join(", ")
}

fn issued_instructions(issued: &Issued) -> Finding {
    let words = if issued.matrix.is_empty() {
        "the driver's code has no matrix instruction".to_owned()
    } else {
        counted(&issued.matrix)
    };
    Finding::measured("instruction", serde_json::json!(issued.matrix), words)
}

/// An emulation is shown by what stands in the code instead.
fn emulation(issued: &Issued) -> Finding {
    let is_emulated = issued.is_emulated();
    let unit = issued.unit.as_deref().map_or_else(String::new, |unit| format!(" {unit}"));
    let mut words = match (is_emulated, issued.matrix.is_empty()) {
        (false, _) => format!("the matrix unit{unit} runs it"),
        (true, true) => format!("an emulation: the matrix instruction{unit} is not in the code"),
        (true, false) => format!("an emulation: {} in place of one{unit}", counted(&issued.matrix)),
    };
    if is_emulated && !issued.others.is_empty() {
        words.push_str(&format!(", beside {}", counted(&issued.others)));
    }
    if !issued.routines.is_empty() {
        words.push_str(&format!("; it calls {}", issued.routines.join(", ")));
    }
    if let Some(digest) = &issued.code_sha256 {
        words.push_str(&format!("; machine code of SHA-256 {digest}"));
    }
    Finding::measured("emulation", is_emulated.into(), words)
}
