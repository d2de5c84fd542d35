//! The error of a result in units in the last place.
//!
//! For formats of up to 32 bits, the value in f64, whose relative error is below 2^-50, decides nearly every rounding
//! and gives the error to 2^-26 of a unit. If it does not decide, and for f64, exact values are used.

use mxprobe_api::{Decoded, Elementary, Format, ScalarFunction};

use super::exact::{self, Exact};

/// The relative error that f64 functions are assumed to have, 2^-50: eight times the 2^-53 that they claim.
const DOUBT: f64 = 1.0 / (1u64 << 50) as f64;

/// The judgement of one result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    /// The correctly rounded result; `None` for a NaN.
    pub(super) nearest: Option<u64>,
    /// Whether the result has the correctly rounded value.
    pub(super) is_correct: bool,
    /// The distance of the result from the exact value, if both are finite.
    pub(super) error: Option<Error>,
    /// Whether the correctly rounded result is zero or a subnormal number.
    pub(super) is_tiny: bool,
}

/// A distance from the exact value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Error {
    /// In units in the last place of the correctly rounded result: the distance between neighbours in its binade.
    pub(super) ulp: f64,
    /// As an absolute number.
    pub(super) absolute: f64,
}

/// Compares a result with the exact value.
pub(super) fn judged(function: ScalarFunction, format: Format, x: u64, d: u64) -> Judged {
    if format.bits() > 32 { by_exact(function, format, x, d) } else { by_f64(function, format, x, d) }
}

fn in_f64(function: ScalarFunction, x: f64) -> f64 {
    match function {
        ScalarFunction::SquareRoot => x.sqrt(),
        ScalarFunction::Reciprocal => x.recip(),
        ScalarFunction::Elementary(function) => match function {
            Elementary::ReciprocalSquareRoot => x.sqrt().recip(),
            Elementary::Exp => pxfm::f_exp(x),
            Elementary::Exp2 => pxfm::f_exp2(x),
            Elementary::Log => pxfm::f_log(x),
            Elementary::Log2 => pxfm::f_log2(x),
            Elementary::Sin => pxfm::f_sin(x),
            Elementary::Cos => pxfm::f_cos(x),
            Elementary::Tanh => pxfm::f_tanh(x),
        },
        _ => f64::NAN,
    }
}

fn rounded(format: Format, value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the rounding that is asked for")]
    if format == Format::F32 { (value as f32).to_bits().into() } else { format.from_f64(value) }
}

fn by_f64(function: ScalarFunction, format: Format, x: u64, d: u64) -> Judged {
    let value = in_f64(function, format.to_f64(x));
    let computed = format.to_f64(d);
    if value.is_nan() {
        return Judged { nearest: None, is_correct: computed.is_nan(), error: None, is_tiny: false };
    }
    let (low, high) = (rounded(format, value * (1.0 - DOUBT)), rounded(format, value * (1.0 + DOUBT)));
    let nearest = if low == high {
        low
    } else {
        exact::exact(function, format, x).and_then(|exact| exact.rounded(format)).unwrap_or(low)
    };
    let is_finite = format.to_f64(nearest).is_finite() && computed.is_finite();
    let absolute = (computed - value).abs();
    let ulp = absolute * 2f64.powi(-unit(format, nearest));
    Judged {
        nearest: Some(nearest),
        is_correct: is_same(format, nearest, d),
        error: is_finite.then_some(Error { ulp, absolute }),
        is_tiny: is_tiny(format, nearest),
    }
}

fn by_exact(function: ScalarFunction, format: Format, x: u64, d: u64) -> Judged {
    let exact = exact::exact(function, format, x).unwrap_or(Exact::Nan);
    let computed = format.to_f64(d);
    let Some(nearest) = exact.rounded(format) else {
        return Judged { nearest: None, is_correct: computed.is_nan(), error: None, is_tiny: false };
    };
    let unit = unit(format, nearest);
    let ulp = if format.to_f64(nearest).is_finite() { exact.distance(format, d, unit) } else { None };
    Judged {
        nearest: Some(nearest),
        is_correct: is_same(format, nearest, d),
        error: ulp.map(|ulp| Error { ulp, absolute: ulp * 2f64.powi(unit) }),
        is_tiny: is_tiny(format, nearest),
    }
}

fn is_same(format: Format, nearest: u64, d: u64) -> bool {
    let sign = 1u64 << (format.bits() - 1);
    nearest == d || (nearest | d) & !sign == 0
}

/// The exponent of a unit in the last place of a number.
fn unit(format: Format, bits: u64) -> i32 {
    let exponent = match format.decode(bits) {
        Decoded::Finite { exponent, .. } => exponent,
        _ => format.as_float().map_or(0, |float| float.min_exponent()),
    };
    exponent - format.fraction_bits().cast_signed()
}

