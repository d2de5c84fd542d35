//! The command on the fake CUDA driver: the real binary and the real bindings, with a library that interprets kernels
//! with a model's arithmetic.
#![allow(missing_docs, clippy::print_stderr)]
#![cfg(all(feature = "cuda", target_os = "linux"))]

mod fake;
mod recovery;

use mxprobe::report::{
    BenchReport, FindingRecord, IdentificationReport, OperationReport, Outcome, Report, TimedBy, VerificationReport,
    check::read_reports,
};
use mxprobe_models::shipped;

use fake::{in_folder, on_fake_driver};

/// A time limit in seconds that no operation reaches, however loaded the machine is.
const PATIENT: &str = "86400";

/// The report of a run on the fake driver.
#[track_caller]
fn report(environment: &[(&str, &str)], operations: &[&str], code: i32) -> Report {
    let mut arguments = vec!["run", "--backend", "cuda", "--format", "json", "--timeout", PATIENT];
    operations.iter().for_each(|operation| arguments.extend(["--op", operation]));
    let said = on_fake_driver(environment, &arguments);
    assert_eq!(said.code, Some(code), "{environment:?}: {}", said.err);
    let mut reports = read_reports(&said.out).unwrap();
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

fn finding<'a>(report: &'a Report, operation: &str, probe: &str) -> &'a FindingRecord {
    let operation = report.operations.iter().find(|found| found.operation.id.to_string() == operation);
    operation.and_then(|operation| operation.finding(probe)).unwrap_or_else(|| panic!("{probe} of an operation"))
}

