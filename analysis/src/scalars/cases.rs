//! Operands that distinguish modes: every pair of special values, results at ties and at the ends of the range, and
//! random values.

use mxprobe_api::{Decoded, FloatEncoding, Format, Overflow, Rounding, ScalarFunction, Subnormals};

use crate::dots::Random;

/// The number of drawn calls, in addition to the directed ones.
const DRAWN: usize = 1_500;

/// A number in a format, truncated to what the format holds.
pub(super) fn number(format: Format, negative: bool, magnitude: u128, exponent: i32) -> u64 {
    format.encode(negative, magnitude, exponent, Rounding::TowardZero, Overflow::Saturate, Subnormals::Keep).bits
}

/// The same value in another format, which must hold it; a NaN becomes that format's.
pub(crate) fn exactly(from: Format, bits: u64, to: Format) -> u64 {
    match from.decode(bits) {
        Decoded::Zero { negative } => {
            if negative {
                to.negative_zero().unwrap_or(0)
            } else {
                0
            }
        }
        Decoded::Finite { negative, significand, exponent } => {
            number(to, negative, significand.into(), exponent - from.fraction_bits().cast_signed())
        }
        Decoded::Infinity { negative } => to.infinity(negative).unwrap_or(0),
        Decoded::Nan { .. } => to.nan().unwrap_or(0),
    }
}

/// Draws an element between −1 and 2, as in the paper: its bits, and its value in units of the last place of 1.
pub(super) fn element(format: Format, random: &mut Random) -> (u64, i128) {
    let bits = format.fraction_bits().cast_signed();
    let value = i128::from(random.bits() % (3 << bits)) - (1 << bits);
    (number(format, value < 0, value.unsigned_abs(), -bits), value)
}

/// Values of both signs: the smallest subnormals, values near the border to the normal ones and near 1, the largest,
/// infinities.
fn specials(format: Format) -> Vec<u64> {
    let bits = format.fraction_bits();
    let normal = 1u64 << bits;
    let one = format.one();
    let largest = format.largest(false);
    let positive = [
        0,
        1,
        2,
        normal - 1,
        normal,
        normal + 1,
        normal + normal,
        one - 1,
        one,
        one + 1,
        one + normal / 2,
        one + normal,
        largest - 1,
        largest,
    ];
    let infinity = format.infinity(false);
    let both = |bits: u64| [bits, bits | 1 << (format.bits() - 1)];
    positive.into_iter().chain(infinity).flat_map(both).collect()
}

/// The operands of many calls.
pub(super) fn calls(function: ScalarFunction, format: Format, seed: u64) -> Vec<Vec<u64>> {
    let specials = specials(format);
    let mut random = Random(seed);
    let arity = function.arity();
    let mut found: Vec<Vec<u64>> = Vec::new();
    match arity {
        1 => found.extend(specials.iter().map(|x| vec![*x])),
        2 if function == ScalarFunction::Scale => {
            let (least, most) = format.as_float().map_or((0, 0), FloatEncoding::exponents);
            let bits = format.fraction_bits().cast_signed();
            let exponents = [0, 1, bits, bits + 1, -least, most, most + 1, 2 * most + bits, 4 * most];
            let exponents: Vec<u64> =
                exponents.iter().flat_map(|by| [integer(format, *by), integer(format, -*by)]).collect();
            found.extend(specials.iter().flat_map(|x| exponents.iter().map(|by| vec![*x, *by])));
        }
        2 => found.extend(specials.iter().flat_map(|x| specials.iter().map(|y| vec![*x, *y]))),
        _ => found.extend((0..800).map(|_| (0..arity).map(|_| specials[random.below(specials.len())]).collect())),
    }
    for turn in 0..DRAWN {
        found.push(drawn(function, format, &mut random, turn));
    }
    found
}

/// A small integer in a format.
fn integer(format: Format, value: i32) -> u64 {
    if value == 0 { 0 } else { number(format, value < 0, value.unsigned_abs().into(), 0) }
}

