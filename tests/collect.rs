//! `results/collect` on the fake CUDA driver: it writes every report, even after failures or when it is killed.
#![allow(missing_docs)]
#![cfg(all(feature = "cuda", target_os = "linux"))]

mod fake;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use fake::fake_driver;
use mxprobe::report::{BenchReport, IdentificationReport, OperationReport, Outcome, Report, VerificationReport};

/// A limit for waits that might otherwise be endless: much longer than anything here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(1800);

/// The folder with the script's results.
struct Collected {
    folder: tempfile::TempDir,
}

impl Collected {
    /// Starts the script on the fake driver as a V100, with time limits of hours for work of seconds.
    fn start(environment: &[(&str, &str)]) -> (Self, Child) {
        let collected = Self { folder: tempfile::tempdir().unwrap() };
        let mut command = Command::new("sh");
        command
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("results/collect"))
            .args([collected.folder.path().as_os_str(), env!("CARGO_BIN_EXE_mxprobe").as_ref()])
            .env("LD_LIBRARY_PATH", fake_driver())
            .env("MXPROBE_FAKE_MODEL", "v100")
            .env("COLLECT_DEVICES", "cuda:0")
            .env("COLLECT_SECONDS", "40000 40000 40000")
            .env("COLLECT_SCREEN", "1")
            .env("COLLECT_TIMEOUT", "40000")
            .env("COLLECT_DOTS", "20000")
            .env("COLLECT_TIME", "1")
            .env("COLLECT_EXPONENTS", "9,9")
            .env("COLLECT_SIZE", "32")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0);
        let child = command.spawn().expect("sh starts");
        (collected, child)
    }

    /// The same, and waits for it to end.
    fn all(environment: &[(&str, &str)]) -> Self {
        let (collected, mut child) = Self::start(environment);
        assert!(child.wait().unwrap().success(), "{}", collected.log());
        collected
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log.txt")).unwrap_or_default()
    }

    /// The exit codes of the parts that the log names.
    fn ended(&self) -> BTreeMap<String, String> {
        let log = self.log();
        let part = |line: &str| {
            let (_, words) = line.split_once("] ")?;
            let (label, rest) = words.split_once(": exit ")?;
            Some((label.to_owned(), rest.split_once(',')?.0.to_owned()))
        };
        log.lines().filter_map(part).collect()
    }

    /// The names of the result files, including hidden ones.
    fn files(&self) -> Vec<String> {
        let all = fs::read_dir(self.folder.path()).unwrap();
        all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// The content of the archive.
    fn unpacked(&self) -> Unpacked {
        let folder = tempfile::tempdir().unwrap();
        let archive = self.folder.path().join("reports.tgz");
        let tar = Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(folder.path()).status().unwrap();
        assert!(tar.success(), "the archive is whole: {}", self.log());
        Unpacked { folder }
    }
}

struct Unpacked {
    folder: tempfile::TempDir,
}

