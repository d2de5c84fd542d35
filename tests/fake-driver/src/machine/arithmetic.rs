//! What the scalar instructions compute, on the bits of one lane.

use std::cmp::Ordering;

use mxprobe_api::Format;

use super::float;
use crate::ptx::{Alu, Comparison, Conversion, Kind, Type};

/// `from` combined as `alu` says.
#[inline]
pub(super) fn compute(alu: Alu, kind: Type, [a, b, c]: [u64; 3]) -> u64 {
    let mask = kind.mask();
    let product = |a: u64, b: u64| {
        let (a, b) = (kind.extend(a), kind.extend(b));
        if kind.is_signed() {
            (i128::from(a.cast_signed()) * i128::from(b.cast_signed())).cast_unsigned()
        } else {
            u128::from(a) * u128::from(b)
        }
    };
    let wide = if kind.bits == 32 { u64::MAX } else { u64::MAX >> (64 - 2 * kind.bits.min(32)) };
    match alu {
        Alu::Move => a & mask,
        Alu::Add => a.wrapping_add(b) & mask,
        Alu::Subtract => a.wrapping_sub(b) & mask,
        Alu::MultiplyLow => a.wrapping_mul(b) & mask,
        Alu::MultiplyHigh => (product(a, b) >> kind.bits) as u64 & mask,
        Alu::MultiplyWide => product(a, b) as u64 & wide,
        Alu::MultiplyAddLow => a.wrapping_mul(b).wrapping_add(c) & mask,
        Alu::MultiplyAddWide => (product(a, b) as u64).wrapping_add(c) & wide,
        Alu::Divide | Alu::Remainder => divide(alu, kind, a, b),
        Alu::Minimum if ordered(kind, a, b) == Ordering::Less => a,
        Alu::Maximum if ordered(kind, a, b) == Ordering::Greater => a,
        Alu::Minimum | Alu::Maximum => b,
        Alu::And => a & b,
        Alu::Or => a | b,
        Alu::Xor => a ^ b,
        Alu::Not => !a & mask,
        // Amounts beyond the width shift everything out (PTX ISA 8.7, 9.7.8).
        Alu::ShiftRight if kind.is_signed() => (kind.extend(a).cast_signed() >> b.min(63)).cast_unsigned() & mask,
        Alu::ShiftLeft | Alu::ShiftRight if b >= u64::from(kind.bits) => 0,
        Alu::ShiftLeft => a << b & mask,
        Alu::ShiftRight => a >> b,
        Alu::Negate if kind.is_integer() => a.wrapping_neg() & mask,
        Alu::Negate => a ^ signs(kind),
        Alu::Absolute if kind.is_integer() => kind.extend(a).cast_signed().wrapping_abs().cast_unsigned() & mask,
        Alu::Absolute => a & !signs(kind),
        Alu::Popcount => u64::from(a.count_ones()),
        Alu::Select if c != 0 => a,
        Alu::Select => b,
        Alu::Float(function, how) => float::compute(function, kind, [a, b, c], how),
    }
}

fn signs(kind: Type) -> u64 {
    match kind.kind {
        Kind::Pair | Kind::BfloatPair => 0x8000_8000,
        _ => 1 << (kind.bits - 1),
    }
}

fn divide(alu: Alu, kind: Type, a: u64, b: u64) -> u64 {
    let (a, b) = (kind.extend(a), kind.extend(b));
    // Division by zero gives a value that the PTX ISA does not say (9.7.1.6); all ones here.
    if b == 0 {
        return kind.mask();
    }
    let result = match (alu, kind.is_signed()) {
        (Alu::Divide, true) => a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned(),
        (Alu::Divide, false) => a / b,
        (_, true) => a.cast_signed().wrapping_rem(b.cast_signed()).cast_unsigned(),
        (_, false) => a % b,
    };
    result & kind.mask()
}

fn ordered(kind: Type, a: u64, b: u64) -> Ordering {
    let (a, b) = (kind.extend(a), kind.extend(b));
    if kind.is_signed() { a.cast_signed().cmp(&b.cast_signed()) } else { a.cmp(&b) }
}

/// Whether a comparison holds; `unordered` ones hold of NaN.
pub(super) fn compare(comparison: Comparison, unordered: bool, kind: Type, a: u64, b: u64) -> bool {
    let order = if kind.is_integer() {
        ordered(kind, a, b)
    } else {
        // No pairs are compared.
        let format = match (kind.kind, kind.bits) {
            (Kind::Bfloat, _) => Format::BF16,
            (_, 16) => Format::F16,
            (_, 64) => Format::F64,
            _ => Format::F32,
        };
        match format.to_f64(a).partial_cmp(&format.to_f64(b)) {
            Some(order) => order,
            None => return unordered,
        }
    };
    match comparison {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    }
}

/// `cvt`.
pub(super) fn convert(conversion: Conversion, bits: u64) -> u64 {
    let Conversion { to, from, .. } = conversion;
    if from.is_integer() && to.is_integer() { from.extend(bits) & to.mask() } else { float::convert(conversion, bits) }
}

