//! The faulty example program, whose argument selects a fault: `conformance` names each.

use super::{python, said};

use std::process::Command;

/// Each fault, and text that `conformance` prints for it; none for programs that conform.
const FAULTS: &[(&str, &[&str])] = &[
    ("none", &[]),
    ("silent", &["timed out after"]),
    ("ends", &["ended with exit code 0"]),
    ("greets", &[]),
    ("not-json", &["{answer: found}"]),
    ("not-an-answer", &["unknown variant `here I am`"]),
    ("other-version", &["the program speaks `mxprobe-device/9`"]),
    ("no-devices", &["it has no device"]),
    ("no-name", &["missing field `name`"]),
    ("no-operations", &["the device `0` has no operation"]),
    ("bad-id", &["`matmul` is not an operation id"]),
    ("bad-format", &["`fp32` is not a format"]),
    ("refuses", &["libvendor.so is not on this machine"]),
    ("hangs", &["timed out after"]),
    ("dies", &["ended with exit code 3; it last said: the vendor's runtime gave up"]),
    ("aborts", &["SIGABRT"]),
    ("raises", &["ZeroDivisionError: division by zero"]),
    ("silent-about-why", &["missing field `message`"]),
    ("rubbish", &["timed out after"]),
    ("endless", &["timed out after"]),
    ("half", &["ended with exit code 0"]),
    ("other-answer", &["opened"]),
    ("fewer-bytes", &["returned 7 elements of f32 for 1 tiles"]),
    ("more-bytes", &["announced 36 bytes, at most 32 can follow"]),
    ("odd-bytes", &["not a whole number of f32 elements"]),
    ("huge-bytes", &["announced 1000000000000000000 bytes"]),
    ("negative-bytes", &["-4"]),
    ("two-parts", &["returned 2 parts instead of one"]),
    ("no-part", &["returned 0 parts instead of one"]),
    ("prints-inside", &["layout", "other text precedes it on its line"]),
    ("one-behind", &["written"]),
    ("stochastic", &["determinism"]),
    ("remembers", &["layout"]),
    ("first-tile", &["row 0, column 0 of tile 1 is"]),
    ("nan", &["layout"]),
    ("zeros", &["layout"]),
    ("ignores-c", &["layout"]),
    ("transposed-b", &["layout"]),
    ("transposed-d", &["layout"]),
    ("big-endian", &["layout"]),
    ("fixed-shape", &["announced 256 bytes, at most 32 can follow"]),
];

/// The faults that never answer. Their time limit leaves Python enough time to start.
const HANG: [&str; 5] = ["silent", "not-json", "hangs", "rubbish", "endless"];

const FAULTY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/workers/faulty.py");

/// Checks the output and exit code of `conformance` for one fault.
fn checked(fault: &str, words: &[&str]) -> Result<(), String> {
    let limit = if HANG.contains(&fault) { "20" } else { "600" };
    let device = format!("exec:{} {FAULTY} {fault}", python());
    let code = i32::from(!words.is_empty());
    let text = said(code, &["conformance", "--device", &device, "--shape", "4x2x3", "--timeout", limit], "");
    let is_right =
        if words.is_empty() { text.contains("nothing is wrong") } else { words.iter().all(|word| text.contains(word)) };
    is_right.then_some(()).ok_or_else(|| format!("{fault}: {words:?} in {text}"))
}

#[test]
#[cfg_attr(not(numpy), ignore = "needs Python: scripts/python-tools")]
fn each_way_to_be_wrong_is_named() {
    // Those that wait for a time limit do so in parallel with each other and with the rest.
    let (hang, answer): (Vec<_>, Vec<_>) = FAULTS.iter().partition(|(fault, _)| HANG.contains(fault));
    let each = |some: &[&(&str, &[&str])]| -> Vec<String> {
        some.iter().filter_map(|(fault, words)| checked(fault, words).err()).collect()
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let parts = hang.chunks(1).chain(answer.chunks(answer.len().div_ceil(2)));
        let started: Vec<_> = parts.map(|some| scope.spawn(move || each(some))).collect();
        started.into_iter().flat_map(|one| one.join().expect("no assertion failed")).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[cfg_attr(not(numpy), ignore = "needs Python: scripts/python-tools")]
fn no_way_to_be_wrong_is_left_out() {
    let output = Command::new(python()).args([FAULTY, "?"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let usage = String::from_utf8(output.stderr).unwrap();
    let listed: Vec<&str> = usage.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    let tested: Vec<&str> = FAULTS.iter().map(|(fault, _)| *fault).collect();
    assert_eq!(listed, tested);
}
