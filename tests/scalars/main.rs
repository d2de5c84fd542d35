//! The questions about scalar arithmetic find what a unit does, and blame nothing else: units of IEEE 754 with one thing
//! changed.
#![allow(missing_docs)]

use std::collections::BTreeMap;

use mxprobe::{report::Outcome, scalars};
use mxprobe_api::{
    Device, DeviceInfo, DeviceKind, DotOrder, Elements, Error, Format, Operation, OperationSet, Scalar, ScalarFunction,
    ScalarId, TileBatch,
};

/// What differs from IEEE 754 with rounding to nearest.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Nothing,
    TowardZero,
    FlushResults,
    FlushInputs,
    DivisionOff,
    FmaNotFused,
    Contracted,
    FmaInF64,
    CanonicalNan,
    PairwiseReordered,
    SignallingFirst,
    TowardZeroFlushed,
}

struct Unit {
    info: DeviceInfo,
    operations: OperationSet,
    scalars: Vec<Scalar>,
    change: Change,
}

impl Unit {
    fn new(change: Change, mode: &[&str]) -> Self {
        let functions = ScalarFunction::of_shaders(Format::F32, &[Format::F64, Format::S32]);
        let functions: BTreeMap<_, _> = functions.map(|function| (function, None)).collect();
        let id = mode.iter().fold(ScalarId::new(Format::F32), |id, word| id.with(word));
        let info = DeviceInfo {
            backend: "test".into(),
            selector: "test:0".into(),
            name: "a unit for a test".into(),
            fingerprint: "test".into(),
            kind: DeviceKind::Software,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: BTreeMap::new(),
        };
        Self { info, operations: OperationSet::new(), scalars: vec![Scalar { id, functions }], change }
    }

    /// A result as this unit writes it.
    fn written(&self, value: f32) -> f32 {
        match self.change {
            Change::FlushResults | Change::TowardZeroFlushed if value.is_subnormal() => 0f32.copysign(value),
            Change::CanonicalNan if value.is_nan() => f32::from_bits(0x7fff_ffff),
            _ => value,
        }
    }

    fn is_toward_zero(&self) -> bool {
        matches!(self.change, Change::TowardZero | Change::TowardZeroFlushed)
    }

    /// Toward zero, from a value of f64: exact enough for products, quotients and roots.
    fn rounded(&self, wide: f64) -> f32 {
        #[allow(clippy::cast_possible_truncation, reason = "the conversion rounds to nearest")]
        let near = wide as f32;
        if self.is_toward_zero() && f64::from(near).abs() > wide.abs() {
            return f32::from_bits(near.to_bits() - 1);
        }
        near
    }

    fn binary(&self, x: f32, y: f32, near: fn(f32, f32) -> f32, wide: fn(f64, f64) -> f64) -> f32 {
        if self.change == Change::FlushResults && x.is_finite() && y.is_finite() {
            // Tiny is what is below the normal range once it is rounded as if there were no smallest exponent.
            let shift = 2f64.powi(64);
            #[allow(clippy::cast_possible_truncation, reason = "the conversion rounds to nearest")]
            let unbounded = f64::from((wide(x.into(), y.into()) * shift) as f32) / shift;
            if unbounded != 0.0 && unbounded.abs() < f64::from(f32::MIN_POSITIVE) {
                return 0f32.copysign(near(x, y));
            }
        }
        if !(self.is_toward_zero() && x.is_finite() && y.is_finite()) {
            return self.written(near(x, y));
        }
        let sum = wide(x.into(), y.into());
        self.written(if sum == 0.0 || !sum.is_finite() { near(x, y) } else { self.rounded(sum) })
    }

    fn multiply(&self, x: f32, y: f32) -> f32 {
        self.binary(x, y, |x, y| x * y, |x, y| x * y)
    }

    fn add(&self, x: f32, y: f32) -> f32 {
        let is_signalling = |x: f32| x.is_nan() && x.to_bits() & 1 << 22 == 0;
        if self.change == Change::SignallingFirst && is_signalling(y) && !is_signalling(x) {
            return f32::from_bits(y.to_bits() | 1 << 22);
        }
        self.binary(x, y, |x, y| x + y, |x, y| x + y)
    }

    fn fma(&self, x: f32, y: f32, z: f32) -> f32 {
        match self.change {
            Change::FmaNotFused => self.add(self.multiply(x, y), z),
            #[allow(clippy::cast_possible_truncation, reason = "rounded twice: that is the change")]
            Change::FmaInF64 => (f64::from(x) * f64::from(y) + f64::from(z)) as f32,
            _ => self.written(x.mul_add(y, z)),
        }
    }

    fn multiply_add(&self, x: f32, y: f32, z: f32) -> f32 {
        if self.change == Change::Contracted { self.fma(x, y, z) } else { self.add(self.multiply(x, y), z) }
    }

