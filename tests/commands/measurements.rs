//! `report` and `compare` of files of `bench` and of `gemm --experiment growth`.

use std::fs;

use mxprobe::report::{
    BENCH_SCHEMA, BenchReport, BenchSettings, Data, DeviceRecord, Host, Kind, Outcome, Throughput, ThroughputRun, Time,
    TimedBy, Units, this_tool, to_json,
};
use serde_json::Value;

use super::{
    say,
    schema::{conforms, schema},
};

const FAST: &str = "dot.m1n1k2.f32.bf16.bf16.f32";
const SLOW: &str = "dot.m1n1k4.s32.u8.s8.s32";

/// A measurement of a device, from the times in ns of the best, the median and the longest sample for 10^6 FLOP.
fn bench(name: &str, operations: &[(&str, [f64; 3])]) -> BenchReport {
    let measured = |(id, [best_ns, median_ns, worst_ns]): &(&str, [f64; 3])| Throughput {
        outcome: Outcome::Measured,
        reason: None,
        runs: vec![ThroughputRun {
            span: Units::One,
            units: Some(1),
            unit: "core".into(),
            clock: TimedBy::Host,
            chains: 4,
            steps: 9,
            samples: 7,
            best_ns: *best_ns,
            median_ns: *median_ns,
            spread_percent: (worst_ns - best_ns) / median_ns * 100.0,
            flop_per_s_best: 1e15 / best_ns,
            flop_per_s_median: 1e15 / median_ns,
            frequency_hz: None,
            flop_per_cycle_and_unit: None,
        }],
        ..Throughput::without(id.parse().unwrap(), Outcome::Failed, "")
    };
    let mut report = BenchReport {
        schema: BENCH_SCHEMA.into(),
        tool: this_tool(&[]),
        time: Time::starting(),
        host: Host::this(),
        device: DeviceRecord {
            backend: "cpu".into(),
            selector: "cpu:0".into(),
            name: name.into(),
            fingerprint: "x".into(),
            kind: Kind::Hardware,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: Default::default(),
        },
        settings: BenchSettings { data: Data::Random, sample_ns: 1, samples: 7, seed: 1 },
        warnings: Vec::new(),
        operations: operations.iter().map(measured).collect(),
    };
    mxprobe::bench::conclude(&mut report);
    report.time.interrupted = false;
    report
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, report: &BenchReport| fs::write(folder.path().join(name), to_json(report)).unwrap();
        write("a.json", &bench("one", &[(FAST, [100.0, 101.0, 102.0]), (SLOW, [400.0, 500.0, 600.0])]));
        write("b.json", &bench("other", &[(FAST, [50.0, 51.0, 52.0]), (SLOW, [390.0, 450.0, 500.0])]));
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn growth(&self, name: &str, device: &str) -> String {
        let path = self.path(name);
        let experiment = ["gemm", "--device", device, "--experiment", "growth", "--exponents", "6,7", "-q", "--out"];
        say(&[&experiment[..], &[&path]].concat()).ended(0);
        path
    }
}

#[test]
fn a_bench_file_is_shown_as_bench_shows_it_in_every_form() {
    let files = Files::new();
    let path = files.path("a.json");
    let table = say(&["report", &path]).ended(0).out;
    assert!(table.contains(FAST) && table.contains("9.90 TFLOP/s") && table.contains("unsteady"), "{table}");
    assert!(table.contains("differ by more than 20 %"), "{table}");
    assert_eq!(say(&["report", &path, "--format", "json"]).ended(0).out, fs::read_to_string(&path).unwrap());
    let value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    conforms(&schema("bench"), &value);
    let warning = value["warnings"][0].as_str().unwrap();
    assert!(warning.contains(SLOW) && warning.contains("40.0 %"), "{warning}");
    for format in ["markdown", "html", "csv"] {
        let text = say(&["report", &path, "--format", format]).ended(0).out;
        assert!(text.contains(FAST) && text.contains("40"), "{format}: {text}");
    }
}

