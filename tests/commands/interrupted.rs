//! Ctrl-C: finished operations are kept, and `--resume` leads to the same result as without the interruption.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use mxprobe::report::{GrowthReport, IdentificationReport, VerificationReport};
use serde::de::DeserializeOwned;

use super::{Said, gemm::npy, mxprobe, say};

/// Much longer than anything here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(600);

/// The delays of Ctrl-C after the first save, in milliseconds: from none to, on most machines, the end of the run.
const MOMENTS: [u64; 6] = [0, 3, 17, 90, 400, 1500];

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
}

fn read<T: DeserializeOwned>(path: &str) -> T {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Starts a command, waits until this file exists, and sends Ctrl-C after a delay. Returns whether it came in time.
fn interrupted(arguments: &[&str], file: &str, after: u64) -> bool {
    interrupted_once(arguments, &|| Path::new(file).exists(), after)
}

/// The same, once the command has begun by this measure.
fn interrupted_once(arguments: &[&str], has_begun: &dyn Fn() -> bool, after: u64) -> bool {
    let mut child = mxprobe(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + LIMIT;
    while !has_begun() && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "nothing was saved");
        sleep(Duration::from_millis(1));
    }
    sleep(Duration::from_millis(after));
    // The command may have ended before the signal.
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
    let said = Said::from(child.wait_with_output().unwrap());
    assert!(matches!(said.code, Some(0 | 130)), "{said:?}");
    assert!(!said.err.contains("panicked"), "{}", said.err);
    said.code == Some(130)
}

/// A report without times, versions and requests, which differ between runs.
fn findings(mut report: serde_json::Value) -> serde_json::Value {
    let fields = report.as_object_mut().unwrap();
    for name in ["time", "tool", "resumed", "model", "request"] {
        fields.remove(name);
    }
    for operation in fields["operations"].as_array_mut().unwrap() {
        operation.as_object_mut().unwrap().remove("duration_ns");
    }
    report
}

const VERIFY: [&str; 9] = ["verify", "--device", "sim:avx512", "--model", "avx512", "--count", "150000", "--seed", "7"];

#[test]
#[cfg(unix)]
fn a_verification_that_is_interrupted_at_any_moment_is_resumed_to_the_same_end() {
    let folder = Folder::new();
    let whole = folder.path("whole.json");
    say(&[&VERIFY[..], &["--out", &whole]].concat()).ended(0);
    for after in MOMENTS {
        let file = folder.path(&format!("{after}.json"));
        let came = interrupted(&[&VERIFY[..], &["--out", &file]].concat(), &file, after);
        let report: VerificationReport = read(&file);
        assert_eq!(report.time.interrupted, came);
        let asked = report.request.as_ref().unwrap().operations.len();
        assert!(asked > 3 && report.operations.iter().all(|found| found.agrees()));
        let left = report.unfinished().unwrap().len();
        assert_eq!((left, left == 0), (asked - report.operations.len(), !came), "after {after} ms");
        let said = say(&["verify", "--resume", &file]).ended(0);
        assert!(came || said.err.contains("nothing is left to ask"), "{}", said.err);
        assert_eq!(findings(read(&file)), findings(read(&whole)), "after {after} ms");
        let resumed: VerificationReport = read(&file);
        assert_eq!(resumed.resumed.iter().map(|part| part.operations).sum::<usize>(), left);
    }
}

#[test]
#[cfg(unix)]
fn an_identification_that_is_interrupted_at_any_moment_is_resumed_to_the_same_model() {
    let folder = Folder::new();
    let model = |name: &str| folder.path(&format!("{name}.toml"));
    let identify = ["identify", "--device", "sim:avx512", "--op", "*.s32*", "--out"];
    let (whole, whole_model) = (folder.path("whole.json"), model("whole"));
    say(&[&identify[..], &[&whole_model, "--report", &whole]].concat()).ended(0);
    for after in MOMENTS {
        let (file, name) = (folder.path(&format!("{after}.json")), format!("m{after}"));
        let came = interrupted(&[&identify[..], &[&model(&name), "--report", &file]].concat(), &file, after);
        let report: IdentificationReport = read(&file);
        assert_eq!((report.time.interrupted, report.unfinished().unwrap().is_empty()), (came, !came));
        assert_eq!(report.model.is_some(), Path::new(&model(&name)).exists(), "a model is named if it is there");
        say(&["identify", "--resume", &file]).ended(0);
        assert_eq!(findings(read(&file)), findings(read(&whole)), "after {after} ms");
        let verify =
            ["verify", "--device", "sim:avx512", "--model", &model(&name), "--op", "*.s32*", "--count", "2000"];
        say(&verify).ended(0);
    }
}

