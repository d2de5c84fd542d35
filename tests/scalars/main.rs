//! The probes of scalar arithmetic, on units of IEEE 754 with one thing changed: they find the change and blame nothing
//! else.
#![allow(missing_docs)]

mod flags;
mod ulp;
mod unit;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use mxprobe::{
    report::{OperationReport, Outcome},
    scalars,
};
use mxprobe_api::{Device, Elements, Error, Scalar, ScalarFunction, Scalars};

use unit::{Change, Unit, device_around_its_unit};

/// Probes the first mode of a device.
fn probed(device: &dyn Device) -> OperationReport {
    scalars::probe(device, &device.scalars().unwrap().members()[0], None, scalars::POINTS).into()
}

/// The answer of every probe, as text.
fn answers(change: Change, mode: &[&str]) -> BTreeMap<String, String> {
    let unit = Unit::new(change, mode);
    let report = probed(&unit);
    let answer = |finding: &mxprobe::report::FindingRecord| {
        finding
            .value
            .as_ref()
            .map_or_else(|| "none".to_owned(), |value| value.as_str().map_or(value.to_string(), str::to_owned))
    };
    report.findings.iter().map(|finding| (finding.probe.clone(), answer(finding))).collect()
}

/// The answers that differ from those of a unit that follows IEEE 754, except for the mean errors of dots.
fn differences(change: Change) -> Vec<(String, String)> {
    let plain = answers(Change::Nothing, &[]);
    let changed = answers(change, &[]);
    let differs = changed.into_iter().filter(|(probe, value)| probe != "dot4.error" && plain[probe] != *value);
    differs.collect()
}

