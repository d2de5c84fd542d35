//! Scalar arithmetic from the outside, on the CPU that runs the tests.
#![cfg(target_arch = "x86_64")]

use mxprobe::report::{FindingRecord, OperationReport, Report};

use super::say;

fn report(op: &str) -> Report {
    let said = say(&["run", "--device", "cpu:0", "--op", op, "--format", "json", "-q"]).ended(0);
    serde_json::from_str(&said.out).unwrap()
}

fn finding<'a>(operation: &'a OperationReport, probe: &str) -> &'a FindingRecord {
    operation.finding(probe).unwrap_or_else(|| panic!("{} has no {probe}", operation.operation.id))
}

#[test]
fn the_white_papers_examples_have_the_white_papers_bits() {
    let report = report("scalar.f32");
    let [operation] = &report.operations[..] else { panic!("{} operations", report.operations.len()) };
    for (probe, value, d) in [
        ("function.fma", "RNE, fused", "0x28800000"),
        ("function.multiply_add", "RNE, separate", "0x00000000"),
        ("function.dot4.serial", "RNE, separate", "0x3d653510"),
        ("function.dot4.fma", "RNE, fused", "0x3d653501"),
        ("function.dot4.pairwise", "RNE, separate", "0x3d653500"),
    ] {
        let found = finding(operation, probe);
        assert!(found.is(value), "{probe}: {:?}", found.value);
        assert!(found.evidence[0].about.contains("Figure"), "{probe}: {}", found.evidence[0].about);
        assert_eq!(found.evidence[0].d, d, "{probe}");
    }
}

#[test]
fn one_function_is_asked_by_the_name_that_reports_print() {
    let one = ["run", "--device", "cpu:0", "--op", "scalar.f32", "--probe", "function.convert.f64", "--format", "json"];
    let report: Report = serde_json::from_str(&say(&one).ended(0).out).unwrap();
    let probes: Vec<&str> = report.operations[0].findings.iter().map(|finding| finding.probe.as_str()).collect();
    assert_eq!(probes, ["function.convert.f64"]);
    let wrong = ["run", "--device", "cpu:0", "--op", "scalar.f32", "--probe", "function.convert.f65"];
    assert!(say(&wrong).ended(2).err.contains("unknown probe `function.convert.f65`"));
}

#[test]
fn every_mode_of_the_control_word_is_found_to_do_what_it_asks() {
    let report = report("scalar.f*.r*");
    let modes = |format: &str| {
        let start = format!("scalar.m1n1k1.{format}.");
        report.operations.iter().filter(|operation| operation.operation.id.to_string().starts_with(&start)).count()
    };
    assert_eq!((modes("f32"), modes("f64")), (16, 16));
    // AVX-512 FP16, if present, treats subnormals differently.
    let wide = report.operations.iter().filter(|operation| operation.operation.id.d.bits() > 16);
    for operation in wide {
        let id = &operation.operation.id;
        let (word, direction) = [("rne", "RNE"), ("rz", "RZ"), ("rd", "RD"), ("ru", "RU")]
            .into_iter()
            .find(|(word, _)| id.has(word))
            .unwrap();
        for probe in ["function.add", "function.multiply", "function.divide"] {
            assert!(finding(operation, probe).is(direction), "{id} {probe}, asked for {word}");
        }
        // A square root is never negative, so that no input tells RD from RZ.
        let root = if matches!(direction, "RZ" | "RD") { "RZ or RD" } else { direction };
        assert!(finding(operation, "function.square_root").is(root), "{id}, asked for {word}");
        assert!(finding(operation, "subnormals.inputs").is(if id.has("daz") { "zero" } else { "read" }), "{id}");
        let results = &finding(operation, "subnormals.results").value;
        // VCVTPS2PH keeps subnormal results regardless of the control word.
        let flushed = results.as_ref().is_some_and(|value| value == "zero" || value == "differs");
        assert_eq!(flushed, id.has("ftz"), "{id}: {results:?}");
    }
}

#[test]
fn scalar_arithmetic_is_listed_and_its_report_shown_in_every_view() {
    let listed = say(&["list", "--backend", "cpu"]).ended(0);
    assert!(listed.out.contains("scalar.f32, scalar.f64, "), "{}", listed.out);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scalar.json");
    let path = path.to_str().unwrap();
    say(&["run", "--device", "cpu:0", "--op", "scalar.f32", "--out", path, "-q"]).ended(0);
    say(&["validate", path]).ended(0);
    for format in ["table", "markdown", "csv", "html"] {
        let shown = say(&["report", path, "-v", "--format", format]).ended(0);
        assert!(shown.out.contains("not contracted"), "{format}: {}", shown.out);
    }
    say(&["compare", path, path]).ended(0);
    let explained = say(&["explain", "function.fma"]).ended(0);
    assert!(explained.out.contains("one rounding for a product and the sum it joins"), "{}", explained.out);
}
