//! Values that inputs are made of.

use mxprobe_api::{Format, Random};

/// The same value with the other sign; itself in a format without signs.
pub(super) fn negated(format: Format, bits: u64) -> u64 {
    if format.is_integer() {
        return bits.wrapping_neg() & format.mask();
    }
    format.negative_zero().map_or(bits, |sign| bits ^ sign)
}

/// A value from 1/4 to 4 in magnitude with every fraction bit drawn, or half as often with 8 of them at the most, so that sums of
/// products are exact more often; any integer of an integer format.
pub(super) fn value(format: Format, random: &mut Random) -> u64 {
    if random.below(3) == 0 {
        return random.moderate(format);
    }
    random.dense(format)
}

/// A value times a power of two, as far as the format's range goes; integers as they are.
pub(super) fn scaled(format: Format, bits: u64, exponent: i32) -> u64 {
    if format.is_integer() {
        return bits;
    }
    let (low, high) = format.as_float().map_or((0, 0), |float| float.exponents());
    let value = format.to_f64(bits);
    let exponent = exponent.clamp((low + 4).min(0), (high - 4).max(0));
    format.from_f64(value * f64::from(exponent).exp2())
}
