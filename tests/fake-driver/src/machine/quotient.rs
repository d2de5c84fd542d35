//! IEEE 754 division and square root in every direction of rounding, in integers, and approximations of them.

use mxprobe_api::{Format, Rounding};

use super::float::{Value, decode, encode, multiply};
use crate::ptx::Rounded;

/// `a / b`.
pub(super) fn divide(format: Format, a: u64, b: u64, how: Rounded) -> u64 {
    use Value::{Finite, Infinity, Nan};
    let [a, b] = [a, b].map(|bits| decode(format, bits, how.flush));
    let value = match (a, b) {
        (Nan, _) | (_, Nan) | (Infinity { .. }, Infinity { .. }) => Nan,
        (Finite { magnitude: 0, .. }, Finite { magnitude: 0, .. }) => Nan,
        (Infinity { negative: x }, Finite { negative: y, .. })
        | (Finite { negative: x, .. }, Finite { negative: y, magnitude: 0, .. }) => Infinity { negative: x != y },
        (Finite { negative: x, .. }, Infinity { negative: y }) => Finite { negative: x != y, magnitude: 0, lsb: 0 },
        (Finite { negative: x, magnitude: p, lsb: i }, Finite { negative: y, magnitude: q, lsb: j }) => {
            // At least 70 bits of quotient; its last one is set where anything is left.
            let up = p.leading_zeros().saturating_sub(1);
            let (quotient, left) = ((p << up) / q, (p << up) % q);
            let magnitude = quotient << 1 | u128::from(left != 0);
            Finite { negative: x != y, magnitude, lsb: i - j - up.cast_signed() - 1 }
        }
    };
    encode(format, value, how)
}

/// `√a`.
pub(super) fn square_root(format: Format, a: u64, how: Rounded) -> u64 {
    use Value::{Finite, Infinity, Nan};
    let value = match decode(format, a, how.flush) {
        zero @ Finite { magnitude: 0, .. } => zero,
        Nan | Infinity { negative: true } | Finite { negative: true, .. } => Nan,
        Infinity { negative: false } => Infinity { negative: false },
        Finite { magnitude, lsb, .. } => {
            let up = magnitude.leading_zeros();
            let up = if (lsb - up.cast_signed()).rem_euclid(2) == 0 { up } else { up - 1 };
            let radicand = magnitude << up;
            let root = radicand.isqrt();
            let magnitude = root << 1 | u128::from(root * root != radicand);
            Finite { negative: false, magnitude, lsb: (lsb - up.cast_signed()) / 2 - 1 }
        }
    };
    encode(format, value, how)
}

/// The product with the rounded reciprocal: off by at most 2 ulp, as the PTX ISA allows (8.7, 9.7.3.8).
pub(super) fn approximate_divide(format: Format, a: u64, b: u64, how: Rounded) -> u64 {
    let reciprocal = divide(format, format.one(), b, how);
    multiply(format, a, reciprocal, how)
}

/// The reciprocal of the rounded reciprocal root, with both rounded toward zero.
pub(super) fn approximate_square_root(format: Format, a: u64, how: Rounded) -> u64 {
    let how = Rounded { rounding: Rounding::TowardZero, ..how };
    let reciprocal = divide(format, format.one(), square_root(format, a, how), how);
    divide(format, format.one(), reciprocal, how)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAREST: Rounded = Rounded { rounding: Rounding::NearestEven, flush: false };

    #[test]
    fn to_nearest_is_what_the_cpu_computes() {
        let mut state = 7u64;
        for _ in 0..40_000 {
            let mut word = || {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (state >> 17)
            };
            let (a, b) = (word(), word());
            let [x, y] = [a, b].map(f64::from_bits);
            let same =
                |ours: u64, theirs: f64| ours == theirs.to_bits() || (theirs.is_nan() && f64::from_bits(ours).is_nan());
            assert!(same(divide(Format::F64, a, b, NEAREST), x / y), "{a:x} {b:x}");
            assert!(same(square_root(Format::F64, a, NEAREST), x.sqrt()), "{a:x}");
            let [a, b] = [a, b].map(|word| word >> 32);
            let [x, y] = [a, b].map(|word| f32::from_bits(u32::try_from(word).unwrap()));
            let same = |ours: u64, theirs: f32| {
                ours == u64::from(theirs.to_bits()) || (theirs.is_nan() && ours == 0x7fff_ffff)
            };
            assert!(same(divide(Format::F32, a, b, NEAREST), x / y), "{a:x} {b:x}");
            assert!(same(square_root(Format::F32, a, NEAREST), x.sqrt()), "{a:x}");
        }
    }

    #[test]
    fn directions_bracket_the_exact_result() {
        let how = |rounding| Rounded { rounding, flush: false };
        let [one, two, three] = [1f32, 2.0, 3.0].map(|value| u64::from(value.to_bits()));
        assert_eq!(divide(Format::F32, one, three, how(Rounding::Down)), 0x3eaa_aaaa);
        assert_eq!(divide(Format::F32, one, three, how(Rounding::Up)), 0x3eaa_aaab);
        assert_eq!(square_root(Format::F32, two, how(Rounding::TowardZero)), 0x3fb5_04f3);
        assert_eq!(square_root(Format::F32, two, how(Rounding::Up)), 0x3fb5_04f4);
    }
}
