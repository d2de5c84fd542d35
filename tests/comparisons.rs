//! The differences that count between reports, on small fixed reports with one thing changed.
#![allow(missing_docs)]

use std::{fs, path::Path};

use mxprobe::report::{
    Comparison, DriverRecord, FindingRecord, MatchedBy, Outcome, Plan, Report, State, check, compare, to_json,
};
use serde_json::{Value, json};

fn report(name: &str) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let text = fs::read_to_string(path).expect("the report is there");
    check::read_reports(&text).expect("it is a report").remove(0)
}

/// The report with one finding of its first operation changed.
fn changed(report: &Report, probe: &str, change: impl Fn(&mut FindingRecord)) -> Report {
    let mut report = report.clone();
    let finding = report.operations[0].findings.iter_mut().find(|finding| finding.probe == probe).expect(probe);
    change(finding);
    report
}

fn sides(reports: &[&Report]) -> Comparison {
    let named = reports.iter().enumerate().map(|(at, report)| (format!("{at}.json"), (*report).clone()));
    compare(&named.collect::<Vec<_>>())
}

#[track_caller]
fn state(comparison: &Comparison, probe: &str) -> State {
    let mut rows = comparison.matches.iter().flat_map(|found| &found.rows).filter(|row| row.probe == probe);
    rows.next().expect("the probe was compared").state
}

/// The state of a comparison between two values of one probe.
fn values(probe: &str, left: Value, right: Value) -> State {
    let base = report("a100.json");
    let with = |value: &Value| {
        changed(&base, probe, |finding| {
            finding.outcome = Outcome::Measured;
            finding.value = Some(value.clone());
        })
    };
    let comparison = sides(&[&with(&left), &with(&right)]);
    assert_eq!(comparison.differ, state(&comparison, probe) == State::Differs);
    state(&comparison, probe)
}

#[test]
fn other_values_differ_and_other_bounds_do_not() {
    assert_eq!(values("rounding.result", json!("RZ"), json!("RNE")), State::Differs);
    assert_eq!(values("alignment.fraction_bits", json!(24), json!(25)), State::Differs);
    let rounded = |seen: u32, bits: u32| json!({ "exact_over": seen, "rounded_to_bits": bits });
    assert_eq!(values("alignment.fraction_bits", json!(24), rounded(34, 24)), State::Differs);
    assert_eq!(values("alignment.fraction_bits", rounded(34, 24), rounded(47, 24)), State::Equal);
    assert_eq!(values("alignment.fraction_bits", rounded(34, 24), rounded(34, 11)), State::Differs);
    assert_eq!(values("alignment.fraction_bits", json!({ "exact_over": 34 }), rounded(34, 24)), State::Differs);
    let carry = |enough: bool, bits: u32| json!({ "enough": enough, (if enough { "reached" } else { "bits" }): bits });
    assert_eq!(values("carry", carry(true, 3), carry(true, 5)), State::Equal);
    assert_eq!(values("carry", carry(true, 3), carry(false, 3)), State::Differs);
    assert_eq!(values("carry", carry(false, 2), carry(false, 3)), State::Differs);
}

#[test]
fn what_failed_on_one_side_differs_and_what_was_not_asked_is_open() {
    let base = report("a100.json");
    let ended = |outcome: Outcome| {
        changed(&base, "rounding.result", |finding| {
            (finding.outcome, finding.value, finding.reason) = (outcome, None, Some("a reason".into()));
            finding.evidence = Vec::new().into();
        })
    };
    for (outcome, wanted) in [
        (Outcome::Failed, State::Differs),
        (Outcome::Inconclusive, State::Open),
        (Outcome::Skipped, State::Open),
        (Outcome::Unsupported, State::Open),
    ] {
        let comparison = sides(&[&base, &ended(outcome)]);
        assert_eq!(state(&comparison, "rounding.result"), wanted, "{outcome:?}");
        assert_eq!(comparison.differ, wanted == State::Differs);
    }
    let neither = sides(&[&ended(Outcome::Unsupported), &ended(Outcome::Unsupported)]);
    assert_eq!(state(&neither, "rounding.result"), State::Equal);
}

#[test]
fn a_bit_of_evidence_that_differs_is_found_although_every_answer_agrees() {
    let base = report("a100.json");
    let other = changed(&base, "alignment.fraction_bits", |finding| {
        let mut evidence = finding.evidence.to_vec();
        evidence[0].d = "0x00000001".into();
        finding.evidence = evidence.into();
    });
    let comparison = sides(&[&base, &other, &base]);
    assert!(comparison.differ);
    let found = &comparison.matches[0];
    assert_eq!((found.count(State::Differs), found.dots.len()), (0, 1));
    let evidence = &base.operations[0].finding("alignment.fraction_bits").unwrap().evidence[0];
    let d = [&evidence.d, "0x00000001", &evidence.d].map(|d| Some(d.to_owned()));
    assert_eq!(found.dots[0].d, d);
    assert_eq!(found.dots[0].input.a, evidence.a);
}

