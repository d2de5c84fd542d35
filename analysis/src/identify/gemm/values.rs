//! Values for inputs.

use mxprobe_api::{Format, Random};

/// Negates a value; returns it unchanged if its format has no sign. Integers wrap.
pub(super) fn negated(format: Format, bits: u64) -> u64 {
    if format.is_integer() {
        return bits.wrapping_neg() & format.mask();
    }
    format.negative_zero().map_or(bits, |sign| bits ^ sign)
}

/// Draws a value from 1/4 to 4 in magnitude with every fraction bit random or, half as often, with at most 8 of them,
/// so that sums of products are exact more often. For an integer format, draws any integer.
pub(super) fn value(format: Format, random: &mut Random) -> u64 {
    if random.below(3) == 0 {
        return random.moderate(format);
    }
    random.dense(format)
}

/// Multiplies a value by a power of two, limited to the format's range. Returns integers unchanged.
pub(super) fn scaled(format: Format, bits: u64, exponent: i32) -> u64 {
    if format.is_integer() {
        return bits;
    }
    let (low, high) = format.as_float().map_or((0, 0), |float| float.exponents());
    let value = format.to_f64(bits);
    let exponent = exponent.clamp((low + 4).min(0), (high - 4).max(0));
    format.from_f64(value * f64::from(exponent).exp2())
}
