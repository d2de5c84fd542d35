//! `screen` on the fake CUDA driver: every multiprocessor computes, and a fault of the matrix units is named by its place.
#![allow(missing_docs, clippy::print_stderr)]
#![cfg(all(feature = "cuda", target_os = "linux"))]

mod fake;

use serde_json::{Value, json};

use fake::on_fake_driver;

const F16: &str = "mma.m16n8k16.f32.f16.f16.f32";
const WARPGROUP: &str = "wgmma.m64n8k16.f32.bf16.bf16.f32";

/// The exit code and the report of one pass over an operation, on four multiprocessors with a fault.
#[track_caller]
fn screened(fault: &str, operation: &str, more: &[&str]) -> (Option<i32>, Value) {
    let environment = [("MXPROBE_FAKE_MULTIPROCESSORS", "4"), ("MXPROBE_FAKE_FLIP", fault)];
    let arguments = ["screen", "-q", "--device", "cuda:0", "--op", operation, "--passes", "1", "--no-cache"];
    let rest = ["--timeout", "86400", "--format", "json"];
    let said = on_fake_driver(&environment, &[&arguments[..], &rest, more].concat());
    let report = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}{}", said.out, said.err));
    (said.code, report)
}

/// The record of wrong bits of the only operation.
#[track_caller]
fn wrong((code, report): &(Option<i32>, Value)) -> &Value {
    assert_eq!((code, &report["verdict"]), (&Some(1), &json!("wrong")), "{report}");
    &report["operations"][0]["wrong"]
}

#[track_caller]
fn place(wrong: &Value) -> Vec<&str> {
    wrong["place"].as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

/// The only place in a tally.
#[track_caller]
fn only(tally: &Value) -> u64 {
    assert_eq!(tally.as_array().map(Vec::len), Some(1), "{tally}");
    tally[0]["at"].as_u64().expect("a number")
}

#[test]
fn clean_units_are_right_on_every_multiprocessor() {
    for operation in [
        F16,
        WARPGROUP,
        "mma.m8n8k4.f64.f64.f64.f64",
        "mma.m8n8k4.f32.f16.f16.f16",
        "mma.m16n8k32.s32.s8.u8.s32.satfinite",
        "wmma.m16n16k16.f16.f16.f16.f16",
        "wmma.m16n16k16.f32.f16.f16.f32",
    ] {
        let (code, report) = screened("", operation, &[]);
        assert_eq!((code, &report["verdict"]), (Some(0), &json!("healthy")), "{report}");
        let found = &report["operations"][0];
        let units = found["units"].as_array().expect("units");
        let names: Vec<_> = units.iter().filter_map(|unit| unit["unit"].as_u64()).collect();
        assert_eq!(names, [0, 1, 2, 3], "{report}");
        assert!(units.iter().all(|unit| unit["pinned"] == true && unit["dots"].as_u64() >= Some(131_072)), "{report}");
    }
}

#[test]
fn one_multiprocessor_is_named() {
    // The first block of a launch, from which right results are read first, runs on multiprocessor 0.
    for at in [0, 2] {
        let found = screened(&format!("bit=31,sm={at}"), F16, &[]);
        let wrong = wrong(&found);
        assert_eq!((only(&wrong["units"]), only(&wrong["bits"])), (at, 31), "{wrong}");
        assert!(place(wrong).contains(&&*format!("multiprocessor {at}")), "{wrong}");
        for unit in found.1["operations"][0]["units"].as_array().expect("units") {
            assert_eq!(unit["wrong_blocks"] != 0, unit["unit"] == at, "{unit}");
        }
        assert_eq!(wrong["again"]["wrong"], wrong["again"]["blocks"], "{wrong}");
    }
}

#[test]
fn one_lane_and_one_bit_are_named_on_every_multiprocessor() {
    let found = screened("bit=13,lane=77", F16, &[]);
    let wrong = wrong(&found);
    assert_eq!((only(&wrong["lanes"]), only(&wrong["bits"])), (77, 13), "{wrong}");
    assert_eq!(place(wrong), ["lane 77", "bit 13", "about one result in 128"]);
    let word = &wrong["first"][0];
    // Element 77 of 16×8.
    assert_eq!((&word["row"], &word["column"]), (&json!(9), &json!(5)), "{word}");
}

#[test]
fn a_lane_of_a_warpgroup_is_named() {
    let wrong_of = screened("bit=7,lane=300,sm=1", WARPGROUP, &[]);
    let wrong = wrong(&wrong_of);
    assert_eq!((only(&wrong["units"]), only(&wrong["lanes"]), only(&wrong["bits"])), (1, 300, 7), "{wrong}");
}

#[test]
fn one_exponent_is_named() {
    let found = screened("bit=0,exponent=130,sm=3", F16, &[]);
    let wrong = wrong(&found);
    assert_eq!((only(&wrong["exponents"]), only(&wrong["bits"]), only(&wrong["units"])), (130, 0, 3), "{wrong}");
    assert!(place(wrong).contains(&"exponent 130"), "{wrong}");
}

#[test]
fn one_result_in_a_million_is_found_and_does_not_repeat() {
    let found = screened("bit=22,sm=1,every=1000000", F16, &[]);
    let wrong = wrong(&found);
    assert_eq!((only(&wrong["units"]), only(&wrong["bits"])), (1, 22), "{wrong}");
    assert_eq!((&wrong["words"], &wrong["again"]["wrong"]), (&json!(1), &json!(0)), "{wrong}");
}

#[test]
fn a_fault_that_only_a_chain_meets_is_named_by_its_multiprocessor() {
    // More results than a pass over directed dots has, fewer than a pass over chains.
    let found = screened("bit=20,sm=1,every=1500000", F16, &[]);
    let wrong = wrong(&found);
    assert_eq!(wrong["steps"], 256, "{wrong}");
    assert!(place(wrong).contains(&"multiprocessor 1"), "{wrong}");
}

#[test]
fn an_injected_error_is_named_by_its_place() {
    let inject = ["--error-inject", "bit=3,lane=5,multiprocessor=2"];
    let found = screened("", F16, &inject);
    let wrong = wrong(&found);
    assert_eq!((only(&wrong["units"]), only(&wrong["lanes"]), only(&wrong["bits"])), (2, 5, 3), "{wrong}");
}