fn told(changes: &[(&str, &str)]) -> Vec<(String, String)> {
    changes.iter().map(|(probe, value)| ((*probe).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn arithmetic_as_the_standard_has_it_is_found_to_be_so() {
    let found = answers(Change::Nothing, &[]);
    for (probe, value) in [
        ("function.add", "RNE"),
        ("function.divide", "RNE"),
        ("function.square_root", "RNE"),
        ("function.fma", "RNE, fused"),
        ("function.multiply_add", "RNE, separate"),
        ("function.convert.f64", "exact"),
        ("function.convert.s32", "RZ"),
        ("function.dot4.serial", "RNE, separate"),
        ("function.dot4.fma", "RNE, fused"),
        ("function.dot4.pairwise", "RNE, separate"),
        ("subnormals.inputs", "read"),
        ("subnormals.results", "kept"),
        ("nan.operand", "first operand"),
    ] {
        assert_eq!(found[probe], value, "{probe}");
    }
}

#[test]
fn each_change_is_named_and_nothing_else_is_blamed() {
    assert_eq!(differences(Change::DivisionOff), told(&[("function.divide", "within 1 ulp")]));
    assert_eq!(
        differences(Change::FmaNotFused),
        told(&[("function.dot4.fma", "RNE, separate"), ("function.fma", "RNE, separate")])
    );
    assert_eq!(
        differences(Change::Contracted),
        told(&[
            ("function.dot4.pairwise", "RNE, fused"),
            ("function.dot4.serial", "RNE, fused"),
            ("function.multiply_add", "RNE, fused"),
        ])
    );
    assert_eq!(differences(Change::PairwiseReordered), told(&[("function.dot4.pairwise", "RNE, reordered")]));
    let in_f64 = differences(Change::FmaInF64);
    assert_eq!(in_f64.iter().find(|(probe, _)| probe == "function.fma").unwrap().1, "RNE, by way of f64");
    let canonical = differences(Change::CanonicalNan);
    assert_eq!(canonical, told(&[("nan.invalid", "0x7fffffff"), ("nan.operand", "canonical")]));
}

#[test]
fn each_way_of_contracting_a_dot_product_is_recognised_and_named() {
    let pairwise = "function.dot4.pairwise";
    let serial = "function.dot4.serial";
    assert_eq!(
        differences(Change::ContractedFirst),
        told(&[
            (pairwise, "RNE, fused: fma(a0, b0, p1) + fma(a2, b2, p3)"),
            (serial, "RNE, fused, from p0: fma(a3, b3, fma(a2, b2, fma(a0, b0, p1)))"),
        ])
    );
    assert_eq!(
        differences(Change::ContractedMixed),
        told(&[(pairwise, "RNE, fused: fma(a0, b0, p1) + fma(a3, b3, p2)")])
    );
    assert_eq!(
        differences(Change::ContractedPartly),
        told(&[
            (pairwise, "RNE, partly fused: fma(a1, b1, p0) + (p2 + p3)"),
            (serial, "RNE, partly fused: fma(a3, b3, ((0 + p0) + p1) + p2)"),
        ])
    );
    // Each is a rival of the others.
    let unit = Unit::new(Change::ContractedFirst, &[]);
    let report = probed(&unit);
    let finding = report.finding(pairwise).unwrap();
    assert!(finding.statement.contains("contracted to fma(a0, b0, p1) + fma(a2, b2, p3)"), "{}", finding.statement);
    let rivals: Vec<&str> =
        finding.evidence.iter().flat_map(|dot| &dot.rivals).map(|rival| rival.answer.as_str()).collect();
    assert!(rivals.contains(&"RNE, separate"), "{rivals:?}");
    // Another contraction; the report names one of those that give the same bits.
    assert!(rivals.iter().any(|rival| rival.starts_with("RNE, fused")), "{rivals:?}");
}

/// A unit that fails at one call, or from that call on.
struct Failing {
    unit: Unit,
    calls: AtomicUsize,
    at: usize,
    error: fn() -> Error,
}

device_around_its_unit!(Failing);

impl Scalars for Failing {
    fn members(&self) -> &[Scalar] {
        self.unit.members()
    }

    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let error = (self.error)();
        if call == self.at || error.is_device_lost() && call > self.at {
            return Err(error);
        }
        self.unit.call(scalar, function, operands)
    }
}

#[test]
fn a_failed_call_leaves_what_the_other_functions_had_shown() {
    let failing = |at: usize, error: fn() -> Error| {
        let unit = Unit::new(Change::FlushResults, &["preserve"]);
        Failing { unit, calls: AtomicUsize::new(0), at, error }
    };
    let right = failing(usize::MAX, || Error::driver("no"));
    let whole = probed(&right);
    let calls = right.calls.load(Ordering::Relaxed);
    let names: Vec<&String> = whole.findings.iter().map(|finding| &finding.probe).collect();
    let errors: [fn() -> Error; 2] = [|| Error::driver("a launch failed"), || Error::device_lost("the bus is gone")];
    for error in errors {
        for at in 0..calls {
            let device = failing(at, error);
            let report = probed(&device);
            let about = format!("call {at}, {}", error());
            let found: Vec<&String> = report.findings.iter().map(|finding| &finding.probe).collect();
            assert_eq!(found, names, "{about}");
            let failed = report.findings.iter().position(|finding| finding.outcome == Outcome::Failed);
            let failed = failed.unwrap_or_else(|| panic!("{about}: nothing failed"));
            assert_eq!(report.findings[..failed], whole.findings[..failed], "{about}");
            let rest = report.findings.iter().skip(failed);
            let lost = rest.clone().all(|finding| matches!(finding.outcome, Outcome::Failed | Outcome::Skipped));
            assert!(lost || !error().is_device_lost(), "{about}");
            let reasons = rest.filter(|finding| finding.outcome == Outcome::Failed);
            reasons.for_each(|finding| assert_eq!(finding.reason, Some(error().to_string()), "{about}"));
        }
    }
}

#[test]
fn flushed_subnormals_are_told_apart_by_where_they_are_flushed() {
    let results = differences(Change::FlushResults);
    let of = |found: &[(String, String)], probe: &str| {
        found.iter().find(|(other, _)| other == probe).map(|(_, value)| value.clone())
    };
    assert_eq!(of(&results, "subnormals.results").as_deref(), Some("zero"));
    assert_eq!(of(&results, "subnormals.inputs"), None);
    assert_eq!(of(&results, "function.multiply"), None);
    let inputs = differences(Change::FlushInputs);
    assert_eq!(of(&inputs, "subnormals.inputs").as_deref(), Some("zero"));
    assert_eq!(of(&inputs, "subnormals.results"), None);
}

#[test]
fn tininess_is_not_asked_where_no_result_is_rounded_up_to_the_normal_range() {
    let found = |change: Change| {
        let unit = Unit::new(change, &[]);
        let report = probed(&unit);
        let tininess = report.finding("subnormals.tininess").unwrap();
        (tininess.outcome, tininess.value.clone())
    };
    assert_eq!(found(Change::FlushResults), (Outcome::Measured, Some("after rounding".into())));
    assert_eq!(found(Change::TowardZeroFlushed), (Outcome::Unsupported, None));
}

/// *Specified*: Intel SDM volume 1, 4.9.1.5: SSE detects tininess after rounding.
#[cfg(all(feature = "cpu", target_arch = "x86_64"))]
#[test]
fn this_cpu_sees_tininess_after_rounding_in_each_direction_that_shows_it() {
    use mxprobe_api::Backend;
    let devices = mxprobe_cpu::CpuBackend::new().discover().devices;
    let mut asked = 0;
    for scalar in devices.iter().flat_map(|device| device.scalars().unwrap().members()) {
        if scalar.id.format != mxprobe_api::Format::F32 || !scalar.id.has("ftz") || scalar.id.has("daz") {
            continue;
        }
        let report = scalars::probe(
            devices[0].as_ref(),
            scalar,
            Some(&|probe| probe.starts_with("subnormals")),
            scalars::POINTS,
        );
        let found = report.finding("subnormals.tininess").unwrap();
        let wanted = if scalar.id.has("rz") { Outcome::Unsupported } else { Outcome::Measured };
        assert_eq!(found.outcome, wanted, "{}", scalar.id);
        assert!(wanted == Outcome::Unsupported || found.is("after rounding"), "{}: {}", scalar.id, found.statement);
        asked += 1;
    }
    assert_eq!(asked, 4 * devices.len());
}

#[test]
fn a_signalling_nan_that_passes_before_a_quiet_one_is_found() {
    assert_eq!(differences(Change::SignallingFirst), told(&[("nan.operand", "signalling, then first")]));
}

#[test]
fn the_dot_of_the_largest_error_stands_beside_its_exact_sum() {
    let unit = Unit::new(Change::Nothing, &[]);
    let report = probed(&unit);
    let evidence = &report.finding("dot4.error").unwrap().evidence;
    let bits = |text: &str| u32::from_str_radix(&text[2..], 16).unwrap();
    assert_eq!(evidence.len(), 3);
    let mut off = 0;
    for dot in evidence {
        let x: Vec<f64> = dot.a.iter().map(|text| f32::from_bits(bits(text)).into()).collect();
        // Products of multiples of 2^-23 below 4: f64 keeps every bit of a product and nearly every bit of the sum.
        let sum: f64 = (0..4).map(|at| x[at] * x[4 + at]).sum();
        #[allow(clippy::cast_possible_truncation, reason = "the conversion rounds to nearest")]
        let nearest = (sum as f32).to_bits();
        for rival in &dot.rivals {
            off += 1;
            assert_eq!(bits(&rival.d), nearest, "{dot:?}");
            assert_ne!(rival.d, dot.d);
        }
    }
    assert!(off > 0);
}

#[test]
fn a_sum_depends_on_the_number_of_threads_and_its_orders_are_those_that_are_named() {
    let report = probed(&Unit::new(Change::Nothing, &[]));
    let finding = report.finding("sum.order").unwrap();
    let value = finding.value.as_ref().unwrap();
    let error = |threads: &str| value[threads].as_str().unwrap().parse::<f64>().unwrap();
    assert!(value["differ"].as_u64().unwrap() > 32, "{value}");
    // The tree has the errors of seven additions, four threads have those of 33.
    assert!(error("128") < error("4"), "{value}");
    for evidence in &finding.evidence {
        let bits = |text: &str| f32::from_bits(u32::from_str_radix(&text[2..], 16).unwrap());
        assert_eq!((bits(&evidence.a[0]) + bits(&evidence.a[1])).to_bits(), bits(&evidence.d).to_bits());
        assert!(!evidence.rivals.is_empty() && evidence.rivals.iter().all(|rival| rival.d != evidence.d));
    }
}

#[test]
fn no_two_rivals_of_one_call_have_the_same_name() {
    let unit = Unit::new(Change::Nothing, &[]);
    let report = probed(&unit);
    let mut orders = 0;
    for evidence in report.findings.iter().flat_map(|finding| &finding.evidence) {
        let names: std::collections::BTreeSet<&str> =
            evidence.rivals.iter().map(|rival| rival.answer.as_str()).collect();
        assert_eq!(names.len(), evidence.rivals.len(), "{evidence:?}");
        orders += names.iter().filter(|name| name.contains("reordered: ")).count();
    }
    assert!(orders > 3, "{orders}");
}

#[test]
fn another_direction_is_found_and_a_mode_that_is_not_kept_is_named() {
    let found = answers(Change::TowardZero, &["rne", "ftz"]);
    for probe in ["function.multiply", "function.divide"] {
        assert_eq!(found[probe], "RZ", "{probe}");
    }
    // A square root is never negative, so that no input tells RD from RZ.
    assert_eq!(found["function.square_root"], "RZ or RD");
    assert_eq!(found["mode"], "false");
    assert_eq!(answers(Change::Nothing, &["preserve"])["mode"], "true");
    // Conversions to integers go toward zero in every mode here.
    assert_eq!(answers(Change::Nothing, &["rne"])["mode"], "false");
    assert_eq!(answers(Change::FlushResults, &["preserve"])["mode"], "false");
}

#[test]
fn a_function_that_is_not_correctly_rounded_does_not_follow_a_direction() {
    let unit = Unit::new(Change::DivisionOff, &["rne"]);
    let mut report = probed(&unit);
    // Conversions to integers go toward zero in every mode here.
    let said = report.finding("mode").unwrap().statement.clone();
    assert_eq!(said, "rne is not followed by divide (not correctly rounded in any direction), convert.s32");
    // The inexact division says nothing about subnormals.
    let unit = Unit::new(Change::DivisionOff, &["preserve"]);
    report = probed(&unit);
    assert!(report.finding("mode").unwrap().is(true));
}

#[test]
fn a_mode_that_is_not_kept_has_a_call_that_shows_it() {
    for (change, word) in [
        (Change::TowardZero, "rne"),
        (Change::FlushResults, "preserve"),
        (Change::Nothing, "ftz"),
        (Change::DivisionOff, "rne"),
    ] {
        let unit = Unit::new(change, &[word]);
        let report = probed(&unit);
        let mode = report.finding("mode").unwrap();
        assert!(mode.is(false), "{word}: {}", mode.statement);
        let shown = &mode.evidence[0];
        assert_eq!(shown.rivals[0].answer, word);
        assert_ne!(shown.rivals[0].d, shown.d, "{word}");
    }
}
