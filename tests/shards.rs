//! `--shard I/N` and `merge`: shards of a job, merged, are the bytes of one run.
#![allow(missing_docs)]

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

const SHARDS: [u64; 4] = [1, 2, 3, 5];
/// For what would else wait for ever: far longer than anything here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(600);

/// The program at a fixed time, in a folder.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["MXPROBE_DEVICE", "MXPROBE_EXE", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.env("SOURCE_DATE_EPOCH", "1700000000");
    command
}

fn mxprobe(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("it starts")
}

/// The exit code of a command that may answer "no" and must not fail otherwise.
fn code(folder: &Path, arguments: &[&str]) -> i32 {
    let output = mxprobe(folder, arguments);
    let code = output.status.code().expect("an exit code");
    assert!(matches!(code, 0 | 1), "{arguments:?}: {code}\n{}", String::from_utf8_lossy(&output.stderr));
    code
}

/// The one line that a refused command says.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = mxprobe(folder, arguments);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    said.lines().next().unwrap_or_default().to_owned()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs a command with `--out` as a whole and in shards, merges these in reverse order, and compares the bytes.
fn shards_are_one_run(job: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let whole = code(folder, &[job, &["--out", "all.json"]].concat());
    let one_run = read(folder, "all.json");
    for of in SHARDS {
        let mut codes = Vec::new();
        let mut files: Vec<String> = Vec::new();
        for index in 0..of {
            let (shard, file) = (format!("{index}/{of}"), format!("{index}-of-{of}.json"));
            codes.push(code(folder, &[job, &["--shard", &shard, "--out", &file]].concat()));
            files.insert(0, file);
        }
        assert_eq!(codes.iter().max(), Some(&whole), "{codes:?}");
        let names: Vec<&str> = files.iter().map(String::as_str).collect();
        fs::remove_file(folder.join("all.json")).expect("it is there");
        assert_eq!(code(folder, &[&["merge"], &names[..], &["--out", "all.json"]].concat()), whole, "{of}");
        assert_eq!(read(folder, "all.json"), one_run, "{of} shards");
    }
    one_run
}

/// Removes all times of a report.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !matches!(name.as_str(), "time" | "duration_ns"));
            fields.values_mut().for_each(without_times);
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}

#[test]
fn without_a_fixed_time_all_but_times_is_that_of_one_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let job =
        ["verify", "--device", "sim:h100", "--model", "h100", "--op", "mma.m16n8k16.*", "--count", "300000", "-q"];
    let run = |more: &[&str]| {
        let status = command(folder, &[&job[..], more].concat()).env_remove("SOURCE_DATE_EPOCH").status();
        assert!(status.expect("it starts").success());
    };
    let parsed = || -> Value { serde_json::from_str(&read(folder, "all.json")).expect("JSON") };
    run(&["--out", "all.json"]);
    let mut one_run = parsed();
    run(&["--shard", "0/2", "--out", "0.json"]);
    run(&["--shard", "1/2", "--out", "1.json"]);
    let mut merge = command(folder, &["merge", "0.json", "1.json", "--out", "all.json"]);
    assert!(merge.env_remove("SOURCE_DATE_EPOCH").status().expect("it starts").success());
    let mut merged = parsed();
    let duration = |report: &Value| report["time"]["duration_ns"].as_u64().expect("a number");
    let of_shards: u64 = ["0.json", "1.json"]
        .iter()
        .map(|name| duration(&serde_json::from_str(&read(folder, name)).expect("JSON")))
        .sum();
    assert!(duration(&one_run) > 0 && duration(&merged) == of_shards, "{merged}");
    without_times(&mut one_run);
    without_times(&mut merged);
    assert_eq!(one_run, merged);
}

const DOTS: [&str; 6] = ["verify", "--op", "mma.m16n8k16.f32.*", "--count", "3000000", "-q"];

#[test]
fn shards_of_a_verification_are_one_run_that_agrees() {
    let report = shards_are_one_run(&[&DOTS[..], &["--device", "sim:h100", "--model", "h100"]].concat());
    let report: Value = serde_json::from_str(&report).expect("JSON");
    for operation in report["operations"].as_array().expect("operations") {
        assert!(operation["dots"].as_u64() >= Some(3_000_000) && operation["mismatches"] == 0, "{operation}");
    }
    assert_eq!((&report["time"]["start"], &report["time"]["duration_ns"]), (&"2023-11-14T22:13:20Z".into(), &0.into()));
}

