//! Conversion between bits and values that preserves the payload of a NaN, and rounding of values.

use mxprobe_api::{Decoded, Format, Overflow, Rounding, Specials, Subnormals};

/// Fraction bits of f64, and its fraction.
const F64_FRACTION_BITS: u32 = 52;
const F64_FRACTION: u64 = (1 << F64_FRACTION_BITS) - 1;

/// The value of bits. A NaN keeps its sign and, in a format with IEEE 754's NaNs, its fraction, as the upper bits of
/// f64's.
#[must_use]
pub fn value(format: Format, bits: u64) -> f64 {
    let plain = format.to_f64(bits);
    if !plain.is_nan() {
        return plain;
    }
    let Some((sign_bit, fraction_bits)) = fields(format) else { return plain };
    let fraction = bits & ((1 << fraction_bits) - 1);
    let sign = bits >> sign_bit & 1;
    f64::from_bits(sign << 63 | 0x7ff << F64_FRACTION_BITS | fraction << (F64_FRACTION_BITS - fraction_bits))
}

/// The bits of a NaN, the inverse of [`value`]. Returns the format's own NaN if the upper bits of the fraction are
/// zero, or the format does not have IEEE 754's NaNs; the largest value of a floating format without NaN (PTX ISA,
/// `cvt`: e2m1, e2m3 and e3m2); 0 for an integer format.
#[must_use]
pub fn nan_bits(format: Format, nan: f64) -> u64 {
    let without = if format.is_integer() { 0 } else { format.largest(false) };
    let own = format.nan().unwrap_or(without);
    let Some((sign_bit, fraction_bits)) = fields(format) else { return own };
    let bits = nan.to_bits();
    let fraction = (bits & F64_FRACTION) >> (F64_FRACTION_BITS - fraction_bits);
    if fraction == 0 || bits == f64::NAN.to_bits() {
        return own | (bits >> 63) << sign_bit;
    }
    let exponent = ((1u64 << (sign_bit - fraction_bits)) - 1) << fraction_bits;
    (bits >> 63) << sign_bit | exponent | fraction
}

/// The bits of a value rounded into a format. Beyond the format's range they are its infinity, as IEEE 754 rounds, or
/// its largest value if it has no infinity, like PTX's `cvt` with `.satfinite`.
#[must_use]
pub fn round(value: f64, format: Format, rounding: Rounding) -> u64 {
    match Format::F64.decode(value.to_bits()) {
        Decoded::Finite { negative, significand, exponent } => {
            let overflow = if format.infinity(false).is_some() { Overflow::Ieee } else { Overflow::Saturate };
            let lowest = exponent - F64_FRACTION_BITS.cast_signed();
            format.encode(negative, u128::from(significand), lowest, rounding, overflow, Subnormals::Keep).bits
        }
        Decoded::Nan { .. } => nan_bits(format, value),
        Decoded::Infinity { negative } => beyond(format, negative),
        Decoded::Zero { .. } => format.from_f64(value),
    }
}

/// The bits for an infinity. FNUZ formats return their NaN, other formats without an infinity their largest value.
fn beyond(format: Format, negative: bool) -> u64 {
    let is_fnuz = format.as_float().is_some_and(|float| float.specials == Specials::NegativeZeroNan);
    let nan = format.nan().filter(|_| is_fnuz);
    format.infinity(negative).or(nan).unwrap_or_else(|| format.largest(negative))
}

/// The exponent of the leading bit of a value; 0 for zero, infinities and NaN.
#[must_use]
pub fn exponent(value: f64) -> i32 {
    match Format::F64.decode(value.to_bits()) {
        Decoded::Finite { significand, exponent, .. } => {
            exponent - F64_FRACTION_BITS.cast_signed() + significand.ilog2().cast_signed()
        }
        _ => 0,
    }
}

/// The position of the sign and the length of the fraction, in a format with IEEE 754's NaNs; bits that no unit reads
/// count as fraction, since they are stored.
fn fields(format: Format) -> Option<(u32, u32)> {
    let float = format.as_float().filter(|float| float.specials == Specials::Ieee)?;
    Some((format.bits() - 1, float.fraction_bits + float.unread_bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_comes_back_with_its_sign_and_payload() {
        for (format, nans) in [
            (Format::F16, [0x7c01u64, 0x7e00, 0xfe2a, 0xfdff]),
            (Format::BF16, [0x7f81, 0x7fc0, 0xffc1, 0xff85]),
            (Format::F32, [0x7f80_0001, 0x7fc0_0000, 0xffc1_2345, 0x7fbf_ffff]),
            (Format::F64, [0x7ff0_0000_0000_0001, 0x7ff8_0000_0000_0001, 0xfff8_0000_0000_0000, 0x7fff_ffff_ffff_ffff]),
            (Format::E5M2, [0x7d, 0x7e, 0xff, 0xfd]),
            (Format::TF32, [0x7f80_2000, 0x7fc0_0000, 0xffc0_2000, 0x7fbf_e000]),
        ] {
            for nan in nans {
                assert!(value(format, nan).is_nan());
                assert_eq!(format.hex(nan_bits(format, value(format, nan))), format.hex(nan), "{format}");
            }
        }
        assert_eq!(nan_bits(Format::E4M3, value(Format::E4M3, 0x7f)), 0x7f);
    }

    #[test]
    fn every_other_value_is_the_formats() {
        for bits in 0..=u64::from(u16::MAX) {
            let there = value(Format::F16, bits);
            assert!(there.is_nan() || there.to_bits() == Format::F16.to_f64(bits).to_bits());
        }
    }
}
