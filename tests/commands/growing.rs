//! `verify` and `identify`: their files grow with the run, and a device that fails costs only the operation that was
//! running.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use mxprobe::report::{IdentificationReport, VerificationReport, VerifiedOperation};

use super::{LIMIT, Said, faults::signal, mxprobe};

/// Operations; the fourth is wrong.
const OPERATIONS: &str = "dot.m1n1k4.f32.*";
const WRONG: &str = "dot.m1n1k4.f32.f16.f16.f32";
const BEFORE: [&str; 3] =
    ["dot.m1n1k4.f32.bf16.bf16.f32", "dot.m1n1k4.f32.e4m3.e4m3.f32", "dot.m1n1k4.f32.e5m2.e5m2.f32"];

/// The folder with a command's files.
struct Written {
    folder: tempfile::TempDir,
}

impl Written {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a command on a device with one wrong operation.
    fn start(&self, command: &str, fault: &str) -> Child {
        let device = format!("fault:{fault}:fma-chain");
        let (report, model) = (self.path("report.json"), self.path("model.toml"));
        let paths = [report.to_str().unwrap(), model.to_str().unwrap()];
        let head = [command, "--device", &device, "--op", OPERATIONS, "--timeout", "86400"];
        let more = match command {
            "verify" => vec!["--model", "fma-chain", "--count", "1000", "--out", paths[0]],
            _ => vec!["--out", paths[1], "--report", paths[0]],
        };
        let mut command = mxprobe(&[&head[..], &more].concat());
        command.env("MXPROBE_FAULT_ONLY", WRONG).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Waits until the report holds the operations before the one that hangs.
    fn wait(&self, child: &mut Child) {
        let deadline = Instant::now() + LIMIT;
        let is_there = |text: String| BEFORE.iter().all(|id| text.contains(&format!("\"id\": \"{id}\"")));
        while !fs::read_to_string(self.path("report.json")).is_ok_and(is_there) {
            assert!(Instant::now() < deadline, "the operations before were not saved");
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            sleep(Duration::from_millis(20));
        }
    }

    fn verified(&self) -> VerificationReport {
        serde_json::from_str(&fs::read_to_string(self.path("report.json")).unwrap()).unwrap()
    }

    fn identified(&self) -> IdentificationReport {
        serde_json::from_str(&fs::read_to_string(self.path("report.json")).unwrap()).unwrap()
    }
}

fn failures(report: &VerificationReport) -> Vec<(String, Option<String>)> {
    let of = |found: &VerifiedOperation| (found.id.to_string(), found.failed.clone());
    report.operations.iter().map(of).collect()
}

fn is_model(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| BEFORE.iter().all(|id| text.contains(id)))
}

#[test]
fn a_verification_and_an_identification_that_are_killed_leave_what_was_finished() {
    for command in ["verify", "identify"] {
        let written = Written::new();
        let mut child = written.start(command, "hang");
        written.wait(&mut child);
        child.kill().unwrap();
        child.wait().unwrap();
        if command == "verify" {
            let report = written.verified();
            assert!(report.time.interrupted && report.operations.iter().all(|found| found.failed.is_none()));
        } else {
            assert!(written.identified().time.interrupted && is_model(&written.path("model.toml")));
        }
    }
}

#[test]
#[cfg(unix)]
fn a_report_survives_the_two_signals_of_timeout() {
    for command in ["verify", "identify"] {
        let written = Written::new();
        let mut child = written.start(command, "hang");
        written.wait(&mut child);
        let id = child.id().to_string();
        // As `timeout` does: two signals in quick succession.
        let twice = format!("kill -TERM {id}; kill -TERM {id}");
        assert!(std::process::Command::new("sh").args(["-c", &twice]).status().unwrap().success());
        let said = Said::from(child.wait_with_output().unwrap()).ended(130);
        assert!(command == "verify" || said.out.starts_with("3 of ") || said.out.contains("\n3 of "), "{}", said.out);
        if command == "verify" {
            let report = written.verified();
            assert_eq!((report.time.interrupted, report.operations.len()), (true, 3), "{:?}", failures(&report));
        } else {
            let report = written.identified();
            assert_eq!((report.time.interrupted, report.operations.len()), (true, 3));
            assert!(report.model.is_some() && is_model(&written.path("model.toml")));
        }
    }
    // One signal is enough.
    let written = Written::new();
    let mut child = written.start("verify", "hang");
    written.wait(&mut child);
    signal("-INT", child.id());
    Said::from(child.wait_with_output().unwrap()).ended(130);
}

#[test]
fn a_lost_device_is_the_fault_of_the_operation_that_was_asked_and_of_no_other() {
    for (fault, words) in [("lost", "the device was lost"), ("crash", "SIGABRT")] {
        let written = Written::new();
        Said::from(written.start("verify", fault).wait_with_output().unwrap()).ended(4);
        let found = failures(&written.verified());
        assert!(found.len() > 3, "{found:?}");
        for (id, failed) in found {
            match failed {
                Some(reason) => assert!(id == WRONG && reason.contains(words), "{fault}: {id}: {reason}"),
                None => assert_ne!(id, WRONG),
            }
        }
        let written = Written::new();
        Said::from(written.start("identify", fault).wait_with_output().unwrap()).ended(4);
        for found in written.identified().operations {
            let reason = found.reason.unwrap_or_default();
            assert_eq!(found.id.to_string() == WRONG, reason.contains(words), "{fault}: {}: {reason}", found.id);
        }
    }
}

#[test]
fn a_device_that_always_fails_is_given_up_by_verify_too() {
    for fault in ["lost", "crash"] {
        let device = format!("fault:{fault}:fma-chain");
        let arguments = ["verify", "--device", &device, "--model", "fma-chain", "--op", "dot.m1n1k4.*"];
        let said = mxprobe(&[&arguments[..], &["--count", "1000", "--format", "json"]].concat()).output().unwrap();
        let report: VerificationReport = serde_json::from_str(&Said::from(said).ended(4).out).unwrap();
        let reasons: Vec<String> = failures(&report).into_iter().map(|(_, reason)| reason.unwrap()).collect();
        let given_up = "not asked: 3 operations before in a row lost the device, ended its process or hung";
        assert!(reasons.len() > 3 && reasons[..3].iter().all(|reason| !reason.contains("not asked")), "{reasons:?}");
        assert!(reasons[3..].iter().all(|reason| reason == given_up), "{reasons:?}");
    }
}
