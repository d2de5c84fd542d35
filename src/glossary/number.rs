//! A number in a format: its fields, its exact value, and its distance from the requested value.

use dashu_int::UBig;
use mxprobe_api::{Decoded, Format};

use super::{Entry, Kind};
use crate::literal;

/// Explains a number, written as bits or as a value, in a format.
///
/// # Errors
/// If the text is neither bits nor a value, or the format has no value near it.
///
/// ```
/// let found = mxprobe::glossary::number("-192", mxprobe_api::Format::F32).unwrap();
/// let answer = |name: &str| found.answers.iter().find(|(known, _)| known == name).unwrap().1.clone();
/// assert_eq!(answer("bits"), "0xc3400000 = 1 10000110 10000000000000000000000");
/// assert_eq!(answer("value"), "-1.5 * 2^7 = -192");
/// ```
pub fn number(text: &str, format: Format) -> Result<Entry, String> {
    let found = literal::read(format, text)?;
    let bits = found.bits;
    let rounded = if found.rounded { "rounded to nearest even" } else { "exact" };
    let mut answers = vec![("bits".to_owned(), fields(format, bits))];
    let mut add = |name: &str, words: String| answers.push((name.to_owned(), words));
    if let Some(float) = format.as_float() {
        if float.is_signed() {
            let negative = bits >> (format.bits() - 1) & 1 == 1;
            add("sign", if negative { "1: negative" } else { "0: positive" }.to_owned());
        }
        let field = bits >> format.fraction_bits() & ((1 << float.exponent_bits) - 1);
        let exponent = match format.decode(bits) {
            Decoded::Finite { exponent, significand, .. } if significand >> float.fraction_bits == 0 => {
                format!("{field}: subnormal, with the exponent {exponent} of the smallest normal number")
            }
            Decoded::Finite { exponent, .. } => format!("{field}, less the bias {}: {exponent}", float.bias),
            Decoded::Zero { .. } => format!("{field}: zero"),
            Decoded::Infinity { .. } => format!("{field}: infinity"),
            Decoded::Nan { .. } => format!("{field}: NaN"),
        };
        add("exponent field", exponent);
    }
    add("value", value(format, bits));
    if found.rounded
        && let Some((negative, magnitude, exponent)) = literal::exact(text)
    {
        add("rounded by", error(format, bits, negative, magnitude, exponent));
    }
    Ok(Entry {
        name: format!("{} in {format}", text.trim()),
        kind: Kind::Number,
        about: format!("`{}` is {} in {format}, {rounded}.", text.trim(), format.hex(bits)),
        how: format!(
            "The fields of {format} from the highest bit down; the value is exact. `mxprobe explain {format}` says what \
             the format holds."
        ),
        answers,
        source: "IEEE 754-2019, 3.4, and the OCP 8-bit Floating Point Specification for formats of 8 bits".to_owned(),
    })
}

/// The fields in the form `0xc3400000 = 1 10000110 10000000000000000000000`: sign, exponent and fraction.
fn fields(format: Format, bits: u64) -> String {
    let hex = format.hex(bits);
    let Some(float) = format.as_float() else { return hex };
    let fraction = format.fraction_bits() as usize;
    let exponent = float.exponent_bits as usize;
    let text = format!("{bits:0width$b}", width = format.bits() as usize);
    let (rest, of_fraction) = text.split_at(text.len() - fraction);
    let (sign, of_exponent) = rest.split_at(rest.len() - exponent);
    let parts = [sign, of_exponent, of_fraction].into_iter().filter(|part| !part.is_empty());
    format!("{hex} = {}", parts.collect::<Vec<_>>().join(" "))
}

/// The value in the form `-1.5 * 2^7 = -192`.
fn value(format: Format, bits: u64) -> String {
    let (negative, significand, exponent) = match format.decode(bits) {
        Decoded::Finite { negative, significand, exponent } => (negative, significand, exponent),
        Decoded::Zero { negative } => return if negative { "-0" } else { "0" }.to_owned(),
        Decoded::Infinity { negative } => return if negative { "-Inf" } else { "Inf" }.to_owned(),
        Decoded::Nan { .. } => return "NaN".to_owned(),
    };
    let sign = if negative { "-" } else { "" };
    let lowest = exponent - format.fraction_bits().cast_signed();
    let exact = decimal(significand, lowest);
    if format.is_integer() {
        return format!("{sign}{exact}");
    }
    let scaled = decimal(significand, -format.fraction_bits().cast_signed());
    format!("{sign}{scaled} * 2^{exponent} = {sign}{exact}")
}

