//! Probing a model finds the model's own parameters: every shipped unit, and units that nobody has.
#![allow(clippy::print_stdout, reason = "a test says what it ran")]

use std::collections::BTreeSet;

use mxprobe::{
    probes::probe,
    report::{Finding, OperationReport, Outcome},
};
use mxprobe_api::{Device, Format, OperationId, Rounding, Subnormals};
use mxprobe_sim::{Adder, Below, Class, Model, ModelDevice, NanRules, Output, Plan, Term, shipped};

/// One operation of every unit for each k and set of formats; among shapes that compute alike, the smallest.
fn operations(model: &Model) -> Vec<OperationId> {
    let mut seen = BTreeSet::new();
    let mut ids: Vec<&OperationId> = model.operations.keys().collect();
    ids.sort_by_key(|id| u64::from(id.shape.m) * u64::from(id.shape.n));
    let mut chosen = Vec::new();
    for id in ids {
        let unit = model.units.iter().position(|unit| unit.operations.contains(id));
        if seen.insert((unit, id.shape.k, id.d, id.a, id.b, id.c, id.block_scale().map(|scale| scale.block))) {
            chosen.push(id.clone());
        }
    }
    chosen
}

/// The products that join c step by step, read off the plan.
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

struct Check<'a> {
    report: &'a OperationReport,
    name: String,
    wrong: Vec<String>,
}

impl Check<'_> {
    /// Where the finding is measured it has this value.
    fn is(&mut self, probe: &str, wanted: impl Into<serde_json::Value>) {
        let wanted = wanted.into();
        match self.report.finding(probe) {
            Some(Finding { outcome: Outcome::Measured, value: Some(value), .. }) if *value != wanted => {
                self.wrong.push(format!("{}: {probe} is {value}, and the model says {wanted}", self.name));
            }
            Some(Finding { outcome: Outcome::Failed, reason, .. }) => {
                self.wrong.push(format!("{}: {probe} failed: {reason:?}", self.name));
            }
            _ => {}
        }
    }

    fn is_measured(&mut self, probe: &str) {
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
fn differences(model: &Model, id: &OperationId, report: &OperationReport) -> Vec<String> {
    let mut check = Check { report, name: format!("{} {id}", model.name), wrong: Vec::new() };
    check.is("self_test", true);
    check.is("determinism", true);
    check.is("position", true);
    check.is("independence", true);
    for finding in &report.findings {
        let proven = finding.outcome != Outcome::Measured
            || !finding.evidence.is_empty()
            || ["self_test", "order.blocks", "order.products_at_once", "instruction", "emulation"]
                // One product and c: there is one tree.
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
            // The adder that products meet first, with two terms or more.
            let first = plan
                .nodes
                .iter()
                .find(|node| node.terms.len() >= 2 && node.terms.iter().any(|term| matches!(term, Term::Product(_))));
            // A group that is summed exactly loses nothing; what takes its sum may.
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
                    // Formats too narrow to reach the grid show a lower bound.
                    match value.get("exact_over").and_then(serde_json::Value::as_i64) {
                        Some(seen) if seen <= i64::from(bits) => {}
                        _ => check.is("alignment.fraction_bits", bits),
                    }
                    check.is(
                        "alignment.below",
                        match adder.below {
                            Below::Truncate => "truncate",
                            Below::Floor => "floor",
                            Below::OnesComplement => "ones-complement",
                            Below::Nearest => "nearest",
                            Below::Sticky => "sticky",
                        },
                    );
                }
                // Of two terms, a sum that is floored and one that is exact and rounded down are the same.
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

fn probe_all(models: &[Model]) -> Vec<String> {
    let jobs: Vec<(&Model, ModelDevice, OperationId)> = models
        .iter()
        .flat_map(|model| operations(model).into_iter().map(move |id| (model, ModelDevice::new(model.clone()), id)))
        .collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let wrong = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((model, device, id)) = jobs.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let report = probe(device, &device.operations()[id], None);
                    let found = differences(model, id, &report);
                    wrong.lock().expect("no panic while held").extend(found);
                }
            });
        }
    });
    wrong.into_inner().expect("no panic while held")
}

