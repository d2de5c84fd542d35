//! The first screen: a run fits on one, and a comparison begins with its table.

use serde_json::Value;

use super::say;

/// The first screen of a run.
fn screen(device: &str) -> Vec<String> {
    let text = say(&["run", "-q", "--device", device]).ended(0).out;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let widest = lines.iter().max_by_key(|line| line.chars().count()).expect("it says something");
    assert!(widest.chars().count() <= 80, "{widest}");
    lines
}

#[test]
fn a_run_of_the_h100_is_one_screen_with_its_fp8_in_it() {
    let lines = screen("sim:h100");
    assert!(lines.len() <= 24, "{} lines:\n{}", lines.len(), lines.join("\n"));
    let row =
        |start: &str| lines.iter().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {lines:?}"));
    let words = |start: &str| row(start).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words("f16 bf16→f32"), "f16 bf16→f32 mma wgmma wmma 16 25 truncated toward zero");
    assert!(lines.iter().any(|line| line.contains("wgmma") && line.contains("13  truncated  toward zero, 13 bits")));
    assert!(row("! fp8→f32 by wgmma").contains("13 of 23 fraction bits kept"));
    assert!(row("int8→s32").contains("exact"));
    assert!(lines.iter().any(|line| line.contains("m8n8k4")), "shapes that answer otherwise have a row");
}

#[test]
fn what_lists_operations_is_asked_for() {
    let findings = "alignment.fraction_bits";
    let run = ["run", "-q", "--device", "sim:v100"];
    let more = |more: &[&'static str]| say(&[&run[..], more].concat()).ended(0).out;
    assert!(!say(&run).ended(0).out.contains(findings));
    for listed in [&["--op", "wmma.m16n16k16.f32*"][..], &["--probe", "alignment.*"]] {
        assert!(more(listed).contains(findings), "{listed:?}");
        assert!(!more(listed).contains("would return"), "{listed:?}: no evidence without -v");
    }
    let arguments = ["run", "--device", "sim:v100", "-v"];
    assert!(say(&arguments).ended(0).out.contains(findings));
    assert!(more(&["--op", "wmma.m16n16k16.f32*"]).contains(findings));
    let evidence = ["run", "--device", "sim:v100", "--op", "wmma.m16n16k16.f32*", "-v"];
    assert!(say(&evidence).ended(0).out.contains("would return"));
}

#[test]
fn the_json_has_the_rows_of_the_screen() {
    let arguments = ["run", "-q", "--device", "sim:rdna3", "--format", "json"];
    let report: Value = serde_json::from_str(&say(&arguments).ended(0).out).unwrap();
    let rows = report["summary"]["rows"].as_array().unwrap();
    let operations: usize = rows.iter().map(|row| row["operations"].as_array().unwrap().len()).sum();
    assert_eq!(operations, report["operations"].as_array().unwrap().len(), "each operation is in one row");
    assert_eq!(rows[0]["inputs"], serde_json::json!(["f16", "bf16"]));
    assert_eq!(rows[0]["bits_kept"], 24);
    assert_eq!(rows[0]["dropped"], "ones-complement");
    let notable: Vec<&str> =
        report["summary"]["notable"].as_array().unwrap().iter().filter_map(|fact| fact["rule"].as_str()).collect();
    assert!(notable.contains(&"one-minus-one") && notable.contains(&"inputs-flushed"), "{notable:?}");
    let flushed = report["summary"]["notable"].as_array().unwrap().iter().find(|fact| fact["rule"] == "inputs-flushed");
    let text = flushed.unwrap()["text"].as_str().unwrap();
    assert!(text.starts_with("bf16→f32, every bf16 result:"), "f16 subnormals are kept, in the same row: {text}");
    let screen = screen("sim:rdna3");
    assert_eq!(screen.iter().filter(|line| line.contains("→") && !line.starts_with('!')).count(), rows.len());
}

#[test]
fn models_are_compared_without_files_and_the_table_comes_first() {
    let said = say(&["compare", "-q", "sim:v100", "sim:mi300x", "sim:rdna4"]).ended(1).out;
    let lines: Vec<&str> = said.lines().collect();
    let at = |start: &str| {
        lines.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {said}"))
    };
    assert!(at("sums of") < 12 && at("fp8→f32") < 40);
    assert!(lines[at("f16→f32")].contains("23 ×4 trunc RZ"));
    assert!(lines[at("fp8→f32")].contains("24 ×16 trunc RNE fnuz"));
    assert!(said.contains("v100: f32 sums are rounded toward zero"), "{said}");
    // The same device twice does not differ.
    say(&["compare", "-q", "sim:v100", "sim:v100"]).ended(0);
    let one = say(&["compare", "sim:v100"]).ended(2).err;
    assert!(one.contains("only one device, `sim:v100`"), "{one}");
}
