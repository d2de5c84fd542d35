//! Arithmetic in x87 registers, with 64 significand bits and 15 exponent bits, rounded to the format when a result is
//! stored (*specified*: Intel SDM volume 1, 8.1.5 and 8.2).

use mxprobe_api::{Decoded, DotOrder, Format, Rounding, ScalarFunction, Subnormals};
use rustc_apfloat::{
    Float, FloatConvert, Round,
    ieee::{Double, Single, X87DoubleExtended},
};

/// Whether results may depend on the registers: for functions with several roundings, and for functions with one
/// rounding if 64 bits are fewer than twice those of the format.
pub(super) fn shows(function: ScalarFunction, format: Format) -> bool {
    use ScalarFunction as F;
    match function {
        F::MultiplyAdd | F::Dot4 { order: DotOrder::Serial | DotOrder::Pairwise } => format.bits() >= 32,
        F::Add | F::Subtract | F::Multiply | F::Divide | F::SquareRoot | F::Reciprocal => format.bits() == 64,
        _ => false,
    }
}

/// Calls that distinguish 64 bits from the 53 of f64, for functions of f32: a tie of f32, and a term so far below it
/// that f64 loses it.
pub(super) fn telling(function: ScalarFunction, format: Format) -> Vec<Vec<u64>> {
    use ScalarFunction as F;
    if format != Format::F32 {
        return Vec::new();
    }
    let bits = |value: f64| format.from_f64(value);
    let (factor, small) = (bits(1.0 + 2f64.powi(-12)), bits(2f64.powi(-30)));
    match function {
        F::MultiplyAdd => vec![vec![factor, factor, bits(2f64.powi(-60))]],
        F::Dot4 { order: DotOrder::Serial | DotOrder::Pairwise } => {
            vec![vec![factor, small, 0, 0, factor, small, 0, 0]]
        }
        _ => Vec::new(),
    }
}

/// The result of a function; a NaN becomes the format's. `None` for functions and formats that this module does not
/// implement.
pub(super) fn result(function: ScalarFunction, format: Format, x: &[u64], rounding: Rounding) -> Option<u64> {
    use ScalarFunction as F;
    let round = match rounding {
        Rounding::TowardZero => Round::TowardZero,
        Rounding::Down => Round::TowardNegative,
        Rounding::Up => Round::TowardPositive,
        _ => Round::NearestTiesToEven,
    };
    let value = |at: usize| load(format, x[at]);
    let product = |at: usize| Some(value(at)?.mul_r(value(4 + at)?, round).value);
    let sum = |a: X87DoubleExtended, b: X87DoubleExtended| a.add_r(b, round).value;
    let found = match function {
        F::Add => sum(value(0)?, value(1)?),
        F::Subtract => value(0)?.sub_r(value(1)?, round).value,
        F::Multiply => value(0)?.mul_r(value(1)?, round).value,
        F::Divide => value(0)?.div_r(value(1)?, round).value,
        F::Reciprocal => X87DoubleExtended::from_u128(1).value.div_r(value(0)?, round).value,
        F::SquareRoot => return square_root(format, x[0], rounding),
        F::MultiplyAdd => sum(value(0)?.mul_r(value(1)?, round).value, value(2)?),
        F::Dot4 { order: DotOrder::Serial } => {
            let mut total = X87DoubleExtended::from_bits(0);
            for at in 0..4 {
                total = sum(total, product(at)?);
            }
            total
        }
        F::Dot4 { order: DotOrder::Pairwise } => sum(sum(product(0)?, product(1)?), sum(product(2)?, product(3)?)),
        _ => return None,
    };
    store(format, found, round)
}

fn load(format: Format, bits: u64) -> Option<X87DoubleExtended> {
    match format.bits() {
        32 => Some(Single::from_bits(bits.into()).convert(&mut false).value),
        64 => Some(Double::from_bits(bits.into()).convert(&mut false).value),
        _ => None,
    }
}

fn store(format: Format, value: X87DoubleExtended, round: Round) -> Option<u64> {
    if value.is_nan() {
        return format.nan();
    }
    let bits = match format.bits() {
        32 => FloatConvert::<Single>::convert_r(value, round, &mut false).value.to_bits(),
        64 => FloatConvert::<Double>::convert_r(value, round, &mut false).value.to_bits(),
        _ => return None,
    };
    u64::try_from(bits).ok()
}

/// The root of a radicand of 127 or 128 bits has 64 bits, and the remainder decides how it is rounded.
fn square_root(format: Format, x: u64, rounding: Rounding) -> Option<u64> {
    match format.decode(x) {
        Decoded::Zero { .. } | Decoded::Infinity { negative: false } => Some(x),
        Decoded::Finite { negative: false, significand, exponent } => {
            let lowest = exponent - format.fraction_bits().cast_signed();
            let room = u128::from(significand).leading_zeros().cast_signed();
            let shift = room - (lowest - room).rem_euclid(2);
            let radicand = u128::from(significand) << shift;
            let root = radicand.isqrt();
            let left = radicand - root * root;
            let up = match rounding {
                Rounding::NearestEven => left > root,
                Rounding::Up => left > 0,
                _ => false,
            };
            let root = root + u128::from(up);
            let exponent = (lowest - shift) / 2;
            Some(format.encode(false, root, exponent, rounding, mxprobe_api::Overflow::Ieee, Subnormals::Keep).bits)
        }
        _ => format.nan(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_just_above_a_tie_of_f64_are_rounded_twice() {
        let of = |x: [f64; 2], rounding| {
            result(ScalarFunction::Add, Format::F64, &x.map(f64::to_bits), rounding).map(f64::from_bits)
        };
        let above = 2f64.powi(-53) + 2f64.powi(-78);
        assert_eq!(of([1.0, above], Rounding::NearestEven).map(f64::to_bits), Some(1f64.to_bits()));
        assert_eq!((1.0 + above).to_bits(), 1f64.to_bits() + 1);
        assert_eq!(of([1.0, above], Rounding::Up).map(f64::to_bits), Some(1f64.to_bits() + 1));
    }

    #[test]
    fn a_term_that_64_bits_hold_and_53_do_not_lifts_a_sum_off_its_tie() {
        let functions = [DotOrder::Serial, DotOrder::Pairwise].map(|order| ScalarFunction::Dot4 { order });
        for function in functions.into_iter().chain([ScalarFunction::MultiplyAdd]) {
            for call in telling(function, Format::F32) {
                let x: Vec<f64> = call.iter().map(|bits| Format::F32.to_f64(*bits)).collect();
                let in_f64 = if let [a, b, c] = x[..] { a * b + c } else { x[0] * x[4] + x[1] * x[5] };
                let of_x87 = result(function, Format::F32, &call, Rounding::NearestEven).unwrap();
                assert_eq!(of_x87, Format::F32.from_f64(in_f64) + 1, "{function}");
            }
        }
    }

    #[test]
    fn roots_are_those_of_the_wide_registers() {
        let of = |x: f64| result(ScalarFunction::SquareRoot, Format::F64, &[x.to_bits()], Rounding::NearestEven);
        for x in [0.0, 4.0, 2.25, f64::MIN_POSITIVE, f64::from_bits(4), f64::INFINITY] {
            assert_eq!(of(x), Some(x.sqrt().to_bits()), "{x:e}");
        }
        assert_eq!(of(-1.0), Format::F64.nan());
        // A root is seldom close enough to a tie for two roundings to make a difference.
        let differing =
            (0..1000).filter(|at| of(1.0 + f64::from(*at)) != Some((1.0 + f64::from(*at)).sqrt().to_bits()));
        assert!(differing.count() < 5);
    }
}
