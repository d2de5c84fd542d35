//! Status flags: those that this CPU raises, and wrong ways to raise them.

use mxprobe::{
    report::{FindingRecord, Outcome},
    scalars,
};
use mxprobe_api::{Device, Elements, Error, Flag, Flags, Scalar, ScalarFunction, Scalars, StatusFlags, scalars_of};

use super::unit::{Change, Unit, device_around_its_unit};

/// The fault in a unit's flags.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// No flag is ever raised.
    Silent,
    /// A product beyond the range raises only inexact.
    NoOverflow,
    /// Flags are never lowered.
    Sticky,
}

/// A unit of IEEE 754 whose flags are derived from its operands and results.
struct Flagged {
    unit: Unit,
    wrong: Wrong,
}

device_around_its_unit!(Flagged);

impl Scalars for Flagged {
    fn members(&self) -> &[Scalar] {
        self.unit.members()
    }

    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        self.unit.call(scalar, function, operands)
    }

    fn flags(&self) -> Option<&dyn StatusFlags> {
        Some(self)
    }
}

/// The flags of a sum, a product or a quotient of f32, computed in f64.
fn raised(function: ScalarFunction, x: f32, y: f32) -> Flags {
    let signalling = |x: f32| x.is_nan() && x.to_bits() & 1 << 22 == 0;
    let (a, b) = (f64::from(x), f64::from(y));
    let d = match function {
        ScalarFunction::Add => a + b,
        ScalarFunction::Multiply => a * b,
        ScalarFunction::Divide => a / b,
        _ => return Flags::default(),
    };
    let mut flags = Vec::new();
    if signalling(x) || signalling(y) || d.is_nan() && !x.is_nan() && !y.is_nan() {
        flags.push(Flag::Invalid);
    } else if d.is_infinite() && x.is_finite() && y.is_finite() {
        flags.push(Flag::DivideByZero);
    } else if d.is_finite() {
        #[allow(clippy::cast_possible_truncation, reason = "the conversion rounds to nearest")]
        let narrow = d as f32;
        if narrow.is_infinite() {
            flags.push(Flag::Overflow);
        }
        // A product is exact in f64, a quotient if it is exact in f32, a sum if subtracting gives the operands back.
        let is_lost =
            function == ScalarFunction::Add && ((d - a).to_bits() != b.to_bits() || (d - b).to_bits() != a.to_bits());
        if f64::from(narrow).to_bits() != d.to_bits() || is_lost {
            flags.push(Flag::Inexact);
            if d.abs() < f64::from(f32::MIN_POSITIVE) && function != ScalarFunction::Add {
                flags.push(Flag::Underflow);
            }
        }
    }
    Flags::of(&flags)
}

impl StatusFlags for Flagged {
    fn call_with_flags(
        &self,
        scalar: &Scalar,
        function: ScalarFunction,
        operands: &Elements,
    ) -> Result<(Elements, Vec<Flags>), Error> {
        let results = self.call(scalar, function, operands)?;
        let arity = function.arity();
        #[allow(clippy::cast_possible_truncation, reason = "the operands are of f32")]
        let value = |at: usize| f32::from_bits(operands.get(at) as u32);
        let mut before = Flags::default();
        let flags = (0..results.len()).map(|call| {
            let right = if arity == 2 { raised(function, value(2 * call), value(2 * call + 1)) } else { before };
            let flags = match self.wrong {
                Wrong::Nothing => right,
                Wrong::Silent => Flags::default(),
                Wrong::NoOverflow => right.without(Flag::Overflow),
                Wrong::Sticky => right.or(before),
            };
            before = if self.wrong == Wrong::Sticky { flags } else { Flags::default() };
            flags
        });
        let flags = flags.collect();
        Ok((results, flags))
    }
}

fn found(device: &dyn Device, scalar: &Scalar) -> FindingRecord {
    let report: mxprobe::report::OperationReport =
        scalars::probe(device, scalar, Some(&|probe| probe == "flags"), scalars::POINTS).into();
    report.finding("flags").unwrap().clone()
}

/// The functions among sums, products and quotients that the finding blames.
fn blamed(wrong: Wrong) -> Vec<String> {
    let unit = Flagged { unit: Unit::new(Change::Nothing, &[]), wrong };
    let finding = found(&unit, &unit.members()[0]);
    let blamed = finding.evidence.iter().filter(|call| call.about.contains("where IEEE 754 asks"));
    let mut functions: Vec<String> = blamed.filter_map(|call| call.function.clone()).collect();
    functions.retain(|function| ["add", "multiply", "divide"].contains(&function.as_str()));
    functions.dedup();
    functions
}

#[test]
fn flags_that_are_wrong_are_named_with_the_functions_that_raise_them() {
    assert_eq!(blamed(Wrong::Nothing), Vec::<String>::new());
    assert_eq!(blamed(Wrong::NoOverflow), ["add", "multiply", "divide"]);
    assert_eq!(blamed(Wrong::Silent), ["add", "multiply", "divide"]);
    assert_eq!(blamed(Wrong::Sticky), ["add", "multiply", "divide"]);
}

