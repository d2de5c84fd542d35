//! Parses numbers as people write them into the bits of a format.

use dashu_int::{UBig, ops::BitTest};
use mxprobe_api::{Decoded, Format, Overflow, Rounding, Subnormals};

/// The most digits of a decimal, and the largest magnitude of an exponent.
const MOST: usize = 4000;

/// The bits of a value that are kept before it is rounded; one more bit below represents all the rest.
const KEPT_BITS: usize = 126;

/// The bits of a number, and whether it was rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal {
    /// The bits.
    pub bits: u64,
    /// Whether the format cannot represent the number that was written.
    pub rounded: bool,
}

/// Parses bits (`0x3f80`, full width) or a value: a decimal (`1.5`, `-2e-3`), a power of two (`2^-24`), their product
/// (`1.5*2^-3`), a quotient (`2/3`), `inf`, `nan`. A value that the format cannot represent is rounded to nearest even,
/// once.
///
/// # Errors
/// If the text is neither, or out of range: an integer format accepts integers in its range, a format without infinity
/// nothing above its largest value.
pub fn read(format: Format, text: &str) -> Result<Literal, String> {
    let exact = |bits| Ok(Literal { bits, rounded: false });
    let lower = text.trim().to_ascii_lowercase();
    let (negative, body) = match lower.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, lower.strip_prefix('+').unwrap_or(&lower)),
    };
    let lacks = || format!("`{text}` is not a value of {format}");
    match body {
        "nan" => return format.nan().map_or_else(|| Err(lacks()), |nan| exact(nan | sign(format, negative))),
        "inf" | "infinity" => return format.infinity(negative).map_or_else(|| Err(lacks()), exact),
        _ if body == lower && body.starts_with("0x") => {
            return format.parse_hex(text).map_err(|error| error.to_string()).and_then(exact);
        }
        _ => {}
    }
    let Some(value) = Value::parse(body) else {
        return Err(match format.parse_hex(text) {
            Err(error) if body.len() <= 100 => format!("{error}; a value is written as 1.5, 2^-24, inf or nan"),
            _ => format!("`{text}` is not a number"),
        });
    };
    let (magnitude, exponent) = value.to_bits();
    if magnitude == 0 {
        let zero = if negative && !format.is_integer() { format.negative_zero() } else { Some(0) };
        let is_zero = |bits: &u64| matches!(format.decode(*bits), Decoded::Zero { .. });
        return zero.filter(is_zero).map_or_else(|| Err(lacks()), exact);
    }
    let found =
        format.encode(negative, magnitude, exponent, Rounding::NearestEven, Overflow::Infinity, Subnormals::Keep);
    let (least, most) = (format.to_f64(format.largest(true)), format.to_f64(format.largest(false)));
    if format.is_integer() && found.inexact && !found.overflow {
        return Err(format!("`{text}` is not an integer, and {format} has only integers"));
    }
    let is_unsigned = negative && format.as_float().is_some_and(|float| !float.is_signed());
    if is_unsigned || (found.overflow && format.infinity(negative).is_none()) {
        let least = if format.is_integer() || !is_unsigned { least } else { 0.0 };
        return Err(format!("`{text}` is out of range: {format} goes from {least} to {most}"));
    }
    Ok(Literal { bits: found.bits, rounded: found.inexact })
}

/// Parses a value as `±magnitude · 2^exponent`, with the lowest bit set if anything below it is cut off; `None` for
/// bits and for anything that is not a finite number.
pub fn exact(text: &str) -> Option<(bool, u128, i32)> {
    let lower = text.trim().to_ascii_lowercase();
    let (negative, body) = match lower.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, lower.strip_prefix('+').unwrap_or(&lower)),
    };
    let (magnitude, exponent) = Value::parse(body)?.to_bits();
    Some((negative, magnitude, exponent))
}

/// The sign bit of a NaN, if the format has one.
fn sign(format: Format, negative: bool) -> u64 {
    let has_sign = negative && format.negative_zero().is_some();
    if has_sign { format.negative_zero().unwrap_or(0) } else { 0 }
}