#[test]
fn operations_with_other_names_are_matched_by_what_they_compute() {
    let comparison = sides(&[&report("a100.json"), &report("rdna4.json")]);
    assert_eq!(comparison.matches.len(), 1);
    let found = &comparison.matches[0];
    assert_eq!(found.by, MatchedBy::Formats);
    // k is 16 on both sides, and the number of lanes that share a tile does not affect the match by formats.
    assert_eq!(found.operations[0][0].to_string(), "mma.m16n8k16.f32.f16.f16.f32");
    assert_eq!(found.operations[1][0].to_string(), "wmma.m16n16k16.f32.f16.f16.f32.wave32");
    assert_eq!(state(&comparison, "order.tree"), State::Differs);
    assert_eq!(comparison.alone.iter().map(|alone| alone.report.as_str()).collect::<Vec<_>>(), ["A"]);
    assert!(!comparison.alone[0].same_device);
}

#[test]
fn without_a_common_k_the_order_is_left_open() {
    let comparison = sides(&[&report("rdna4.json"), &report("llvmpipe.json")]);
    let found = &comparison.matches[0];
    assert_eq!(found.by, MatchedBy::Terms);
    assert_eq!(state(&comparison, "order.tree"), State::Open);
    assert_eq!(state(&comparison, "order.products_at_once"), State::Differs);
    assert_eq!(found.dots_in_common, 0);
}

#[test]
fn operations_of_one_device_that_disagree_stand_with_their_answers() {
    let mut both = report("rdna4.json");
    let mut wave64 = both.operations[0].clone();
    wave64.operation.id = "wmma.m16n16k16.f32.f16.f16.f32.wave64".parse().unwrap();
    let finding = wave64.findings.iter_mut().find(|finding| finding.probe == "rounding.result").unwrap();
    finding.value = Some(json!("RO"));
    both.operations.push(wave64);
    let comparison = sides(&[&report("a100.json"), &both]);
    let row = comparison.matches[0].rows.iter().find(|row| row.probe == "rounding.result").unwrap();
    assert_eq!(row.answers[1].len(), 2);
    assert_eq!(row.answers[1][1].operations[0].to_string(), "wmma.m16n16k16.f32.f16.f16.f32.wave64");
}

#[test]
fn reports_with_nothing_in_common_differ() {
    let mut integers = report("a100.json");
    integers.operations.retain(|operation| operation.operation.id.is_integer());
    let comparison = sides(&[&integers, &report("rdna4.json")]);
    assert!(comparison.differ && comparison.matches.is_empty());
    assert_eq!(comparison.alone.len(), 2);
}

/// The report as another backend of the same machine would make it, with one property.
fn reached(report: &Report, backend: &str, property: (&str, &str)) -> Report {
    let mut report = report.clone();
    report.device.backend = backend.into();
    report.device.kind = mxprobe::report::Kind::Hardware;
    report.device.emulated = false;
    report.device.properties.insert(property.0.into(), property.1.into());
    report
}

fn same_device(left: &Report, right: &Report) -> Option<String> {
    sides(&[left, right]).notes.into_iter().find(|note| note.contains("A and B are the same device"))
}

#[test]
fn a_device_that_two_backends_reach_is_recognised_and_its_unit_is_compared() {
    let uuid = ("device_uuid_sha256", "00112233445566778899aabbccddeeff");
    let base = report("a100.json");
    let (cuda, vulkan) = (reached(&base, "cuda", uuid), reached(&base, "vulkan", uuid));
    let note = same_device(&cuda, &vulkan).expect("the UUID is the same");
    let same = "reached through cuda and vulkan: the same matrix unit answers, as far as 3 matrix operations";
    assert!(note.contains(same) && !note.contains("scalar"), "{note}");
    let other = changed(&vulkan, "rounding.result", |finding| finding.value = Some(json!("RNE")));
    let note = same_device(&cuda, &other).expect("the UUID is the same");
    assert!(note.contains("not the same matrix unit answers") && note.contains("1 of 3 matrix operations"), "{note}");
    assert!(note.contains("(rounding.result)"), "{note}");
    let place = ("pci_bus_id", "0000:01:00.0");
    let note = same_device(&reached(&base, "cuda", place), &reached(&base, "vulkan", place));
    assert!(note.is_some_and(|note| note.contains("pci_bus_id 0000:01:00.0")));
    let mut without = reached(&base, "wgpu", uuid);
    without.operations.clear();
    let note = same_device(&cuda, &without).expect("the UUID is the same");
    assert!(note.contains("it is open whether the same unit answers"), "{note}");
}

