//! One operation of IEEE 754 in a mode, with one rounding.

use std::cmp::Ordering;

use dashu_int::{
    UBig,
    ops::{BitTest, DivRem},
};
use mxprobe_api::{Decoded, FloatEncoding, Format, Overflow, Rounding, ScalarFunction, Subnormals};
use rustc_apfloat::{
    Float, Round,
    ieee::{BFloat, Double, Half, Single},
};

/// The rounding directions of IEEE 754-2019, 4.3, for binary formats, and their names.
pub(super) const ROUNDINGS: [(&str, Rounding); 4] =
    [("RNE", Rounding::NearestEven), ("RZ", Rounding::TowardZero), ("RD", Rounding::Down), ("RU", Rounding::Up)];

/// One interpretation of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) rounding: Rounding,
    /// Whether subnormal inputs are read as zero of their sign.
    pub(super) daz: bool,
    /// The treatment of subnormal results.
    pub(super) results: Subnormals,
}

/// The reason why a function has no bits to compare an answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// The result is a NaN.
    Nan,
    /// The standard leaves the result open, or this module cannot determine it.
    Open,
}

fn direction(rounding: Rounding) -> Round {
    match rounding {
        Rounding::TowardZero => Round::TowardZero,
        Rounding::Down => Round::TowardNegative,
        Rounding::Up => Round::TowardPositive,
        _ => Round::NearestTiesToEven,
    }
}

/// One operation with one rounding.
pub(super) fn once(format: Format, function: ScalarFunction, x: &[u64], mode: Mode) -> Result<u64, Other> {
    match function {
        ScalarFunction::Multiply => return multiply(format, x[0], x[1], mode),
        ScalarFunction::SquareRoot => return square_root(format, x[0], mode.rounding),
        ScalarFunction::Convert { to } => return convert(format, x[0], to, mode.rounding, mode.results),
        ScalarFunction::Compare => return compare(format, x[0], x[1]),
        // An exact result. `rustc_apfloat` divides bit by bit, which takes 20 µs for exponents of f64 far apart.
        ScalarFunction::Remainder => return remainder(format, x[0], x[1], true, mode.results),
        ScalarFunction::TruncatedRemainder => return remainder(format, x[0], x[1], false, mode.results),
        _ => {}
    }
    let bits = match (function, format.bits()) {
        (ScalarFunction::Add, _) => add(format, x[0], x[1], mode.rounding),
        (ScalarFunction::Subtract, _) => add(format, x[0], negated(format, x[1]), mode.rounding),
        (ScalarFunction::Divide, _) => divide(format, x[0], x[1], mode.rounding),
        (ScalarFunction::Reciprocal, _) => divide(format, format.one(), x[0], mode.rounding),
        (ScalarFunction::Fma, ..=32) => fma(format, [x[0], x[1], x[2]], mode.rounding),
        _ => of_library(format, function, x, mode.rounding),
    }?;
    if mode.results == Subnormals::Keep {
        return Ok(bits);
    }
    // A tiny sum is exact. For other functions this shows only that the rounded result is the smallest normal value.
    let rounded = matches!(
        function,
        ScalarFunction::Divide | ScalarFunction::Fma | ScalarFunction::Reciprocal | ScalarFunction::Scale
    );
    if rounded && bits & !sign_of(format) == 1 << format.fraction_bits() {
        return Err(Other::Open);
    }
    Ok(if is_subnormal(format, bits) { flushed(format, bits, mode.results) } else { bits })
}

fn of_library(format: Format, function: ScalarFunction, x: &[u64], rounding: Rounding) -> Result<u64, Other> {
    match format.name() {
        "f16" => of::<Half>(function, x, rounding),
        "bf16" => of::<BFloat>(function, x, rounding),
        "f64" => of::<Double>(function, x, rounding),
        _ => of::<Single>(function, x, rounding),
    }
}

