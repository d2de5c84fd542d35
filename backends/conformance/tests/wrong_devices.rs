//! Wrong devices do not pass. For each fault: the check of the suite that detects it, or the class of dots in which it
//! differs from the right device, and the operations on which it shows.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use mxprobe_api::{Backend, Device, Operation};
use mxprobe_conformance::{
    BACKEND_CHECKS, CHECKS, CLASSES, FAULTS, Fault, FaultBackend, Right, against, check, check_backend, wrong,
};
use mxprobe_sim::SimBackend;

const F16: &str = "h100/mma.m16n8k16.f32.f16.f16.f32";
const F16_TO_F16: &str = "h100/mma.m16n8k16.f16.f16.f16.f16";
const FP8: &str = "h100/wgmma.m64n8k32.f32.e4m3.e4m3.f32";
const S8: &str = "h100/mma.m16n8k32.s32.s8.s8.s32";
const S8_CLAMPED: &str = "h100/mma.m16n8k32.s32.s8.s8.s32.satfinite";
const AMPERE: &str = "a100/mma.m16n8k16.f32.f16.f16.f32";
const VOLTA: &str = "v100/mma.m8n8k4.f32.f16.f16.f32";
const AMX: &str = "amx/amx.m16n16k32.f32.bf16.bf16.f32";
const AMX_INTEGERS: &str = "amx/amx.m16n16k64.s32.u8.s8.s32";
const LANES: &str = "avx512/dot.m1n1k2.f32.bf16.bf16.f32";
const SCALED: &str = "rtx5090/mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3";

/// Operations of every kind.
const ALL: &[&str] = &[F16, F16_TO_F16, FP8, S8, S8_CLAMPED, AMPERE, VOLTA, AMX, AMX_INTEGERS, LANES, SCALED];
/// Operations with more than one row, column and k; the others equal their own transposes.
const MATRICES: &[&str] = &[F16, F16_TO_F16, FP8, S8, S8_CLAMPED, AMPERE, VOLTA, AMX, AMX_INTEGERS, SCALED];
/// Tensor cores with a grid at which terms are truncated.
const CUT: &[&str] = &[F16, F16_TO_F16, FP8, AMPERE, VOLTA];
/// Operations whose result is rounded toward zero.
const TOWARD_ZERO: &[&str] = &[F16, FP8, AMPERE, VOLTA];

/// The fault, the check or class that catches it, and the operations on which it does.
const CAUGHT: &[(&str, &str, &[&str])] = &[
    ("all-zeros", "layout", ALL),
    ("all-zeros", "sums", ALL),
    ("all-zeros", "written", ALL),
    ("one-fraction-bit-fewer", "cancelling", CUT),
    ("one-fraction-bit-fewer", "cancelling", &[SCALED]),
    ("one-fraction-bit-fewer", "ties", &[AMX, LANES]),
    ("one-fraction-bit-more", "cancelling", CUT),
    ("one-fraction-bit-more", "dense", &[SCALED]),
    ("floor-for-truncation", "cancelling", CUT),
    ("floor-for-truncation", "cancelling", &[SCALED]),
    ("rne-for-rz", "one-large", TOWARD_ZERO),
    ("rne-for-rz", "dense", &[F16, FP8, AMPERE, VOLTA, SCALED]),
    ("c-outside-the-sum", "one-large", CUT),
    ("half-the-block", "cancelling", CUT),
    ("half-the-block", "limits", &[S8_CLAMPED]),
    ("product-rounded", "sparse", CUT),
    ("carry-short", "extremes", CUT),
    ("nan-payload-kept", "specials", &[F16, F16_TO_F16, FP8, AMPERE, VOLTA, SCALED]),
    ("subnormals-flushed", "subnormals", &[F16, F16_TO_F16, FP8, AMPERE, VOLTA, SCALED]),
    ("a-transposed", "layout", MATRICES),
    ("b-transposed", "layout", MATRICES),
    ("one-lane-wrong", "position", ALL),
    ("one-lane-wrong", "layout", &[S8, S8_CLAMPED, AMX_INTEGERS]),
    ("off-by-one-tile", "layout", ALL),
    ("off-by-one-tile", "batches", ALL),
    ("last-tile-missing", "written", ALL),
    ("last-tile-missing", "batches", ALL),
    ("nothing-written", "written", ALL),
    ("nothing-written", "layout", ALL),
    ("short-output", "layout", ALL),
    ("stale-output", "written", ALL),
    ("stale-output", "determinism", ALL),
    ("nondeterministic", "determinism", ALL),
    ("panic", "layout", ALL),
    ("lost", "layout", ALL),
];

fn open(text: &str) -> (Box<dyn Device>, Operation, &str) {
    let (model, id) = text.split_once('/').expect("model/id");
    let device = SimBackend.open(model).expect("the model comes with the crate");
    let operation = device.operations().get(&id.parse().expect("an id")).expect("an operation of the model").clone();
    (device, operation, model)
}

fn is_of_the_suite(name: &str) -> bool {
    CHECKS.iter().any(|(check, _)| *check == name)
}

