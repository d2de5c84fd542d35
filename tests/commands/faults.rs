//! Every way in which a device can fail costs only the operation that was running, is named in the report, and is made
//! up for when the run is resumed.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use mxprobe::report::{OperationReport, Outcome, Report};

use super::{LIMIT, Said, mxprobe, say};

/// The operations that are probed; the third is wrong.
const OPERATIONS: &str = "dot.m1n1k4.f32.*";
const WRONG: &str = "dot.m1n1k4.f32.f16.f16.f32";

/// The time limit of an operation, in seconds: those that do not hang take milliseconds.
const SILENT: &str = "20";

/// A report in a temporary directory.
struct Saved {
    _directory: tempfile::TempDir,
    file: PathBuf,
}

impl Saved {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("report.json");
        Self { _directory: directory, file }
    }

    fn path(&self) -> &str {
        self.file.to_str().unwrap()
    }

    /// The arguments of a run of this device that is saved here.
    fn run<'a>(&'a self, device: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let own = ["run", "--device", device, "--op", OPERATIONS, "--probe", "subnormals", "--out", self.path(), "-q"];
        [&own[..], more].concat()
    }

    /// The report, which must be valid.
    #[track_caller]
    fn report(&self) -> Report {
        say(&["validate", self.path()]).ended(0);
        serde_json::from_str(&fs::read_to_string(&self.file).unwrap()).unwrap()
    }

    /// Resumes the run with a device that is no longer wrong: the report is then complete and says that it was resumed.
    #[track_caller]
    fn completed(&self, left: usize) -> Report {
        let mut command = mxprobe(&["run", "--resume", self.path(), "-q"]);
        Said::from(command.env("MXPROBE_FAULT_ONLY", "none").output().unwrap()).ended(0);
        let report = self.report();
        assert!(report.operations.iter().all(OperationReport::is_finished) && !report.time.interrupted);
        assert_eq!(report.unfinished(), Some(Vec::new()));
        assert_eq!(report.resumed.last().map(|part| part.operations), Some(left));
        report
    }
}

/// Runs the command on a device with one wrong operation.
fn wrong_once(arguments: &[&str]) -> Said {
    mxprobe(arguments).env("MXPROBE_FAULT_ONLY", WRONG).output().unwrap().into()
}

fn id(operation: &OperationReport) -> String {
    operation.operation.id.to_string()
}

/// An operation's findings as text, without its duration, which differs from run to run.
fn findings(operation: &OperationReport) -> String {
    serde_json::to_string(&operation.findings).unwrap()
}

/// The report of a right device.
fn right() -> Report {
    let saved = Saved::new();
    say(&saved.run("sim:fma-chain", &[])).ended(0);
    saved.report()
}

/// Checks a device on which one operation of five has this fault: the report has the other findings and these words
/// about the fault, and it can be completed.
#[track_caller]
fn costs_one_operation(fault: &str, words: &[&str]) {
    let saved = Saved::new();
    wrong_once(&saved.run(&format!("fault:{fault}:fma-chain"), &["--timeout", SILENT])).ended(4);
    let (report, right) = (saved.report(), right());
    assert_eq!(report.operations.len(), right.operations.len());
    assert!(!report.time.interrupted && report.resumed.is_empty());
    for (found, right) in report.operations.iter().zip(&right.operations) {
        assert_eq!(id(found), id(right));
        if id(found) == WRONG {
            let failed = found.findings.iter().find(|finding| finding.outcome == Outcome::Failed).expect("it failed");
            let reason = failed.reason.as_deref().unwrap();
            assert!(words.iter().all(|word| reason.contains(word)), "{fault}: {reason}");
        } else {
            assert_eq!(findings(found), findings(right), "{fault}");
        }
    }
    let completed = saved.completed(1);
    assert!(completed.time.duration_ns > report.time.duration_ns, "both parts count");
    for (found, right) in completed.operations.iter().zip(&right.operations) {
        assert_eq!((id(found), findings(found)), (id(right), findings(right)), "{fault}");
    }
}

#[test]
fn a_device_that_aborts_costs_one_operation() {
    costs_one_operation("crash", &["signal 6 (SIGABRT)"]);
}

#[test]
fn a_device_that_panics_costs_one_operation() {
    costs_one_operation("panic", &["exit code 101", "it last said: the wrong device `panic` was asked to compute"]);
}

#[test]
fn a_device_that_hangs_costs_one_operation_and_its_time_limit() {
    costs_one_operation("hang", &["timed out after 20 s"]);
}