fn of<F: Float>(function: ScalarFunction, x: &[u64], rounding: Rounding) -> Result<u64, Other> {
    let value = |at: usize| F::from_bits(x[at].into());
    let round = direction(rounding);
    let result = match function {
        ScalarFunction::Fma => value(0).mul_add_r(value(1), value(2), round).value,
        ScalarFunction::Scale => value(0).scalbn_r(whole(value(1)).ok_or(Other::Open)?, round),
        ScalarFunction::Negate => -value(0),
        ScalarFunction::Abs => value(0).abs(),
        ScalarFunction::CopySign => value(0).copy_sign(value(1)),
        _ => return Err(Other::Open),
    };
    if result.is_nan() { Err(Other::Nan) } else { u64::try_from(result.to_bits()).map_err(|_| Other::Open) }
}

/// The value as an integer that an exponent can be, if it is one.
fn whole<F: Float>(value: F) -> Option<i32> {
    let mut exact = false;
    let found = value.to_i128_r(32, Round::TowardZero, &mut exact).value;
    i32::try_from(found).ok().filter(|_| exact)
}

/// −1 for less, 0 for equal, 1 for greater, 2 for unordered.
fn compare(format: Format, x: u64, y: u64) -> Result<u64, Other> {
    let order = format.to_f64(x).partial_cmp(&format.to_f64(y)).map_or(2, |order| order as i32);
    Ok(u64::from(order.cast_unsigned()))
}

/// The product of the significands is exact, so whether it is tiny is known both before and after rounding.
fn multiply(format: Format, x: u64, y: u64, mode: Mode) -> Result<u64, Other> {
    let negative = (x ^ y) & sign_of(format) != 0;
    let zero = || Ok(if negative { format.negative_zero().unwrap_or(0) } else { 0 });
    match (format.decode(x), format.decode(y)) {
        (Decoded::Nan { .. }, _) | (_, Decoded::Nan { .. }) => Err(Other::Nan),
        (Decoded::Infinity { .. }, Decoded::Zero { .. }) | (Decoded::Zero { .. }, Decoded::Infinity { .. }) => {
            Err(Other::Nan)
        }
        (Decoded::Infinity { .. }, _) | (_, Decoded::Infinity { .. }) => format.infinity(negative).ok_or(Other::Open),
        (Decoded::Zero { .. }, _) | (_, Decoded::Zero { .. }) => zero(),
        (
            Decoded::Finite { significand: left, exponent: of_left, .. },
            Decoded::Finite { significand: right, exponent: of_right, .. },
        ) => {
            let lowest = of_left + of_right - 2 * format.fraction_bits().cast_signed();
            let product = u128::from(left) * u128::from(right);
            Ok(encode(format, negative, product, lowest, mode.rounding, mode.results))
        }
    }
}

/// A quotient, rounded once.
fn divide(format: Format, x: u64, y: u64, rounding: Rounding) -> Result<u64, Other> {
    let negative = (x ^ y) & sign_of(format) != 0;
    let zero = || if negative { format.negative_zero().unwrap_or(0) } else { 0 };
    match (format.decode(x), format.decode(y)) {
        (Decoded::Nan { .. }, _)
        | (_, Decoded::Nan { .. })
        | (Decoded::Infinity { .. }, Decoded::Infinity { .. })
        | (Decoded::Zero { .. }, Decoded::Zero { .. }) => Err(Other::Nan),
        (Decoded::Infinity { .. }, _) | (_, Decoded::Zero { .. }) => format.infinity(negative).ok_or(Other::Open),
        (Decoded::Zero { .. }, _) | (_, Decoded::Infinity { .. }) => Ok(zero()),
        (left, right) => {
            let (left, right) = (term(format, left)?, term(format, right)?);
            // The dividend has its leading bit at 126, the divisor at most 53 bits: the quotient has at least 74.
            let up = left.magnitude.leading_zeros() - 1;
            let dividend = left.magnitude << up;
            let (quotient, is_exact) = (dividend / right.magnitude, dividend.is_multiple_of(right.magnitude));
            let lowest = left.lowest - up.cast_signed() - right.lowest;
            let magnitude = quotient << 1 | u128::from(!is_exact);
            Ok(encode(format, negative, magnitude, lowest - 1, rounding, Subnormals::Keep))
        }
    }
}

