//! IEEE 754 addition, multiplication and fused multiply-add in every direction of rounding, in integers.

use mxprobe_api::{Decoded, Encoded, Format, Overflow, Rounding, Subnormals};

use crate::ptx::Rounded;

/// A value: finite ones as `±magnitude · 2^lsb`, zero with magnitude 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Nan,
    Infinity { negative: bool },
    Finite { negative: bool, magnitude: u128, lsb: i32 },
}

/// The value of some bits; with `flush`, a subnormal is zero.
pub(super) fn decode(format: Format, bits: u64, flush: bool) -> Value {
    match format.decode(bits) {
        Decoded::Nan { .. } => Value::Nan,
        Decoded::Infinity { negative } => Value::Infinity { negative },
        Decoded::Zero { negative } => Value::Finite { negative, magnitude: 0, lsb: 0 },
        Decoded::Finite { negative, significand, exponent } => {
            let subnormal = significand >> format.fraction_bits() == 0;
            let magnitude = if flush && subnormal { 0 } else { u128::from(significand) };
            Value::Finite { negative, magnitude, lsb: exponent - format.fraction_bits().cast_signed() }
        }
    }
}

/// The bits nearest to a value in the direction asked for. NaN is the one that the device makes (PTX ISA 8.7, 9.7.3 and
/// 9.7.4: 0x7fffffff and 0x7fff; of f64 nothing is said, and CUDA's `CUDART_NAN` is taken).
pub(super) fn encode(format: Format, value: Value, how: Rounded) -> u64 {
    match value {
        Value::Nan if format == Format::F64 => 0xfff8_0000_0000_0000,
        Value::Nan => format.mask() >> 1,
        Value::Infinity { negative } => format.infinity(negative).unwrap_or_else(|| format.largest(negative)),
        Value::Finite { negative, magnitude, lsb } => {
            let subnormals = if how.flush { Subnormals::FlushAfterRounding } else { Subnormals::Keep };
            let Encoded { bits, .. } =
                format.encode(negative, magnitude, lsb, how.rounding, Overflow::Ieee, subnormals);
            bits
        }
    }
}

fn negated(value: Value) -> Value {
    match value {
        Value::Nan => Value::Nan,
        Value::Infinity { negative } => Value::Infinity { negative: !negative },
        Value::Finite { negative, magnitude, lsb } => Value::Finite { negative: !negative, magnitude, lsb },
    }
}

/// The exact product of two values of at most 53 bits each.
fn product(a: Value, b: Value) -> Value {
    use Value::{Finite, Infinity, Nan};
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinity { negative: a }, Infinity { negative: b }) => Infinity { negative: a != b },
        (Infinity { negative: a }, Finite { negative: b, magnitude, .. })
        | (Finite { negative: b, magnitude, .. }, Infinity { negative: a }) => {
            if magnitude == 0 {
                Nan
            } else {
                Infinity { negative: a != b }
            }
        }
        (Finite { negative: a, magnitude: x, lsb: i }, Finite { negative: b, magnitude: y, lsb: j }) => {
            Finite { negative: a != b, magnitude: x * y, lsb: i + j }
        }
    }
}

/// The sum of two values of at most 106 bits each. Bits far below the result are joined into its last one, which no
/// rounding to 53 bits or fewer can tell from the exact sum.
fn sum(a: Value, b: Value, rounding: Rounding) -> Value {
    use Value::{Finite, Infinity, Nan};
    let zero = |negative| Finite { negative, magnitude: 0, lsb: 0 };
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinity { negative: a }, Infinity { negative: b }) if a != b => Nan,
        (Infinity { .. }, _) => a,
        (_, Infinity { .. }) => b,
        (Finite { negative: x, magnitude: 0, .. }, Finite { negative: y, magnitude: 0, .. }) => {
            zero(if x == y { x } else { rounding == Rounding::Down })
        }
        (Finite { magnitude: 0, .. }, _) => b,
        (_, Finite { magnitude: 0, .. }) => a,
        (Finite { negative: x, magnitude: p, lsb: i }, Finite { negative: y, magnitude: q, lsb: j }) => {
            let leading = |magnitude: u128, lsb: i32| lsb - magnitude.leading_zeros().cast_signed();
            let swap = leading(p, i) < leading(q, j);
            let ((big_negative, big, big_lsb), (negative, small, lsb)) =
                if swap { ((y, q, j), (x, p, i)) } else { ((x, p, i), (y, q, j)) };
            let up = big.leading_zeros() - 3;
            let (big, big_lsb) = (big << up, big_lsb - up.cast_signed());
            let small = align(small, lsb - big_lsb);
            let magnitude = if big_negative == negative { big + small } else { big.abs_diff(small) };
            if magnitude == 0 {
                return zero(rounding == Rounding::Down);
            }
            let negative = if small > big { negative } else { big_negative };
            Finite { negative, magnitude, lsb: big_lsb }
        }
    }
}

fn align(magnitude: u128, up: i32) -> u128 {
    let down = up.unsigned_abs();
    match up {
        0.. => magnitude << up,
        -127.. => magnitude >> down | u128::from(magnitude & ((1 << down) - 1) != 0),
        _ => 1,
    }
}