#[test]
fn shards_of_a_verification_are_one_run_that_stops_at_its_third_mismatch() {
    let report = shards_are_one_run(&[&DOTS[..], &["--device", "sim:a100", "--model", "h100"]].concat());
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let stopped =
        |operation: &&Value| operation["dots"].as_u64() < Some(3_000_000) && operation["evidence"][0].is_object();
    assert!(
        report["operations"].as_array().expect("operations").iter().any(|operation| stopped(&operation)),
        "{report}"
    );
}

#[test]
fn shards_of_a_verification_are_one_run_that_counts_other_nan() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/units/h100.toml");
    let other = fs::read_to_string(model).expect("a model").replacen("\"0x7fffffff\"", "\"0x7fc00000\"", 1);
    let path = folder.path().join("other.toml");
    fs::write(&path, other).expect("it can be written");
    let nan = ["--device", "sim:h100", "--model", path.to_str().expect("UTF-8"), "--nan", "any"];
    let report: Value = serde_json::from_str(&shards_are_one_run(&[&DOTS[..], &nan].concat())).expect("JSON");
    let counted = |operation: &Value| operation["mismatches"] == 0 && operation["other_nan"].as_u64() > Some(100);
    assert!(report["operations"].as_array().expect("operations").iter().any(counted), "{report}");
}

#[test]
fn shards_of_growth_are_one_run() {
    let job = ["gemm", "--experiment", "growth", "--device", "sim:h100", "--exponents", "3,7", "-q"];
    let report: Value = serde_json::from_str(&shards_are_one_run(&job)).expect("JSON");
    assert!(report["cause"].is_string(), "{report}");
}

#[test]
fn shards_of_a_screen_are_one_run() {
    let devices = ["sim:a100", "sim:h100", "sim:l40s", "sim:rtx5090", "sim:b200"];
    let mut job = vec!["screen", "--op", "mma.m16n8k16.f32.f16.f16.f32", "--no-cache", "--passes", "2", "-q"];
    devices.iter().for_each(|device| job.extend(["--device", device]));
    let report: Value = serde_json::from_str(&shards_are_one_run(&job)).expect("JSON");
    assert_eq!(report.as_array().map(Vec::len), Some(5), "{report}");
    assert_eq!(report[4]["operations"][0]["dots"], 2 * 32 * 4096, "{report}");
    job.extend(["--error-inject", "bit=3,lane=5"]);
    let report: Value = serde_json::from_str(&shards_are_one_run(&job)).expect("JSON");
    assert!(report[0]["verdict"] == "wrong" && report[0]["operations"][0]["wrong"]["place"][0] == "lane 5", "{report}");

    let folder = tempfile::tempdir().expect("a folder");
    let said = refusal(folder.path(), &["screen", "--device", "sim:h100", "--shard", "1/2", "--passes", "1"]);
    assert!(said.contains("`--shard 1/2`") && said.contains("1 device"), "{said}");
}

#[test]
fn shards_of_an_identification_are_one_run_and_its_model_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // Three operations: some of five shards have none.
    let job = ["identify", "--device", "sim:v100", "--op", "mma.*", "-q"];
    let whole = code(folder, &[&job[..], &["--out", "all.toml", "--report", "all.json"]].concat());
    let (one_run, model) = (read(folder, "all.json"), read(folder, "all.toml"));
    for of in SHARDS {
        let mut files = Vec::new();
        for index in 0..of {
            let (shard, file, own) = (format!("{index}/{of}"), format!("{index}.json"), format!("{index}.toml"));
            code(folder, &[&job[..], &["--shard", &shard, "--out", &own, "--report", &file]].concat());
            files.push(file);
        }
        let names: Vec<&str> = files.iter().map(String::as_str).collect();
        ["all.json", "all.toml"].iter().for_each(|name| fs::remove_file(folder.join(name)).expect("it is there"));
        let out = ["--out", "all.json", "--model", "all.toml"];
        assert_eq!(code(folder, &[&["merge"], &names[..], &out].concat()), whole);
        assert_eq!(read(folder, "all.json"), one_run, "{of} shards");
        assert_eq!(read(folder, "all.toml"), model, "{of} shards");
    }
    let said = refusal(folder, &["merge", "0.json", "--out", "x.json"]);
    assert!(said.contains("--model MODEL.toml"), "{said}");
}

