//! `bench`: the timed work is the computed work, wrong clocks and wrong loops are refused, and all views agree.
#![allow(missing_docs, clippy::print_stdout)]

use std::{
    process::{Command, Output},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use mxprobe::{
    bench::{Settings, conclude, measure},
    report::{
        BENCH_SCHEMA, BenchReport, BenchSettings, Data, Form, Host, Outcome, Style, Throughput, Throughputs, Time,
        Units, check::check, this_tool,
    },
};
use mxprobe_api::{
    Clock, Device, DeviceInfo, DeviceKind, Driver, Elements, Error, Load, Operation, OperationSet, Span, TileBatch,
    Timed, Timing, execute,
};
use mxprobe_models::load;
use mxprobe_sim::ModelDevice;

/// A fault of a clock or a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Steps after the fifth are skipped.
    StopsEarly,
    /// One bit of the last chain is wrong.
    WrongBit,
    /// Bits change from call to call.
    Unsteady,
    /// The clock returns the same time for any work.
    ConstantClock,
    /// The clock returns too little for odd numbers of steps.
    UnevenClock,
    /// The driver refuses to run.
    Fails,
}

/// A model with a clock that counts steps: each takes `step_ns`, by default 10 µs, whatever the number of chains.
struct Clocked {
    model: ModelDevice,
    info: DeviceInfo,
    fault: Fault,
    step_ns: f64,
    calls: AtomicU64,
    yardsticks: Vec<Operation>,
}

const CHAINS: usize = 6;

impl Clocked {
    fn new(fault: Fault) -> Self {
        let model = ModelDevice::new(load("fma-chain").unwrap());
        let driver = Some(Driver { name: "d".into(), version: "1".into(), api_version: "1".into() });
        let info = DeviceInfo { kind: DeviceKind::Hardware, driver, ..model.info().clone() };
        let yardsticks = vec![Operation::new("fma.m1n1k1.f32.f32.f32.f32".parse().unwrap(), "thread")];
        Self { model, info, fault, step_ns: 10_000.0, calls: AtomicU64::new(0), yardsticks }
    }

    fn operation(&self) -> &Operation {
        let id = "dot.m1n1k16.f32.f16.f16.f32".parse().unwrap();
        &self.model.operations()[&id]
    }
}

impl Device for Clocked {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        self.model.operations()
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        self.model.execute(operation, batch)
    }

    fn timing(&self) -> Option<&dyn Timing> {
        Some(self)
    }
}

impl Timing for Clocked {
    fn yardsticks(&self) -> &[Operation] {
        &self.yardsticks
    }

