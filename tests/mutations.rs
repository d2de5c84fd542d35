//! Damaged reports and model files are refused, without crashes or hangs.
#![allow(missing_docs)]

mod mutation;

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use mxprobe::report::check;
use mxprobe_models::{Dot, Evaluator, Model};

use mutation::{MANY, files, mutated, survives};

fn root(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A short report of each kind, and a listing.
fn reports() -> Vec<Vec<u8>> {
    let mut reports = vec![said(&["list", "--device", "sim:amx", "--json"])];
    for (device, op) in [("sim:amx", "TDPBF16PS"), ("sim:rtx5090", "mma.m16n8k64.*ue4m3")] {
        let probes = ["--probe", "subnormals", "--probe", "order", "--probe", "scales"];
        let run = ["run", "--format", "json", "--device", device, "--op", op];
        reports.push(said(&[&run[..], &probes].concat()));
    }
    let array = [b"[", &reports[1][..], b",", &reports[2][..], b"]"].concat();
    reports.push(array);
    reports
}

fn said(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_mxprobe")).args(arguments).output().expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Model files of every kind.
fn models() -> Vec<Vec<u8>> {
    ["amx", "avx512", "v100", "mi300x", "rdna4", "fma-chain", "rtx5090"]
        .iter()
        .map(|name| fs::read(root(&format!("models/units/{name}.toml"))).expect("a model file"))
        .collect()
}

fn read_report(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let read = check::read_reports(text);
    let checked = check::check(text);
    if let Err(problem) = &read {
        assert!(!problem.reason.is_empty());
    }
    if let Err(problems) = &checked {
        assert!(!problems.is_empty() && problems.iter().all(|problem| !problem.reason.is_empty()));
    }
}

/// Reads a model and, if it is valid, computes with it.
fn read_model(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let model = match Model::parse("changed.toml", text, None) {
        Ok(model) => model,
        Err(error) => return assert!(error.to_string().contains("changed.toml"), "{error}"),
    };
    for id in model.units.iter().filter_map(|unit| unit.operations.first()) {
        let k = id.shape.sizes().2;
        let Ok(evaluator) = Evaluator::new(&model, id) else { continue };
        let ones = |format: mxprobe_api::Format, count: usize| vec![format.one(); count];
        let scales = id.block_scale().map(|scale| ones(scale.format, k.div_ceil(scale.block)));
        let (a, b) = (ones(id.a, k), ones(id.b, k));
        let _ = evaluator.dot(Dot { a: &a, b: &b, c: 0, scales: scales.as_ref().map(|of| (&of[..], &of[..])) });
    }
}

#[test]
fn changed_reports_are_read_or_refused() {
    survives(files() / 3, reports(), read_report);
}

#[test]
fn changed_models_are_read_or_refused() {
    survives(files() / 3, models(), read_model);
}

#[test]
#[ignore = "100 000 files with those of the other kinds: cargo test --release -- --ignored changed"]
fn many_changed_reports_are_read_or_refused() {
    survives(MANY / 3, reports(), read_report);
}

#[test]
#[ignore = "100 000 files with those of the other kinds: cargo test --release -- --ignored changed"]
fn many_changed_models_are_read_or_refused() {
    survives(MANY / 3, models(), read_model);
}

/// Runs the command, which must exit without a panic and with at most one error.
fn answers(arguments: &[&str], input: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_mxprobe"))
        .args(arguments)
        .stdin(fs::File::open(input).expect("it was written"))
        .stdout(Stdio::null())
        .output()
        .expect("it starts");
    let err = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(matches!(code, Some(0..=4)), "{arguments:?} ended with {:?}: {err}", output.status);
    assert_eq!(err.matches("error: ").count(), usize::from(code != Some(0)), "{arguments:?}: {err}");
    assert!(!err.contains("panicked"), "{arguments:?}: {err}");
}

#[test]
fn the_command_answers_changed_files_with_one_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("changed.toml");
    let path = file.to_str().unwrap();
    let (reports, models) = (reports(), models());
    let dots = b"{\"a\":[\"0x3f80\",\"0x4000\"],\"b\":[\"0x3f80\",\"0x3f80\"],\"c\":\"0x00000000\"}\n".repeat(3);
    let device = format!("sim:{path}");
    for number in 0..60 {
        let at = usize::try_from(number).unwrap();
        fs::write(&file, mutated(number, &reports[at % reports.len()])).unwrap();
        answers(&["validate", "-q", path], &file);
        answers(&["report", path], &file);
        fs::write(&file, mutated(number, &models[at % models.len()])).unwrap();
        answers(&["list", "--device", &device], &file);
        fs::write(&file, mutated(number, &dots)).unwrap();
        answers(&["eval", "--device", "sim:amx", "--op", "TDPBF16PS"], &file);
    }
}