/// Probes every operation that the fake driver of a model offers, and compares each report with the model.
fn finds_the_model(name: &str, operations: &[&str], count: usize) {
    let model = shipped().iter().find(|model| model.name == name).unwrap();
    let report = report(&[("MXPROBE_FAKE_MODEL", name)], operations, 0);
    assert!(report.device.emulated);
    let is_scalar = |operation: &&OperationReport| operation.operation.id.family == "scalar";
    let (scalars, matrices): (Vec<_>, Vec<_>) = report.operations.iter().partition(is_scalar);
    assert_eq!(matrices.len(), count, "{operations:?} of {name}");
    assert_eq!(scalars.is_empty(), !operations.is_empty(), "scalar arithmetic is asked about where nothing is chosen");
    assert_eq!(report.device.fingerprint, model.fingerprint);
    let mut wrong = Vec::new();
    for operation in scalars {
        if operation.finding("function.fma").is_some_and(|finding| !finding.is("RNE, fused")) {
            wrong.push(format!("{}: FMA is not fused", operation.operation.id));
        }
    }
    for operation in matrices {
        let id = &operation.operation.id;
        if !model.operations.contains_key(id) {
            wrong.push(format!("{id} is offered, but {name} has no such operation"));
            continue;
        }
        wrong.extend(recovery::differences(model, id, operation));
        for probe in ["instruction", "emulation"] {
            if operation.finding(probe).is_none_or(|finding| finding.outcome != Outcome::Measured) {
                wrong.push(format!("{id}: {probe} is not measured"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_run_finds_the_v100() {
    finds_the_model("v100", &[], 9);
}

#[test]
fn a_run_finds_the_t4() {
    finds_the_model("t4", &[], 43);
}

#[test]
fn a_run_finds_the_a100() {
    finds_the_model("a100", &[], 90);
}

#[test]
fn a_run_finds_the_l40s() {
    finds_the_model("l40s", &[], 106);
}

#[test]
fn a_run_finds_the_h100() {
    finds_the_model("h100", &[], 178);
}

/// One operation of each kind that only the B200 has here: every kind of `tcgen05`, on narrowest and widest tiles.
#[test]
fn a_run_finds_the_b200() {
    finds_the_model(
        "b200",
        &[
            "mma.m16n8k16.f32.f16.f16.f32",
            "wmma.m16n16k16.f32.bf16*",
            "tcgen05.m128n8k16.f16*",
            "tcgen05.m128n8k8*",
            "tcgen05.m128n8k32.f16.e4m3.e5m2*",
            "tcgen05.m128n8k32.f32.e?m?.e3m2*",
            "tcgen05.m128n8k32.s32.s8.u8*",
            "tcgen05.m128n8k64*",
            "tcgen05.m128n256k16.f32.bf16*",
            "tcgen05.m128n256k32.f32.e2m3.e5m2*",
            "tcgen05.m128n256k64*block16.ue4m3",
        ],
        24,
    );
}

#[test]
#[ignore = "takes minutes: every operation of the B200 except those on its widest tiles"]
fn a_run_finds_all_of_the_b200() {
    finds_the_model("b200", &["mma.*", "wmma.*", "tcgen05.m128n8k*"], 208);
}

#[test]
#[ignore = "takes minutes: every operation on the widest tiles of the B200"]
fn a_run_finds_the_b200_on_its_widest_tiles() {
    finds_the_model(
        "b200",
        &[
            "tcgen05.m128n256k*.f16*",
            "tcgen05.m128n256k8*",
            "tcgen05.m128n256k16*",
            "tcgen05.m128n256k*.s32.*",
            "tcgen05.m128n256k64*",
        ],
        40,
    );
}

#[test]
#[ignore = "takes minutes: every operation on the widest tiles of narrow floats of the B200"]
fn a_run_finds_the_b200_on_its_widest_tiles_of_narrow_floats() {
    finds_the_model("b200", &["tcgen05.m128n256k32.f32.*"], 50);
}

#[test]
fn a_run_finds_the_rtx5090() {
    finds_the_model("rtx5090", &[], 187);
}

const F16: &str = "mma.m16n8k16.f32.f16.f16.f32";

#[test]
fn documented_emulations_are_recognised_by_their_code() {
    let hopper =
        report(&[("MXPROBE_FAKE_MODEL", "h100")], &["mma.m16n8k32.f32.e4m3.e5m2.f32", "mma.m8n8k4.f32.f16.f16.f32"], 0);
    let fp8 = finding(&hopper, "mma.m16n8k32.f32.e4m3.e5m2.f32", "emulation");
    assert_eq!(fp8.value, Some(true.into()), "{fp8:?}");
    assert!(fp8.statement.contains("2 × HMMA in place of one QMMA"), "{}", fp8.statement);
    let volta = finding(&hopper, "mma.m8n8k4.f32.f16.f16.f32", "emulation");
    assert_eq!(volta.value, Some(true.into()));
    assert!(volta.statement.contains("__cuda_sm_8x_mma_row_col_f32_f16_f16_f32"), "{}", volta.statement);
    let ada = report(&[("MXPROBE_FAKE_MODEL", "l40s")], &["mma.m16n8k32.f32.e4m3.e5m2.f32"], 0);
    assert_eq!(finding(&ada, "mma.m16n8k32.f32.e4m3.e5m2.f32", "emulation").value, Some(false.into()));
}

#[test]
fn a_planted_layout_fault_fails_the_self_test_and_nothing_else_is_claimed() {
    let fault = ("MXPROBE_FAKE_FAULT", "layout");
    let hopper = report(&[fault], &[F16, "wgmma.m64n8k16.f32.f16*"], 4);
    let blackwell = report(
        &[fault, ("MXPROBE_FAKE_MODEL", "b200")],
        &["wmma.m16n16k16.f32.f16*", "tcgen05.m128n8k32.f32.e2m1.e4m3.f32*"],
        4,
    );
    assert_eq!((hopper.operations.len(), blackwell.operations.len()), (2, 3));
    for operation in hopper.operations.iter().chain(&blackwell.operations) {
        let found = operation.finding("self_test").unwrap();
        assert_eq!(found.outcome, Outcome::Failed, "{}", operation.operation.id);
        let reason = found.reason.as_deref().unwrap_or_default();
        assert!(reason.contains("layout self-test") && reason.contains("row 2"), "{reason}");
        assert!(operation.finding("alignment.fraction_bits").is_none());
    }
}

/// The throughput on the fake driver of a model: its clock counts instructions, but the timed work is really computed.
fn throughput(environment: &[(&str, &str)], operations: &[&str], code: i32) -> BenchReport {
    let mut arguments = vec!["bench", "--device", "cuda:0", "--time", "1", "--format", "json", "--timeout", PATIENT];
    operations.iter().for_each(|operation| arguments.extend(["--op", operation]));
    let said = on_fake_driver(environment, &arguments);
    let report: BenchReport = serde_json::from_str(&said.out).unwrap();
    let reasons: Vec<_> = report.operations.iter().filter_map(|found| found.reason.as_ref()).collect();
    assert_eq!(said.code, Some(code), "{environment:?}: {} {reasons:?}", said.err);
    report
}

#[test]
fn what_is_timed_is_what_is_computed_in_every_kind_of_kernel() {
    for (model, operations, count) in [
        ("v100", &["mma.m8n8k4.f32.f16.f16.f32", "wmma.m16n16k16.f16*"][..], 2),
        ("h100", &[F16, "mma.m8n8k4.f64*.f64", "wgmma.m64n8k32.f32.e4m3.e5m2*", "wgmma.m64n64k16.f16*"], 4),
        ("b200", &["tcgen05.m128n8k16.f32.f16*", "tcgen05.m128n8k64*.block16.ue4m3"], 2),
        ("rtx5090", &["mma.m16n8k64*.block16.ue4m3"], 1),
    ] {
        let report = throughput(&[("MXPROBE_FAKE_MODEL", model)], operations, 0);
        assert!(report.device.emulated);
        let (yardsticks, units): (Vec<_>, Vec<_>) = report.operations.iter().partition(|found| found.yardstick);
        assert_eq!((yardsticks.len(), units.len()), (1, count), "{model}");
        for found in &report.operations {
            assert_eq!((found.outcome, found.runs.len()), (Outcome::Measured, 2), "{}: {:?}", found.id, found.reason);
            let all = &found.runs[1];
            assert_eq!((all.clock, all.units, all.unit.as_str()), (TimedBy::Device, Some(8), "multiprocessor"));
            assert!(all.frequency_hz.is_some_and(|hz| hz > 0.0), "the kernel counted its cycles");
        }
        assert!(units.iter().all(|found| found.emulated == Some(false)), "{model}: the unit's instruction is there");
    }
}

#[test]
fn an_emulation_is_marked_where_it_is_timed() {
    let fp8 = throughput(&[("MXPROBE_FAKE_MODEL", "h100")], &["mma.m16n8k32.f32.e4m3.e5m2.f32"], 0);
    assert_eq!(fp8.operations[1].emulated, Some(true));
}

#[test]
fn a_driver_that_crashes_costs_the_operation_that_was_timed() {
    let report = throughput(&[("MXPROBE_FAKE_FAULT", "abort")], &[F16, "wgmma.m64n8k16.f32.f16*"], 4);
    // Both operations, and the scalar operation that they are compared with.
    assert_eq!(report.operations.len(), 3);
    for found in &report.operations {
        assert_eq!(found.outcome, Outcome::Failed);
        assert!(found.reason.as_ref().unwrap().contains("SIGABRT"), "{:?}", found.reason);
    }
}

#[test]
fn a_planted_opcode_is_reported_as_an_emulation() {
    let report = report(&[("MXPROBE_FAKE_FAULT", "wrong-opcode")], &[F16], 0);
    let found = finding(&report, F16, "emulation");
    assert_eq!(found.value, Some(true.into()));
    assert!(found.statement.contains("HMMA is not in the code"), "{}", found.statement);
}

#[test]
fn a_kernel_that_writes_nothing_is_named() {
    let report = report(&[("MXPROBE_FAKE_FAULT", "silent")], &[F16], 4);
    let found = finding(&report, F16, "self_test");
    assert_eq!(found.outcome, Outcome::Failed);
    assert!(found.reason.as_deref().is_some_and(|reason| reason.contains("never written")), "{found:?}");
}

#[test]
fn a_driver_without_a_device_is_one_line_and_exit_code_3() {
    for (fault, words) in [
        ("no-device", "CUDA_ERROR_NO_DEVICE (100)"),
        ("stub", "CUDA_ERROR_STUB_LIBRARY (34)"),
        ("mismatch", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"),
    ] {
        let environment = [("MXPROBE_FAKE_FAULT", fault)];
        let said = on_fake_driver(&environment, &["--backend", "cuda"]);
        assert_eq!(said.code, Some(3), "{fault}: {}", said.err);
        assert!(said.err.contains(words) && said.err.contains("\nhelp: "), "{fault}: {}", said.err);
        let listed = on_fake_driver(&environment, &["list", "--backend", "cuda"]);
        assert_eq!(listed.code, Some(0), "{fault}: {}", listed.err);
        assert_eq!(listed.out.lines().filter(|line| line.contains(words)).count(), 1, "{fault}: {}", listed.out);
    }
}

#[test]
fn a_library_without_the_functions_is_refused_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    // Any shared library other than a driver will do: use this process's C library.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let other = maps.lines().find_map(|line| Some(&line[line.find('/')?..]).filter(|path| path.contains("/libc.so")));
    let other = other.expect("the C library is shared");
    std::fs::copy(other, folder.path().join("libcuda.so.1")).unwrap();
    let said = in_folder(folder.path(), &[], &["--backend", "cuda"]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert!(said.err.contains("lacks 42 of 42 functions: cuCtxGetCurrent"), "{}", said.err);
}

#[test]
#[cfg_attr(not(no_nvidia_driver), ignore = "this machine has an NVIDIA driver")]
fn no_library_at_all_is_one_line_and_exit_code_3() {
    let folder = tempfile::tempdir().unwrap();
    let listed = in_folder(folder.path(), &[], &["list", "--backend", "cuda"]);
    assert_eq!(listed.code, Some(0));
    assert_eq!(listed.out.lines().filter(|line| line.contains("libcuda.so.1")).count(), 1, "{}", listed.out);
    let said = in_folder(folder.path(), &[], &["--backend", "cuda"]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert!(said.err.contains("libcuda.so.1"), "{}", said.err);
}

#[test]
fn what_fails_on_the_way_is_named_with_the_drivers_own_words() {
    for (fault, words) in [
        ("oom", "CUDA_ERROR_OUT_OF_MEMORY (2)"),
        ("launch", "cuLaunchKernel returned CUDA_ERROR_LAUNCH_FAILED (719)"),
        ("launch-async", "CUDA_ERROR_"),
        ("no-jit", "libnvidia-ptxjitcompiler.so.1"),
        ("invalid-ptx", "CUDA_ERROR_INVALID_PTX (218): ptxas"),
    ] {
        let report = report(&[("MXPROBE_FAKE_FAULT", fault)], &[F16], 4);
        let found = finding(&report, F16, "self_test");
        assert_eq!(found.outcome, Outcome::Failed, "{fault}");
        let reason = found.reason.as_deref().unwrap_or_default();
        assert!(reason.contains(words), "{fault}: {reason}");
    }
}

#[test]
fn a_crash_and_a_hang_cost_what_they_must_and_no_more() {
    let crashed = report(&[("MXPROBE_FAKE_FAULT", "abort")], &[F16], 4);
    let outcomes: Vec<_> = crashed.operations.iter().flat_map(|operation| &operation.findings).collect();
    assert!(outcomes.iter().all(|finding| finding.outcome == Outcome::Failed), "{crashed:?}");
    let said = on_fake_driver(
        &[("MXPROBE_FAKE_FAULT", "hang")],
        &["run", "--backend", "cuda", "--op", F16, "--timeout", "2", "--format", "json"],
    );
    assert_eq!(said.code, Some(4), "{}", said.err);
}

#[test]
fn one_trapping_kernel_costs_one_operation_whatever_is_asked() {
    const TRAPS: &str = "mma.m16n8k8.f32.f16.f16.f32";
    let operations = ["--op", "mma.*.f32.f16.f16.f32", "--op", "mma.m16n8k8.f16.f16.f16.f16", "--device", "cuda:0"];
    let environment =
        [("MXPROBE_FAKE_FAULT", "device-lost"), ("MXPROBE_FAKE_ONLY", TRAPS), ("MXPROBE_FAKE_MODEL", "a100")];
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("model.toml");
    let say = |arguments: &[&str]| {
        let more = ["--format", "json", "--timeout", PATIENT];
        let said = on_fake_driver(&environment, &[arguments, &operations[..], &more].concat());
        assert_eq!(said.code, Some(4), "{arguments:?}: {}", said.err);
        said.out
    };
    let is_only_failure = |failed: Vec<(String, bool)>| {
        assert!(failed.len() > 3, "{failed:?}");
        failed.iter().for_each(|(id, failed)| assert_eq!(id == TRAPS, *failed, "{id}"));
    };
    let run: Report = serde_json::from_str(&say(&["run"])).unwrap();
    let of = |found: &OperationReport| (found.operation.id.to_string(), !found.is_finished());
    is_only_failure(run.operations.iter().map(of).collect());
    let verified: VerificationReport =
        serde_json::from_str(&say(&["verify", "--model", "a100", "--count", "1000"])).unwrap();
    is_only_failure(verified.operations.iter().map(|one| (one.id.to_string(), one.failed.is_some())).collect());
    let identified: IdentificationReport =
        serde_json::from_str(&say(&["identify", "--out", out.to_str().unwrap()])).unwrap();
    is_only_failure(identified.operations.iter().map(|one| (one.id.to_string(), one.model.is_none())).collect());
    let timed: BenchReport = serde_json::from_str(&say(&["bench", "--time", "1"])).unwrap();
    let units = timed.operations.iter().filter(|found| !found.yardstick);
    is_only_failure(units.map(|one| (one.id.to_string(), one.outcome == Outcome::Failed)).collect());
}

#[test]
fn an_old_driver_refuses_what_its_ptx_cannot_say() {
    let old = [("MXPROBE_FAKE_MODEL", "l40s"), ("MXPROBE_FAKE_DRIVER", "12040")];
    let said = on_fake_driver(&old, &["list", "--backend", "cuda"]);
    assert!(said.out.contains("it needs PTX 8.7, and the driver's CUDA 12.4 accepts up to 8.4"), "{}", said.out);
    let k32 = report(&old, &["mma.m16n8k*.f32.e4m3.e4m3.f32"], 0);
    let ids: Vec<String> = k32.operations.iter().map(|operation| operation.operation.id.to_string()).collect();
    assert_eq!(ids, ["mma.m16n8k32.f32.e4m3.e4m3.f32"], "PTX 8.4 has the long one alone");
}

#[test]
fn a_capability_offers_what_it_has() {
    let listed = |capability: &str| {
        let said = on_fake_driver(
            &[("MXPROBE_FAKE_MODEL", "h100"), ("MXPROBE_FAKE_CAPABILITY", capability)],
            &["list", "--backend", "cuda"],
        );
        said.out.lines().filter(|line| line.starts_with("    mma.") || line.starts_with("    wgmma.")).count()
    };
    assert!(listed("8.6") < listed("8.9") && listed("8.9") < listed("9.0"));
    let too_old = on_fake_driver(&[("MXPROBE_FAKE_CAPABILITY", "6.1")], &["--backend", "cuda"]);
    assert_eq!(too_old.code, Some(3));
    assert!(too_old.err.contains("compute capability 6.1 has no matrix unit; 7.0 is the first"), "{}", too_old.err);
}