/// `magnitude · 2^exponent` with all digits.
fn decimal(magnitude: u64, exponent: i32) -> String {
    let odd = magnitude.trailing_zeros();
    let (magnitude, exponent) = (UBig::from(magnitude >> odd), exponent + odd.cast_signed());
    if exponent >= 0 {
        return (magnitude << exponent.unsigned_abs() as usize).to_string();
    }
    let places = exponent.unsigned_abs() as usize;
    let digits = (magnitude * UBig::from(5u8).pow(places)).to_string();
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    format!("{whole}.{fraction}")
}

/// The distance of the number from the requested value, in units in its last place.
fn error(format: Format, bits: u64, negative: bool, magnitude: u128, exponent: i32) -> String {
    let Some(float) = format.as_float() else { return "a part of a unit".to_owned() };
    let (unit, significand) = match format.decode(bits) {
        Decoded::Finite { significand, exponent, .. } => (exponent - format.fraction_bits().cast_signed(), significand),
        Decoded::Zero { .. } => (float.min_exponent() - format.fraction_bits().cast_signed(), 0),
        _ => return "overflow".to_owned(),
    };
    // The bits of the value below the unit are a fraction of it.
    let down = unit - exponent;
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let (asked, found) = match u32::try_from(down) {
        Ok(down) if down < 128 => {
            let whole = magnitude >> down;
            let rest = (magnitude - (whole << down)) as f64 / 2f64.powi(down.cast_signed());
            (rest + (whole as i128 - i128::from(significand)) as f64, 0.0)
        }
        _ => (magnitude as f64 * 2f64.powi(-down), significand as f64),
    };
    let off = asked - found;
    let direction = match (off > 0.0, negative) {
        (true, false) | (false, true) => "below",
        _ => "above",
    };
    format!("{:.3} ulp: the number is {direction} the value that was asked for", off.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, format: Format, name: &str) -> String {
        let found = number(text, format).unwrap();
        let answer = found.answers.iter().find(|(known, _)| known == name);
        answer.unwrap_or_else(|| panic!("{text}: no {name}")).1.clone()
    }

    #[test]
    fn numbers_have_the_fields_that_nvidia_s_paper_prints() {
        // Precision and Performance, 2.1: -192 is -2^7 times 1.5, with exponent fields 134 and 1030.
        assert_eq!(answer("-192", Format::F32, "exponent field"), "134, less the bias 127: 7");
        assert_eq!(answer("-192", Format::F64, "exponent field"), "1030, less the bias 1023: 7");
        assert_eq!(answer("2/3", Format::F32, "bits"), "0x3f2aaaab = 0 01111110 01010101010101010101011");
        assert_eq!(
            answer("2/3", Format::F32, "rounded by"),
            "0.333 ulp: the number is above the value that was asked for"
        );
        assert_eq!(
            answer("-2/3", Format::F32, "rounded by"),
            "0.333 ulp: the number is below the value that was asked for"
        );
        assert_eq!(
            answer("0x3d653510", Format::F32, "value"),
            "1.7906818389892578125 * 2^-5 = 0.055958807468414306640625"
        );
    }

    #[test]
    fn subnormals_and_specials_are_told_from_normal_numbers() {
        assert_eq!(answer("0x0001", Format::F16, "value"), "0.0009765625 * 2^-14 = 0.000000059604644775390625");
        assert!(answer("0x0001", Format::F16, "exponent field").starts_with("0: subnormal"));
        assert_eq!(answer("inf", Format::F16, "exponent field"), "31: infinity");
        assert_eq!(answer("448", Format::E4M3, "value"), "1.75 * 2^8 = 448");
        assert_eq!(answer("-0", Format::F64, "value"), "-0");
        assert_eq!(answer("-7", Format::named("s8").unwrap(), "value"), "-7");
    }

    #[test]
    fn what_is_no_number_of_the_format_is_refused() {
        assert!(number("half", Format::F32).unwrap_err().contains("`half`"));
        assert!(number("500", Format::E4M3).unwrap_err().contains("out of range"));
        assert!(number("1/0", Format::F32).unwrap_err().contains("`1/0`"));
    }
}
