//! Programs as devices: `exec:` with every command, operations of free sizes, and errors for programs that misbehave.
#![cfg(unix)]
#![allow(missing_docs)]

use std::{
    process::{Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

const MXPROBE: &str = env!("CARGO_BIN_EXE_mxprobe");

fn run(arguments: &[&str]) -> Output {
    Command::new(MXPROBE).args(arguments).env_remove("MXPROBE_DEVICE").output().unwrap()
}

/// The standard output of a command that ends with this exit code.
fn text(code: i32, arguments: &[&str]) -> String {
    let output = run(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The standard error of a command that ends with this exit code.
fn error(code: i32, arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A selector for one model that `mxprobe worker` offers as a device.
fn model(name: &str) -> String {
    format!("exec:[sim:{name}] {MXPROBE} worker --backend sim")
}

/// A shell script that answers `discover` with one device of these operations, and `execute` with these lines.
fn script(operations: &str, execute: &str) -> String {
    script_with(operations, execute, r#"echo '{"answer":"failed","message":"no"}'"#)
}

/// The same, with a command to run on a request that is not part of the protocol.
fn script_with(operations: &str, execute: &str, unknown: &str) -> String {
    let found = format!(
        r#"{{"answer":"found","protocol":"mxprobe-device/1","devices":[{{"name":"a script","operations":[{operations}]}}]}}"#
    );
    let script = format!(
        "while read -r line; do case $line in *a_request*) {unknown};; *discover*) echo '{found}';; *) {execute};; \
         esac; done"
    );
    format!("exec:sh -c {}", shlex::try_quote(&script).unwrap())
}

const FREE: &str = r#""gemm.m*n*k*.f32.f16.f16.f32""#;
const OPERATION: &str = "mma.m16n8k8.f32.f16.f16.f32";

#[test]
fn a_comparison_that_is_interrupted_shows_what_was_found_by_then() {
    let folder = tempfile::tempdir().unwrap();
    let (begun, out) = (folder.path().join("begun"), folder.path().join("out.json"));
    let hangs = script(&format!("\"{OPERATION}\""), &format!("echo >> {}; exec sleep 86400", begun.display()));
    let arguments = ["compare", "v100", &hangs, "--format", "json", "--out", out.to_str().unwrap()];
    let mut child = Command::new(MXPROBE).args(arguments).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(600);
    while !begun.exists() {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "the program was not asked");
        sleep(Duration::from_millis(10));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let found: serde_json::Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
    let alone = found["alone"].as_array().unwrap();
    assert!(!alone[0]["operations"].as_array().unwrap().is_empty(), "the model was probed: {found}");
    let notes: Vec<&str> = found["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect();
    assert!(notes.contains(&"B is unfinished: it ends after 0 of 1 operations"), "{notes:?}");
}

#[test]
fn a_model_behind_a_program_is_probed_verified_and_computes_like_the_model() {
    let device = model("a100");
    let findings = |device: &str| {
        let report = text(0, &["run", "--device", device, "--op", OPERATION, "--format", "json", "-q"]);
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["device"]["selector"], device);
        report["operations"][0]["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| format!("{} {} {}", finding["probe"], finding["outcome"], finding["value"]))
            .collect::<Vec<_>>()
    };
    let found = findings(&device);
    assert!(found.len() > 20, "{found:?}");
    assert_eq!(found, findings("sim:a100"));
    let verified = text(0, &["verify", "--device", &device, "--model", "a100", "--op", OPERATION, "--count", "10000"]);
    assert!(verified.contains("no mismatch") || verified.contains("0 mismatches"), "{verified}");
    let other = text(1, &["verify", "--device", &device, "--model", "h100", "--op", OPERATION, "--count", "10000"]);
    assert!(other.contains(OPERATION), "{other}");
    let listed = text(0, &["list", "--device", &device]);
    assert!(listed.contains("model of NVIDIA A100"), "{listed}");
    assert!(text(0, &["conformance", "--device", &device, "--op", OPERATION]).contains("nothing is wrong"));
    let untimed = text(0, &["bench", "--device", &device, "--op", OPERATION]);
    assert!(untimed.contains("unsupported: exec:[sim:a100] "), "it is called by the name that was given: {untimed}");
}

#[test]
fn sizes_that_an_operation_leaves_open_are_fixed_by_a_shape_or_by_an_id() {
    let device = script(FREE, "exit 1");
    let listed = |more: &[&str]| text(0, &[&["list", "--device", &device][..], more].concat());
    assert!(listed(&[]).contains("gemm.m8n8k16.f32.f16.f16.f32"), "{}", listed(&[]));
    assert!(listed(&["--shape", "3x5x7"]).contains("gemm.m3n5k7.f32.f16.f16.f32"));
    let report =
        text(4, &["run", "--device", &device, "--op", "gemm.m1n2k4.f32.f16.f16.f32", "--format", "json", "-q"]);
    assert!(report.contains("\"gemm.m1n2k4.f32.f16.f16.f32\"") && !report.contains("m8n8k16"), "{report}");
    for (shape, words) in
        [("0x1x1", "`0x1x1` is not a shape"), ("8", "`8` is not a shape"), ("1x1x1x1", "`1x1x1x1` is not a shape")]
    {
        assert!(error(2, &["list", "--device", &device, "--shape", shape]).contains(words));
    }
    let none = error(2, &["list", "--device", "sim:h100", "--shape", "1x1x1"]);
    assert!(none.contains("`--shape`: sim:h100 has no operation with free sizes"), "{none}");
}

#[test]
fn a_program_that_is_not_there_or_is_no_device_is_one_clear_error() {
    for (code, device, words) in [
        (2, "exec", "`exec` names no program"),
        (2, "exec: ", "`exec:` names no program"),
        (2, "exec:'x", "an unclosed quote"),
        (2, "exec:[a b", "has no `]`"),
        (2, "exec:no-such-program-of-anybody x", "the program `no-such-program-of-anybody` cannot be started"),
        (3, "exec:true", "`exec:true`: the device's process ended with exit code 0"),
        (3, "exec:sh -c 'echo out of luck >&2; kill -9 $$'", "signal 9 (SIGKILL); it last said: out of luck"),
        (3, "exec:sh -c 'echo \"{\\\"answer\\\":\\\"fond\\\"}\"'", "unknown variant `fond`"),
        (
            3,
            "exec:sh -c 'echo \"{\\\"answer\\\":\\\"found\\\",\\\"protocol\\\":\\\"mxprobe-device/9\\\"}\"'",
            "the program speaks `mxprobe-device/9`",
        ),
        (
            3,
            "exec:sh -c 'echo \"{\\\"answer\\\":\\\"found\\\",\\\"protocol\\\":\\\"mxprobe-device/1\\\"}\"'",
            "has no device",
        ),
    ] {
        let said = error(code, &["list", "--device", device]);
        assert!(said.contains(words) && said.starts_with("error: "), "{device}: {said}");
    }
    let several = error(2, &["eval", "--device", &format!("exec:{MXPROBE} worker --backend sim"), "--op", OPERATION]);
    assert!(several.contains("devices") && several.contains("exec:[sim:h100]"), "{several}");
    let unknown = error(2, &["list", "--device", &model("h101")]);
    assert!(unknown.contains("has no device `sim:h101`") && unknown.contains("it has exec:[sim:a100]"), "{unknown}");
}

#[test]
fn a_program_that_hangs_or_lies_or_dies_is_named_and_ends_the_run_with_exit_code_4() {
    let id = "gemm.m8n8k16.f32.f16.f16.f32";
    for (execute, words) in [
        ("sleep 600", "timed out after 1 s"),
        ("echo unlucky >&2; exit 3", "ended with exit code 3; it last said: unlucky"),
        (r#"printf '{"answer":"done","bytes":[9999999]}\n'"#, "announced 9999999 bytes"),
        (r#"printf '{"answer":"done","bytes":[0]}\n'"#, "returned 0 elements"),
        (r#"printf '{"answer":"donne"}\n'"#, "unknown variant `donne`"),
        (r#"printf '{"answer":"failed","message":"no %s"}\n' room"#, "no room"),
    ] {
        let device = script(FREE, execute);
        // Joined into one line, because a screen of 80 columns wraps long reasons.
        let report = text(4, &["run", "--device", &device, "--timeout", "1", "-q"]);
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains(id) && report.contains(words), "{execute}: {report}");
        let said = text(1, &["conformance", "--device", &device, "--timeout", "1", "--format", "json"]);
        assert!(said.contains(words) && said.contains("\"layout\""), "{execute}: {said}");
    }
    // Every command that uses a program that hangs names it.
    let device = script(FREE, "sleep 600");
    for command in [&["identify", "--out", "/dev/null"][..], &["eval"]] {
        let output = Command::new(MXPROBE)
            .args(command)
            .args(["--device", &device, "--op", id, "--timeout", "1"])
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        // Without input, `eval` does not ask the device anything.
        assert_eq!(output.status.code(), Some(if command[0] == "eval" { 0 } else { 4 }), "{command:?}: {output:?}");
    }
}

#[test]
fn a_program_that_breaks_the_protocol_is_told_where_in_its_order() {
    let answer = |found: &str| {
        format!("exec:sh -c {}", shlex::try_quote(&format!("read -r line; echo '{found}'; cat >/dev/null")).unwrap())
    };
    let found =
        |devices: &str| answer(&format!(r#"{{"answer":"found","protocol":"mxprobe-device/1","devices":[{devices}]}}"#));
    let nothing_more = script_with(FREE, "exit 1", "exit 5");
    for (device, check, words) in [
        (answer(r#"{"answer":"found"}"#), "discover", "missing field `protocol`"),
        (found(""), "devices", "it has no device"),
        (found(r#"{"name":"x"}"#), "devices", "the device `0` has no operation"),
        (
            found(r#"{"name":" ","operations":["gemm.m1n1k1.f32.f32.f32.f32"]}"#),
            "devices",
            "the name of the device `0` is empty",
        ),
        (
            found(r#"{"name":"x","operations":["gemm.m1n1k1.f32"]}"#),
            "discover",
            "`gemm.m1n1k1.f32` is not an operation id",
        ),
        (
            found(&format!(r#"{{"name":"x","operations":[{FREE}]}},{{"name":"y","operations":[{FREE}]}}"#)),
            "devices",
            "two devices have the selector `0`",
        ),
        (
            found(&format!(r#"{{"name":"x","operations":[{FREE},{FREE}]}}"#)),
            "devices",
            "has the operation `gemm.m*n*k*.f32.f16.f16.f32` twice",
        ),
        (nothing_more, "unknown", "ended with exit code 5"),
    ] {
        let said = text(1, &["conformance", "--device", &device, "--format", "json"]);
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let checks = said["program"].as_array().unwrap();
        let wrong: Vec<_> = checks.iter().filter(|check| check["found"].is_string()).collect();
        assert_eq!(wrong.len(), 1, "{said}");
        assert_eq!(wrong[0]["name"], check, "{said}");
        assert!(wrong[0]["found"].as_str().unwrap().contains(words), "{said}");
    }
}
