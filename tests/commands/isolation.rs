//! A device that crashes, hangs or gets lost costs one line each.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use mxprobe::report::{Outcome, Report};

use super::{LIMIT, Said, mxprobe, say, say_to};

/// Probes three operations of a device that fails. Hangs are endless, so that their limit may be short.
fn run(device: &str) -> (Said, Report) {
    let limit = if device.contains("hang") { "0.5" } else { "86400" };
    let said = say(&[
        "run",
        "--device",
        device,
        "--op",
        "dot.m1n1k4.f??.?16.f16.f??",
        "--op",
        "dot.m1n1k4.f32.bf16.*",
        "--format",
        "json",
        "--timeout",
        limit,
        "--probe",
        "subnormals",
    ]);
    let report = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}\n{}", said.out, said.err));
    (said, report)
}

fn outcomes(report: &Report) -> Vec<(Outcome, String)> {
    let findings = report.operations.iter().map(|operation| &operation.findings[0]);
    findings.map(|finding| (finding.outcome, finding.reason.clone().unwrap_or_default())).collect()
}

#[test]
fn a_crash_takes_one_operation_with_it() {
    let (said, report) = run("fault:once:fma-chain");
    let said = said.ended(4);
    let outcomes = outcomes(&report);
    assert_eq!(outcomes[0].0, Outcome::Failed, "{}", said.out);
    assert!(outcomes[0].1.contains("signal 6 (SIGABRT)"), "{}", outcomes[0].1);
    assert!(
        outcomes.len() == 3 && outcomes[1..].iter().all(|(outcome, _)| *outcome == Outcome::Measured),
        "{}",
        said.out
    );
}

#[test]
fn a_hang_ends_at_the_time_limit() {
    let (said, report) = run("fault:hang:fma-chain");
    said.ended(4);
    for (outcome, reason) in outcomes(&report) {
        assert_eq!((outcome, reason.as_str()), (Outcome::Failed, "timed out after 0.5 s"));
    }
}

#[test]
fn a_device_that_is_lost_is_asked_the_next_operation_in_a_new_process() {
    let (said, report) = run("fault:lost:fma-chain");
    said.ended(4);
    for (outcome, reason) in outcomes(&report) {
        assert_eq!((outcome, reason.as_str()), (Outcome::Failed, "the device was lost"), "each was asked");
    }
}

#[test]
fn a_device_that_fails_every_time_is_given_up() {
    for device in ["fault:crash:fma-chain", "fault:lost:fma-chain"] {
        let said = say(&["run", "--device", device, "--op", "dot.m1n1k4.*", "--format", "json"]).ended(4);
        let report: Report = serde_json::from_str(&said.out).unwrap();
        let outcomes = outcomes(&report);
        assert!(outcomes[..3].iter().all(|(outcome, _)| *outcome == Outcome::Failed), "{}", said.out);
        let reason = "3 operations before in a row lost the device, ended its process or hung";
        let given_up = outcomes[3..].iter().all(|found| *found == (Outcome::Skipped, reason.to_owned()));
        assert!(given_up && outcomes.len() > 3, "{}", said.out);
    }
}

