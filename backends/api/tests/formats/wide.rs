//! f64, f32, tf32, f16 and bf16 against `rustc_apfloat`, `half`, the language's own conversions and the naive formulas.

use mxprobe_api::{Decoded, Encoded, FloatEncoding, Format, Overflow, Random, Rounding, Subnormals};
use rustc_apfloat::{Float, FloatConvert, Round, Status, ieee};

use super::naive::{OVERFLOWS, ROUNDINGS, SUBNORMALS, WIDE, exact, power_of_two};

/// tf32 without the 13 bits that are not read.
struct Tf32S;

impl ieee::Semantics for Tf32S {
    const BITS: usize = 19;
    const EXP_BITS: usize = 8;
}

type Tf32 = ieee::IeeeFloat<Tf32S>;

/// Rounds a binary128 value into a format: returns the bits without unread ones, and the status.
type Convert = fn(ieee::Quad, Round) -> (u64, Status);

fn convert<T: Float>(quad: ieee::Quad, round: Round) -> (u64, Status)
where
    ieee::Quad: FloatConvert<T>,
{
    let mut loses_info = false;
    let converted = quad.convert_r(round, &mut loses_info);
    assert_eq!(loses_info, converted.status.contains(Status::INEXACT));
    (u64::try_from(converted.value.to_bits()).expect("at most 64 bits"), converted.status)
}

/// Format, bits that are not read, the oracle.
const CONVERSIONS: [(Format, u32, Convert); 6] = [
    (Format::F64, 0, convert::<ieee::Double>),
    (Format::F32, 0, convert::<ieee::Single>),
    (Format::TF32, 13, convert::<Tf32>),
    (Format::XF32, 13, convert::<Tf32>),
    (Format::F16, 0, convert::<ieee::Half>),
    (Format::BF16, 0, convert::<ieee::BFloat>),
];

/// A normal binary128 number: sign, unbiased exponent, 113-bit significand.
fn quad(negative: bool, exponent: i32, significand: u128) -> ieee::Quad {
    assert_eq!(significand >> 112, 1);
    let field = u128::try_from(exponent + 16383).expect("in the range of binary128");
    ieee::Quad::from_bits(u128::from(negative) << 127 | field << 112 | significand & ((1 << 112) - 1))
}

/// Draws a 113-bit significand that lies on, next to or between the values and midpoints of a format.
fn significand(random: &mut Random, fraction_bits: u32) -> u128 {
    let full = (u128::from(random.bits()) << 64 | u128::from(random.bits())) >> 16;
    let one = 1u128 << 112;
    let full = one | full & (one - 1);
    // The kept bits, then a half or nothing, then nothing, plus one lowest bit, or minus one lowest bit.
    let cut = 112 - fraction_bits + u32::try_from(random.below(3)).expect("small");
    let kept = match random.below(4) {
        0 => one,
        1 => (one << 1) - (1 << cut.min(112)),
        _ => full >> cut << cut,
    };
    let half = if random.below(2) == 0 { 1u128 << (cut - 1) } else { 0 };
    let near = match random.below(4) {
        0 => kept + half,
        1 => kept + half + 1,
        2 => (kept + half).saturating_sub(1),
        _ => full,
    };
    // Staying in [1, 2).
    near.clamp(one, (one << 1) - 1)
}

fn exponents(format: Format, random: &mut Random) -> i32 {
    let float = format.as_float().expect("floating");
    let fraction_bits = float.fraction_bits.cast_signed();
    match random.below(4) {
        0 => float.min_exponent() - fraction_bits + random.between(-3, fraction_bits + 2),
        1 => float.max_exponent() + random.between(-2, 1),
        2 => float.min_exponent() + random.between(-2, 1),
        _ => random.between(float.min_exponent(), float.max_exponent()),
    }
}

