//! A run that is killed leaves a report and a journal, which are read as one report.

use std::{
    fs,
    path::Path,
    process::Stdio,
    thread::sleep,
    time::{Duration, Instant},
};

use mxprobe::report::Report;

use super::{mxprobe, say};

/// Much longer than anything here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(600);

/// Operations whose report is several times as long as what is rewritten each time.
const RUN: [&str; 7] = ["run", "--device", "sim:h100", "--op", "mma.m16n8k16*", "-q", "--out"];

fn report(path: &str) -> Report {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// The operations of a report, without their durations.
fn learnt(mut report: Report) -> serde_json::Value {
    report.operations.iter_mut().for_each(|operation| operation.duration_ns = 0);
    serde_json::to_value(report.operations).unwrap()
}

/// Kills a run once its journal has this many bytes. Returns how many operations the report and the journal have.
fn killed(path: &str, after_bytes: u64) -> Option<(usize, usize)> {
    let part = format!("{path}.part");
    let mut child = mxprobe(&[&RUN[..], &[path]].concat()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + LIMIT;
    let is_due = || fs::metadata(&part).is_ok_and(|part| part.len() >= after_bytes);
    while !is_due() && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline);
        sleep(Duration::from_micros(200));
    }
    child.kill().unwrap();
    let code = child.wait().unwrap().code();
    if code.is_some() {
        assert_eq!(code, Some(0));
        return None;
    }
    let lines = fs::read_to_string(&part).unwrap_or_default();
    Some((report(path).operations.len(), lines.split_inclusive('\n').filter(|line| line.ends_with('\n')).count()))
}

#[test]
fn a_run_that_is_killed_has_lost_no_operation_but_the_one_in_hand() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let whole = path("whole.json");
    say(&[&RUN[..], &[&whole]].concat()).ended(0);
    assert!(!Path::new(&path("whole.json.part")).exists(), "a run that has ended has no journal");
    let all = report(&whole).operations.len();
    let mut kills = 0;
    for after in [1, 30_000, 80_000, 150_000] {
        let file = path(&format!("{after}.json"));
        let Some((written, noted)) = killed(&file, after) else { continue };
        kills += usize::from(noted > 0);
        // A line that the kill cut off is ignored, and so are lines of another run.
        let part = format!("{file}.part");
        let text = fs::read_to_string(&part).unwrap_or_default();
        let other =
            text.lines().next().unwrap_or_default().replacen("\"selector\":\"sim:h100\"", "\"selector\":\"sim:x\"", 1);
        fs::write(&part, format!("{text}{other}\n{{\"report\":0,\"start")).unwrap();
        let shown: Report = serde_json::from_str(&say(&["report", &file, "--format", "json"]).ended(0).out).unwrap();
        assert!((written..=written + noted).contains(&shown.operations.len()), "{written} {noted}");
        assert!(shown.operations.len() > written || noted == 0, "the journal is read: {written} {noted}");
        let left = shown.unfinished().unwrap().len();
        assert_eq!(left, all - shown.operations.len());
        say(&["run", "--resume", &file, "-q"]).ended(0);
        assert!(!Path::new(&part).exists());
        let resumed = report(&file);
        assert_eq!(resumed.resumed.last().map(|part| part.operations), Some(left).filter(|left| *left > 0));
        assert_eq!(learnt(resumed), learnt(report(&whole)));
    }
    assert!(kills > 0, "no kill came in time");
}

/// The bytes that a process has written to all its files, as the system counts them.
#[cfg(target_os = "linux")]
fn written_bytes(arguments: &[&str]) -> u64 {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let mut child = mxprobe(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // The counters exist until the process is reaped.
    waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let text = fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap();
    assert!(child.wait().unwrap().success());
    text.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_writes_a_few_times_its_report_and_not_the_square_of_its_operations() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json").to_str().unwrap().to_owned();
    // A file of several reports is no exception.
    let several = ["l40s", "a100", "v100", "t4", "mi100", "avx512"].map(|model| format!("--device=sim:{model}"));
    for more in [&[][..], &several] {
        let more = more.iter().map(String::as_str);
        let arguments: Vec<&str> = RUN.into_iter().chain([path.as_str()]).chain(more).collect();
        let written = written_bytes(&arguments);
        let size = fs::metadata(&path).unwrap().len();
        assert!(size > 600_000, "{size}");
        assert!(written < 6 * size, "{written} bytes for a report of {size}");
    }
}