#[test]
fn every_wrong_device_is_caught_by_the_named_check_on_every_named_operation() {
    let mut missed = Vec::new();
    for (fault, catcher, operations) in CAUGHT {
        for text in *operations {
            let (right, operation, model) = open(text);
            let wrong = FaultBackend.open(&format!("{fault}:{model}")).expect("the fault can be put into the model");
            let violations = if is_of_the_suite(catcher) {
                check(wrong.as_ref(), &operation)
            } else {
                against(wrong.as_ref(), &operation, right.as_ref())
            };
            let names: Vec<&str> = violations.iter().map(|violation| violation.check).collect();
            if !names.contains(catcher) {
                missed.push(format!("\n{fault} of {text} is not caught by {catcher}, but by {names:?}"));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.concat());
}

#[test]
fn the_same_operations_without_the_fault_pass() {
    for text in ALL {
        let (right, operation, model) = open(text);
        let again = SimBackend.open(model).expect("the model comes with the crate");
        assert_eq!(check(right.as_ref(), &operation), [], "{text}");
        assert_eq!(against(right.as_ref(), &operation, again.as_ref()), [], "{text}");
    }
}

#[test]
fn every_fault_that_returns_is_in_the_table_and_every_catcher_exists() {
    for fault in FAULTS.iter().filter(|fault| !fault.never_returns()) {
        assert!(CAUGHT.iter().any(|(name, ..)| *name == fault.name), "{} is not in the table", fault.name);
    }
    for (fault, catcher, _) in CAUGHT {
        assert!(Fault::named(fault).is_ok(), "{fault}");
        assert!(CHECKS.iter().chain(CLASSES).any(|(name, _)| name == catcher), "{catcher}");
    }
    let mut names: Vec<&str> = CHECKS.iter().chain(CLASSES).chain(BACKEND_CHECKS).map(|(name, _)| *name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "two checks have one name");
}

/// The suite must hold for every arithmetic, so it must not catch these faults.
#[test]
fn a_fault_of_the_arithmetic_alone_is_no_violation_of_the_suite() {
    for fault in ["one-fraction-bit-fewer", "floor-for-truncation", "rne-for-rz", "half-the-block", "nan-payload-kept"]
    {
        let (_, operation, model) = open(F16);
        let wrong = FaultBackend.open(&format!("{fault}:{model}")).expect("the fault can be put into the model");
        assert_eq!(check(wrong.as_ref(), &operation), [], "{fault}");
    }
}

#[test]
fn a_violation_shows_the_first_mismatch_with_all_its_bits() {
    let (right, operation, _) = open(VOLTA);
    let wrong = FaultBackend.open("rne-for-rz:v100").expect("the fault can be put into the model");
    let violations = against(wrong.as_ref(), &operation, right.as_ref());
    let text = violations.iter().find(|violation| violation.check == "one-large").expect("it is caught").to_string();
    for part in [
        "one-large: mma.m8n8k4",
        " elements differ",
        "fault:rne-for-rz:v100 gives 0x",
        "sim:v100 gives 0x",
        "a = [0x",
        "b = [0x",
        "c = 0x",
    ] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
}

#[test]
fn the_backend_of_wrong_devices_is_itself_a_right_backend() {
    assert_eq!(check_backend(&FaultBackend), []);
    let found = FaultBackend.discover();
    assert_eq!(found.devices.len(), FAULTS.len(), "{:?}", found.refusals);
    let error = FaultBackend.open("one-lane-wrong:no-such-model").err().expect("the model does not exist");
    assert!(error.is_invalid() && error.to_string().contains("no-such-model"), "{error}");
}

#[test]
fn what_cannot_be_wrong_in_a_way_is_refused() {
    let opened = |name: &str| FaultBackend.open(name).err().map(|error| (error.is_unsupported(), error.to_string()));
    let (unsupported, text) = opened("carry-short:amx").expect("a chain of pairs has no carry bits");
    assert!(unsupported && text.contains("carry-short"), "{text}");
    let (device, ..) = open(F16);
    let error = wrong("rne-for-rz", Right::Device(device)).err().expect("a device has no arithmetic to change");
    assert!(error.is_unsupported() && error.to_string().contains("sim:h100"), "{error}");
    let (device, operation, _) = open(F16);
    let wrapped = wrong("one-lane-wrong", Right::Device(device)).expect("any device can be wrapped");
    assert!(!check(wrapped.as_ref(), &operation).is_empty());
}

/// The environment variable that is set when a test runs in a process of its own.
const APART: &str = "MXPROBE_TEST_APART";

/// Runs one of the ignored tests below in a process of its own.
fn apart(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this test"));
    command.env(APART, "1").args(["--ignored", "--exact", test]).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn compute(fault: &str) {
    assert!(std::env::var_os(APART).is_some(), "this test is run by another one, in a process of its own");
    let (_, operation, _) = open(F16);
    let device = FaultBackend.open(fault).expect("the fault can be put into the model");
    drop(check(device.as_ref(), &operation));
}

#[test]
#[ignore = "aborts: run by another test in a process of its own"]
fn crashing() {
    compute("crash");
}

#[test]
#[ignore = "never returns: run by another test in a process of its own"]
fn hanging() {
    compute("hang");
}

#[test]
fn the_device_that_crashes_takes_its_process_with_it() {
    let status = apart("crashing").status().expect("the test runs");
    // A panic would be caught, and the test would pass.
    assert!(!status.success());
    #[cfg(unix)]
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6), "SIGABRT: {status}");
}

#[test]
fn the_device_that_hangs_does_not_return() {
    let mut child = apart("hanging").spawn().expect("the test runs");
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(700) {
        assert!(child.try_wait().expect("the process can be asked").is_none(), "it returned");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().expect("the process can be ended");
    child.wait().expect("the process has ended");
}

#[test]
fn the_device_that_crashes_once_computes_the_other_operations() {
    let device = FaultBackend.open("once").expect("the fault can be put into the model");
    let last = device.operations().values().next_back().expect("a model has operations");
    assert_eq!(check(device.as_ref(), last), []);
}