#[test]
fn of_a_device_without_flags_it_is_said_that_none_can_be_read() {
    let unit = Unit::new(Change::Nothing, &[]);
    let finding = found(&unit, &unit.members()[0]);
    assert_eq!((finding.outcome, finding.reason.as_deref()), (Outcome::Unsupported, Some("no flags can be read")));
}

#[test]
fn the_suite_catches_flags_that_are_never_lowered_and_those_that_are_never_raised() {
    let violations = |wrong: Wrong| {
        let unit = Flagged { unit: Unit::new(Change::Nothing, &[]), wrong };
        let found = mxprobe_conformance::check_scalar(&unit, &unit.members()[0]);
        found.into_iter().map(|violation| format!("{}: {}", violation.check, violation.found)).collect::<Vec<_>>()
    };
    assert_eq!(violations(Wrong::Nothing), Vec::<String>::new());
    let silent = violations(Wrong::Silent);
    assert!(silent.len() == 1 && silent[0].contains("raises none, not inexact"), "{silent:?}");
    let sticky = violations(Wrong::Sticky);
    assert!(sticky.len() == 1 && sticky[0].contains("raises inexact, not none"), "{sticky:?}");
}

/// *Specified*: IEEE 754-2019, 7.2 to 7.6; Intel SDM volume 1, 4.9.1 and 8.5: x87 quiets a NaN as it loads it.
#[cfg(all(feature = "cpu", target_arch = "x86_64"))]
#[test]
fn this_cpu_raises_the_flags_of_the_standard_by_sse_and_by_x87_but_for_signs_of_loaded_nans() {
    use mxprobe_api::Backend;
    let devices = mxprobe_cpu::CpuBackend::new().discover().devices;
    let device = devices[0].as_ref();
    for (id, otherwise) in [
        ("scalar.f32.rne", 0),
        ("scalar.f64.rne", 0),
        ("scalar.f32.rz", 0),
        ("scalar.f32.x87", 2),
        ("scalar.f64.x87", 2),
    ] {
        let scalar = scalars_of(device).iter().find(|scalar| scalar.id.to_string() == id).unwrap();
        let finding = found(device, scalar);
        let value = finding.value.as_ref().unwrap();
        assert_eq!(value["otherwise"], otherwise, "{id}: {}", finding.statement);
        assert_eq!(value["denormal"], true, "{id}");
        // With rounding toward zero, no result is rounded up to the smallest normal value.
        let tiny = value.get("underflow").and_then(|value| value.as_str());
        assert_eq!(tiny, (id != "scalar.f32.rz").then_some("after it is rounded"), "{id}");
        let divide = &value["by function"]["divide"];
        for flag in ["invalid", "divide by zero", "overflow", "underflow", "inexact"] {
            assert!(divide.as_array().unwrap().iter().any(|raised| raised == flag), "{id}: {divide}");
        }
    }
    // In a plain expression the compiler decides how to convert to integers, which saturates in Rust.
    for id in ["scalar.f32", "scalar.f64"] {
        let scalar = scalars_of(device).iter().find(|scalar| scalar.id.to_string() == id).unwrap();
        let finding = found(device, scalar);
        let blamed = finding.evidence.iter().filter(|call| call.about.contains("where IEEE 754 asks"));
        let functions: Vec<&str> = blamed.filter_map(|call| call.function.as_deref()).collect();
        assert!(functions.iter().all(|function| *function == "convert.s32"), "{id}: {functions:?}");
    }
    let approximate = scalars_of(device).iter().find(|scalar| scalar.id.to_string() == "scalar.f32.approx").unwrap();
    assert!(found(device, approximate).statement.starts_with("no function raises a flag"));
}

#[cfg(all(feature = "cpu", target_arch = "x86_64"))]
#[test]
fn x87_is_found_to_round_twice_and_to_hold_more_than_f64() {
    use mxprobe_api::Backend;
    let devices = mxprobe_cpu::CpuBackend::new().discover().devices;
    let device = devices[0].as_ref();
    for (id, probe, wanted) in [
        ("scalar.f64.x87", "function.add", "RNE, by way of x87"),
        ("scalar.f64.x87", "function.square_root", "RNE, by way of x87"),
        ("scalar.f32.x87", "function.add", "RNE"),
        ("scalar.f32.x87", "function.multiply_add", "RNE, by way of x87"),
        ("scalar.f32.x87", "function.dot4.serial", "RNE, by way of x87"),
        ("scalar.f64", "function.add", "RNE"),
    ] {
        let scalar = scalars_of(device).iter().find(|scalar| scalar.id.to_string() == id).unwrap();
        let report: mxprobe::report::OperationReport =
            scalars::probe(device, scalar, Some(&|name| name == probe), scalars::POINTS).into();
        let finding = report.finding(probe).unwrap();
        assert_eq!(finding.value.as_ref().unwrap(), wanted, "{id}, {probe}: {}", finding.statement);
    }
}