/// Draws one call with an ordinary, tied, tiny, huge or random result.
fn drawn(function: ScalarFunction, format: Format, random: &mut Random, turn: usize) -> Vec<u64> {
    let arity = function.arity();
    let Some(float) = format.as_float() else { return vec![0; arity] };
    let (least, most) = (float.min_exponent(), float.max_exponent());
    let bits = format.fraction_bits().cast_signed();
    let value = |random: &mut Random, exponent: i32| {
        let fraction = match random.below(5) {
            0 => 0,
            1 => 1,
            2 => (1 << bits) - 1,
            _ => random.bits() & ((1 << bits) - 1),
        };
        number(format, random.flip(), u128::from(1 << bits | fraction), exponent - bits)
    };
    if function == ScalarFunction::Scale {
        let (exponent, wanted) = (random.between(least, most), random.between(least - bits - 3, most + 2));
        return vec![value(random, exponent), integer(format, wanted - exponent)];
    }
    if turn.is_multiple_of(5) {
        return (0..arity).map(|_| random.bits() & format.mask()).collect();
    }
    if let ScalarFunction::Convert { to } = function {
        return vec![about_the_range_of(format, to, random)];
    }
    match function {
        ScalarFunction::Add | ScalarFunction::Subtract => {
            let exponent = random.between(least, most);
            let down = [0, 1, bits - 1, bits, bits + 1, bits + 2, random.between(0, 2 * bits)][random.below(7)];
            vec![value(random, exponent), value(random, exponent - down)]
        }
        ScalarFunction::Multiply | ScalarFunction::Divide => {
            // Results of ordinary size, or near an end of the range.
            let wanted = [0, least - bits / 2, least, most, random.between(least, most)][random.below(5)];
            let first = random.between(least.max(-most / 2), most / 2);
            let second = if function == ScalarFunction::Multiply { wanted - first } else { first - wanted };
            vec![value(random, first), value(random, second)]
        }
        ScalarFunction::SquareRoot => {
            let exponent = random.between(least, most);
            let positive = value(random, exponent) & !(1 << (format.bits() - 1));
            vec![positive]
        }
        ScalarFunction::Reciprocal => {
            let exponent = [least, -least, random.between(least, most)][random.below(3)];
            vec![value(random, exponent)]
        }
        ScalarFunction::Remainder | ScalarFunction::TruncatedRemainder => {
            // Quotients of few bits and of many, and quotients halfway between two integers.
            let second = random.between(least, most);
            let b = value(random, second);
            let first = (second + random.between(-2, 2 * bits)).clamp(least, most);
            let half = number(format, random.flip(), (2 * random.below(8) + 1) as u128, -1);
            let (half, unit) = (format.to_f64(half), format.to_f64(b));
            let a = if random.flip() { value(random, first) } else { format.from_f64(half * unit) };
            vec![a, b]
        }
        ScalarFunction::Compare => {
            let x = random.bits() & format.mask();
            vec![x, [x, x ^ 1, x ^ 1 << (format.bits() - 1), random.bits() & format.mask()][random.below(4)]]
        }
        ScalarFunction::Fma | ScalarFunction::MultiplyAdd => {
            let first = random.between(least / 2, most / 2);
            let product = [0, least, most - 1, random.between(least, most)][random.below(4)];
            let (a, b) = (value(random, first), value(random, product - first));
            let down = [0, bits, bits + 1, 2 * bits, 2 * bits + 1, random.between(-bits, 3 * bits)][random.below(6)];
            vec![a, b, value(random, product - down)]
        }
        _ => {
            let exponents: Vec<i32> = (0..arity).map(|_| random.between(-3, 3)).collect();
            exponents.into_iter().map(|exponent| value(random, exponent)).collect()
        }
    }
}

/// A value near the places where a conversion rounds, overflows, or becomes subnormal.
fn about_the_range_of(from: Format, to: Format, random: &mut Random) -> u64 {
    let (low, high) = match to.as_float().map(FloatEncoding::exponents) {
        Some((low, high)) => (low - 2, high + 2),
        None => (-3, to.bits().cast_signed()),
    };
    let exponent = random.between(low, high);
    let kept = if to.is_integer() { exponent.max(0) } else { to.fraction_bits().cast_signed() };
    // Significands that end at, just above, or just below half a unit of the kept bits.
    let width = from.fraction_bits().cast_signed();
    let mut fraction = random.bits() & ((1 << width) - 1);
    let cut = width - kept;
    if cut > 1 && random.flip() {
        let half = 1u64 << (cut - 1);
        fraction = fraction >> cut << cut | [half, half + 1, half - 1, 0, 1][random.below(5)];
    }
    number(from, random.flip(), u128::from(1u64 << width | fraction), exponent - width)
}
