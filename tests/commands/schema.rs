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

/// A screen of two devices, and the fleet of it and of a report.
fn screen_and_fleet() -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let base = ["screen", "--device", "sim:h100", "--device", "sim:a100", "--op", "mma.m16n8k16.f32.f16.f16.f32"];
    let more = ["--no-cache", "--passes", "1", "--error-inject", "bit=3,lane=5", "--format", "json", "-q"];
    let screen = say(&[&base[..], &more].concat()).ended(1).out;
    fs::write(at("wrong.json"), screen.replace("\"injected\"", "\"planted\"")).unwrap();
    say(&["run", "--device", "sim:amx", "-q", "--out", &at("report.json")]).ended(0);
    let folder = folder.path().to_str().expect("UTF-8");
    (screen, say(&["fleet", folder, "--format", "json"]).ended(1).out)
}

#[test]
fn screens_and_fleets_conform_to_the_printed_schemas_and_validate() {
    let (screen, fleet) = screen_and_fleet();
    let (screens, whole): (Value, Value) =
        (serde_json::from_str(&screen).unwrap(), serde_json::from_str(&fleet).unwrap());
    let of_screen = schema("screen");
    let screens = screens.as_array().expect("an array of two");
    assert_eq!(screens.len(), 2);
    screens.iter().for_each(|screen| conforms(&of_screen, screen));
    let of_fleet = schema("fleet");
    conforms(&of_fleet, &whole);
    assert!(whole["unhealthy"][0]["what"][0].as_str().is_some_and(|what| what.contains("lane 5")), "{whole}");
    // The schemas do not allow everything.
    let mut without = screens[0].clone();
    without["operations"][0].as_object_mut().expect("an operation").remove("dots");
    assert!(!of_screen.is_valid(&without));
    assert!(!of_fleet.is_valid(&without));
    let said = say_to(&["validate", "-"], screen.as_bytes()).ended(0);
    assert!(
        said.out.contains("valid: a screen of sim:h100 with 1 operation: wrong, and a screen of sim:a100"),
        "{}",
        said.out
    );
    let said = say_to(&["validate", "-"], fleet.as_bytes()).ended(0);
    assert!(said.out.contains("valid: a fleet of 2 machines"), "{}", said.out);
}

#[test]
fn screens_and_fleets_that_contradict_themselves_are_refused_with_path_and_reason() {
    let (screen, fleet) = screen_and_fleet();
    let refused = |text: &str, change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(text).unwrap();
        change(&mut value);
        say_to(&["validate", "-"], value.to_string().as_bytes()).ended(1).out
    };
    let said = refused(&screen, &|screens| screens[1]["verdict"] = json!("healthy"));
    assert!(said.contains("[1].verdict: it is `healthy`, and the operations say `wrong`"), "{said}");
    let said = refused(&screen, &|screens| screens[0]["operations"][0]["dots"] = json!(1));
    assert!(said.contains("[0].operations[0].dots: it is 1, and units have 131072"), "{said}");
    let said = refused(&screen, &|screens| screens[0]["operations"][0]["wrong"]["blocks"] = json!(1));
    assert!(said.contains("[0].operations[0].wrong: it has 1 wrong block, and units have 32"), "{said}");
    let said = refused(&screen, &|screens| screens[0]["seed"] = json!("one"));
    assert!(said.contains("[0].seed: invalid type: string"), "{said}");
    let said = refused(&screen, &|screens| screens[0]["schema"] = json!("mxprobe-screen/2.0"));
    assert!(said.contains("this is version 2 of mxprobe-screen"), "{said}");
    let said = refused(&fleet, &|fleet| fleet["nodes"] = json!(3));
    assert!(said.contains("nodes: it is 3, and `members` has 2"), "{said}");
    let said = refused(&fleet, &|fleet| fleet["kinds"][0]["devices"] = json!(7));
    assert!(said.contains("kinds[0].devices: it is 7, and `members` has 1"), "{said}");
    let said = refused(&fleet, &|fleet| {
        let first = fleet["members"][0].clone();
        fleet["members"].as_array_mut().expect("members").push(first);
    });
    assert!(said.contains("is there twice"), "{said}");
}