#[test]
fn a_device_that_exits_costs_one_operation_whatever_its_exit_code() {
    costs_one_operation("exit-0", &["the device's process ended with exit code 0"]);
    costs_one_operation("exit-1", &["the device's process ended with exit code 1"]);
}

#[test]
fn a_device_that_returns_short_output_costs_one_operation() {
    costs_one_operation("short-output", &["returned 15 elements of f32 for 16 tiles"]);
}

#[test]
fn a_device_that_returns_the_sentinel_costs_one_operation() {
    costs_one_operation("nothing-written", &["self-test", "0xcdcdcdcd"]);
}

#[test]
fn a_device_that_writes_rubbish_for_ever_costs_one_operation_and_its_time_limit() {
    costs_one_operation("babble", &["timed out after 20 s", "it last said: "]);
}

#[test]
fn rubbish_between_answers_costs_nothing() {
    let saved = Saved::new();
    wrong_once(&saved.run("fault:rubbish:fma-chain", &[])).ended(0);
    let (report, right) = (saved.report(), right());
    let both = |report: &Report| report.operations.iter().map(|one| (id(one), findings(one))).collect::<Vec<_>>();
    assert_eq!(both(&report), both(&right));
}

#[test]
fn a_device_that_is_lost_costs_one_operation() {
    costs_one_operation("lost", &["the device was lost"]);
}

#[test]
fn a_budget_that_is_spent_leaves_the_rest_for_another_time() {
    let saved = Saved::new();
    wrong_once(&saved.run("fault:hang:fma-chain", &["--timeout", "86400", "--budget", "20"])).ended(4);
    let report = saved.report();
    let skipped = report.operations.iter().filter(|operation| !operation.is_finished()).count();
    for operation in report.operations.iter().filter(|operation| !operation.is_finished()) {
        let finding = &operation.findings[0];
        assert_eq!(finding.outcome, Outcome::Skipped);
        assert_eq!(finding.reason.as_deref(), Some("the budget was spent (20 s)"));
    }
    assert!(skipped >= 1 && skipped < report.operations.len(), "{skipped}");
    saved.completed(skipped);
}

#[test]
fn a_budget_holds_for_models_and_without_isolation_too() {
    let saved = Saved::new();
    say(&["run", "--device", "sim:b200", "--out", saved.path(), "--budget", "0.3", "-q"]).ended(4);
    let report = saved.report();
    assert_eq!(report.operations.last().unwrap().findings[0].reason.as_deref(), Some("the budget was spent (0.3 s)"));
    assert_eq!(report.operations.len(), report.plan.unwrap().operations.len());
}

/// Starts a run that hangs at one operation, and waits until all before it are saved.
fn stuck(saved: &Saved) -> Child {
    let mut command = mxprobe(&saved.run("fault:hang:fma-chain", &["--timeout", "86400"]));
    command.env("MXPROBE_FAULT_ONLY", WRONG).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let deadline = Instant::now() + LIMIT;
    let is_there = || {
        fs::read_to_string(&saved.file)
            .is_ok_and(|text| text.contains("dot.m1n1k4.f32.e5m2.e5m2.f32\",\n      \"scope"))
    };
    while !is_there() {
        assert!(Instant::now() < deadline, "the operations before were not saved");
        sleep(Duration::from_millis(20));
    }
    child
}

/// Ends a process with a signal.
pub(super) fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// The children of a process, from `/proc`.
#[cfg(target_os = "linux")]
fn children(of: u32) -> Vec<u32> {
    let parent = |id: u32| state(id).map(|(_, parent)| parent);
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    all.filter(|id| parent(*id) == Some(of)).collect()
}