#[test]
#[cfg(unix)]
fn an_experiment_that_is_interrupted_keeps_its_points() {
    let folder = Folder::new();
    let growth = ["gemm", "--device", "sim:v100", "--experiment", "growth", "--exponents", "9,17", "--out"];
    for after in [0, 40, 300] {
        let file = folder.path(&format!("{after}.json"));
        let came = interrupted(&[&growth[..], &[&file]].concat(), &file, after);
        let report: GrowthReport = read(&file);
        assert_eq!(report.time.interrupted, came);
        let points: usize = report.growth.curves.iter().map(|curve| curve.points.len()).sum();
        assert!(points > 0 && report.growth.cause.is_some() != came, "{points}");
        say(&["report", &file]).ended(0);
    }
}

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let said = say(arguments).ended(2);
    for word in words {
        assert!(said.err.contains(word), "`{word}` is not in: {}", said.err);
    }
}

#[test]
fn another_device_or_model_or_file_is_not_resumed() {
    let folder = Folder::new();
    let file = folder.path("a.json");
    let model = PathBuf::from(folder.path("mine.toml"));
    fs::copy(super::model_file("avx512.toml"), &model).unwrap();
    let head = ["verify", "--device", "sim:avx512", "--model", model.to_str().unwrap(), "--count", "1000", "-q"];
    say(&[&head[..], &["--out", &file]].concat()).ended(0);
    let mut report: serde_json::Value = read(&file);
    report["operations"].as_array_mut().unwrap().pop();
    fs::write(&file, report.to_string()).unwrap();
    refused(&["verify", "--resume", &file, "--device", "sim:amx"], &["avx512", "amx"]);
    refused(&["verify", "--resume", &file, "--op", "*"], &["--op"]);
    refused(&["identify", "--resume", &file], &["it is a verification, not an identification"]);
    refused(&["verify", "--resume", &folder.path("none.json")], &["none.json` cannot be read"]);
    let text = fs::read_to_string(&model).unwrap();
    let changed = text.replacen("rounding = \"nearest-even\"", "rounding = \"toward-zero\"", 1);
    assert_ne!(text, changed);
    fs::write(&model, changed).unwrap();
    refused(&["verify", "--resume", &file], &["has changed since", "its SHA-256 was"]);
    fs::write(&model, text).unwrap();
    // The device from the environment is ignored.
    let mut command = mxprobe(&["verify", "--resume", &file, "-q"]);
    Said::from(command.env("MXPROBE_DEVICE", "sim:amx").output().unwrap()).ended(0);
    report["request"].take();
    report.as_object_mut().unwrap().remove("request");
    fs::write(&file, report.to_string()).unwrap();
    refused(&["verify", "--resume", &file], &["does not say which operations"]);
}

#[test]
fn arrays_leave_nothing_behind_but_their_results() {
    let folder = Folder::new();
    let (a, b, d) = (folder.path("a.npy"), folder.path("b.npy"), folder.path("d.npy"));
    let dots = 300_000;
    let elements: Vec<u8> = (0..dots * 4u32).flat_map(|at| (0x3c00 + at % 0x5a3).to_le_bytes()[..2].to_vec()).collect();
    for path in [&a, &b] {
        fs::write(path, npy("<f2", &format!("({dots}, 4)"), &elements)).unwrap();
    }
    let op = ["eval", "--device", "rdna3", "--op", "wmma.m16n16k16.f32.f16.f16.f32"];
    let arguments = [&op[..], &["--a", &a, "--b", &b, "--out", &d]].concat();
    let mut lengths: Vec<u64> = Vec::new();
    let names = || -> Vec<String> {
        let files = fs::read_dir(folder.0.path()).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    };
    for after in MOMENTS {
        if interrupted_once(&arguments, &|| names().iter().any(|name| name.starts_with(".mxprobe-")), after) {
            let mut left = names();
            left.sort();
            assert_eq!(left, ["a.npy", "b.npy"], "after {after} ms");
        } else {
            lengths.push(fs::metadata(&d).unwrap().len());
            fs::remove_file(&d).unwrap();
        }
    }
    assert!(lengths.iter().all(|length| *length == u64::from(dots) * 4 + 128), "{lengths:?}");
}
