//! Checks that a report of a unit agrees with the unit's model.

use mxprobe::report::{FindingRecord, OperationReport, Outcome};
use mxprobe_api::{Format, OperationId, Rounding, Subnormals};
use mxprobe_models::{Adder, Choices, Class, Model, NanRules, Output, Plan, Term};

/// The products that are added to c in each step, from the plan.
fn blocks(plan: &Plan) -> Vec<Vec<usize>> {
    fn below(plan: &Plan, term: Term) -> (Vec<usize>, bool) {
        match term {
            Term::Product(k) => (vec![k], false),
            Term::C => (Vec::new(), true),
            Term::PositiveZero => (Vec::new(), false),
            Term::Node(node) => {
                let parts = plan.nodes[node].terms.iter().map(|term| below(plan, *term));
                parts.fold((Vec::new(), false), |(mut products, c), (more, has_c)| {
                    products.extend(more);
                    (products, c || has_c)
                })
            }
        }
    }
    let mut node = plan.nodes.len() - 1;
    let mut steps = Vec::new();
    loop {
        let mut joined = Vec::new();
        let mut next = None;
        let mut ends = false;
        for term in &plan.nodes[node].terms {
            match (term, below(plan, *term)) {
                (Term::Node(inner), (_, true)) => next = Some(*inner),
                (Term::C, _) => ends = true,
                (_, (products, _)) => joined.extend(products),
            }
        }
        joined.sort_unstable();
        if !joined.is_empty() {
            steps.push(joined);
        }
        match next {
            Some(inner) if !ends => node = inner,
            _ => break,
        }
    }
    steps.reverse();
    steps
}

pub(crate) struct Check<'a> {
    pub(crate) report: &'a OperationReport,
    pub(crate) name: String,
    pub(crate) wrong: Vec<String>,
}

impl Check<'_> {
    /// Checks that a finding has this value if it is measured, and that it has not failed.
    pub(crate) fn is(&mut self, probe: &str, wanted: impl Into<serde_json::Value>) {
        let wanted = wanted.into();
        match self.report.finding(probe) {
            Some(FindingRecord { outcome: Outcome::Measured, value: Some(value), .. }) if *value != wanted => {
                self.wrong.push(format!("{}: {probe} is {value}, and the model says {wanted}", self.name));
            }
            Some(FindingRecord { outcome: Outcome::Failed, reason, .. }) => {
                self.wrong.push(format!("{}: {probe} failed: {reason:?}", self.name));
            }
            _ => {}
        }
    }

    pub(crate) fn is_measured(&mut self, probe: &str) {
        let outcome = self.report.finding(probe).map(|finding| (finding.outcome, finding.reason.clone()));
        if !matches!(outcome, Some((Outcome::Measured, _))) {
            self.wrong.push(format!("{}: {probe} is {outcome:?}", self.name));
        }
    }
}

fn rounding_name(rounding: Rounding) -> &'static str {
    match rounding {
        Rounding::NearestEven => "RNE",
        Rounding::TowardZero => "RZ",
        Rounding::Down => "RD",
        Rounding::Up => "RU",
        Rounding::ToOdd => "RO",
    }
}

fn has_subnormals(format: Format) -> bool {
    format.as_float().is_some_and(|float| float.is_signed() && float.fraction_bits > 0)
}