/// A finite value other than zero.
#[derive(Clone, Copy)]
struct Term {
    negative: bool,
    magnitude: u128,
    /// The power of two of the magnitude's lowest bit.
    lowest: i32,
}

/// A sum, rounded once.
fn add(format: Format, x: u64, y: u64, rounding: Rounding) -> Result<u64, Other> {
    match (format.decode(x), format.decode(y)) {
        (Decoded::Nan { .. }, _) | (_, Decoded::Nan { .. }) => Err(Other::Nan),
        (Decoded::Infinity { negative: left }, Decoded::Infinity { negative: right }) if left != right => {
            Err(Other::Nan)
        }
        (Decoded::Infinity { .. }, _) => Ok(x),
        (_, Decoded::Infinity { .. }) => Ok(y),
        (Decoded::Zero { negative: left }, Decoded::Zero { negative: right }) => {
            Ok(zero_sum(format, left, right, rounding))
        }
        (Decoded::Zero { .. }, _) => Ok(y),
        (_, Decoded::Zero { .. }) => Ok(x),
        (left, right) => Ok(sum(format, term(format, left)?, term(format, right)?, rounding)),
    }
}

/// x·y + z, rounded once, of a format with significands of at most 24 bits.
fn fma(format: Format, [x, y, z]: [u64; 3], rounding: Rounding) -> Result<u64, Other> {
    let negative = (x ^ y) & sign_of(format) != 0;
    match (format.decode(x), format.decode(y), format.decode(z)) {
        (Decoded::Nan { .. }, _, _) | (_, Decoded::Nan { .. }, _) | (_, _, Decoded::Nan { .. }) => Err(Other::Nan),
        (Decoded::Infinity { .. }, Decoded::Zero { .. }, _) | (Decoded::Zero { .. }, Decoded::Infinity { .. }, _) => {
            Err(Other::Nan)
        }
        (Decoded::Infinity { .. }, _, other) | (_, Decoded::Infinity { .. }, other) => match other {
            Decoded::Infinity { negative: of_z } if of_z != negative => Err(Other::Nan),
            _ => format.infinity(negative).ok_or(Other::Open),
        },
        (_, _, Decoded::Infinity { .. }) => Ok(z),
        (Decoded::Zero { .. }, _, other) | (_, Decoded::Zero { .. }, other) => match other {
            Decoded::Zero { negative: of_z } => Ok(zero_sum(format, negative, of_z, rounding)),
            _ => Ok(z),
        },
        (left, right, other) => {
            let (left, right) = (term(format, left)?, term(format, right)?);
            let (magnitude, lowest) = (left.magnitude * right.magnitude, left.lowest + right.lowest);
            match other {
                Decoded::Zero { .. } => Ok(encode(format, negative, magnitude, lowest, rounding, Subnormals::Keep)),
                _ => Ok(sum(format, Term { negative, magnitude, lowest }, term(format, other)?, rounding)),
            }
        }
    }
}

fn term(format: Format, decoded: Decoded) -> Result<Term, Other> {
    let Decoded::Finite { negative, significand, exponent } = decoded else { return Err(Other::Open) };
    let lowest = exponent - format.fraction_bits().cast_signed();
    Ok(Term { negative, magnitude: significand.into(), lowest })
}

/// The sum of two zeros, or of two opposite values if the signs differ.
fn zero_sum(format: Format, left: bool, right: bool, rounding: Rounding) -> u64 {
    let negative = if left == right { left } else { rounding == Rounding::Down };
    if negative { format.negative_zero().unwrap_or(0) } else { 0 }
}