#[test]
fn rounding_agrees_with_apfloat() {
    for (format, unread_bits, convert) in CONVERSIONS {
        let mut random = Random(1);
        let fraction_bits = format.fraction_bits();
        for _ in 0..100_000 {
            let significand = significand(&mut random, fraction_bits);
            let exponent = exponents(format, &mut random);
            let negative = random.bits() & 1 == 1;
            let value = quad(negative, exponent, significand);
            for (rounding, round) in [
                (Rounding::NearestEven, Round::NearestTiesToEven),
                (Rounding::TowardZero, Round::TowardZero),
                (Rounding::Down, Round::TowardNegative),
                (Rounding::Up, Round::TowardPositive),
                // Toward zero, and the lowest bit set if that lost something.
                (Rounding::ToOdd, Round::TowardZero),
            ] {
                let (mut bits, status) = convert(value, round);
                let inexact = status.contains(Status::INEXACT);
                if rounding == Rounding::ToOdd && inexact {
                    bits |= 1;
                }
                let given =
                    format.encode(negative, significand, exponent - 112, rounding, Overflow::Ieee, Subnormals::Keep);
                assert_eq!(
                    (given.bits, given.inexact),
                    (bits << unread_bits, inexact),
                    "{format} negative {negative} {significand:#x} · 2^({exponent} − 112) {rounding:?}"
                );
                // apfloat reports overflow if it returns infinity.
                if given.bits == format.infinity(negative).expect("IEEE") {
                    assert!(given.overflow && status.contains(Status::OVERFLOW));
                }
            }
        }
    }
}