    fn time(&self, operation: &Operation, load: &Load<'_>) -> Result<Timed, Error> {
        if self.fault == Fault::Fails {
            return Err(Error::driver("the driver refused"));
        }
        let steps = if self.fault == Fault::StopsEarly { load.steps.min(5) } else { load.steps };
        // Chain i: tiles i, i + 1 and i + 2 of A, B and C.
        let pattern: Vec<[usize; 3]> = (0..CHAINS).map(|chain| [chain, chain + 1, chain + 2]).collect();
        let (m, n, k) = operation.id.shape.sizes();
        let mut batch = TileBatch::zeros(operation, CHAINS);
        for (chain, [a, b, c]) in pattern.iter().enumerate() {
            (0..m * k).for_each(|at| batch.a.set(chain * m * k + at, load.operands.a.get(a * m * k + at)));
            (0..k * n).for_each(|at| batch.b.set(chain * k * n + at, load.operands.b.get(b * k * n + at)));
            (0..m * n).for_each(|at| batch.c.set(chain * m * n + at, load.operands.c.get(c * m * n + at)));
        }
        for _ in 0..steps {
            batch.c = if self.operations().contains_key(&operation.id) {
                execute(self, operation, &batch)?
            } else {
                let value = |elements: &Elements, at: usize| f32::from_bits(u32::try_from(elements.get(at)).unwrap());
                let sum = |at: usize| value(&batch.a, at).mul_add(value(&batch.b, at), value(&batch.c, at));
                Elements::from_bits(operation.id.d, (0..CHAINS).map(|at| u64::from(sum(at).to_bits())))
            };
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let last = batch.c.len() - 1;
        if self.fault == Fault::WrongBit || self.fault == Fault::Unsteady && call.is_multiple_of(3) && load.steps > 5 {
            batch.c.set(last, batch.c.get(last) ^ 1);
        }
        #[expect(clippy::cast_precision_loss)]
        let elapsed_ns = match self.fault {
            Fault::ConstantClock => 1e6,
            Fault::UnevenClock if load.steps % 2 == 1 => load.steps as f64 * self.step_ns * 0.3,
            _ => load.steps as f64 * self.step_ns,
        };
        let units = if load.span == Span::One { 1 } else { 3 };
        Ok(Timed {
            elapsed_ns,
            clock: Clock::Device,
            units: Some(units),
            unit: "multiprocessor".into(),
            frequency_hz: Some(1e9),
            pattern,
            d: batch.c,
        })
    }
}

fn settings(sample: Duration) -> Settings {
    Settings { data: Data::Random, sample, samples: 7, seed: 1 }
}

fn measured(device: &Clocked) -> Throughput {
    measure(device, device.operation(), &settings(Duration::from_millis(1)))
}

#[test]
fn samples_that_stay_short_have_the_rate_of_the_steps_that_they_took() {
    let found = measured(&Clocked::new(Fault::UnevenClock));
    assert_eq!(found.outcome, Outcome::Measured, "{:?}", found.reason);
    for run in &found.runs {
        #[expect(clippy::cast_precision_loss)]
        let step_ns = run.best_ns / run.steps as f64;
        assert!((2_900.0..3_100.0).contains(&step_ns), "a step of 3000 ns takes {step_ns} ns");
    }
}

#[test]
fn the_rate_is_work_over_time() {
    let found = measured(&Clocked::new(Fault::None));
    assert_eq!((found.outcome, &found.reason), (Outcome::Measured, &None));
    let spans: Vec<(Units, Option<u32>)> = found.runs.iter().map(|run| (run.span, run.units)).collect();
    assert_eq!(spans, [(Units::One, Some(1)), (Units::All, Some(3))]);
    for run in &found.runs {
        // Six chains of 16 products each, every 10 µs.
        let exact = 6.0 * 16.0 * 2.0 / 10e-6;
        assert!((run.flop_per_s_best / exact - 1.0).abs() < 1e-9, "{run:?}");
        assert!((80..=200).contains(&run.steps) && run.chains == 6 && run.samples == 7, "{run:?}");
        assert!(run.spread_percent < 1e-6 && run.best_ns <= run.median_ns);
        let per_cycle = run.flop_per_cycle_and_unit.unwrap() * f64::from(run.units.unwrap()) * 1e9;
        assert!((per_cycle / exact - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_loop_that_does_not_compute_has_no_rate() {
    for (fault, words) in [
        (Fault::StopsEarly, "what was timed is not what the operation computes: after"),
        (Fault::WrongBit, "what was timed is not what the operation computes: after 1 steps chain 5 has 0x"),
        (Fault::Unsteady, "do not always end in the same bits"),
        (Fault::ConstantClock, "the time does not grow with"),
        (Fault::Fails, "the driver refused"),
    ] {
        let found = measured(&Clocked::new(fault));
        assert_eq!((found.outcome, found.runs.len()), (Outcome::Failed, 0), "{fault:?}");
        let reason = found.reason.unwrap();
        assert!(reason.contains(words), "{fault:?}: {reason}");
    }
}

#[test]
fn a_sample_that_is_too_short_is_refused_with_its_length() {
    let device = Clocked { step_ns: 100.0, ..Clocked::new(Fault::None) };
    let found = measure(&device, device.operation(), &settings(Duration::from_micros(5)));
    assert_eq!((found.outcome, found.runs.len()), (Outcome::Inconclusive, 0));
    assert!(found.reason.unwrap().starts_with("too short to be timed: a sample took "));
}

#[test]
fn a_device_without_a_clock_is_unsupported() {
    let model = ModelDevice::new(load("fma-chain").unwrap());
    let operation = model.operations().values().next().unwrap();
    let found = measure(&model, operation, &settings(Duration::from_millis(1)));
    assert_eq!((found.outcome, found.reason.as_deref()), (Outcome::Unsupported, Some("sim:fma-chain has no clock")));
}

fn report(operations: Vec<Throughput>) -> BenchReport {
    let listing = serde_json::json!({
        "backend": "cuda", "selector": "cuda:0", "name": "NVIDIA H200", "fingerprint": "sm_90a", "kind": "hardware",
        "properties": {},
    });
    BenchReport {
        schema: BENCH_SCHEMA.into(),
        tool: this_tool(&[]),
        time: Time::starting(),
        host: Host::this(),
        device: serde_json::from_value(listing).unwrap(),
        settings: BenchSettings { data: Data::Random, sample_ns: 1_000_000, samples: 7, seed: 1 },
        warnings: Vec::new(),
        operations,
    }
}

#[test]
fn ratios_and_the_verdict_of_the_speed_follow_from_the_rates() {
    let device = Clocked::new(Fault::None);
    let yardstick = measure(&device, &device.yardsticks[0], &settings(Duration::from_millis(1)));
    assert!(yardstick.yardstick && yardstick.outcome == Outcome::Measured, "{:?}", yardstick.reason);
    let unit = measured(&device);
    let slowed = |factor: f64| {
        let mut found = unit.clone();
        found.id.qualifiers.push(format!("slowed{factor}"));
        found.runs.iter_mut().for_each(|run| run.flop_per_s_best /= factor);
        found
    };
    let mut report = report(vec![yardstick, unit.clone(), slowed(10.0), slowed(20.0)]);
    conclude(&mut report);
    let verdicts: Vec<_> = report.operations.iter().map(|found| found.emulated).collect();
    assert_eq!(verdicts, [None, Some(false), None, Some(true)]);
    let ratio = report.operations[1].ratio_to_yardstick.unwrap();
    assert!((ratio - 16.0).abs() < 1e-6, "16 products a step against one: {ratio}");
    assert!(report.operations[3].emulation.as_ref().unwrap().contains("0.80 times that of fma.m1n1k1.f32.f32.f32.f32"));
    let peak = report.operations[1].peak.as_ref().unwrap();
    assert!((peak.flop_per_s / 989.4e12 - 1.0).abs() < 1e-9 && peak.source.contains("NVIDIA"));
    assert!((peak.ratio * peak.flop_per_s / unit.runs[1].flop_per_s_best - 1.0).abs() < 1e-9);
}

#[test]
fn a_report_that_cannot_be_is_refused_where_it_is_wrong() {
    let device = Clocked::new(Fault::None);
    let right = serde_json::to_value(report(vec![measured(&device)])).unwrap();
    assert_eq!(check(&right.to_string()).unwrap(), "the throughput of 1 operation of cuda:0");
    let both = serde_json::json!([right, right]);
    assert!(check(&both.to_string()).is_ok());
    type Change = fn(&mut serde_json::Value);
    let changes: [(&str, Change); 6] = [
        ("operations[0].runs[1].best_ns: 1000000000000 is above the median", |value| {
            value["operations"][0]["runs"][1]["best_ns"] = 1e12.into();
        }),
        ("operations[0].runs[0].flop_per_s_best: 0 is not above 0", |value| {
            value["operations"][0]["runs"][0]["flop_per_s_best"] = 0.0.into();
        }),
        ("operations[0].runs[0].samples: 3 are fewer than 7", |value| {
            value["operations"][0]["runs"][0]["samples"] = 3.into();
        }),
        ("operations[0].runs: it is empty", |value| value["operations"][0]["runs"] = serde_json::json!([])),
        ("operations[0].reason: it is present, but the outcome is measured", |value| {
            value["operations"][0]["reason"] = "why".into();
        }),
        ("schema: this is version 2 of mxprobe-bench", |value| value["schema"] = "mxprobe-bench/2.0".into()),
    ];
    for (wanted, change) in changes {
        let mut wrong = right.clone();
        change(&mut wrong);
        let said = check(&wrong.to_string()).unwrap_err();
        assert!(said.iter().any(|problem| problem.to_string().starts_with(wanted)), "{wanted}: {said:?}");
    }
}

fn say(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
    command.args(arguments).env_remove("MXPROBE_DEVICE").env("LD_LIBRARY_PATH", "/nowhere");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_model_has_no_throughput() {
    let said = say(&["bench", "--device", "sim:h100"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("sim:h100 is a model: it has no throughput"), "{}", text(&said.stderr));
    for wrong in [["--time", "0"], ["--samples", "3"], ["--time", "x"], ["--data", "ones"]] {
        let said = say(&["bench", "--device", "cpu:0", wrong[0], wrong[1]]);
        assert_eq!(said.status.code(), Some(2), "{wrong:?}");
        assert!(text(&said.stderr).contains(wrong[1]), "{}", text(&said.stderr));
    }
}

/// A short measurement of this CPU's units; one at a time. On a loaded machine it may be partly inconclusive.
fn of_this_cpu(more: &[&str]) -> Output {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut arguments = vec!["bench", "--device", "cpu:0", "--op", "dot.*", "--time", "2"];
    arguments.extend(more);
    let said = say(&arguments);
    assert!(matches!(said.status.code(), Some(0 | 4)), "{}{}", text(&said.stderr), text(&said.stdout));
    said
}

#[test]
#[cfg_attr(dot_units, ignore = "this CPU has units")]
fn a_cpu_without_units_is_no_usable_device() {
    for more in [&[][..], &["--op", "dot.*"]] {
        let said = say(&[&["bench", "--device", "cpu:0", "--time", "2"], more].concat());
        assert_eq!(said.status.code(), Some(3), "{}", text(&said.stderr));
        assert!(text(&said.stderr).starts_with("error: cpu:0 has no operation that this machine can execute\n"));
    }
}

#[test]
#[cfg_attr(not(dot_units), ignore = "this CPU has neither dot products nor tiles")]
fn the_command_measures_this_cpu_and_its_json_conforms_and_validates() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.json");
    let said = of_this_cpu(&["--format", "json", "--out", file.to_str().unwrap()]);
    let value: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&say(&["schema", "bench"]).stdout).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(std::fs::read(&file).unwrap(), said.stdout, "the file has the printed text");
    let valid = say(&["validate", file.to_str().unwrap()]);
    assert_eq!(valid.status.code(), Some(0), "{}", text(&valid.stdout));
    let report: BenchReport = serde_json::from_value(value).unwrap();
    assert!(!report.time.interrupted && report.operations[0].yardstick);
    let units = report.operations.iter().filter(|found| !found.yardstick);
    assert!(units.clone().count() > 0);
    for found in units {
        match found.outcome {
            Outcome::Measured => assert_eq!((found.emulated, found.runs.len()), (Some(false), 2)),
            _ => assert!(is_of_time(found.reason.as_deref()), "{}: {:?}", found.id, found.reason),
        }
    }
}

/// Whether a measurement was inconclusive because other programs used the machine.
fn is_of_time(reason: Option<&str>) -> bool {
    reason.is_some_and(|reason| reason.contains("the time does not grow") || reason.contains("too short to be timed"))
}

#[test]
#[ignore = "a benchmark: it needs an idle core"]
fn this_cpu_has_a_rate_that_such_units_have() {
    let said = of_this_cpu(&["--format", "json"]);
    let report: BenchReport = serde_json::from_slice(&said.stdout).unwrap();
    for found in report.operations.iter().filter(|found| !found.yardstick) {
        assert_eq!(found.outcome, Outcome::Measured, "{:?}", found.reason);
        let one = found.run(Units::One).unwrap();
        // No dot unit of a CPU executes more than 4 instructions of 512 bits per cycle, or less than one FLOP.
        let per_cycle = one.flop_per_cycle_and_unit.unwrap();
        assert!((1.0..=1024.0).contains(&per_cycle), "{}: {per_cycle}", found.id);
    }
}

#[test]
fn every_view_shows_every_operation() {
    let device = Clocked::new(Fault::None);
    let yardstick = measure(&device, &device.yardsticks[0], &settings(Duration::from_millis(1)));
    let mut failed = measured(&Clocked::new(Fault::Fails));
    failed.id.qualifiers.push("other".into());
    let mut report = report(vec![yardstick, measured(&device), failed]);
    report.settings.data = Data::Zeros;
    conclude(&mut report);
    let style = Style { width: 200, evidence: false, color: false };
    let forms: [(&str, Form, &[&str]); 4] = [
        ("table", Form::Table(style), &["zeros, which flatter", "per cycle and unit", "the driver refused"]),
        ("markdown", Form::Markdown { evidence: false }, &["# Throughput of cuda:0", "| operation | units |"]),
        ("csv", Form::Csv, &["flop_per_s_best", "measured"]),
        ("html", Form::Html, &["<svg", "the mark is the vendor", "<table"]),
    ];
    for (format, form, words) in forms {
        let shown = form.text(&Throughputs(std::slice::from_ref(&report)));
        for found in &report.operations {
            assert!(shown.contains(&found.id.to_string()), "{format} lacks {}", found.id);
        }
        for word in words {
            assert!(shown.contains(word), "{format} lacks {word}: {shown}");
        }
    }
}

#[test]
#[cfg_attr(not(dot_units), ignore = "this CPU has neither dot products nor tiles")]
fn zeros_are_asked_for_in_two_ways() {
    for zeros in [&["--zeros"][..], &["--data", "zeros"]] {
        let json = of_this_cpu(&[&["--format", "json"], zeros].concat());
        let report: BenchReport = serde_json::from_slice(&json.stdout).unwrap();
        assert_eq!(report.settings.data, Data::Zeros);
    }
}

#[test]
#[cfg_attr(not(dot_units), ignore = "this CPU has neither dot products nor tiles")]
fn what_the_budget_does_not_reach_is_skipped_and_said() {
    let said = say(&["bench", "--device", "cpu:0", "--time", "1", "--budget", "0.001", "--format", "json"]);
    assert_eq!(said.status.code(), Some(4));
    let report: BenchReport = serde_json::from_slice(&said.stdout).unwrap();
    let skipped = report.operations.iter().filter(|found| found.outcome == Outcome::Skipped);
    let reasons: Vec<_> = skipped.map(|found| found.reason.as_deref()).collect();
    assert!(
        !reasons.is_empty()
            && reasons.iter().all(|reason| reason.is_some_and(|text| text.starts_with("the budget was spent")))
    );
}