/// A report of one matrix operation and of scalar arithmetic, which computes every result as given.
fn with_scalars(backend: &str, multiply_add: &str, operand: &str) -> Report {
    let uuid = ("device_uuid_sha256", "00112233445566778899aabbccddeeff");
    let mut report = reached(&report("a100.json"), backend, uuid);
    report.operations.truncate(1);
    let mut scalar = report.operations[0].clone();
    scalar.operation.id = "scalar.m1n1k1.f32.f32.f32.f32".parse().unwrap();
    let (function, operand) = (json!(multiply_add), json!(operand));
    let findings = json!([
        {"probe": "function.multiply_add", "outcome": "measured", "value": function, "statement": "each step"},
        {"probe": "nan.operand", "outcome": "measured", "value": operand, "statement": "one of them", "evidence": [
            {"about": "two quiet NaNs", "function": "add", "a": ["0x7fc00005", "0x7fc0000d"], "d": operand},
        ]},
    ]);
    scalar.findings = serde_json::from_value(findings).unwrap();
    report.operations.push(scalar);
    report
}

#[test]
fn the_scalar_unit_of_a_device_that_two_backends_reach_has_a_verdict_of_its_own() {
    let note = |other: &Report| {
        let cuda = with_scalars("cuda", "RNE, fused", "0x7fc00005");
        same_device(&cuda, other).expect("the UUID is the same")
    };
    let matrix = "the same matrix unit answers, as far as 1 matrix operation in common";
    let same = note(&with_scalars("vulkan", "RNE, fused", "0x7fc00005"));
    assert!(same.contains(matrix), "{same}");
    assert!(same.contains("the same scalar unit answers, as far as 1 scalar operation in common show: no"), "{same}");
    // Another contraction does not mean another matrix unit.
    let other = note(&with_scalars("vulkan", "RNE, separate", "0x7fc00005"));
    assert!(other.contains(matrix), "{other}");
    assert!(other.contains("not the same scalar unit answers") && other.contains("(function.multiply_add)"), "{other}");
    // Nor does another choice between two NaN mean another scalar unit; another number does.
    let nan = note(&with_scalars("vulkan", "RNE, fused", "0x7fc0000d"));
    assert!(nan.contains("the same scalar unit answers") && nan.contains("which NaN comes through"), "{nan}");
    let number = note(&with_scalars("vulkan", "RNE, fused", "0x7f800000"));
    assert!(number.contains("not the same scalar unit answers"), "{number}");
}