#[test]
fn probing_any_shipped_model_finds_its_parameters() {
    let wrong = probe_all(shipped());
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_main_findings_are_measured_on_the_main_units() {
    let core =
        ["order.tree", "order.blocks", "alignment.fraction_bits", "alignment.below", "rounding.result", "monotone"];
    let mut wrong = Vec::new();
    for (name, operation, expected) in [
        ("v100", "mma.m8n8k4.f32.f16.f16.f32", (4, 23, "truncate", "RZ")),
        ("t4", "mma.m16n8k8.f32.f16.f16.f32", (8, 24, "truncate", "RZ")),
        ("a100", "mma.m16n8k16.f32.f16.f16.f32", (8, 24, "truncate", "RZ")),
        ("a100", "mma.m16n8k8.f32.tf32.tf32.f32", (4, 24, "truncate", "RZ")),
        ("a100", "mma.m16n8k16.f32.bf16.bf16.f32", (8, 24, "truncate", "RZ")),
        ("l40s", "mma.m16n8k32.f32.e4m3.e4m3.f32", (16, 13, "truncate", "RZ")),
        ("h100", "mma.m16n8k16.f32.f16.f16.f32", (16, 25, "truncate", "RZ")),
        ("h100", "wgmma.m64n8k32.f32.e4m3.e4m3.f32", (32, 13, "truncate", "RZ")),
        ("h100", "mma.m16n8k16.f16.f16.f16.f16", (16, 25, "truncate", "RNE")),
    ] {
        let device = ModelDevice::new(mxprobe_sim::load(name).unwrap());
        let id: OperationId = operation.parse().unwrap();
        let report = probe(&device, &device.operations()[&id], None);
        let mut check = Check { report: &report, name: format!("{name} {operation}"), wrong: Vec::new() };
        let (width, bits, below, rounding) = expected;
        for probe in core {
            // A witness takes 3·2^(bits − 23) terms of the lowest bit: six of 24 bits.
            if probe != "monotone" || (id.d == Format::F32 && width > 4 || bits < 24) {
                check.is_measured(probe);
            }
        }
        check.is("order.products_at_once", width);
        check.is("alignment.fraction_bits", bits);
        check.is("alignment.below", below);
        check.is("rounding.result", rounding);
        check.is("monotone", false);
        check.is("products.exponent", "operands");
        check.is("normalisation", "once");
        wrong.extend(check.wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn invented(name: &str, adder: &str, tree: &str, operation: &str) -> Model {
    let text = format!(
        r#"
schema = "mxprobe-model/1"
name = "{name}"
title = "a unit that nobody has"
vendor = "nobody"
fingerprint = "{name}"
[sources]
here = "made up for this test"
[adder.sum]
{adder}
basis = "assumed"
source = "here"
[[unit]]
tree = "{tree}"
operations = ["{operation}"]
basis = "assumed"
source = "here"
"#
    );
    Model::parse(name, &text, None).unwrap()
}

#[test]
fn probing_units_that_nobody_has_finds_their_parameters() {
    let f32_adder = |bits: u32, below: &str, rounding: &str| {
        format!(
            "fraction_bits = {bits}\nbelow = \"{below}\"\noutput = \"f32\"\nrounding = \"{rounding}\"\nnan = \"0x7fffffff\"\nzero = \"positive\""
        )
    };
    let bf16 = |k: u32| format!("dot.m4n4k{k}.f32.bf16.bf16.f32");
    let f16 = |k: u32| format!("dot.m4n4k{k}.f32.f16.f16.f32");
    let models = [
        invented(
            "nearest-19",
            &f32_adder(19, "nearest", "nearest-even"),
            "fold(c, reverse/12, sum(all, acc))",
            &f16(36),
        ),
        invented("wide-48", &f32_adder(27, "truncate", "toward-zero"), "fold(c, all/48, sum(all, acc))", &bf16(96)),
        invented("floor-31", &f32_adder(31, "floor", "nearest-even"), "fold(c, all/8, sum(all, acc))", &bf16(16)),
        invented("deep-40", &f32_adder(40, "truncate", "down"), "fold(c, all/8, sum(all, acc))", &bf16(8)),
        invented("sticky-26", &f32_adder(26, "sticky", "nearest-even"), "fold(c, all/4, sum(all, acc))", &bf16(8)),
        invented(
            "up",
            &f32_adder(25, "truncate", "up"),
            "fold(c, every(8,0,4,1,5,2,6,3,7)/4, sum(all, acc))",
            &f16(16),
        ),
        invented("c-last", &f32_adder(24, "truncate", "nearest-even"), "sum(c, sum(all))", &f16(8)),
        invented(
            "carry-3",
            &format!("{}\ncarry_bits = 3", f32_adder(24, "truncate", "toward-zero")),
            "fold(c, all/8, sum(all, acc))",
            &f16(8),
        ),
        invented("k-128", &f32_adder(25, "truncate", "toward-zero"), "fold(c, all/128, sum(all, acc))", &bf16(128)),
        invented("chain-100", &f32_adder(30, "truncate", "toward-zero"), "fold(c, all/20, sum(all, acc))", &bf16(100)),
    ];
    let wrong = probe_all(&models);
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    for model in &models {
        let device = ModelDevice::new(model.clone());
        let operation = device.operations().values().next().unwrap();
        let report = probe(&device, operation, None);
        // Twelve terms cut to 19 bits make no sum longer than f32: how it would be rounded does not show.
        let rounds = model.name != "nearest-19";
        for probe in
            ["order.tree", "alignment.fraction_bits", "rounding.result"].into_iter().take(if rounds { 3 } else { 2 })
        {
            let finding = report.finding(probe).unwrap();
            assert_eq!(finding.outcome, Outcome::Measured, "{} {probe}: {finding:?}", model.name);
        }
    }
}