/// `digits / divisor · 10^ten · 2^two`.
struct Value {
    digits: UBig,
    divisor: UBig,
    ten: i32,
    two: i32,
}

impl Value {
    fn parse(text: &str) -> Option<Self> {
        let (decimal, power) = match text.split_once('*') {
            Some((decimal, power)) => (decimal.trim(), Some(power.trim())),
            None if text.starts_with("2^") => ("1", Some(text)),
            None => (text, None),
        };
        let (decimal, divisor) = match decimal.split_once('/') {
            Some((decimal, divisor)) => (decimal.trim(), divisor.trim()),
            None => (decimal, "1"),
        };
        if divisor.is_empty() || divisor.len() > MOST || !divisor.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let divisor = UBig::from_str_radix(divisor, 10).ok().filter(|divisor| *divisor != UBig::ZERO)?;
        let two = power.map_or(Some(0), |power| exponent(power.strip_prefix("2^")?))?;
        let (significand, ten) = match decimal.split_once('e') {
            Some((significand, ten)) => (significand, exponent(ten)?),
            None => (decimal, 0),
        };
        let (whole, fraction) = significand.split_once('.').unwrap_or((significand, ""));
        let all = [whole, fraction].concat();
        if all.is_empty() || all.len() > MOST || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = UBig::from_str_radix(&all, 10).ok()?;
        Some(Self { digits, divisor, ten: ten - i32::try_from(fraction.len()).ok()?, two })
    }

    /// Converts the value to an integer times a power of two; the lowest bit is set if anything below it is cut off.
    fn to_bits(&self) -> (u128, i32) {
        let power = UBig::from(10u8).pow(self.ten.unsigned_abs() as usize);
        let (mut number, mut exponent, mut lost) = (self.digits.clone(), self.two, false);
        let mut divisor = self.divisor.clone();
        if self.ten >= 0 {
            number *= power;
        } else {
            divisor *= power;
        }
        if divisor != UBig::ONE {
            // Gives the quotient as many bits as are kept.
            let shift = (KEPT_BITS + 1 + divisor.bit_len()).saturating_sub(number.bit_len());
            number <<= shift;
            let (quotient, rest) = (&number / &divisor, &number % &divisor);
            (number, lost) = (quotient, rest != UBig::ZERO);
            exponent -= i32::try_from(shift).unwrap_or(i32::MAX);
        }
        let below = number.bit_len().saturating_sub(KEPT_BITS);
        if below > 0 {
            let kept = &number >> below;
            lost |= (&kept << below) != number;
            number = kept;
            exponent += i32::try_from(below).unwrap_or(i32::MAX);
        }
        // One bit below those that are kept records the rest, so that rounding does not mistake it for a tie.
        let magnitude = u128::try_from(&number).unwrap_or(u128::MAX) << 1 | u128::from(lost);
        (magnitude, exponent - 1)
    }
}

