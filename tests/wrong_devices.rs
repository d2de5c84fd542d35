//! The probes tell wrong devices from right ones: for each fault, the finding that shows it, and the operations.

use std::collections::BTreeMap;

use mxprobe::{
    probes::probe,
    report::{OperationReport, Outcome},
};
use mxprobe_api::{Backend, Device};
use mxprobe_conformance::{FAULTS, Fault, FaultBackend};
use mxprobe_sim::SimBackend;

const F16: &str = "h100/mma.m16n8k16.f32.f16.f16.f32";
const F16_TO_F16: &str = "h100/mma.m16n8k16.f16.f16.f16.f16";
const FP8: &str = "h100/wgmma.m64n8k32.f32.e4m3.e4m3.f32";
const S8: &str = "h100/mma.m16n8k32.s32.s8.s8.s32";
const S8_CLAMPED: &str = "h100/mma.m16n8k32.s32.s8.s8.s32.satfinite";
const AMPERE: &str = "a100/mma.m16n8k16.f32.f16.f16.f32";
const VOLTA: &str = "v100/mma.m8n8k4.f32.f16.f16.f32";
const AMX: &str = "amx/amx.m16n16k32.f32.bf16.bf16.f32";
const AMX_INTEGERS: &str = "amx/amx.m16n16k64.s32.u8.s8.s32";
const LANES: &str = "avx512/dot.m1n1k2.f32.bf16.bf16.f32";
const SCALED: &str = "rtx5090/mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3";
const SCALED_BY_POWERS: &str = "rtx5090/mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue8m0";

/// Operations of every kind.
const ALL: &[&str] =
    &[F16, F16_TO_F16, FP8, S8, S8_CLAMPED, AMPERE, VOLTA, AMX, AMX_INTEGERS, LANES, SCALED, SCALED_BY_POWERS];
/// Operations with more than one row, column and k: matrices of others are their own transposes.
const MATRICES: &[&str] = &[F16, F16_TO_F16, FP8, S8, S8_CLAMPED, AMPERE, VOLTA, AMX, AMX_INTEGERS, SCALED];
const INTEGERS: &[&str] = &[S8, S8_CLAMPED, AMX_INTEGERS];
/// Operations of tensor cores, which cut terms to a grid.
const CUT: &[&str] = &[F16, F16_TO_F16, FP8, AMPERE, VOLTA];