/// Compares a report with the model it came from, one line for each difference.
pub(crate) fn differences(model: &Model, id: &OperationId, report: &OperationReport) -> Vec<String> {
    let mut check = Check { report, name: format!("{} {id}", model.name), wrong: Vec::new() };
    check.is("self_test", true);
    check.is("determinism", true);
    check.is("position", true);
    check.is("independence", true);
    for finding in &report.findings {
        let proven = finding.outcome != Outcome::Measured
            || !finding.evidence.is_empty()
            || ["self_test", "order.blocks", "order.products_at_once", "instruction", "emulation"]
                // With one product and c there is only one tree.
                .contains(&finding.probe.as_str())
            || id.shape.k == 1 && finding.probe == "order.tree";
        if !proven {
            check.wrong.push(format!("{}: {} has no evidence", check.name, finding.probe));
        }
    }
    let (unit, plan) = model.plan(id).expect("an operation of the model");
    let adder = |node: usize| -> &Adder { &model.adders[plan.nodes[node].adder] };
    let last = adder(plan.nodes.len() - 1);
    match last.output {
        Output::Wide => unreachable!("a model's last adder gives a format"),
        Output::Integer { saturates, .. } => {
            check.is("integers.exact", true);
            check.is("integers.overflow", if saturates { "saturates" } else { "wraps" });
        }
        Output::Float { format, fraction_bits, rounding, subnormals, .. } => {
            for (operand, probe, flushed) in
                [(id.a, "subnormals.a", unit.flush.a), (id.b, "subnormals.b", unit.flush.b)]
            {
                if has_subnormals(operand) {
                    check.is(probe, if flushed { "zero" } else { "kept" });
                    check.is_measured(probe);
                }
            }
            let flushes = subnormals != Subnormals::Keep;
            check.is("subnormals.c", if unit.flush.c || flushes { "zero" } else { "kept" });
            check.is("order.blocks", serde_json::json!(blocks(&plan)));
            check.is("rounding.result", rounding_name(rounding));
            check.is("rounding.fraction_bits", fraction_bits);
            check.is(
                "subnormals.tininess",
                match subnormals {
                    Subnormals::FlushBeforeRounding => "before rounding",
                    _ => "after rounding",
                },
            );
            if let NanRules { operand: Some(operand), value: Some(value), invalid, .. } = last.nan
                && operand == value
                && value == invalid
                && let Some(finding) = report.finding("specials.nan").and_then(|finding| finding.value.as_ref())
            {
                let all =
                    finding.as_object().is_some_and(|bits| bits.values().all(|bits| *bits == format.hex(invalid)));
                if !all {
                    check.wrong.push(format!("{}: specials.nan is {finding}", check.name));
                }
            }
            // The first adder with two terms or more that takes a product.
            let first = plan
                .nodes
                .iter()
                .find(|node| node.terms.len() >= 2 && node.terms.iter().any(|term| matches!(term, Term::Product(_))));
            // A group that is summed exactly loses nothing; the adder of its sum may.
            let of_first = first.map(|node| &model.adders[node.adder]).filter(|adder| !adder.grid.is_empty());
            let grid = of_first
                .or_else(|| {
                    plan.nodes.iter().map(|node| &model.adders[node.adder]).find(|adder| !adder.grid.is_empty())
                })
                .and_then(|adder| {
                    let rule = adder.grid.iter().find(|rule| matches!(rule.terms, Class::All | Class::Products))?;
                    Some((adder, rule.fraction_bits))
                });
            match (grid, report.finding("alignment.fraction_bits").and_then(|finding| finding.value.as_ref())) {
                (Some((adder, bits)), Some(value)) => {
                    // Formats too narrow to reach the grid give a lower bound.
                    match value.get("exact_over").and_then(serde_json::Value::as_i64) {
                        Some(seen) if seen <= i64::from(bits) => {}
                        _ => check.is("alignment.fraction_bits", bits),
                    }
                    check.is("alignment.below", adder.below.choice().name);
                }
                // For two terms, a floored sum and an exact sum rounded down are the same.
                (None, Some(value)) if value.is_number() && !matches!(rounding, Rounding::Down | Rounding::Up) => {
                    check.wrong.push(format!("{}: alignment keeps {value} bits, and the model loses none", check.name));
                }
                _ => {}
            }
            if let Some(carry) = report.finding("carry").and_then(|finding| finding.value.as_ref()) {
                let enough = model.adders.iter().all(|adder| adder.carry_bits.is_none());
                if carry["enough"] != enough {
                    check.wrong.push(format!("{}: carry is {carry}", check.name));
                }
            }
        }
    }
    check.wrong
}