/// The state of a process and its parent; `None` if it is gone.
#[cfg(target_os = "linux")]
fn state(id: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_run_leaves_a_valid_report_and_no_process() {
    let saved = Saved::new();
    let mut child = stuck(&saved);
    let workers = children(child.id());
    assert_eq!(workers.len(), 1, "one device is asked");
    signal("-KILL", child.id());
    child.wait().unwrap();
    let deadline = Instant::now() + LIMIT;
    while state(workers[0]).is_some_and(|(state, _)| state != 'Z') {
        assert!(Instant::now() < deadline, "the device's process outlives the run");
        sleep(Duration::from_millis(20));
    }
    let report = saved.report();
    let planned = report.plan.as_ref().unwrap().operations.len();
    assert!(report.time.interrupted && !report.operations.is_empty() && report.operations.len() < planned);
    let left = planned - report.operations.len();
    let completed = saved.completed(left);
    let (right, found) = (right(), |report: &Report| report.operations.iter().map(findings).collect::<Vec<_>>());
    assert_eq!(found(&completed), found(&right));
}

#[test]
#[cfg(unix)]
fn a_run_that_is_interrupted_ends_with_130_and_can_be_resumed() {
    for name in ["-INT", "-TERM"] {
        let saved = Saved::new();
        let child = stuck(&saved);
        signal(name, child.id());
        Said::from(child.wait_with_output().unwrap()).ended(130);
        let report = saved.report();
        assert!(report.time.interrupted && report.operations.iter().all(OperationReport::is_finished));
        let left = report.unfinished().unwrap().len();
        assert!(left >= 1);
        saved.completed(left);
    }
}

/// Runs the command with files limited to this many blocks of 512 bytes; writing more fails or, if `ends`, kills it.
#[cfg(target_os = "linux")]
fn with_little_disk(blocks: usize, ends: bool, arguments: &[&str]) -> Said {
    let trap = if ends { "" } else { "trap '' XFSZ; " };
    let script = format!("{trap}ulimit -f {blocks}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_mxprobe")]).args(arguments);
    command.env("MXPROBE_FAULT_ONLY", "none").stdin(Stdio::null()).output().unwrap().into()
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_fills_midway_leaves_what_was_saved_and_the_rest_on_standard_output() {
    for ends in [false, true] {
        let saved = Saved::new();
        let arguments = saved.run("fault:crash:fma-chain", &["--format", "json"]);
        let said = with_little_disk(16, ends, &arguments);
        let right = right();
        if ends {
            assert_eq!(said.code, None, "the limit ended it: {}", said.err);
        } else {
            let said = said.ended(2);
            assert!(said.err.contains("cannot be written: File too large"), "{}", said.err);
            assert!(said.err.contains("--resume"), "{}", said.err);
            let printed: Report = serde_json::from_str(&said.out).unwrap();
            assert_eq!(printed.operations.len(), right.operations.len(), "nothing that was learnt is lost");
        }
        let report = saved.report();
        assert!(report.time.interrupted && !report.operations.is_empty());
        let left = right.operations.len() - report.operations.len();
        assert!(left > 0);
        saved.completed(left);
        assert!(fs::metadata(&saved.file).unwrap().len() > 16 * 512);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_is_full_is_an_error_before_anything_is_asked() {
    let said = say(&["run", "--device", "sim:b200", "--out", "/dev/full"]).ended(2);
    assert!(said.err.contains("`/dev/full` cannot be written: No space left on device"), "{}", said.err);
    assert_eq!(said.out, "");
}

#[test]
fn a_run_that_is_resumed_and_fails_again_keeps_what_it_had() {
    let saved = Saved::new();
    wrong_once(&saved.run("fault:crash:fma-chain", &[])).ended(4);
    let before = saved.report();
    for times in 1..3 {
        wrong_once(&["run", "--resume", saved.path(), "-q"]).ended(4);
        let after = saved.report();
        assert_eq!(after.resumed.len(), times);
        let both = |report: &Report| report.operations.iter().map(findings).collect::<Vec<_>>();
        assert_eq!(both(&after), both(&before));
    }
    let shown = say(&["report", saved.path()]).ended(0).out;
    assert!(shown.contains("resumed 2 times, last at 20"), "{shown}");
}

#[test]
fn several_devices_of_one_file_are_resumed_each() {
    let saved = Saved::new();
    let devices = ["--device", "sim:amx", "--device", "fault:lost:fma-chain", "--device", "fault:crash:fma-chain"];
    let probe = ["--op", OPERATIONS, "--op", "*.bf16.*", "--probe", "subnormals", "--out", saved.path(), "-q"];
    wrong_once(&[&["run"], &devices[..], &probe].concat()).ended(4);
    say(&["validate", saved.path()]).ended(0);
    let mut command = mxprobe(&["run", "--resume", saved.path(), "-q", "--format", "json"]);
    let said = Said::from(command.env("MXPROBE_FAULT_ONLY", "none").output().unwrap()).ended(0);
    let text = fs::read_to_string(&saved.file).unwrap();
    assert_eq!(said.out, text, "what is printed is what is saved");
    let reports: Vec<Report> = serde_json::from_str(&text).unwrap();
    let resumed: Vec<usize> = reports.iter().map(|report| report.resumed.len()).collect();
    assert_eq!(resumed, [0, 1, 1]);
    assert!(reports.iter().all(|report| report.unfinished() == Some(Vec::new())));
}

#[test]
fn a_finished_report_is_left_as_it_is() {
    let saved = Saved::new();
    say(&saved.run("sim:fma-chain", &[])).ended(0);
    let before = fs::read(&saved.file).unwrap();
    let said = say(&["run", "--resume", saved.path()]).ended(0);
    assert!(said.err.contains("nothing is left to ask"), "{}", said.err);
    let shown = say(&["report", saved.path()]).ended(0).out;
    assert_eq!(said.out, format!("{shown}saved: {}\n", saved.path()));
    assert_eq!(fs::read(&saved.file).unwrap(), before);
}

/// Checks that `--resume` refuses a changed report of a run of `sim:amx`, with these words, and keeps the file.
#[track_caller]
fn refused(change: impl Fn(&mut serde_json::Value), more: &[&str], words: &[&str]) {
    let saved = Saved::new();
    let arguments =
        ["run", "--device", "sim:amx", "--op", "TDPBF16PS", "--probe", "order", "--out", saved.path(), "-q"];
    say(&arguments).ended(0);
    let mut value: serde_json::Value = serde_json::from_str(&fs::read_to_string(&saved.file).unwrap()).unwrap();
    value["operations"] = serde_json::json!([]);
    change(&mut value);
    let text = value.to_string();
    fs::write(&saved.file, &text).unwrap();
    let said = say(&[&["run", "--resume", saved.path()], more].concat()).ended(2);
    for word in words {
        assert!(said.err.contains(word), "`{word}` is not in: {}", said.err);
    }
    assert_eq!(fs::read_to_string(&saved.file).unwrap(), text, "a report that is refused is not changed");
}

#[test]
fn another_device_or_driver_is_refused_with_both_names() {
    refused(|_| (), &["--device", "sim:avx512"], &["model of Intel AMX", "(amx), and sim:avx512 is ", "(avx512)"]);
    refused(|report| report["device"]["fingerprint"] = "amx2".into(), &[], &["(amx2)", "sim:amx is ", "(amx)"]);
    let driver = serde_json::json!({"name": "NVIDIA", "version": "570.1", "api_version": "12.8"});
    refused(|report| report["device"]["driver"] = driver.clone(), &[], &["with NVIDIA 570.1", "without a driver"]);
    refused(|report| report["device"]["emulated"] = true.into(), &[], &["sim:amx is not a double"]);
}

#[test]
fn a_report_that_cannot_be_gone_on_with_is_refused() {
    let without_plan = |report: &mut serde_json::Value| {
        report.as_object_mut().unwrap().remove("plan");
    };
    refused(without_plan, &[], &["does not contain the plan of the run on sim:amx"]);
    refused(|report| report["time"]["start"] = "noon".into(), &[], &["cannot be resumed", "time.start", "`noon`"]);
    refused(|report| report["schema"] = "mxprobe-report/2.0".into(), &[], &["version 2"]);
    refused(|_| (), &["--op", "*"], &["--op"]);
    refused(|_| (), &["--out", "other.json"], &["--out"]);
    let said = say(&["run", "--resume", "no/such.json"]).ended(2);
    assert!(said.err.contains("`no/such.json` cannot be read"), "{}", said.err);
    say(&["run", "--resume", "-"]).ended(2);
    say(&["run", "--resume", "src"]).ended(2);
}

#[test]
fn the_report_is_whole_at_every_moment() {
    let saved = Saved::new();
    let mut child = mxprobe(&["run", "--device", "sim:l40s", "--probe", "order", "--out", saved.path(), "-q"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut sizes = Vec::new();
    let mut look = || {
        if let Some(text) = read(&saved.file) {
            let report: Report = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            sizes.push(report.operations.len());
        }
    };
    while child.try_wait().unwrap().is_none() {
        look();
    }
    child.wait().unwrap();
    look();
    // The number of times that the file was read depends on the machine.
    assert!(sizes.is_sorted() && sizes.last().is_some_and(|all| *all > 100), "it grows: {sizes:?}");
}

fn read(file: &Path) -> Option<String> {
    let mut text = String::new();
    fs::File::open(file).ok()?.read_to_string(&mut text).ok()?;
    Some(text)
}