#[cfg(test)]
mod tests {
    use rustc_apfloat::Round;

    use super::*;
    use crate::ptx::{Function, Rounded};

    fn of(word: &str) -> Type {
        Type::parse(word).unwrap()
    }

    #[test]
    fn integers_wrap_at_their_own_width() {
        let u32s = |alu, a, b| compute(alu, of("u32"), [a, b, 0]);
        assert_eq!(u32s(Alu::Add, 0xffff_ffff, 2), 1);
        assert_eq!(u32s(Alu::Subtract, 0, 1), 0xffff_ffff);
        assert_eq!(u32s(Alu::MultiplyHigh, 0xffff_ffff, 0xffff_ffff), 0xffff_fffe);
        assert_eq!(u32s(Alu::MultiplyWide, 0xffff_ffff, 0xffff_ffff), 0xffff_fffe_0000_0001);
        assert_eq!(compute(Alu::MultiplyWide, of("s32"), [0xffff_ffff, 5, 0]), (-5i64).cast_unsigned());
        assert_eq!(compute(Alu::MultiplyAddWide, of("s32"), [0xffff_ffff, 5, 7]), 2);
        assert_eq!(compute(Alu::MultiplyWide, of("s16"), [0xffff, 2, 0]), 0xffff_fffe);
        assert_eq!(compute(Alu::ShiftRight, of("s32"), [0x8000_0000, 40, 0]), 0xffff_ffff);
        assert_eq!(u32s(Alu::ShiftRight, 0x8000_0000, 31), 1);
        assert_eq!(compute(Alu::ShiftLeft, of("b32"), [1, 32, 0]), 0);
        assert_eq!(compute(Alu::Divide, of("s32"), [0xffff_fff9, 2, 0]), 0xffff_fffd);
        assert_eq!(compute(Alu::Remainder, of("s32"), [0xffff_fff9, 2, 0]), 0xffff_ffff);
        assert_eq!(compute(Alu::Minimum, of("s32"), [0xffff_ffff, 1, 0]), 0xffff_ffff);
        assert_eq!(compute(Alu::Minimum, of("u32"), [0xffff_ffff, 1, 0]), 1);
    }

    #[test]
    fn conversions_extend_cut_round_and_saturate() {
        let cvt = |to, from, round, bits| {
            let (to, from) = (of(to), of(from));
            convert(Conversion { to, from, how: Rounded { round, flush: false }, to_whole: false }, bits)
        };
        let nearest = Round::NearestTiesToEven;
        assert_eq!(cvt("s64", "s32", nearest, 0x8000_0000), 0xffff_ffff_8000_0000);
        assert_eq!(cvt("u64", "u32", nearest, 0x8000_0000), 0x8000_0000);
        assert_eq!(cvt("u16", "u32", nearest, 0x1_2345), 0x2345);
        assert_eq!(cvt("f32", "s32", nearest, 0xffff_ffff), 0xbf80_0000);
        assert_eq!(cvt("f16", "f32", nearest, 0x3f80_1000), 0x3c00);
        assert_eq!(cvt("f16", "f32", Round::TowardPositive, 0x3f80_1000), 0x3c01);
        assert_eq!(cvt("bf16", "f32", Round::TowardZero, 0x3fff_ffff), 0x3fff);
        assert_eq!(cvt("f32", "f16", nearest, 0x0001), 0x3380_0000);
        assert_eq!(cvt("s32", "f32", Round::TowardZero, u64::from((-2.7f32).to_bits())), 0xffff_fffe);
        assert_eq!(cvt("u32", "f32", Round::TowardZero, u64::from((-2.7f32).to_bits())), 0);
        assert_eq!(cvt("s32", "f32", nearest, u64::from(1e20f32.to_bits())), 0x7fff_ffff);
        assert_eq!(cvt("s32", "f32", nearest, 0x7fc0_0000), 0);
    }

    #[test]
    fn pairs_are_two_halves() {
        let how = Rounded { round: Round::NearestTiesToEven, flush: false };
        let kind = of("f16x2");
        assert_eq!(compute(Alu::Float(Function::Add, how), kind, [0x3c00_4000, 0x3c00_3c00, 0]), 0x4000_4200);
        assert_eq!(
            compute(Alu::Float(Function::FusedMultiplyAdd, how), kind, [0x4000_4000, 0x4000_4000, 0x3c00_0000]),
            0x4500_4400
        );
    }

    #[test]
    fn comparisons_know_signs_and_nan() {
        let f32s = |comparison, unordered, a: f32, b: f32| {
            compare(comparison, unordered, of("f32"), u64::from(a.to_bits()), u64::from(b.to_bits()))
        };
        assert!(compare(Comparison::Less, false, of("s32"), 0xffff_ffff, 0));
        assert!(!compare(Comparison::Less, false, of("u32"), 0xffff_ffff, 0));
        assert!(f32s(Comparison::Equal, false, 0.0, -0.0));
        assert!(!f32s(Comparison::NotEqual, false, f32::NAN, 1.0));
        assert!(f32s(Comparison::NotEqual, true, f32::NAN, 1.0));
    }
}