#[test]
fn rounding_agrees_with_the_naive_formulas_under_every_policy() {
    for spec in WIDE {
        let mut random = Random(2);
        for _ in 0..20_000 {
            // 52 fraction bits, so that the value is an f64.
            let bits = significand(&mut random, spec.format.fraction_bits()) >> 60;
            let exponent = exponents(spec.format, &mut random);
            let x = f64::from(u32::try_from(bits >> 26).expect("27 bits")) * power_of_two(exponent - 26)
                + f64::from(u32::try_from(bits & ((1 << 26) - 1)).expect("26 bits")) * power_of_two(exponent - 52);
            assert_eq!(exact(x), (bits, exponent - 52));
            let negative = random.bits() & 1 == 1;
            for rounding in ROUNDINGS {
                for overflow in OVERFLOWS {
                    for subnormals in SUBNORMALS {
                        let given = spec.format.encode(negative, bits, exponent - 52, rounding, overflow, subnormals);
                        let expected = spec.encode(negative, x, rounding, overflow, subnormals);
                        assert_eq!(
                            given, expected,
                            "{} negative {negative} {x:e} {rounding:?} {overflow:?} {subnormals:?}",
                            spec.format
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_8_bit_formats_agree_with_apfloat_to_nearest() {
    let mut random = Random(3);
    for (format, convert) in
        [(Format::E5M2, convert::<ieee::Float8E5M2> as Convert), (Format::E4M3, convert::<ieee::Float8E4M3FN>)]
    {
        for _ in 0..100_000 {
            let significand = significand(&mut random, format.fraction_bits());
            let exponent = exponents(format, &mut random);
            let negative = random.bits() & 1 == 1;
            let (bits, _) = convert(quad(negative, exponent, significand), Round::NearestTiesToEven);
            let given = format.encode(
                negative,
                significand,
                exponent - 112,
                Rounding::NearestEven,
                Overflow::Infinity,
                Subnormals::Keep,
            );
            assert_eq!(given.bits, bits, "{format} negative {negative} {significand:#x} · 2^({exponent} − 112)");
        }
    }
}

#[test]
fn every_f16_and_bf16_is_what_half_says() {
    for bits in 0..=u16::MAX {
        for (format, value) in
            [(Format::F16, half::f16::from_bits(bits).to_f64()), (Format::BF16, half::bf16::from_bits(bits).to_f64())]
        {
            let given = format.to_f64(u64::from(bits));
            if value.is_nan() {
                assert!(given.is_nan(), "{format} {bits:#06x}");
            } else {
                assert_eq!(given.to_bits(), value.to_bits(), "{format} {bits:#06x}");
                assert_eq!(format.from_f64(value), u64::from(bits), "{format} {bits:#06x}");
            }
        }
    }
}

/// Every 65537th f32 and its neighbours, and the surroundings of every f16 and bf16 midpoint.
fn f32_inputs() -> impl Iterator<Item = f32> {
    let spread = (0..u32::MAX - 65537).step_by(65537);
    // The f16 spacing is 2^13 in bits of f32, that of bf16 2^16; half of each is a tie.
    let ties = (0..u32::MAX - (1 << 16)).step_by((1 << 12) * 61);
    spread.chain(ties).flat_map(|bits| [bits.saturating_sub(1), bits, bits + 1]).map(f32::from_bits)
}

#[test]
fn f32_rounds_to_f16_and_bf16_as_half_does() {
    for value in f32_inputs().filter(|value| !value.is_nan()) {
        let bits = value.to_bits();
        let f16 = half::f16::from_f32(value).to_bits();
        assert_eq!(Format::F16.from_f64(f64::from(value)), u64::from(f16), "f16 of {bits:#010x} {value:e}");
        let bf16 = half::bf16::from_f32(value).to_bits();
        assert_eq!(Format::BF16.from_f64(f64::from(value)), u64::from(bf16), "bf16 of {bits:#010x} {value:e}");
        assert_eq!(Format::F32.from_f64(f64::from(value)), u64::from(bits), "{value:e}");
        assert_eq!(Format::F32.to_f64(u64::from(bits)).to_bits(), f64::from(value).to_bits(), "{bits:#010x}");
    }
}

#[test]
fn f64_rounds_to_f32_as_the_language_does() {
    let mut random = Random(4);
    for _ in 0..300_000 {
        let exponent = u64::try_from(1023 + random.between(-152, 129)).expect("positive");
        let mut bits = random.bits() & (1 << 63 | ((1 << 52) - 1)) | exponent << 52;
        if random.below(2) == 0 {
            // Near a tie.
            bits = (bits >> 29 << 29 | 1 << 28).wrapping_add(u64::try_from(random.below(3)).expect("small")) - 1;
        }
        let value = f64::from_bits(bits);
        #[expect(clippy::cast_possible_truncation)]
        let expected = (value as f32).to_bits();
        assert_eq!(Format::F32.from_f64(value), u64::from(expected), "{bits:#018x} {value:e}");
    }
}

#[test]
fn every_kind_of_f64_passes_through_unchanged() {
    let mut random = Random(5);
    let edges = [0, 1, 0x000f_ffff_ffff_ffff, 0x0010_0000_0000_0000, 0x7fef_ffff_ffff_ffff, 0x7ff0_0000_0000_0000];
    let all = edges.into_iter().flat_map(|bits| [bits, bits | 1 << 63]).chain((0..100_000).map(|_| random.bits()));
    for bits in all {
        let value = f64::from_bits(bits);
        if value.is_nan() {
            assert!(Format::F64.to_f64(bits).is_nan(), "{bits:#018x}");
        } else {
            assert_eq!(Format::F64.to_f64(bits).to_bits(), bits, "{value:e}");
            assert_eq!(Format::F64.from_f64(value), bits, "{value:e}");
        }
    }
}

#[test]
fn the_low_13_bits_of_tf32_are_neither_read_nor_written() {
    for format in [Format::TF32, Format::XF32] {
        for high in (0..1u64 << 19).step_by(7) {
            let bits = high << 13;
            for low in [1, 0x1000, 0x1fff] {
                assert_eq!(format.decode(bits | low), format.decode(bits), "{format} {bits:#010x}");
            }
            let value = format.to_f64(bits);
            if !value.is_nan() {
                // The same number as the f32 of the same bits.
                assert_eq!(value.to_bits(), Format::F32.to_f64(bits).to_bits(), "{format} {bits:#010x}");
                assert_eq!(format.from_f64(value), bits, "{format} {bits:#010x}");
            }
        }
        // A NaN whose payload lies only in the unread bits is an infinity.
        assert_eq!(format.decode(0x7f80_1fff), Decoded::Infinity { negative: false });
    }
}

#[test]
fn the_exponents_of_the_extreme_normal_values_are_those_of_the_specification() {
    let table = [
        (Format::F64, -1022, 1023),
        (Format::F32, -126, 127),
        (Format::TF32, -126, 127),
        (Format::XF32, -126, 127),
        (Format::BF16, -126, 127),
        (Format::F16, -14, 15),
    ];
    for (format, min, max) in table {
        let float = format.as_float().expect("floating");
        assert_eq!((float.min_exponent(), float.max_exponent()), (min, max), "{format}");
    }
}

#[test]
fn nan_keeps_its_sign_and_payload() {
    let table = [
        (Format::F64, 0xfff8_0000_0000_0001, true, 0x8_0000_0000_0001),
        (Format::F32, 0x7f80_0001, false, 1),
        (Format::F32, 0xffc1_2345, true, 0x41_2345),
        (Format::TF32, 0x7fc0_2fff, false, 0x201),
        (Format::F16, 0xfe01, true, 0x201),
        (Format::BF16, 0x7f81, false, 1),
        (Format::E5M2, 0xfd, true, 1),
    ];
    for (format, bits, negative, payload) in table {
        assert_eq!(format.decode(bits), Decoded::Nan { negative, payload }, "{format} {bits:#x}");
    }
    for (format, nan) in [
        (Format::F64, 0x7ff8_0000_0000_0000),
        (Format::F32, 0x7fc0_0000),
        (Format::TF32, 0x7fc0_0000),
        (Format::F16, 0x7e00),
        (Format::BF16, 0x7fc0),
    ] {
        assert_eq!(format.nan(), Some(nan), "{format}");
    }
}

/// A result may be tiny judged by the exact value, or by the value rounded with an unbounded exponent.
#[test]
fn tiny_before_rounding_and_tiny_after_rounding_differ_below_the_smallest_normal() {
    use Subnormals::{FlushAfterRounding, FlushBeforeRounding, FlushToPositiveZero, Keep};
    // f32, in units of 2^-156: 2^-126 is 2^30.
    let smallest_normal = 1u128 << 30;
    let table = [
        // 2^-126: not tiny.
        (smallest_normal, Keep, 0x0080_0000, false, false),
        (smallest_normal, FlushBeforeRounding, 0x0080_0000, false, false),
        (smallest_normal, FlushAfterRounding, 0x0080_0000, false, false),
        // 2^-126 − 2^-151: a tie that rounds to 2^-126 also with an unbounded exponent.
        (smallest_normal - 32, Keep, 0x0080_0000, true, false),
        (smallest_normal - 32, FlushBeforeRounding, 0x0000_0000, true, true),
        (smallest_normal - 32, FlushAfterRounding, 0x0080_0000, true, false),
        // 2^-126 − 2^-151 − 2^-156: just below that tie, so it rounds to 2^-126 − 2^-150.
        (smallest_normal - 33, Keep, 0x0080_0000, true, true),
        (smallest_normal - 33, FlushAfterRounding, 0x0000_0000, true, true),
        // 2^-126 − 2^-150: exact with an unbounded exponent, so tiny; as a subnormal a tie that rounds to 2^-126.
        (smallest_normal - 64, Keep, 0x0080_0000, true, true),
        (smallest_normal - 64, FlushBeforeRounding, 0x0000_0000, true, true),
        (smallest_normal - 64, FlushAfterRounding, 0x0000_0000, true, true),
        // 2^-126 − 2^-149, the largest subnormal: exact, and flushed all the same.
        (smallest_normal - 128, Keep, 0x007f_ffff, false, false),
        (smallest_normal - 128, FlushBeforeRounding, 0x0000_0000, true, true),
        (smallest_normal - 128, FlushAfterRounding, 0x0000_0000, true, true),
        // 2^-149 and half of it, a tie to +0.
        (128, Keep, 0x0000_0001, false, false),
        (64, Keep, 0x0000_0000, true, true),
        (65, Keep, 0x0000_0001, true, true),
    ];
    for (magnitude, subnormals, bits, inexact, underflow) in table {
        for (negative, sign) in [(false, 0), (true, 0x8000_0000)] {
            let encode = |subnormals| {
                Format::F32.encode(negative, magnitude, -156, Rounding::NearestEven, Overflow::Ieee, subnormals)
            };
            let expected = Encoded { bits: bits | sign, inexact, overflow: false, underflow };
            assert_eq!(encode(subnormals), expected, "{magnitude} · 2^-156 negative {negative} {subnormals:?}");
            if subnormals == FlushAfterRounding {
                // The same, except for the sign of a zero that was flushed.
                let bits = if bits == 0 { 0 } else { bits | sign };
                assert_eq!(encode(FlushToPositiveZero), Encoded { bits, ..expected }, "{magnitude} · 2^-156");
            }
        }
    }
}

#[test]
fn overflow_begins_half_a_unit_above_the_largest_value() {
    // The largest value and the tie above it; significands have one bit more than the format.
    let table = [
        (Format::F16, 0x7bffu64, 0x7c00u64, (1u128 << 12) - 1, 4),
        (Format::BF16, 0x7f7f, 0x7f80, (1 << 9) - 1, 119),
        (Format::TF32, 0x7f7f_e000, 0x7f80_0000, (1 << 12) - 1, 116),
        (Format::F32, 0x7f7f_ffff, 0x7f80_0000, (1 << 25) - 1, 103),
        (Format::F64, 0x7fef_ffff_ffff_ffff, 0x7ff0_0000_0000_0000, (1 << 54) - 1, 970),
    ];
    for (format, largest, infinity, tie, lsb) in table {
        for (negative, sign) in [(false, 0), (true, 1u64 << (format.bits() - 1))] {
            let encode = |magnitude, lsb, rounding, overflow| {
                format.encode(negative, magnitude, lsb, rounding, overflow, Subnormals::Keep)
            };
            let below = encode((tie << 40) - 1, lsb - 40, Rounding::NearestEven, Overflow::Ieee);
            assert_eq!((below.bits, below.inexact, below.overflow), (largest | sign, true, false), "{format}");
            for magnitude in [tie << 40, (tie << 40) + 1] {
                let above = encode(magnitude, lsb - 40, Rounding::NearestEven, Overflow::Ieee);
                assert_eq!((above.bits, above.inexact, above.overflow), (infinity | sign, true, true), "{format}");
                let away = if negative { Rounding::Down } else { Rounding::Up };
                let toward = if negative { Rounding::Up } else { Rounding::Down };
                assert_eq!(encode(magnitude, lsb - 40, away, Overflow::Ieee).bits, infinity | sign, "{format}");
                for rounding in [toward, Rounding::TowardZero, Rounding::ToOdd] {
                    // Cut to the largest value, which is odd: rounded within the range, so nothing overflows.
                    let given = encode(magnitude, lsb - 40, rounding, Overflow::Infinity);
                    assert_eq!((given.bits, given.overflow), (largest | sign, false), "{format} {rounding:?}");
                }
            }
            // Twice the largest power: above the range in every direction.
            for rounding in [Rounding::TowardZero, Rounding::ToOdd] {
                let ieee = encode(tie + 1, lsb, rounding, Overflow::Ieee);
                assert_eq!((ieee.bits, ieee.overflow), (largest | sign, true), "{format} {rounding:?}");
                let infinite = encode(tie + 1, lsb, rounding, Overflow::Infinity);
                assert_eq!((infinite.bits, infinite.overflow), (infinity | sign, true), "{format} {rounding:?}");
            }
            let saturated = encode(tie + 1, lsb, Rounding::NearestEven, Overflow::Saturate);
            assert_eq!((saturated.bits, saturated.overflow), (largest | sign, true), "{format}");
            let nan = encode(tie + 1, lsb, Rounding::NearestEven, Overflow::Nan);
            assert_eq!(nan.bits, format.nan().expect("IEEE") | sign, "{format}");
        }
    }
}

#[test]
fn truncation_is_encoding_toward_zero() {
    let mut random = Random(5);
    for format in Format::ALL {
        let (low, high) = format.as_float().map_or((-8, 40), FloatEncoding::exponents);
        for _ in 0..20_000 {
            let significand = random.bits() >> random.below(64) << random.below(3);
            let significand = if random.below(50) == 0 { 0 } else { significand };
            let leading = random.between(low - 4, high + 4);
            let lsb = leading - significand.checked_ilog2().unwrap_or(0).cast_signed();
            let negative = random.flip();
            let (rounding, overflow) = (Rounding::TowardZero, Overflow::Saturate);
            let encoded = format.encode(negative, significand.into(), lsb, rounding, overflow, Subnormals::Keep);
            let truncated = format.truncated(negative, significand, lsb);
            assert_eq!(truncated, encoded.bits, "{format} {negative} {significand:#x} · 2^{lsb}");
        }
    }
}