#[test]
fn other_devices_are_probed_after_one_that_fails() {
    let said =
        say(&["--device", "fault:lost:avx512", "--device", "sim:avx512", "--op", "dot.*.bf16.*", "--format", "json"]);
    let reports: Vec<Report> = serde_json::from_str(&said.ended(4).out).unwrap();
    let last = &reports[1].operations[0].findings;
    assert!(last.iter().any(|finding| finding.outcome == Outcome::Measured));
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_writes_what_it_knows() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let arguments = ["run", "--device", "fault:hang", "--timeout", "3600", "--format", "json", "--out"];
    let mut command = mxprobe(&arguments);
    let child = command.arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The report of a device that hangs exists before the first operation, and nothing is ever added to it.
    let deadline = Instant::now() + LIMIT;
    while !file.exists() {
        assert!(Instant::now() < deadline, "the report was not begun");
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let said = Said::from(child.wait_with_output().unwrap()).ended(130);
    let report: Report = serde_json::from_str(&said.out).unwrap();
    assert!(report.time.interrupted && report.operations.is_empty());
    let saved: Report = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(saved.time.interrupted);
}

#[test]
fn a_backend_whose_search_dies_is_a_line_in_the_listing() {
    let said: Said =
        mxprobe(&["list", "--backend", "fault", "--json"]).env("MXPROBE_EXE", "false").output().unwrap().into();
    let said = said.ended(0);
    assert!(said.out.contains("the search for fault devices"), "{}", said.out);
    assert!(said.out.contains("ended with exit code 1"), "{}", said.out);
}

#[test]
fn what_a_driver_says_is_said_on_as_it_comes_with_two_v() {
    let run = |more: &[&str]| {
        let operation = ["run", "--device", "fault:panic:fma-chain", "--op", "dot.m1n1k4.f32.bf16.*"];
        let said = say(&[&operation[..], &["--probe", "subnormals"], more].concat());
        assert_eq!(said.code, Some(4));
        said.err
    };
    let words = "the wrong device `panic` was asked to compute";
    let said = run(&["-vv"]);
    let line = said.lines().find(|line| line.contains(words)).expect(&said);
    assert!(line.starts_with("process "), "{said}");
    assert!(!run(&["-v"]).contains(words));
}

/// Every command that computes on a device, with the arguments that make it compute one operation.
const COMMANDS: [&[&str]; 5] = [
    &["eval", "--op", OPERATION],
    &["gemm", "--op", OPERATION, "--random", "2,3,8", "--out", "/dev/null"],
    &["verify", "--op", OPERATION, "--model", "fma-chain", "--count", "1000"],
    &["identify", "--op", OPERATION, "--out", "/dev/null"],
    &["run", "--op", OPERATION, "--format", "json"],
];
const OPERATION: &str = "dot.m1n1k4.f32.f16.f16.f32";

#[test]
fn a_device_that_hangs_or_aborts_ends_every_command_with_exit_code_4_and_its_reason() {
    let dot = r#"{"a":["0x3c00"],"b":["0x3c00"],"c":"0x00000000"}"#;
    let cases = [
        ("fault:hang:fma-chain", "10", "timed out after 10 s"),
        ("fault:crash:fma-chain", "86400", "the device's process was ended by signal 6 (SIGABRT)"),
        ("fault:lost:fma-chain", "86400", "the device was lost"),
    ];
    std::thread::scope(|scope| {
        for (command, (device, timeout, reason)) in
            COMMANDS.into_iter().flat_map(|command| cases.map(|case| (command, case)))
        {
            scope.spawn(move || {
                let arguments = [command, &["--device", device, "--timeout", timeout]].concat();
                let said = say_to(&arguments, dot.as_bytes()).ended(4);
                let is_said = said.out.contains(reason) || said.err.contains(reason);
                assert!(is_said, "{arguments:?}: {}{}", said.out, said.err);
            });
        }
    });
}

#[test]
fn eval_answers_the_same_through_another_process() {
    let dots = (0..2000_u32).map(|at| {
        let number = format!("0x{:04x}", 0x3c00 + at % 777);
        format!("{{\"a\":[\"{number}\",\"0x3800\"],\"b\":[\"0x3c01\",\"{number}\"],\"c\":\"0x{:08x}\"}}\n", at << 12)
    });
    let dots: String = dots.collect();
    let of = |device: &str| say_to(&["eval", "--op", OPERATION, "--device", device], dots.as_bytes()).ended(0).out;
    let answers = of("fault:rubbish:fma-chain");
    assert_eq!(answers.lines().count(), 2000);
    assert_eq!(answers, of("sim:fma-chain"));
}