#[test]
fn a_shard_that_was_killed_is_refused_and_can_be_resumed_or_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let job =
        ["verify", "--device", "sim:h100", "--model", "h100", "--op", "mma.m16n8k*.f32.*", "--count", "400000", "-q"];
    assert_eq!(code(folder, &[&job[..], &["--out", "all.json"]].concat()), 0);
    let one_run = read(folder, "all.json");
    let shard = |index: &str, out: &str| [&job[..], &["--shard", index, "--out", out]].concat().join(" ");
    let start = |text: &str| command(folder, &text.split(' ').collect::<Vec<_>>());
    for index in ["0/3", "2/3"] {
        let out = format!("{}.json", &index[..1]);
        assert!(start(&shard(index, &out)).status().expect("it starts").success());
    }
    let merge = ["merge", "0.json", "1.json", "2.json", "--out", "all.json"];
    let merged = || {
        assert_eq!(code(folder, &merge), 0);
        read(folder, "all.json")
    };
    for again in [&["verify", "--resume", "1.json", "-q"][..], &shard("1/3", "1.json").split(' ').collect::<Vec<_>>()] {
        let _ = fs::remove_file(folder.join("1.json"));
        let mut child = start(&shard("1/3", "1.json")).spawn().expect("it starts");
        let begun = Instant::now();
        // It is written before the first operation, and again after each.
        while !folder.join("1.json").exists() {
            assert!(begun.elapsed() < LIMIT, "nothing was written");
            thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
        let said = refusal(folder, &merge);
        assert!(said.contains("`1.json`, shard 1/3, was interrupted"), "{said}");
        assert_eq!(code(folder, again), 0);
        assert_eq!(merged(), one_run, "{again:?}");
    }
}

#[test]
fn merge_refuses_what_is_not_one_job_with_the_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let job = "verify --device sim:h100 --model h100 --op mma.m16n8k16.f32.f16.f16.f32 --count 1000 -q";
    let make = |more: &str, change: (&str, &str)| {
        let text = format!("{job} {more}").replace(change.0, change.1);
        code(folder, &text.split(' ').collect::<Vec<_>>());
    };
    let same = ("-q", "-q");
    for index in 0..3 {
        make(&format!("--shard {index}/3 --out {index}.json"), same);
    }
    make("--shard 0/2 --out half.json", same);
    make("--out whole.json", same);
    make("--seed 9 --shard 2/3 --out seed.json", same);
    make("--shard 2/3 --out device.json", ("sim:h100", "sim:h200"));
    make("--shard 2/3 --out count.json", ("1000", "2000"));
    make("--shard 2/3 --out=joined.json", same);
    let text = read(folder, "2.json");
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version));
    fs::write(folder.join("version.json"), text.replacen(&version, "\"version\": \"0.0.7\"", 1)).expect("written");
    let fewer = text.replacen("\"dots\": ", "\"dots\": 1", 1);
    fs::write(folder.join("dots.json"), fewer).expect("written");
    let growth = "gemm --experiment growth --device sim:h100 --exponents 1,2 --shard 2/3 --out growth.json -q";
    code(folder, &growth.split(' ').collect::<Vec<_>>());
    for (last, words) in [
        ("", &["shard 2/3 is missing"][..]),
        ("1.json", &["shard 1/3 is there twice", "`1.json` and `1.json`"]),
        ("half.json", &["`half.json` is one of 2 shards", "one of 3"]),
        ("whole.json", &["`whole.json` is not a shard"]),
        ("seed.json", &["arguments", "--seed 9"]),
        ("device.json", &["arguments", "sim:h200"]),
        ("count.json", &["arguments", "--count 2000"]),
        ("joined.json", &["arguments", "--out=FILE"]),
        ("version.json", &["version", "`version.json` has 0.0.7"]),
        ("dots.json", &["`dots.json` compared 1", "share of the shard"]),
        ("growth.json", &["it is a growth file, not a verification"]),
        ("nothing.json", &["`nothing.json` cannot be read"]),
    ] {
        let mut arguments = vec!["merge", "0.json", "1.json"];
        arguments.extend(Some(last).filter(|last| !last.is_empty()));
        arguments.extend(["--out", "merged.json"]);
        let said = refusal(folder, &arguments);
        assert!(words.iter().all(|word| said.contains(word)), "{last}: {said}");
        assert!(!folder.join("merged.json").exists(), "{last}");
    }
    let said = refusal(folder, &["merge", "0.json", "1.json", "2.json", "--out", "1.json"]);
    assert!(said.contains("`1.json`"), "{said}");
    for (arguments, words) in [
        (&["verify", "--shard", "3/3"][..], &["`3/3`", "2/3"][..]),
        (
            &["gemm", "--experiment", "yardstick", "--device", "sim:h100", "--shard", "0/2"],
            &["`--shard 0/2`", "yardstick"],
        ),
    ] {
        let said = refusal(folder, arguments);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
    let mut wrong = command(folder, &["list"]);
    let output = wrong.env("SOURCE_DATE_EPOCH", "yesterday").output().expect("it starts");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.code() == Some(2) && said.contains("SOURCE_DATE_EPOCH is `yesterday`"), "{said}");
}