/// The finding on a wrong device.
#[derive(Clone, Copy)]
enum Says {
    /// This value, as JSON, measured.
    Value(&'static str),
    /// A value other than the right device's, measured.
    Other,
    /// The device failed.
    Failed,
}
use Says::{Failed, Other, Value};

/// The fault, the probe whose finding shows it, that finding, and the operations.
const SHOWN: &[(&str, &str, Says, &[&str])] = &[
    ("all-zeros", "self_test", Failed, ALL),
    ("one-fraction-bit-fewer", "alignment.fraction_bits", Value("24"), &[F16, F16_TO_F16]),
    ("one-fraction-bit-fewer", "alignment.fraction_bits", Value("12"), &[FP8]),
    ("one-fraction-bit-fewer", "alignment.fraction_bits", Value("23"), &[AMPERE]),
    ("one-fraction-bit-fewer", "alignment.fraction_bits", Value("22"), &[VOLTA]),
    ("one-fraction-bit-fewer", "alignment.fraction_bits", Value("34"), &[SCALED_BY_POWERS, SCALED]),
    ("one-fraction-bit-fewer", "rounding.fraction_bits", Value("22"), &[AMX, LANES]),
    ("one-fraction-bit-more", "alignment.fraction_bits", Value("26"), &[F16]),
    // As many bits as the formats can show.
    ("one-fraction-bit-more", "alignment.fraction_bits", Value(r#"{"exact_over":26}"#), &[F16_TO_F16]),
    ("one-fraction-bit-more", "alignment.fraction_bits", Value("14"), &[FP8]),
    ("one-fraction-bit-more", "alignment.fraction_bits", Value("25"), &[AMPERE]),
    ("one-fraction-bit-more", "alignment.fraction_bits", Value("24"), &[VOLTA]),
    ("one-fraction-bit-more", "alignment.fraction_bits", Value("36"), &[SCALED_BY_POWERS, SCALED]),
    ("floor-for-truncation", "alignment.below", Value(r#""floor""#), CUT),
    ("floor-for-truncation", "alignment.below", Value(r#""floor""#), &[SCALED_BY_POWERS, SCALED]),
    ("rne-for-rz", "rounding.result", Value(r#""RNE""#), &[F16, FP8, AMPERE, VOLTA, SCALED]),
    ("c-outside-the-sum", "order.tree", Value(r#"["c",[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]]"#), &[F16, F16_TO_F16]),
    ("c-outside-the-sum", "order.tree", Value(r#"["c",[8,9,10,11,12,13,14,15,[0,1,2,3,4,5,6,7]]]"#), &[AMPERE]),
    ("c-outside-the-sum", "order.tree", Value(r#"["c",[0,1,2,3]]"#), &[VOLTA]),
    ("c-outside-the-sum", "order.tree", Value(r#"["c",[0,1]]"#), &[LANES]),
    ("c-outside-the-sum", "order.tree", Other, &[FP8]),
    ("half-the-block", "order.blocks", Value("[[0,1,2,3,4,5,6,7],[8,9,10,11,12,13,14,15]]"), &[F16, F16_TO_F16]),
    ("half-the-block", "order.blocks", Value("[[0,1,2,3],[4,5,6,7],[8,9,10,11],[12,13,14,15]]"), &[AMPERE]),
    ("half-the-block", "order.blocks", Value("[[0,1],[2,3]]"), &[VOLTA]),
    ("half-the-block", "order.products_at_once", Value("16"), &[FP8]),
    ("half-the-block", "integers.saturation_stage", Value(r#""staged""#), &[S8_CLAMPED]),
    ("product-rounded", "products.exact", Other, CUT),
    (
        "carry-short",
        "carry",
        Value(r#"{"accumulator":"{5.25}","beyond_leading_bit":4,"bits":5,"enough":false}"#),
        &[F16, F16_TO_F16],
    ),
    (
        "carry-short",
        "carry",
        Value(r#"{"accumulator":"{5.13}","beyond_leading_bit":4,"bits":5,"enough":false}"#),
        &[FP8],
    ),
    (
        "carry-short",
        "carry",
        Value(r#"{"accumulator":"{4.24}","beyond_leading_bit":3,"bits":4,"enough":false}"#),
        &[AMPERE],
    ),
    (
        "carry-short",
        "carry",
        Value(r#"{"accumulator":"{3.23}","beyond_leading_bit":2,"bits":3,"enough":false}"#),
        &[VOLTA],
    ),
    ("nan-payload-kept", "specials.nan", Other, &[F16, F16_TO_F16, FP8, AMPERE, VOLTA, SCALED]),
    ("subnormals-flushed", "subnormals.a", Value(r#""zero""#), &[F16, F16_TO_F16, FP8, AMPERE, VOLTA, SCALED]),
    ("subnormals-flushed", "subnormals.b", Value(r#""zero""#), &[F16, F16_TO_F16, FP8, AMPERE, VOLTA, SCALED]),
    ("subnormals-flushed", "subnormals.c", Value(r#""zero""#), &[F16, F16_TO_F16, FP8, AMPERE, VOLTA, SCALED]),
    ("a-transposed", "self_test", Failed, MATRICES),
    ("b-transposed", "self_test", Failed, MATRICES),
    ("one-lane-wrong", "self_test", Failed, INTEGERS),
    ("one-lane-wrong", "position", Value("false"), &[F16, F16_TO_F16, FP8, AMPERE, VOLTA, AMX, SCALED]),
    ("one-lane-wrong", "position", Value("false"), &[LANES]),
    ("off-by-one-tile", "self_test", Failed, ALL),
    ("last-tile-missing", "self_test", Failed, ALL),
    ("nothing-written", "self_test", Failed, ALL),
    ("short-output", "self_test", Failed, ALL),
    ("stale-output", "self_test", Failed, ALL),
    ("nondeterministic", "determinism", Value("false"), ALL),
    ("lost", "self_test", Failed, ALL),
];

/// Faults that change no result of these operations.
const WITHOUT_EFFECT: &[(&str, &[&str])] = &[
    ("rne-for-rz", &[F16_TO_F16, S8, S8_CLAMPED]),
    ("carry-short", INTEGERS_OF_H100),
    ("half-the-block", &[S8]),
    ("subnormals-flushed", &[AMX, LANES, S8]),
    ("b-transposed", &[LANES]),
    ("a-transposed", &[LANES]),
];
const INTEGERS_OF_H100: &[&str] = &[S8, S8_CLAMPED];

fn report(backend: &dyn Backend, name: &str, id: &str) -> OperationReport {
    let device: Box<dyn Device> = backend.open(name).unwrap_or_else(|error| panic!("{error}"));
    let operation = &device.operations()[&id.parse().expect("an operation id")];
    probe(device.as_ref(), operation, None).into()
}

fn of_wrong(fault: &str, text: &str) -> OperationReport {
    let (model, id) = text.split_once('/').expect("model/id");
    report(&FaultBackend, &format!("{fault}:{model}"), id)
}

fn of_right(text: &str) -> OperationReport {
    let (model, id) = text.split_once('/').expect("model/id");
    report(&SimBackend, model, id)
}

/// The probe, outcome and value of every finding.
fn answers(report: &OperationReport) -> Vec<(&str, Outcome, Option<&serde_json::Value>)> {
    report.findings.iter().map(|finding| (&*finding.probe, finding.outcome, finding.value.as_ref())).collect()
}

#[test]
fn every_fault_shows_in_the_named_finding() {
    let right: BTreeMap<&str, OperationReport> = ALL.iter().map(|text| (*text, of_right(text))).collect();
    let mut wrong: BTreeMap<(&str, &str), OperationReport> = BTreeMap::new();
    let mut missed = Vec::new();
    for (fault, name, says, operations) in SHOWN {
        for text in *operations {
            let report = wrong.entry((fault, text)).or_insert_with(|| of_wrong(fault, text));
            let found = report.finding(name).map(|finding| (finding.outcome, finding.value.clone()));
            let of_right = right[text].finding(name).map(|finding| (finding.outcome, finding.value.clone()));
            let measured = found.as_ref().is_some_and(|(outcome, _)| *outcome == Outcome::Measured);
            let is_shown = match says {
                Value(json) => {
                    let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
                    measured && found == Some((Outcome::Measured, Some(value)))
                }
                Other => measured,
                Failed => found.as_ref().is_some_and(|(outcome, _)| *outcome == Outcome::Failed),
            };
            if !is_shown || found == of_right {
                missed.push(format!("\n{fault} of {text}: {name} is {found:?}, and {of_right:?} of the right device"));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.concat());
}

#[test]
fn every_fault_that_returns_is_in_the_table() {
    // A panic does not return either: it needs a process of its own.
    for fault in FAULTS.iter().filter(|fault| !fault.never_returns() && fault.name != "panic") {
        assert!(SHOWN.iter().any(|(name, ..)| *name == fault.name), "{} is not in the table", fault.name);
    }
    for (fault, ..) in SHOWN {
        assert!(Fault::named(fault).is_ok(), "{fault}");
    }
}

#[test]
fn a_fault_without_effect_changes_no_finding() {
    for (fault, operations) in WITHOUT_EFFECT {
        for text in *operations {
            let (right, wrong) = (of_right(text), of_wrong(fault, text));
            assert_eq!(answers(&right), answers(&wrong), "{fault} of {text}");
        }
    }
}