/// The sum of two terms of at most 53 bits, rounded once. What lies far below the higher term counts as one bit: it
/// decides only between a value and its neighbour.
fn sum(format: Format, x: Term, y: Term, rounding: Rounding) -> u64 {
    let (high, low) = if x.lowest >= y.lowest { (x, y) } else { (y, x) };
    // A magnitude of at most 53 bits and its carry have room above these.
    let room = (high.lowest - low.lowest).min(72);
    let grid = high.lowest - room;
    let below = (grid - low.lowest).min(127).cast_unsigned();
    let rest = low.magnitude & ((1 << below) - 1);
    let (left, right) = (high.magnitude << room, low.magnitude >> below | u128::from(rest != 0));
    let (negative, magnitude) = match left.cmp(&right) {
        _ if high.negative == low.negative => (high.negative, left + right),
        Ordering::Greater => (high.negative, left - right),
        Ordering::Less => (low.negative, right - left),
        Ordering::Equal => return zero_sum(format, false, true, rounding),
    };
    encode(format, negative, magnitude, grid, rounding, Subnormals::Keep)
}

/// x − n·y, where n is x/y rounded to `nearest`, ties to even, or toward zero.
fn remainder(format: Format, x: u64, y: u64, nearest: bool, results: Subnormals) -> Result<u64, Other> {
    match (format.decode(x), format.decode(y)) {
        (Decoded::Nan { .. } | Decoded::Infinity { .. }, _) | (_, Decoded::Nan { .. } | Decoded::Zero { .. }) => {
            Err(Other::Nan)
        }
        (Decoded::Zero { .. }, _) => Ok(x),
        (Decoded::Finite { negative, significand, exponent }, Decoded::Infinity { .. }) => {
            let lowest = exponent - format.fraction_bits().cast_signed();
            Ok(encode(format, negative, significand.into(), lowest, Rounding::NearestEven, results))
        }
        (
            Decoded::Finite { negative, significand: of_x, exponent: x },
            Decoded::Finite { significand: of_y, exponent: y, .. },
        ) => {
            // A dividend below a quarter of the divisor is its own remainder.
            let places = (y - x).clamp(0, 2 * format.fraction_bits().cast_signed());
            let divisor = UBig::from(of_y) << places.unsigned_abs() as usize;
            let dividend = UBig::from(of_x) << (x - y).max(0).unsigned_abs() as usize;
            let (quotient, mut rest) = dividend.div_rem(&divisor);
            let twice = (&rest << 1).cmp(&divisor);
            let is_up = nearest && (twice.is_gt() || twice.is_eq() && quotient.bit(0));
            if is_up {
                rest = divisor - rest;
            }
            let lowest = x.min(y) - format.fraction_bits().cast_signed();
            let zeros = rest.trailing_zeros().unwrap_or(0);
            let magnitude = u128::try_from(&rest >> zeros).map_err(|_| Other::Open)?;
            let lowest = lowest + i32::try_from(zeros).map_err(|_| Other::Open)?;
            Ok(encode(format, negative != is_up, magnitude, lowest, Rounding::NearestEven, results))
        }
    }
}

pub(super) fn sign_of(format: Format) -> u64 {
    if format.as_float().is_some_and(FloatEncoding::is_signed) { 1 << (format.bits() - 1) } else { 0 }
}

/// The value with the other sign.
fn negated(format: Format, bits: u64) -> u64 {
    bits ^ sign_of(format)
}

pub(super) fn flushed(format: Format, bits: u64, results: Subnormals) -> u64 {
    if results == Subnormals::FlushToPositiveZero { 0 } else { bits & sign_of(format) }
}

