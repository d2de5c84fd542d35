//! Errors in units in the last place, measured on a unit with known errors.

use std::collections::BTreeMap;

use mxprobe::{
    report::{FindingRecord, OperationReport},
    scalars,
};
use mxprobe_api::{
    Device, DeviceInfo, DeviceKind, Elementary, Elements, Error, Format, Operation, OperationSet, Scalar,
    ScalarFunction, ScalarId, Scalars, TileBatch,
};
use serde_json::Value;

/// A function from the bits of an operand to the bits of the result.
type Call = fn(u32) -> u32;

/// A unit whose one function is a sine.
struct Sine {
    info: DeviceInfo,
    operations: OperationSet,
    scalars: Vec<Scalar>,
    call: Call,
}

impl Sine {
    fn new(mode: &[&str], call: Call) -> Self {
        let id = mode.iter().fold(ScalarId::new(Format::F32), |id, word| id.with(word));
        let functions = BTreeMap::from([(ScalarFunction::Elementary(Elementary::Sin), Some("sine".to_owned()))]);
        let info = DeviceInfo {
            backend: "test".into(),
            selector: "test:0".into(),
            name: "a sine for a test".into(),
            fingerprint: "test".into(),
            kind: DeviceKind::Software,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: BTreeMap::new(),
        };
        Self { info, operations: OperationSet::new(), scalars: vec![Scalar { id, functions }], call }
    }
}

impl Device for Sine {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn execute(&self, operation: &Operation, _: &TileBatch) -> Result<Elements, Error> {
        Err(Error::unsupported(format!("{} does not exist", operation.id)))
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        Some(self)
    }
}

impl Scalars for Sine {
    fn members(&self) -> &[Scalar] {
        &self.scalars
    }

    fn call(&self, _: &Scalar, _: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        let results = operands.iter().map(|bits| u64::from((self.call)(u32::try_from(bits).expect("an f32"))));
        Ok(Elements::from_bits(Format::F32, results))
    }
}

/// The sine in f64, rounded to f32. It is wrong only if f64 does not decide the rounding, once in 2^28 arguments, and
/// so for none of the few here.
fn sine(x: u32) -> u32 {
    #[allow(clippy::cast_possible_truncation, reason = "the rounding")]
    let value = f64::from(f32::from_bits(x)).sin() as f32;
    value.to_bits()
}

fn asked(mode: &[&str], call: Call, wanted: Option<&dyn Fn(&str) -> bool>) -> OperationReport {
    let unit = Sine::new(mode, call);
    scalars::probe(&unit, &unit.scalars[0], wanted, 70_000).into()
}

fn found(call: Call) -> FindingRecord {
    let mut report = asked(&[], call, Some(&|name| name == "ulp.sin"));
    assert_eq!(report.findings.len(), 1);
    report.findings.remove(0)
}

fn range<'a>(value: &'a Value, words: &str) -> &'a Value {
    let ranges = value["ranges"].as_array().expect("ranges");
    ranges.iter().find(|range| range["range"] == words).unwrap_or_else(|| panic!("{words}: {value}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_correctly_rounded_sine_is_found_to_be_one() {
    let value = found(sine).value.expect("an answer");
    assert_eq!(value["correctly_rounded"], value["points"], "{value}");
    assert!((0.49..=0.5).contains(&number(&value["largest"])), "{value}");
    assert_eq!(value["points"], 60_000, "subnormal arguments are counted apart");
    assert_eq!(range(&value, "subnormal x")["points"], 10_000);
}

#[test]
fn an_error_in_one_range_is_found_there_with_its_argument() {
    // Five units off for one argument in 64, between 1 and 8.
    let finding = found(|x| {
        let is_off = (1.0..8.0).contains(&f32::from_bits(x).abs()) && x & 63 == 21;
        sine(x) + if is_off { 5 } else { 0 }
    });
    let value = finding.value.expect("an answer");
    let off = range(&value, "1 ≤ |x| < 8");
    assert!((4.5..5.5).contains(&number(&off["largest"])), "{off}");
    let wrong = off["points"].as_u64().unwrap() - off["correctly_rounded"].as_u64().unwrap();
    assert!((100..220).contains(&wrong), "{wrong} of {off}");
    let at = u32::from_str_radix(off["at"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    assert_eq!(at & 63, 21);
    for other in ["|x| < 2^-12", "2^-12 ≤ |x| < 1", "8 ≤ |x| < 2^10", "|x| ≥ 2^17"] {
        let other = range(&value, other);
        assert_eq!(other["correctly_rounded"], other["points"], "{other}");
    }
    assert_eq!(value["at"], off["at"]);
    let evidence = finding.evidence.iter().find(|one| one.about.contains("1 ≤ |x| < 8")).expect("evidence");
    assert_eq!(evidence.a, [off["at"].as_str().unwrap()]);
    assert_eq!(evidence.rivals[0].answer, "correctly rounded");
}

#[test]
fn a_nan_and_a_flushed_subnormal_are_counted_apart_from_errors() {
    let value = found(|x| match f32::from_bits(x) {
        value if value.abs() >= 131_072.0 => f32::NAN.to_bits(),
        value if value.is_subnormal() => x & 1 << 31,
        _ => sine(x),
    });
    let value = value.value.expect("an answer");
    assert_eq!(range(&value, "|x| ≥ 2^17")["wrong_specials"], 10_000);
    assert_eq!(range(&value, "|x| ≥ 2^17")["points"], 0);
    // The largest subnormal number is 2^23 - 1 units, which rounds to 2^23.00.
    assert_eq!(range(&value, "subnormal x")["largest"], "2^23.00");
    assert!(number(&value["largest"]) <= 0.5, "{value}");
    assert_eq!(value["wrong_specials"], 10_000);
}

#[test]
fn millions_of_calls_are_asked_only_where_they_are_named() {
    let names = |wanted: Option<&dyn Fn(&str) -> bool>| -> Vec<String> {
        asked(&[], sine, wanted).findings.into_iter().map(|finding| finding.probe).collect()
    };
    assert!(names(None).iter().all(|name| !name.starts_with("ulp")));
    assert_eq!(names(Some(&|name| name.starts_with("ulp"))), ["ulp.sin"]);
    assert_eq!(names(Some(&|name| name == "ulp.cos")), Vec::<String>::new());
}

#[test]
fn a_direction_other_than_to_nearest_has_no_error_in_ulp() {
    let report = asked(&["rz"], sine, Some(&|name| name == "ulp.sin"));
    let reason = report.findings[0].reason.as_deref().expect("a reason");
    assert!(reason.contains("rz") && report.findings[0].value.is_none(), "{reason}");
}