fn is_tiny(format: Format, bits: u64) -> bool {
    let sign = 1u64 << (format.bits() - 1);
    bits & !sign < 1 << format.fraction_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dots::Random;

    fn functions() -> impl Iterator<Item = ScalarFunction> {
        let elementary = Elementary::ALL.map(ScalarFunction::Elementary);
        [ScalarFunction::SquareRoot, ScalarFunction::Reciprocal].into_iter().chain(elementary)
    }

    #[test]
    fn exact_values_are_those_that_the_standard_library_and_known_constants_have() {
        let at = |function, x: f64| {
            let exact = exact::exact(ScalarFunction::Elementary(function), Format::F64, x.to_bits()).unwrap();
            f64::from_bits(exact.rounded(Format::F64).unwrap())
        };
        assert_eq!(at(Elementary::Exp, 1.0).to_bits(), std::f64::consts::E.to_bits());
        assert_eq!(at(Elementary::Log, 2.0).to_bits(), std::f64::consts::LN_2.to_bits());
        assert_eq!(at(Elementary::Log, 10.0).to_bits(), std::f64::consts::LN_10.to_bits());
        assert_eq!(at(Elementary::Log2, 10.0).to_bits(), std::f64::consts::LOG2_10.to_bits());
        assert_eq!(at(Elementary::Exp2, 0.5).to_bits(), std::f64::consts::SQRT_2.to_bits());
        assert_eq!(at(Elementary::ReciprocalSquareRoot, 2.0).to_bits(), std::f64::consts::FRAC_1_SQRT_2.to_bits());
        // π as f64 is 1.2246467991473532e-16 below π; the sine of 10^22 is a classic test of argument reduction.
        assert_eq!(at(Elementary::Sin, std::f64::consts::PI).to_bits(), 1.224_646_799_147_353_2e-16_f64.to_bits());
        assert_eq!(at(Elementary::Sin, 1e22).to_bits(), (-0.852_200_849_767_188_8_f64).to_bits());
        assert_eq!(at(Elementary::Exp2, -3.0).to_bits(), 0.125f64.to_bits());
        assert_eq!(at(Elementary::Log2, 8.0).to_bits(), 3.0f64.to_bits());
    }

    #[test]
    fn the_value_in_f64_is_within_its_doubt_of_the_exact_one() {
        let mut random = Random(11);
        for function in functions() {
            for turn in 0..3_000 {
                let any = f32::from_bits((random.bits() >> 32) as u32);
                let x = if turn % 3 == 0 {
                    any
                } else {
                    any.abs().fract() * [1.0, 20.0, 80.0][turn % 3] + f32::MIN_POSITIVE
                };
                let exact = exact::exact(function, Format::F64, f64::from(x).to_bits()).unwrap();
                let value = in_f64(function, x.into());
                match exact.rounded(Format::F64) {
                    None => assert!(value.is_nan(), "{function} of {x:e}"),
                    Some(bits) if value.is_finite() && value.abs() > f64::MIN_POSITIVE => {
                        let Exact::Finite { magnitude, exponent, .. } = exact else { unreachable!() };
                        let unit = exponent + 77 - magnitude.leading_zeros().cast_signed();
                        let off = exact.distance(Format::F64, value.to_bits(), unit).unwrap();
                        assert!(off < 1.0, "{function} of {x:e}: {value:e}, {:e}", f64::from_bits(bits));
                    }
                    Some(bits) => assert_eq!(bits << 1, value.to_bits() << 1, "{function} of {x:e}"),
                }
            }
        }
    }

    #[test]
    fn both_ways_judge_alike() {
        let mut random = Random(12);
        for function in functions() {
            for _ in 0..2_000 {
                let x = random.bits() >> 32;
                let value = in_f64(function, Format::F32.to_f64(x));
                // Some results are off by a few units, some are correct.
                let d = rounded(Format::F32, value).wrapping_add(random.below(3) as u64) & 0xffff_ffff;
                let (by_f64, by_exact) = (by_f64(function, Format::F32, x, d), by_exact(function, Format::F32, x, d));
                assert_eq!(by_f64.nearest, by_exact.nearest, "{function} of {x:#x}");
                assert_eq!((by_f64.is_correct, by_f64.is_tiny), (by_exact.is_correct, by_exact.is_tiny), "{x:#x}");
                match (by_f64.error, by_exact.error) {
                    (Some(one), Some(other)) => {
                        assert!((one.ulp - other.ulp).abs() < 1e-6, "{function} of {x:#x}: {one:?}, {other:?}");
                    }
                    (one, other) => assert_eq!(one.is_some(), other.is_some(), "{function} of {x:#x}"),
                }
            }
        }
    }

    #[test]
    fn a_neighbour_of_the_correct_result_is_wrong_by_half_a_unit_to_one_and_a_half() {
        let sine = ScalarFunction::Elementary(Elementary::Sin);
        let x = 1.0f32.to_bits().into();
        let nearest = judged(sine, Format::F32, x, 0).nearest.unwrap();
        assert_eq!(nearest, 0x3f57_6aa4, "the sine of 1 is 0.84147098480789650665…");
        let at = |d| judged(sine, Format::F32, x, d);
        assert!(at(nearest).is_correct && at(nearest).error.unwrap().ulp < 0.5);
        let next = at(nearest + 1);
        assert!(!next.is_correct && (0.5..1.5).contains(&next.error.unwrap().ulp), "{next:?}");
        let exact = 0.841_470_984_807_896_5_f64;
        let off = (f64::from(f32::from_bits(0x3f57_6aa5)) - exact).abs() * 2f64.powi(24);
        assert!((next.error.unwrap().ulp - off).abs() < 1e-6);
    }

    #[test]
    fn a_tie_that_f64_does_not_decide_is_decided_by_the_exact_value() {
        // 2^-150 is halfway between zero and the smallest subnormal number, so it rounds to even.
        let exp2 = ScalarFunction::Elementary(Elementary::Exp2);
        let of = |x: f32| judged(exp2, Format::F32, x.to_bits().into(), 0);
        assert_eq!(of(-150.0).nearest, Some(0));
        assert_eq!(of(-149.999_98).nearest, Some(1));
        assert_eq!(of(-151.0).nearest, Some(0));
        assert!(of(-150.0).is_correct && (of(-150.0).error.unwrap().ulp - 0.5).abs() < 1e-12);
    }
}