#[test]
fn bench_files_are_compared_by_operation_with_ratios_and_the_spread() {
    let files = Files::new();
    let (a, b) = (files.path("a.json"), files.path("b.json"));
    let json = say(&["compare", &a, &b, "--format", "json"]).ended(1).out;
    let found: Value = serde_json::from_str(&json).unwrap();
    conforms(&schema("bench-comparison"), &found);
    let of = |id: &str| found["rates"].as_array().unwrap().iter().find(|rate| rate["id"] == id).unwrap().clone();
    assert_eq!((of(FAST)["differ"].as_bool(), of(SLOW)["differ"].as_bool()), (Some(true), Some(false)));
    let ratio = |name: &str| of(FAST)["rates"][1]["ratio"][name].as_f64().unwrap();
    for (name, wanted) in [("median", 101.0 / 51.0), ("low", 100.0 / 52.0), ("high", 102.0 / 50.0)] {
        assert!((ratio(name) - wanted).abs() < 1e-9, "{name}: {} {wanted}", ratio(name));
    }
    let table = say(&["compare", &a, &b]).ended(1).out;
    assert!(
        table.contains("1.98 (1.92–2.04)") && table.contains("1 of 2 rates differ") && table.contains("  differs\n"),
        "{table}"
    );
    for format in ["markdown", "html", "csv"] {
        assert!(say(&["compare", &a, &b, "--format", format]).ended(1).out.contains(FAST));
    }
    assert!(say(&["compare", &a, &a]).ended(0).out.contains("no difference"));
    assert!(say(&["compare", &a]).ended(2).err.contains("only one bench file"));
}

#[test]
fn a_growth_file_is_shown_again_and_compared_with_its_bounds() {
    let files = Files::new();
    let (v100, h100) = (files.growth("v.json", "sim:v100"), files.growth("h.json", "sim:h100"));
    let value: Value = serde_json::from_str(&fs::read_to_string(&v100).unwrap()).unwrap();
    conforms(&schema("growth"), &value);
    for (more, words) in [(&[][..], "double-f16"), (&["-v"], "128"), (&["--format", "csv"], "\ndouble-f16,")] {
        let text = say(&[&["report", &v100][..], more].concat()).ended(0).out;
        assert!(text.contains(words), "{text}");
    }
    assert!(say(&["report", &v100, "--format", "html"]).ended(0).out.contains("<svg"));
    let found: Value = serde_json::from_str(&say(&["compare", &v100, &h100, "--format", "json"]).ended(1).out).unwrap();
    conforms(&schema("growth-comparison"), &found);
    let curve = found["curves"].as_array().unwrap().iter().find(|curve| curve["name"] == "double-f16").unwrap();
    let points = curve["points"][0].as_array().unwrap();
    assert!(points.len() == 2 && points.iter().all(|point| point["n"] == 64 && point["bound"].is_f64()), "{curve}");
    let table = say(&["compare", &v100, &h100]).ended(1).out;
    assert!(table.contains("≤ A") && table.contains("B/A") && table.contains("double-f16"), "{table}");
    assert!(say(&["compare", &v100, &v100]).ended(0).out.contains("no difference"));
}

#[test]
fn files_of_several_kinds_are_one_clear_error() {
    let files = Files::new();
    let (bench, growth, report) = (files.path("b.json"), files.growth("g.json", "sim:v100"), files.path("r.json"));
    let run = ["run", "--device", "sim:amx", "--op", "TDPBF16PS", "--probe", "order", "-q", "--out", &report];
    say(&run).ended(0);
    for command in ["report", "compare"] {
        let error = |one: &str, other: &str| say(&[command, one, other]).ended(2).err;
        assert!(error(&report, &bench).contains("b.json` is a bench file, not a report"));
        assert!(error(&bench, &report).contains("r.json` is a report, not a bench file"));
        assert!(error(&growth, &bench).contains("b.json` is a bench file, not a growth file"));
    }
    let listing = files.path("l.json");
    fs::write(&listing, say(&["list", "--backend", "sim", "--format", "json"]).ended(0).out).unwrap();
    assert!(say(&["report", &listing]).ended(2).err.contains("l.json` is a listing, not a report"));
}
