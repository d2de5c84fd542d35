//! The command's JSON validates against the schemas it prints.

use std::fs;

use serde_json::{Value, json};

use super::{Said, say, say_to};

pub(super) fn schema(of: &str) -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(&say(&["schema", of]).ended(0).out).unwrap();
    jsonschema::draft202012::new(&schema).expect("a schema")
}

#[track_caller]
pub(super) fn conforms(validator: &jsonschema::Validator, value: &Value) {
    let errors: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

const RUN: [&str; 5] = ["run", "--device", "sim:amx", "--format", "json"];

#[test]
fn a_report_conforms_to_the_printed_schema_and_validates() {
    let text = say(&RUN).ended(0).out;
    let value: Value = serde_json::from_str(&text).unwrap();
    conforms(&schema("report"), &value);
    let said = say_to(&["validate", "-"], text.as_bytes()).ended(0);
    assert!(said.out.contains("valid: a report of sim:amx with 6 operations"), "{}", said.out);
}

#[test]
fn several_reports_conform_one_by_one() {
    let text = say(&["--device", "sim:avx512", "--device", "sim:amx", "--op", "*.bf16.*", "--format", "json"]);
    let text = text.ended(0).out;
    let value: Value = serde_json::from_str(&text).unwrap();
    let schema = schema("report");
    for report in value.as_array().expect("an array of two") {
        conforms(&schema, report);
    }
    say_to(&["validate", "-"], text.as_bytes()).ended(0);
}

#[test]
fn a_listing_conforms_to_the_printed_schema_and_validates() {
    let text = say(&["list", "--json"]).ended(0).out;
    conforms(&schema("list"), &serde_json::from_str(&text).unwrap());
    say_to(&["validate", "-"], text.as_bytes()).ended(0);
}

/// Validates a report of AMX after one change.
fn changed(change: impl Fn(&mut Value)) -> Said {
    let text = say(&["run", "--device", "sim:amx", "--op", "TDPBF16PS", "--format", "json"]).ended(0).out;
    let mut value: Value = serde_json::from_str(&text).unwrap();
    change(&mut value);
    say_to(&["validate", "-"], value.to_string().as_bytes())
}

#[test]
fn an_invalid_report_is_refused_with_path_and_reason() {
    let said = changed(|report| report["schema"] = json!("mxprobe-report/2.0")).ended(1);
    assert!(said.out.contains("schema: this is version 2 of mxprobe-report"), "{}", said.out);
    let said = changed(|report| report["schema"] = json!("mxprobe-report/1.9")).ended(0);
    assert!(said.out.contains("valid"), "a minor version adds, and is read: {}", said.out);
    let said = changed(|report| report["operations"][0]["findings"][1]["outcome"] = json!("perhaps")).ended(1);
    assert!(said.out.contains("operations[0].findings[1].outcome: unknown variant `perhaps`"), "{}", said.out);
    let said = changed(|report| report["device"]["name"] = json!(7)).ended(1);
    assert!(said.out.contains("device.name: invalid type: integer `7`"), "{}", said.out);
    let said = changed(|report| report["operations"][0]["id"] = json!("amx.m16")).ended(1);
    assert!(said.out.contains("operations[0]") && said.out.contains("`amx.m16`"), "{}", said.out);
    let said = changed(|report| {
        let finding = &mut report["operations"][0]["findings"][1];
        assert_eq!(finding["outcome"], "measured");
        finding.as_object_mut().unwrap().remove("value");
    });
    assert!(said.ended(1).out.contains("operations[0].findings[1].value: it is missing"));
    let said = changed(|report| {
        let findings = report["operations"][0]["findings"].as_array_mut().unwrap();
        let finding = findings.iter_mut().find(|finding| finding["evidence"][0]["d"].is_string()).unwrap();
        finding["evidence"][0]["d"] = json!("0x0");
    });
    assert!(said.ended(1).out.contains("evidence[0].d: `0x0` is not valid f32"));
    let said = changed(|report| {
        let again = report["operations"][0].clone();
        report["operations"].as_array_mut().unwrap().push(again);
    });
    assert!(said.ended(1).out.contains("operations[1].id"));
    let said = say_to(&["validate", "-"], b"{\"schema\": ").ended(1);
    assert!(said.out.contains("not JSON"), "{}", said.out);
    let said = say_to(&["validate", "-"], b"{}").ended(1);
    assert!(said.out.contains("schema: it is missing"), "{}", said.out);
}

#[test]
fn a_valid_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    fs::write(&file, say(&["run", "--device", "sim:avx512", "--format", "json"]).ended(0).out).unwrap();
    let file = file.to_str().unwrap();
    let said = say(&["validate", file]).ended(0);
    assert!(said.out.starts_with(&format!("{file}: valid")), "{}", said.out);
}