/// Parses an exponent within limits.
fn exponent(text: &str) -> Option<i32> {
    let found: i32 = text.parse().ok()?;
    (found.unsigned_abs() as usize <= MOST).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(name: &str) -> Format {
        Format::named(name).expect(name)
    }

    #[test]
    fn values_are_read_as_people_write_them() {
        for (name, text, bits) in [
            ("f16", "1.0", 0x3c00),
            ("f16", "1", 0x3c00),
            ("f16", "+1", 0x3c00),
            ("f16", "-2^-24", 0x8001),
            ("f16", "1.5*2^-3", 0x3200),
            ("f16", "-0", 0x8000),
            ("f16", "0", 0),
            ("f16", "inf", 0x7c00),
            ("f16", "-Inf", 0xfc00),
            ("f16", "nan", 0x7e00),
            ("f16", "-nan", 0xfe00),
            ("f16", "0x3c01", 0x3c01),
            ("f32", "2/3", 0x3f2a_aaab),
            ("f32", "-1/4", 0xbe80_0000),
            ("f16", "6.5e4", 0x7bef),
            ("e4m3", "448", 0x7e),
            ("e4m3", "nan", 0x7f),
            ("e4m3fnuz", "nan", 0x80),
            ("s8", "-128", 0x80),
            ("s8", "12e1", 120),
            ("u8", "255", 0xff),
            ("s32", "-1", 0xffff_ffff),
            ("ue8m0", "2^-3", 124),
            ("tf32", "1", 0x3f80_0000),
            ("f64", "0.1", 0x3fb9_9999_9999_999a),
        ] {
            assert_eq!(read(format(name), text).map(|found| found.bits), Ok(bits), "{name} {text}");
        }
    }

    #[test]
    fn what_is_not_exact_is_rounded_once_to_nearest_even_and_told() {
        for (name, text, bits, rounded) in [
            ("f16", "0.1", 0x2e66, true),
            ("f16", "2049", 0x6800, true),
            ("f16", "2051", 0x6802, true),
            ("f16", "2050", 0x6801, false),
            // Above a tie by less than an f64 can represent: rounding to f64 first would give the even neighbour.
            ("f16", "2049.00000000000000000000000000000000000000000000001", 0x6801, true),
            ("f16", "65520", 0x7c00, true),
            ("f16", "65519.99", 0x7bff, true),
            ("f16", "2^-25", 0, true),
            ("f16", "2^-4000", 0, true),
            ("f32", "1e-50", 0, true),
            ("bf16", "3.14159", 0x4049, true),
        ] {
            assert_eq!(read(format(name), text), Ok(Literal { bits, rounded }), "{name} {text}");
        }
    }

    #[test]
    fn f32_and_f64_are_read_as_by_the_standard_library() {
        for text in
            ["0.1", "3.4028235e38", "1.17549435e-38", "1e-45", "7.0064923216240854e-46", "1e39", "123456789.123"]
        {
            let found = read(format("f32"), text).expect(text).bits;
            assert_eq!(found, u64::from(text.parse::<f32>().expect(text).to_bits()), "{text}");
            let found = read(format("f64"), text).expect(text).bits;
            assert_eq!(found, text.parse::<f64>().expect(text).to_bits(), "{text}");
        }
    }

    #[test]
    fn every_value_of_a_small_format_is_read_back() {
        for format in Format::ALL.into_iter().filter(|format| format.bits() <= 8) {
            for bits in 0..=format.mask() {
                let value = format.to_f64(bits);
                let text = format!("{value:.160}"); // every digit
                let Ok(found) = read(format, &text) else { panic!("{format} {bits:#x} {text}") };
                // Not the bits: the first bit of ue4m3 has no meaning.
                let back = format.to_f64(found.bits);
                let same = back.to_bits() == value.to_bits() || back.is_nan() && value.is_nan();
                assert!(same && !found.rounded, "{format} {bits:#x} {text}: {found:?}");
            }
        }
    }

    #[test]
    fn what_a_format_lacks_is_refused_with_the_value() {
        for (name, text, words) in [
            ("s8", "1.5", "`1.5` is not an integer"),
            ("s8", "128", "`128` is out of range: s8 goes from -128 to 127"),
            ("u8", "-1", "`-1` is out of range: u8 goes from 0 to 255"),
            ("s8", "nan", "`nan` is not a value of s8"),
            ("e4m3", "inf", "`inf` is not a value of e4m3"),
            ("e4m3", "500", "`500` is out of range: e4m3 goes from -448 to 448"),
            ("e2m1", "nan", "`nan` is not a value of e2m1"),
            ("e4m3fnuz", "-0", "`-0` is not a value of e4m3fnuz"),
            ("ue8m0", "0", "`0` is not a value of ue8m0"),
            ("ue8m0", "-1", "`-1` is out of range"),
            ("f16", "one", "`one`"),
            ("f16", "1..0", "`1..0`"),
            ("f16", "2^", "`2^`"),
            ("f16", "3^2", "`3^2`"),
            ("f16", "1e999999999999", "`1e999999999999`"),
            ("f16", "", "``"),
            ("f16", "0x3c", "`0x3c`"),
            ("f16", "-0x3c00", "`-0x3c00`"),
        ] {
            let error = read(format(name), text).expect_err(text);
            assert!(error.contains(words), "{name} {text}: {error}");
        }
    }
}