    fn call(&self, function: ScalarFunction, x: &[f32]) -> u64 {
        let products = |at: usize| self.multiply(x[at], x[4 + at]);
        let value = match function {
            ScalarFunction::Add => self.add(x[0], x[1]),
            ScalarFunction::Subtract => self.binary(x[0], x[1], |x, y| x - y, |x, y| x - y),
            ScalarFunction::Multiply => self.multiply(x[0], x[1]),
            ScalarFunction::Divide => {
                let quotient = self.binary(x[0], x[1], |x, y| x / y, |x, y| x / y);
                let off = self.change == Change::DivisionOff && quotient.is_normal() && x[1].to_bits() & 7 == 5;
                if off { f32::from_bits(quotient.to_bits() ^ 1) } else { quotient }
            }
            ScalarFunction::SquareRoot => self.binary(x[0], x[0], |x, _| x.sqrt(), |x, _| x.sqrt()),
            ScalarFunction::Fma => self.fma(x[0], x[1], x[2]),
            ScalarFunction::MultiplyAdd => self.multiply_add(x[0], x[1], x[2]),
            ScalarFunction::Convert { to: Format::F64 } => return f64::from(x[0]).to_bits(),
            #[allow(clippy::cast_possible_truncation, reason = "as the language converts")]
            ScalarFunction::Convert { .. } => return u64::from((x[0] as i32).cast_unsigned()),
            ScalarFunction::Dot4 { order: DotOrder::Serial } => {
                (0..4).fold(0.0, |sum, at| self.multiply_add(x[at], x[4 + at], sum))
            }
            ScalarFunction::Dot4 { order: DotOrder::Fma } => {
                (0..4).fold(0.0, |sum, at| self.fma(x[at], x[4 + at], sum))
            }
            ScalarFunction::Dot4 { order: DotOrder::Pairwise } if self.change == Change::PairwiseReordered => {
                self.add(self.add(self.add(products(2), products(3)), products(0)), products(1))
            }
            ScalarFunction::Dot4 { order: DotOrder::Pairwise } => {
                let half = |at: usize| self.multiply_add(x[at + 1], x[5 + at], products(at));
                self.add(half(0), half(2))
            }
        };
        u64::from(value.to_bits())
    }
}

impl Device for Unit {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn execute(&self, operation: &Operation, _: &TileBatch) -> Result<Elements, Error> {
        Err(Error::unsupported(format!("there is no matrix unit here, and no {}", operation.id)))
    }

    fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }

    fn compute(&self, _: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        #[allow(clippy::cast_possible_truncation, reason = "32 bits")]
        let read = |bits: u64| {
            let value = f32::from_bits(bits as u32);
            if self.change == Change::FlushInputs && value.is_subnormal() { 0f32.copysign(value) } else { value }
        };
        let values: Vec<f32> = (0..operands.len()).map(|at| read(operands.get(at))).collect();
        let results = values.chunks(function.arity()).map(|x| self.call(function, x));
        Ok(Elements::from_bits(function.result(Format::F32), results))
    }
}

/// The answer to every question, as text.
fn answers(change: Change, mode: &[&str]) -> BTreeMap<String, String> {
    let unit = Unit::new(change, mode);
    let report = scalars::probe(&unit, &unit.scalars()[0], None);
    let answer = |finding: &mxprobe::report::Finding| {
        finding
            .value
            .as_ref()
            .map_or_else(|| "none".to_owned(), |value| value.as_str().map_or(value.to_string(), str::to_owned))
    };
    report.findings.iter().map(|finding| (finding.probe.clone(), answer(finding))).collect()
}

/// What a unit answers otherwise than one that follows IEEE 754, but for the mean errors of dots.
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
        let report = scalars::probe(&unit, &unit.scalars()[0], None);
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
    for scalar in devices.iter().flat_map(|device| device.scalars()) {
        if scalar.id.format != Format::F32 || !scalar.id.has("ftz") || scalar.id.has("daz") {
            continue;
        }
        let report = scalars::probe(devices[0].as_ref(), scalar, Some(&|probe| probe.starts_with("subnormals")));
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
    let report = scalars::probe(&unit, &unit.scalars()[0], None);
    let evidence = &report.finding("dot4.error").unwrap().evidence;
    let bits = |text: &str| u32::from_str_radix(&text[2..], 16).unwrap();
    assert_eq!(evidence.len(), 3);
    let mut off = 0;
    for dot in evidence {
        let x: Vec<f64> = dot.a.iter().map(|text| f32::from_bits(bits(text)).into()).collect();
        // Products of multiples of 2^-23 below 4, so that no bit of a product is lost, and few of the sum are.
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
fn no_two_rivals_of_one_call_have_the_same_name() {
    let unit = Unit::new(Change::Nothing, &[]);
    let report = scalars::probe(&unit, &unit.scalars()[0], None);
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
    // A square root is never negative: no input tells RD from RZ.
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
    let mut report = scalars::probe(&unit, &unit.scalars()[0], None);
    // Conversions to integers go toward zero in every mode here.
    let said = report.finding("mode").unwrap().statement.clone();
    assert_eq!(said, "rne is not followed by divide (not correctly rounded in any direction), convert.s32");
    // Of subnormals nothing is known of it.
    let unit = Unit::new(Change::DivisionOff, &["preserve"]);
    report = scalars::probe(&unit, &unit.scalars()[0], None);
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
        let report = scalars::probe(&unit, &unit.scalars()[0], None);
        let mode = report.finding("mode").unwrap();
        assert!(mode.is(false), "{word}: {}", mode.statement);
        let shown = &mode.evidence[0];
        assert_eq!(shown.rivals[0].answer, word);
        assert_ne!(shown.rivals[0].d, shown.d, "{word}");
    }
}
