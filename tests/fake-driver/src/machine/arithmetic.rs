//! The scalar instructions, on the bits of one lane.

use std::cmp::Ordering;

use super::float;
use crate::ptx::{Alu, Comparison, Conversion, Type};

/// Computes `alu` on three operands of a type.
#[inline]
pub(super) fn compute(alu: Alu, kind: Type, [a, b, c]: [u64; 3]) -> u64 {
    let mask = kind.mask();
    let product = || kind.extend(a).wrapping_mul(kind.extend(b));
    let wide = if kind.bits == 32 { u64::MAX } else { u64::MAX >> (64 - 2 * kind.bits.min(32)) };
    match alu {
        Alu::Move => a & mask,
        Alu::Add => a.wrapping_add(b) & mask,
        Alu::Subtract => a.wrapping_sub(b) & mask,
        Alu::MultiplyLow => a.wrapping_mul(b) & mask,
        Alu::MultiplyWide => product() & wide,
        Alu::MultiplyAddLow => a.wrapping_mul(b).wrapping_add(c) & mask,
        Alu::MultiplyAddWide => product().wrapping_add(c) & wide,
        Alu::Divide => divide(kind, a, b),
        Alu::Minimum if order(kind, a, b) == Ordering::Less => a,
        Alu::Minimum => b,
        Alu::And => a & b,
        Alu::Or => a | b,
        Alu::Xor => a ^ b,
        // Amounts beyond the width shift everything out (PTX ISA 8.7, 9.7.8).
        Alu::ShiftRight if kind.is_signed() => (kind.extend(a).cast_signed() >> b.min(63)).cast_unsigned() & mask,
        Alu::ShiftLeft | Alu::ShiftRight if b >= u64::from(kind.bits) => 0,
        Alu::ShiftLeft => a << b & mask,
        Alu::ShiftRight => a >> b,
        Alu::FunnelLeft => ((b << 32 | a) << (c % 32) >> 32) & mask,
        Alu::Float(function, how) => float::compute(function, kind, [a, b, c], how),
    }
}

fn divide(kind: Type, a: u64, b: u64) -> u64 {
    let (a, b) = (kind.extend(a), kind.extend(b));
    let quotient = match (b, kind.is_signed()) {
        // The PTX ISA does not say what division by zero gives (9.7.1.6); all ones here.
        (0, _) => u64::MAX,
        (_, true) => a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned(),
        (_, false) => a / b,
    };
    quotient & kind.mask()
}

fn order(kind: Type, a: u64, b: u64) -> Ordering {
    let (a, b) = (kind.extend(a), kind.extend(b));
    if kind.is_signed() { a.cast_signed().cmp(&b.cast_signed()) } else { a.cmp(&b) }
}

/// Whether a comparison holds; none holds for NaN. With `flush`, subnormals compare as zeros.
pub(super) fn compare(comparison: Comparison, kind: Type, flush: bool, [a, b]: [u64; 2]) -> bool {
    let order = if kind.is_integer() { Some(order(kind, a, b)) } else { float::order(kind, a, b, flush) };
    order.is_some_and(|order| match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    })
}

/// Converts a value, as `cvt`.
pub(super) fn convert(conversion: Conversion, bits: u64) -> u64 {
    let Conversion { to, from, .. } = conversion;
    if from.is_integer() && to.is_integer() { from.extend(bits) & to.mask() } else { float::convert(conversion, bits) }
}

#[cfg(test)]
mod tests {
    use rustc_apfloat::Round;

    use super::*;
    use crate::ptx::Rounded;

    fn of(word: &str) -> Type {
        Type::parse(word).unwrap()
    }

    #[test]
    fn integers_wrap_at_their_own_width() {
        let u32s = |alu, a, b| compute(alu, of("u32"), [a, b, 0]);
        assert_eq!(u32s(Alu::Add, 0xffff_ffff, 2), 1);
        assert_eq!(u32s(Alu::Subtract, 0, 1), 0xffff_ffff);
        assert_eq!(u32s(Alu::MultiplyWide, 0xffff_ffff, 0xffff_ffff), 0xffff_fffe_0000_0001);
        assert_eq!(compute(Alu::MultiplyWide, of("s32"), [0xffff_ffff, 5, 0]), (-5i64).cast_unsigned());
        assert_eq!(compute(Alu::MultiplyAddWide, of("s32"), [0xffff_ffff, 5, 7]), 2);
        assert_eq!(compute(Alu::MultiplyWide, of("s16"), [0xffff, 2, 0]), 0xffff_fffe);
        assert_eq!(compute(Alu::ShiftRight, of("s32"), [0x8000_0000, 40, 0]), 0xffff_ffff);
        assert_eq!(u32s(Alu::ShiftRight, 0x8000_0000, 31), 1);
        assert_eq!(compute(Alu::ShiftLeft, of("b32"), [1, 32, 0]), 0);
        // The upper word, 0x89abcdef, takes the highest bits of the lower one in; amounts count modulo 32.
        for (amount, wanted) in [(0, 0x89ab_cdef), (4, 0x9abc_def7), (36, 0x9abc_def7)] {
            assert_eq!(compute(Alu::FunnelLeft, of("b32"), [0x7654_3210, 0x89ab_cdef, amount]), wanted);
        }
        assert_eq!(compute(Alu::Divide, of("s32"), [0xffff_fff9, 2, 0]), 0xffff_fffd);
        assert_eq!(compute(Alu::Minimum, of("s32"), [0xffff_ffff, 1, 0]), 0xffff_ffff);
        assert_eq!(compute(Alu::Minimum, of("u32"), [0xffff_ffff, 1, 0]), 1);
    }

    #[test]
    fn conversions_extend_cut_round_and_saturate() {
        let cvt = |to, from, round, bits| {
            let (to, from) = (of(to), of(from));
            convert(Conversion { to, from, how: Rounded { round, flush: false } }, bits)
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
    fn comparisons_know_signs() {
        assert!(compare(Comparison::Less, of("s32"), false, [0xffff_ffff, 0]));
        assert!(!compare(Comparison::Less, of("u32"), false, [0xffff_ffff, 0]));
        assert!(compare(Comparison::GreaterOrEqual, of("u32"), false, [7, 7]));
        assert!(compare(Comparison::Less, of("f32"), false, [0xbf80_0000, 0]));
    }

    #[test]
    fn zeros_are_equal_nan_is_unordered_and_subnormals_are_flushed() {
        for (a, b, flush, equal) in [
            (0x8000_0000, 0, false, true),
            (0x7fc0_0000, 0x7fc0_0000, false, false),
            (1, 0, false, false),
            (1, 0x8000_0001, true, true),
        ] {
            assert_eq!(compare(Comparison::Equal, of("f32"), flush, [a, b]), equal, "{a:#x} {b:#x}");
        }
        assert!(!compare(Comparison::NotEqual, of("f32"), false, [0x7fc0_0000, 0]));
    }
}