#[test]
fn devices_that_only_look_alike_are_not_taken_for_one() {
    let uuid = ("device_uuid_sha256", "00112233445566778899aabbccddeeff");
    let base = report("a100.json");
    let cuda = reached(&base, "cuda", uuid);
    let vulkan = |change: &dyn Fn(&mut Report)| {
        let mut other = reached(&base, "vulkan", uuid);
        change(&mut other);
        other
    };
    type Change = (&'static str, fn(&mut Report));
    let changes: [Change; 6] = [
        ("another UUID", |report| drop(report.device.properties.insert("device_uuid_sha256".into(), "01".repeat(16)))),
        ("the same backend", |report| report.device.backend = "cuda".into()),
        ("a double", |report| report.device.emulated = true),
        ("a model", |report| report.device.kind = mxprobe::report::Kind::Model),
        ("another machine", |report| report.host.cpu = Some("another CPU".into())),
        ("no UUID", |report| drop(report.device.properties.remove("device_uuid_sha256"))),
    ];
    for (what, change) in changes {
        assert_eq!(same_device(&cuda, &vulkan(&change)), None, "{what}");
    }
    let makes = |id: &str| {
        let mut report = vulkan(&|_| ());
        report.device.properties.insert("device_id".into(), id.into());
        report
    };
    let mut wgpu = makes("0x2684");
    wgpu.device.backend = "wgpu".into();
    assert_eq!(same_device(&makes("0x73bf"), &wgpu), None);
    assert!(same_device(&makes("0x2684"), &wgpu).is_some());
    let zeros = ("device_uuid_sha256", "00000000000000000000000000000000");
    assert_eq!(same_device(&reached(&base, "cuda", zeros), &reached(&base, "vulkan", zeros)), None);
    // The UUID decides if both have one, whatever the PCI bus id.
    let elsewhere = vulkan(&|report| {
        report.device.properties.insert(uuid.0.into(), "01".repeat(16));
        report.device.properties.insert("pci_bus_id".into(), "0000:01:00.0".into());
    });
    let mut placed = cuda.clone();
    placed.device.properties.insert("pci_bus_id".into(), "0000:01:00.0".into());
    assert_eq!(same_device(&placed, &elsewhere), None);
}

#[test]
fn a_question_that_one_side_was_not_asked_is_open_even_where_it_does_not_arise_for_the_other() {
    let base = changed(&report("a100.json"), "rounding.result", |finding| {
        (finding.outcome, finding.value, finding.reason) = (Outcome::Unsupported, None, Some("a reason".into()));
    });
    let mut unasked = base.clone();
    unasked.operations[0].findings.retain(|finding| finding.probe != "rounding.result");
    assert_eq!(state(&sides(&[&base, &unasked]), "rounding.result"), State::Open);
}

#[test]
fn reports_that_answer_nothing_in_common_are_not_called_equal() {
    let base = report("a100.json");
    let mut skipped = base.clone();
    for operation in &mut skipped.operations {
        let ids = &operation.operation;
        *operation = mxprobe::report::OperationReport::without_answer(ids, Outcome::Skipped, "the budget was spent");
    }
    let comparison = sides(&[&base, &skipped]);
    assert!(comparison.differ && comparison.matches.iter().all(|found| !found.is_settled()));
    assert!(sides(&[&skipped, &skipped]).differ);
    assert!(!sides(&[&base, &base]).differ);
}

#[test]
fn a_driver_lacks_an_operation_only_where_it_was_asked_for_all_that_it_has() {
    let base = report("a100.json");
    assert!(base.operations.len() > 1 && base.plan.is_none());
    let driver =
        |version: &str| DriverRecord { name: "a driver".into(), version: version.into(), api_version: "1".into() };
    let mut fewer = base.clone();
    fewer.operations.truncate(1);
    let lacked = |fewer: &Report| {
        let comparison = sides(&[&base, fewer]);
        let of_driver = comparison.alone.iter().any(|alone| alone.same_device);
        assert_eq!((comparison.differ, comparison.alone.len()), (of_driver, 1));
        of_driver
    };
    assert!(!lacked(&fewer), "the same driver");
    fewer.device.driver = Some(driver("2"));
    assert!(lacked(&fewer), "a run that asked everything");
    let plan = |operations: usize, patterns: &[&str]| Plan {
        operations: base.operations[..operations].iter().map(|one| one.operation.id.clone()).collect(),
        patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect(),
        probes: Vec::new(),
        points: None,
    };
    fewer.plan = Some(plan(1, &[]));
    assert!(lacked(&fewer), "the plan has all that there was");
    fewer.plan = Some(plan(base.operations.len(), &[]));
    assert!(!lacked(&fewer), "the run did not come to its end");
    fewer.plan = Some(plan(1, &["mma.*"]));
    assert!(!lacked(&fewer), "only some were wanted");
}

/// The report with its evidence as records, which are not compared as text.
fn in_records(report: &Report) -> Report {
    let mut report = report.clone();
    for finding in report.operations.iter_mut().flat_map(|operation| &mut operation.findings) {
        finding.evidence = finding.evidence.to_vec().into();
    }
    report
}

#[test]
fn evidence_of_the_same_bytes_is_compared_as_dot_by_dot() {
    let base = report("a100.json");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/a100.json")).unwrap();
    // The same dots with other texts around them, and one other result.
    let read = |text: &str| check::read_reports(text).expect("it is a report").remove(0);
    let with_other_words = read(&text.replace("\"about\": \"", "\"about\": \"again: "));
    assert!(with_other_words.operations[0].findings.iter().any(|finding| !finding.evidence.is_empty()));
    let mut with_other_bits = base.clone();
    let finding =
        with_other_bits.operations[0].findings.iter_mut().rfind(|finding| finding.evidence.len() > 1).unwrap();
    let mut evidence = finding.evidence.to_vec();
    evidence[1].d = evidence[1].d.replace('0', "1");
    finding.evidence = evidence.into();
    let with_other_bits = read(&to_json(&with_other_bits));
    // Lists beside other ones than in the first report.
    let mut shifted = base.clone();
    shifted.operations[0].findings.remove(0);
    let shifted = read(&to_json(&shifted));
    for several in [
        vec![&base, &base, &base],
        vec![&base, &with_other_words, &with_other_bits],
        vec![&with_other_bits, &base, &with_other_bits, &with_other_words],
        vec![&shifted, &base, &with_other_bits, &shifted],
    ] {
        let records: Vec<Report> = several.iter().map(|report| in_records(report)).collect();
        let wanted = sides(&records.iter().collect::<Vec<_>>());
        assert!(wanted.matches.iter().any(|found| found.dots_in_common > 0));
        assert_eq!(json!(sides(&several)), json!(wanted));
    }
}