/// The root of a significand with an even exponent, to enough bits that only the existence of a remainder matters.
fn square_root(format: Format, x: u64, rounding: Rounding) -> Result<u64, Other> {
    match format.decode(x) {
        Decoded::Zero { .. } | Decoded::Infinity { negative: false } => Ok(x),
        Decoded::Finite { negative: false, significand, exponent } => {
            let lowest = exponent - format.fraction_bits().cast_signed();
            let wanted = 2 * (format.fraction_bits().cast_signed() + 4);
            let length = 64 - significand.leading_zeros().cast_signed();
            let shift = (wanted - length).max(0);
            let shift = shift + (lowest - shift).rem_euclid(2);
            let radicand = u128::from(significand) << shift;
            let root = radicand.isqrt();
            let sticky = u128::from(root * root != radicand);
            Ok(encode(format, false, root << 1 | sticky, (lowest - shift) / 2 - 1, rounding, Subnormals::Keep))
        }
        _ => Err(Other::Nan),
    }
}

pub(super) fn convert(from: Format, x: u64, to: Format, rounding: Rounding, results: Subnormals) -> Result<u64, Other> {
    match from.decode(x) {
        Decoded::Finite { negative, significand, exponent } => {
            let lowest = exponent - from.fraction_bits().cast_signed();
            if to.is_integer() {
                return to_integer(to, negative, u128::from(significand), lowest, rounding).ok_or(Other::Open);
            }
            Ok(encode(to, negative, u128::from(significand), lowest, rounding, results))
        }
        Decoded::Zero { negative } if negative && !to.is_integer() => Ok(to.negative_zero().unwrap_or(0)),
        Decoded::Zero { .. } => Ok(0),
        Decoded::Infinity { negative } => to.infinity(negative).ok_or(Other::Open),
        Decoded::Nan { .. } if to.is_integer() => Err(Other::Open),
        Decoded::Nan { .. } => Err(Other::Nan),
    }
}