impl Unpacked {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn json<T: serde::de::DeserializeOwned>(&self, name: &str) -> T {
        serde_json::from_str(&self.text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Whether a part's report, or its text if it writes none, is complete.
    fn is_finished(&self, label: &str) -> bool {
        let name = if label.ends_with("-run") { label.trim_end_matches("-run") } else { label };
        let report = self.path(&format!("{name}.json"));
        if label == "list" || !report.exists() {
            return self.path(&format!("{label}.txt")).exists();
        }
        let report: serde_json::Value = self.json(&format!("{name}.json"));
        report["time"]["interrupted"].as_bool() != Some(true)
    }
}

#[test]
fn the_collection_script_makes_every_report_of_a_machine() {
    let collected = Collected::all(&[]);
    let (log, ended) = (collected.log(), collected.ended());
    for label in ["list", "smoke", "rates", "run", "verify-mma", "identify-mma", "verify-wmma", "identify-wmma"]
        .into_iter()
        .chain(["screen", "bench", "zeros", "yardstick", "growth"])
    {
        let label = if label == "list" { label.to_owned() } else { format!("cuda-0-{label}") };
        assert_eq!(ended.get(&label).map(String::as_str), Some("0"), "{label}: {log}");
    }
    let unpacked = collected.unpacked();
    let run: Report = unpacked.json("cuda-0.json");
    assert!(run.device.emulated);
    let matrices = run.operations.iter().filter(|found| found.operation.id.family != "scalar");
    assert_eq!(matrices.clone().count(), 9);
    assert!(matrices.clone().all(|found| found.finding("expected").is_some_and(|finding| finding.is(true))));
    let count = |names: [&str; 2], operations: &dyn Fn(&str) -> usize| names.map(operations).iter().sum::<usize>();
    let verified = |name: &str| unpacked.json::<VerificationReport>(name).operations.len();
    assert_eq!(count(["cuda-0-verify-mma.json", "cuda-0-verify-wmma.json"], &verified), 9);
    let identified = |name: &str| unpacked.json::<IdentificationReport>(name).operations.len();
    assert_eq!(count(["cuda-0-identify-mma.json", "cuda-0-identify-wmma.json"], &identified), 9);
    assert!(unpacked.path("cuda-0-mma.toml").exists() && unpacked.path("cuda-0-wmma.toml").exists());
    for name in ["cuda-0-bench.json", "cuda-0-zeros.json"] {
        let bench: BenchReport = unpacked.json(name);
        assert!(bench.device.emulated && bench.operations.len() == 10, "{log}");
        assert!(bench.operations.iter().all(|found| found.outcome != Outcome::Failed), "{log}");
    }
    let yardstick: serde_json::Value = unpacked.json("cuda-0-yardstick.json");
    let ways = yardstick["ways"].as_array().unwrap();
    let words = ways.iter().find(|way| way["name"] == "double-f16").expect("words of the unit");
    assert!(words["kernel_best_ns"].as_u64().is_some_and(|ns| ns > 0));
    assert!(unpacked.text("list.txt").contains("cuda:0") && unpacked.text("machine.txt").contains("mxprobe"));
    let files = collected.files();
    assert!(files.len() <= 8 && files.iter().all(|name| !name.starts_with('.')), "{files:?}");
    assert!(files.contains(&"cuda-0.json".to_owned()) && files.contains(&"cuda-0-bench.json".to_owned()), "{files:?}");
}

#[test]
fn a_collection_that_is_killed_leaves_every_part_that_its_log_names() {
    let chosen = [("COLLECT_STAGES", "a b"), ("COLLECT_OPERATIONS", "mma.m8n8k4.f32*")];
    for parts in [1, 3, 5] {
        let (collected, mut child) = Collected::start(&chosen);
        let deadline = Instant::now() + LIMIT;
        while collected.ended().len() < parts {
            assert!(Instant::now() < deadline, "{}", collected.log());
            assert!(child.try_wait().unwrap().is_none(), "it ended: {}", collected.log());
            sleep(Duration::from_millis(1));
        }
        let group = format!("-{}", child.id());
        assert!(Command::new("kill").args(["-KILL", "--", &group]).status().unwrap().success());
        child.wait().unwrap();
        let (ended, unpacked) = (collected.ended(), collected.unpacked());
        assert!(ended.len() >= parts);
        for label in ended.keys() {
            assert!(unpacked.is_finished(label), "{label} of {parts}: {}", collected.log());
        }
        assert!(collected.files().len() <= 8, "{:?}", collected.files());
    }
}

#[test]
fn a_collection_that_is_asked_to_end_packs_what_grew() {
    let hang = [("MXPROBE_FAKE_FAULT", "hang"), ("MXPROBE_FAKE_ONLY", "wmma.")];
    let (collected, mut child) = Collected::start(&[&hang[..], &[("COLLECT_STAGES", "b")]].concat());
    let deadline = Instant::now() + LIMIT;
    // The archive is updated while the run hangs, with the reports that have grown so far.
    let has_grown = || {
        let report = fs::read_to_string(collected.folder.path().join("cuda-0.json")).ok();
        report.is_some_and(|text| text.contains("\"findings\""))
    };
    while !has_grown() {
        assert!(Instant::now() < deadline, "{}", collected.log());
        sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130), "{}", collected.log());
    let run: Report = collected.unpacked().json("cuda-0.json");
    assert!(run.time.interrupted && !run.operations.is_empty());
}

#[test]
fn one_trapping_kernel_costs_the_collection_one_operation() {
    const TRAPS: &str = "wmma.m16n16k16.f32.f16.f16.f32";
    let trap = [("MXPROBE_FAKE_FAULT", "device-lost"), ("MXPROBE_FAKE_ONLY", TRAPS)];
    // The other operations of the same formats suffice to show that they are spared.
    let chosen = [("COLLECT_STAGES", "b"), ("COLLECT_OPERATIONS", "wmma.*.f32.f16.f16.f32")];
    let collected = Collected::all(&[trap, chosen].concat());
    let unpacked = collected.unpacked();
    let run: Report = unpacked.json("cuda-0.json");
    let unfinished: Vec<String> = run
        .operations
        .iter()
        .filter(|found| !OperationReport::is_finished(found))
        .map(|found| found.operation.id.to_string())
        .collect();
    assert_eq!(unfinished, [TRAPS], "{}", collected.log());
    assert!(run.operations.len() > 2, "{}", collected.log());
    let verified: VerificationReport = unpacked.json("cuda-0-verify-chosen.json");
    let failed: Vec<_> = verified.operations.iter().filter(|found| found.failed.is_some()).collect();
    assert!(failed.len() == 1 && failed[0].id.to_string() == TRAPS, "{}", collected.log());
}

#[test]
fn the_collection_script_outlives_a_driver_that_crashes_and_one_that_hangs() {
    for (fault, silent, words) in [("abort", "40000", "SIGABRT"), ("hang", "1", "timed out")] {
        let collected = Collected::all(&[
            ("MXPROBE_FAKE_FAULT", fault),
            ("COLLECT_TIMEOUT", silent),
            ("COLLECT_STAGES", "a b"),
            ("COLLECT_OPERATIONS", "mma.m8n8k4.f32*"),
        ]);
        let ended = collected.ended();
        assert_eq!(ended.get("cuda-0-run").map(String::as_str), Some("4"), "{fault}: {}", collected.log());
        assert_eq!(ended.get("cuda-0-resumed-3").map(String::as_str), Some("4"), "{fault}: {}", collected.log());
        let run: Report = collected.unpacked().json("cuda-0.json");
        let reason = run.operations[0].findings[0].reason.clone().unwrap_or_default();
        assert!(reason.contains(words), "{fault}: {reason}");
    }
}