/// `a + b`.
pub(super) fn add(format: Format, a: u64, b: u64, how: Rounded) -> u64 {
    let [a, b] = [a, b].map(|bits| decode(format, bits, how.flush));
    encode(format, sum(a, b, how.rounding), how)
}

/// `a − b`.
pub(super) fn subtract(format: Format, a: u64, b: u64, how: Rounded) -> u64 {
    let [a, b] = [a, b].map(|bits| decode(format, bits, how.flush));
    encode(format, sum(a, negated(b), how.rounding), how)
}

/// `a · b`.
pub(super) fn multiply(format: Format, a: u64, b: u64, how: Rounded) -> u64 {
    let [a, b] = [a, b].map(|bits| decode(format, bits, how.flush));
    encode(format, product(a, b), how)
}

/// `a · b + c`, rounded once.
pub(super) fn fused_multiply_add(format: Format, [a, b, c]: [u64; 3], how: Rounded) -> u64 {
    let [a, b, c] = [a, b, c].map(|bits| decode(format, bits, how.flush));
    encode(format, sum(product(a, b), c, how.rounding), how)
}

/// A magnitude as a whole number, `u128::MAX` if it is beyond all integers.
pub(super) fn whole(negative: bool, magnitude: u128, lsb: i32, rounding: Rounding) -> u128 {
    if magnitude == 0 {
        return 0;
    }
    if lsb >= 0 {
        let fits = magnitude.leading_zeros() > lsb.unsigned_abs();
        return if fits { magnitude << lsb } else { u128::MAX };
    }
    let down = lsb.unsigned_abs();
    let (kept, lost, half) =
        if down > 127 { (0, 1, 2) } else { (magnitude >> down, magnitude & ((1 << down) - 1), 1u128 << (down - 1)) };
    let up = match rounding {
        Rounding::NearestEven => lost > half || (lost == half && kept & 1 == 1),
        Rounding::TowardZero => false,
        Rounding::Down => negative && lost != 0,
        Rounding::Up => !negative && lost != 0,
        Rounding::ToOdd => lost != 0 && kept & 1 == 0,
    };
    kept + u128::from(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAREST: Rounded = Rounded { rounding: Rounding::NearestEven, flush: false };

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (*state ^ (*state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (*state >> 17)
    }

    #[test]
    fn to_nearest_is_what_the_cpu_computes() {
        let mut state = 1;
        for round in 0..40_000 {
            let mut words = [random(&mut state), random(&mut state), random(&mut state)];
            if round % 2 == 0 {
                // Exponents near one another, where sums cancel.
                words = words.map(|word| word & !(0x7f0 << 52) | 0x3f0 << 52);
            }
            let [a, b, c] = words.map(f64::from_bits);
            let same =
                |ours: u64, theirs: f64| ours == theirs.to_bits() || (theirs.is_nan() && f64::from_bits(ours).is_nan());
            assert!(same(add(Format::F64, words[0], words[1], NEAREST), a + b), "{words:x?}");
            assert!(same(subtract(Format::F64, words[0], words[1], NEAREST), a - b), "{words:x?}");
            assert!(same(multiply(Format::F64, words[0], words[1], NEAREST), a * b), "{words:x?}");
            assert!(same(fused_multiply_add(Format::F64, words, NEAREST), a.mul_add(b, c)), "{words:x?}");
            let words = words.map(|word| word >> 32);
            let [a, b, c] = words.map(|word| f32::from_bits(u32::try_from(word).unwrap()));
            let same = |ours: u64, theirs: f32| {
                ours == u64::from(theirs.to_bits()) || (theirs.is_nan() && ours == 0x7fff_ffff)
            };
            assert!(same(add(Format::F32, words[0], words[1], NEAREST), a + b), "{words:x?}");
            assert!(same(multiply(Format::F32, words[0], words[1], NEAREST), a * b), "{words:x?}");
            assert!(same(fused_multiply_add(Format::F32, words, NEAREST), a.mul_add(b, c)), "{words:x?}");
        }
    }

    #[test]
    fn directions_bracket_the_exact_result() {
        let how = |rounding| Rounded { rounding, flush: false };
        let one = u64::from(1f32.to_bits());
        let tiny = u64::from(1e-30f32.to_bits());
        assert_eq!(add(Format::F32, one, tiny, how(Rounding::Up)), one + 1);
        assert_eq!(add(Format::F32, one, tiny, how(Rounding::Down)), one);
        assert_eq!(subtract(Format::F32, one, tiny, how(Rounding::Down)), one - 1);
        assert_eq!(subtract(Format::F32, one, tiny, how(Rounding::TowardZero)), one - 1);
        assert_eq!(subtract(Format::F32, one, one, how(Rounding::Down)), 0x8000_0000);
        assert_eq!(subtract(Format::F32, one, one, how(Rounding::Up)), 0);
    }

    #[test]
    fn flushing_takes_subnormals_for_zero_on_both_sides() {
        let how = Rounded { rounding: Rounding::NearestEven, flush: true };
        assert_eq!(add(Format::F32, 1, 1, how), 0);
        assert_eq!(multiply(Format::F32, 0x0080_0000, 0xbf00_0000, how), 0x8000_0000);
        assert_eq!(multiply(Format::F32, 0x0080_0000, 0xbf00_0000, NEAREST), 0x8040_0000);
    }
}