/// The integer next to a value in a direction; `None` beyond the format's range, where IEEE 754 does not specify the
/// result.
fn to_integer(to: Format, negative: bool, magnitude: u128, exponent: i32, rounding: Rounding) -> Option<u64> {
    let whole = if exponent >= 0 {
        if exponent > 64 {
            return None;
        }
        i128::try_from(magnitude).ok()?.checked_shl(exponent.unsigned_abs())?
    } else {
        let shift = exponent.unsigned_abs().min(126);
        let (cut, rest) = (magnitude >> shift, magnitude & ((1 << shift) - 1));
        let half = 1u128 << (shift - 1);
        let up = match rounding {
            Rounding::NearestEven => rest > half || rest == half && cut & 1 == 1,
            Rounding::Down => negative && rest != 0,
            Rounding::Up => !negative && rest != 0,
            _ => false,
        };
        i128::try_from(cut + u128::from(up)).ok()?
    };
    let whole = if negative { -whole } else { whole };
    let bits = to.bits();
    let (low, high) = (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
    (low..=high).contains(&whole).then(|| u64::try_from(whole & i128::from(to.mask())).ok()).flatten()
}

fn encode(
    format: Format,
    negative: bool,
    magnitude: u128,
    exponent: i32,
    rounding: Rounding,
    results: Subnormals,
) -> u64 {
    format.encode(negative, magnitude, exponent, rounding, Overflow::Ieee, results).bits
}

/// Whether bits are a subnormal value.
pub(super) fn is_subnormal(format: Format, bits: u64) -> bool {
    match (format.decode(bits), format.as_float()) {
        (Decoded::Finite { significand, .. }, Some(float)) => significand >> float.fraction_bits == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Random;

    use super::*;

    /// The remainders of `rustc_apfloat`.
    fn other<F: Float>(x: u64, y: u64, nearest: bool) -> Result<u64, Other> {
        let (x, y) = (F::from_bits(x.into()), F::from_bits(y.into()));
        let result = if nearest { x.ieee_rem(y) } else { x.c_fmod(y) }.value;
        if result.is_nan() { Err(Other::Nan) } else { u64::try_from(result.to_bits()).map_err(|_| Other::Open) }
    }

    /// Sums, differences, quotients and fused multiply-adds of `rustc_apfloat`.
    fn of_sums<F: Float>(function: ScalarFunction, x: &[u64], rounding: Rounding) -> Result<u64, Other> {
        let [a, b, c] = [0, 1, 2].map(|at| F::from_bits(x[at].into()));
        let result = match function {
            ScalarFunction::Add => a.add_r(b, direction(rounding)),
            ScalarFunction::Subtract => a.sub_r(b, direction(rounding)),
            ScalarFunction::Divide => a.div_r(b, direction(rounding)),
            _ => a.mul_add_r(b, c, direction(rounding)),
        };
        let bits = u64::try_from(result.value.to_bits()).map_err(|_| Other::Open);
        if result.value.is_nan() { Err(Other::Nan) } else { bits }
    }

    #[test]
    fn sums_and_quotients_are_those_of_another_implementation() {
        let mut random = Random(1);
        for format in [Format::F16, Format::BF16, Format::F32, Format::F64] {
            let other = match format.name() {
                "f16" => of_sums::<Half>,
                "bf16" => of_sums::<BFloat>,
                "f64" => of_sums::<Double>,
                _ => of_sums::<Single>,
            };
            let special = [0, format.infinity(false).unwrap(), 1, 1 << format.fraction_bits(), format.largest(false)];
            for _ in 0..20_000 {
                let mut x = [(); 3].map(|()| random.bits() & format.mask());
                let at = random.below(3);
                // Special values, near each other in size or in bits, equal and opposite, subnormals.
                match random.below(8) {
                    0 => x[at] = special[random.below(5)] | x[at] & sign_of(format),
                    1 => x = x.map(|bits| special[(bits % 5) as usize] | bits & sign_of(format)),
                    2 => x[1] = x[0] ^ (random.bits() & 3) ^ sign_of(format),
                    3 => x[2] = x[0] ^ (random.bits() & 3),
                    4 => x[at] &= sign_of(format) | format.mask() >> 6,
                    5 => x[1] = x[0] ^ (random.bits() & ((16 << format.fraction_bits()) - 1)),
                    // A product about as large as the third operand.
                    6 => x[1] = encode(format, false, 1, 0, Rounding::NearestEven, Subnormals::Keep),
                    _ => {}
                }
                for (_, rounding) in ROUNDINGS {
                    for function in
                        [ScalarFunction::Add, ScalarFunction::Subtract, ScalarFunction::Divide, ScalarFunction::Fma]
                    {
                        let mode = Mode { rounding, daz: false, results: Subnormals::Keep };
                        let found = once(format, function, &x, mode);
                        assert_eq!(found, other(function, &x, rounding), "{function} {format} {x:x?} {rounding:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn remainders_are_those_of_another_implementation() {
        let mut random = Random(1);
        for format in [Format::F16, Format::BF16, Format::F32, Format::F64] {
            let other = match format.name() {
                "f16" => other::<Half>,
                "bf16" => other::<BFloat>,
                "f64" => other::<Double>,
                _ => other::<Single>,
            };
            for _ in 0..4_000 {
                let mut pair = [random.bits() & format.mask(), random.bits() & format.mask()];
                // Near each other, small multiples of each other, subnormals, and zeros and infinities.
                match random.below(6) {
                    0 => pair[1] = pair[0].wrapping_add(random.bits() % 9).wrapping_sub(4) & format.mask(),
                    1 => pair[0] &= format.mask() >> 6,
                    2 => pair[1] &= format.mask() >> 6,
                    3 => pair = pair.map(|bits| bits & !(format.mask() >> 8)),
                    _ => {}
                }
                for nearest in [false, true] {
                    let found = remainder(format, pair[0], pair[1], nearest, Subnormals::Keep);
                    assert_eq!(found, other(pair[0], pair[1], nearest), "{format} {pair:x?} {nearest}");
                }
            }
        }
    }
}
