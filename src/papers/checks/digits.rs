//! Decimal digits of exact sums of products and of numbers, and decimal arithmetic of a few digits.

use dashu_int::{IBig, UBig, ops::BitTest};
use mxprobe_api::{Decoded, Error, Format};
use serde::Deserialize;

use crate::papers::computed::Computed;
use crate::{glossary, literal};

/// An exact value: `units` times 2^`lowest`.
#[derive(Clone, Debug)]
pub(super) struct Value {
    units: IBig,
    lowest: i32,
}

fn up(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}

impl Value {
    fn add(self, other: Self) -> Self {
        let lowest = self.lowest.min(other.lowest);
        Self { units: (self.units << up(self.lowest - lowest)) + (other.units << up(other.lowest - lowest)), lowest }
    }

    fn multiply(self, other: &Self) -> Self {
        Self { units: self.units * &other.units, lowest: self.lowest + other.lowest }
    }

    /// The value with all digits.
    fn text(&self) -> String {
        let negative = self.units < IBig::ZERO;
        let magnitude = UBig::try_from(if negative { -&self.units } else { self.units.clone() }).unwrap_or_default();
        let sign = if negative { "-" } else { "" };
        if self.lowest >= 0 {
            return format!("{sign}{}", magnitude << up(self.lowest));
        }
        let places = up(-self.lowest);
        let digits = format!("{:0>width$}", (magnitude * UBig::from(5u8).pow(places)).to_string(), width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
    }
}

/// The exact value of a number.
fn value(format: Format, bits: u64) -> Option<Value> {
    match format.decode(bits) {
        Decoded::Zero { .. } => Some(Value { units: IBig::ZERO, lowest: 0 }),
        Decoded::Finite { negative, significand, exponent } => {
            let units = IBig::from(significand);
            let lowest = exponent - format.fraction_bits().cast_signed();
            Some(Value { units: if negative { -units } else { units }, lowest })
        }
        _ => None,
    }
}

/// A number with all digits.
pub(super) fn decimal(format: Format, bits: u64) -> String {
    value(format, bits).map_or_else(|| format.hex(bits), |value| value.text())
}

/// Whether a text has the leading digits of an exact decimal, truncated or rounded. A zero before the point may be
/// missing.
pub(super) fn are_those_of(printed: &str, exact: &str) -> bool {
    let printed = if printed.starts_with('.') { format!("0{printed}") } else { printed.to_owned() };
    let places = printed.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let (whole, fraction) = exact.split_once('.').unwrap_or((exact, ""));
    let fraction = format!("{fraction:0<places$}");
    let cut = if places == 0 { whole.to_owned() } else { format!("{whole}.{}", &fraction[..places]) };
    if cut == printed {
        return true;
    }
    let rounds_up = fraction[places..].starts_with(['5', '6', '7', '8', '9']);
    let number = |text: &str| text.replace('.', "").parse::<i128>().ok();
    match (number(&cut), number(&printed)) {
        (Some(cut), Some(printed)) => rounds_up && (cut.abs() + 1) == printed.abs() && (cut < 0) == (printed < 0),
        _ => false,
    }
}

/// The exact sum of products of numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExactSum {
    /// The format of the factors.
    format: String,
    /// The factors of each product.
    products: Vec<Vec<String>>,
    /// The sum's digits as printed, truncated or rounded.
    decimal: Option<String>,
    /// The sum in binary, in the form `1.011*2^3`.
    binary: Option<String>,
    /// The digits of an f32 and those that follow: `0x3D65350158`, truncated.
    hex: Option<String>,
}

impl ExactSum {
    pub(super) fn compute(&self) -> Result<Computed, Error> {
        let format = Format::named(&self.format)?;
        let mut sum = Value { units: IBig::ZERO, lowest: 0 };
        for factors in &self.products {
            let mut product = Value { units: IBig::ONE, lowest: 0 };
            for text in factors {
                let found = literal::read(format, text).map_err(Error::invalid)?;
                let exact = value(format, found.bits).filter(|_| !found.rounded);
                let none = || Error::invalid(format!("`{text}` is not a finite value of {format}"));
                product = product.multiply(&exact.ok_or_else(none)?);
            }
            sum = sum.add(product);
        }
        let (decimal, binary) = (sum.text(), binary(&sum));
        let hex = self.hex.as_ref().map(|text| further_hex(&sum, text.len().saturating_sub(2))).unwrap_or_default();
        let agrees = self.decimal.as_ref().is_none_or(|text| are_those_of(text, &decimal))
            && self.binary.as_ref().is_none_or(|text| *text == binary)
            && self.hex.as_ref().is_none_or(|text| text.eq_ignore_ascii_case(&hex));
        let text = if self.hex.is_some() {
            hex
        } else if self.binary.is_some() {
            binary
        } else {
            decimal
        };
        Ok(Computed { text, agrees })
    }
}

/// A value in binary, in the form `1.011*2^3`.
fn binary(value: &Value) -> String {
    let negative = value.units < IBig::ZERO;
    let magnitude = UBig::try_from(if negative { -&value.units } else { value.units.clone() }).unwrap_or_default();
    let bits = magnitude.in_radix(2).to_string();
    let exponent = value.lowest + i32::try_from(bits.len()).unwrap_or(0) - 1;
    let fraction = bits[1..].trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{}{point}{fraction}*2^{exponent}", if negative { "-" } else { "" }, &bits[..1])
}

/// The bits of an f32 that a positive normal number is truncated to, and the following bits, in this number of hex
/// digits; empty for other numbers.
fn further_hex(value: &Value, digits: usize) -> String {
    let digits = digits.clamp(8, 16);
    let more = 4 * (digits - 8);
    let magnitude = UBig::try_from(value.units.clone()).unwrap_or_default();
    let length = i32::try_from(magnitude.bit_len()).unwrap_or(0);
    let field = value.lowest + length + 126;
    if magnitude == UBig::ZERO || !(1..255).contains(&field) {
        return String::new();
    }
    let down = length - 24 - i32::try_from(more).unwrap_or(0);
    let significand = if down > 0 { magnitude >> up(down) } else { magnitude << up(-down) };
    let field = UBig::from(field.unsigned_abs());
    let bits = (field << (23 + more)) + (significand - (UBig::ONE << (23 + more)));
    format!("0x{:0>digits$}", bits.in_radix(16).to_string())
}

/// A number in a format: its bits, or one of its fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// The format.
    format: String,
    /// The number, in the syntax of `explain`.
    number: String,
    /// The name of the field: `bits`, `sign`, `exponent field`, `value`.
    field: String,
    /// The start of the field's text.
    is: String,
}

impl Number {
    pub(super) fn compute(&self) -> Result<Computed, Error> {
        let format = Format::named(&self.format)?;
        let found = glossary::number(&self.number, format).map_err(Error::invalid)?;
        let answer = found.answers.iter().find(|(name, _)| *name == self.field);
        let text = answer.ok_or_else(|| Error::invalid(format!("a number has no `{}`", self.field)))?.1.clone();
        Ok(Computed { agrees: text.starts_with(&self.is), text })
    }
}

/// Steps in decimal arithmetic of a few digits, rounded to nearest even.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decimal {
    /// The digits of a significand.
    digits: u32,
    /// The steps: a function (`multiply`, `add`, `fma`, `exact product` or `exact sum`) and its operands, each a
    /// number, or `#0` for the result of the first step.
    steps: Vec<Vec<String>>,
    /// The expected result of the last step.
    is: String,
}

/// `units · 10^exponent`.
#[derive(Clone, Debug)]
struct Tens {
    units: IBig,
    exponent: i32,
}

impl Tens {
    fn read(text: &str) -> Option<Self> {
        let (significand, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let places = significand.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let units = IBig::from_str_radix(&significand.replace('.', ""), 10).ok()?;
        Some(Self { units, exponent: exponent.parse::<i32>().ok()? - i32::try_from(places).ok()? })
    }

    fn add(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let at = |value: &Self| &value.units * IBig::from(10).pow(up(value.exponent - exponent));
        Self { units: at(self) + at(other), exponent }
    }

    /// Rounds to nearest even, to `digits` digits.
    fn rounded(&self, digits: u32) -> Self {
        let text = self.units.to_string();
        let length = text.trim_start_matches('-').len();
        let over = length.saturating_sub(digits as usize);
        if over == 0 {
            return self.clone();
        }
        let power = IBig::from(10).pow(over);
        let (mut quotient, rest) = (&self.units / &power, &self.units % &power);
        let twice: IBig = if rest < IBig::ZERO { -rest * 2 } else { rest * 2 };
        if twice > power || (twice == power && &quotient % IBig::from(2) != IBig::ZERO) {
            quotient += if self.units < IBig::ZERO { IBig::NEG_ONE } else { IBig::ONE };
        }
        Self { units: quotient, exponent: self.exponent + i32::try_from(over).unwrap_or(0) }
    }

    /// The value in the form `1.6006e-4`, without trailing zeros.
    fn text(&self) -> String {
        let digits = self.units.to_string();
        let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |digits| ("-", digits));
        let exponent = self.exponent + i32::try_from(digits.len()).unwrap_or(0) - 1;
        let rest = digits[1..].trim_end_matches('0');
        let point = if rest.is_empty() { "" } else { "." };
        let power = if exponent == 0 { String::new() } else { format!("e{exponent}") };
        format!("{sign}{}{point}{rest}{power}", &digits[..1])
    }
}

impl Decimal {
    pub(super) fn compute(&self) -> Result<Computed, Error> {
        let mut results: Vec<Tens> = Vec::new();
        let wrong = |step: &[String]| Error::invalid(format!("`{}` is not a step", step.join(" ")));
        for step in &self.steps {
            let read = |text: &String| match text.strip_prefix('#') {
                Some(at) => at.parse::<usize>().ok().and_then(|at| results.get(at).cloned()),
                None => Tens::read(text),
            };
            let [function, operands @ ..] = &step[..] else { return Err(wrong(step)) };
            let x = operands.iter().map(read).collect::<Option<Vec<_>>>().ok_or_else(|| wrong(step))?;
            let product =
                |x: &[Tens]| Tens { units: &x[0].units * &x[1].units, exponent: x[0].exponent + x[1].exponent };
            results.push(match (function.as_str(), x.len()) {
                ("multiply", 2) => product(&x).rounded(self.digits),
                ("add", 2) => x[0].add(&x[1]).rounded(self.digits),
                ("fma", 3) => product(&x).add(&x[2]).rounded(self.digits),
                ("exact product", 2) => product(&x),
                ("exact sum", 2) => x[0].add(&x[1]),
                _ => return Err(wrong(step)),
            });
        }
        let text = results.last().map(Tens::text).unwrap_or_default();
        let is = Tens::read(&self.is).ok_or_else(|| Error::invalid(format!("`{}` is not a decimal", self.is)))?;
        Ok(Computed { agrees: is.text() == text, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_digits_are_cut_or_rounded_and_nothing_else() {
        for (printed, exact, agree) in [
            (".0559588074", "0.05595880746841430664", true),
            (".0559588075", "0.05595880746841430664", true),
            (".0559588076", "0.05595880746841430664", false),
            (".0559588073", "0.05595880746841430664", false),
            ("11", "11.4", true),
            ("11", "11.5", true),
            ("12", "11.5", true),
            ("12", "11.4", false),
            ("-0.25", "-0.254", true),
            ("-0.26", "-0.254", false),
            ("1.50", "1.5", true),
        ] {
            assert_eq!(are_those_of(printed, exact), agree, "{printed} of {exact}");
        }
    }

    #[test]
    fn an_exact_sum_is_written_in_decimal_binary_and_further_digits_of_an_f32() {
        let sum = |products: &[&[&str]], like: &str| {
            let products =
                products.iter().map(|factors| factors.iter().map(|text| (*text).to_owned()).collect()).collect();
            let hex = Some(like.to_owned()).filter(|text| text.starts_with("0x"));
            let binary = Some(like.to_owned()).filter(|text| text.contains("2^"));
            let decimal = Some(like.to_owned()).filter(|_| hex.is_none() && binary.is_none());
            let found = ExactSum { format: "f32".into(), products, decimal, binary, hex }.compute().unwrap();
            (found.text, found.agrees)
        };
        assert_eq!(sum(&[&["1.5", "1.5"], &["-2"]], "0.25"), ("0.25".to_owned(), true));
        assert_eq!(sum(&[&["8"], &["3"]], "1.011*2^3"), ("1.011*2^3".to_owned(), true));
        assert_eq!(sum(&[&["1"], &["2^-24"]], "0x3f80000080"), ("0x3f80000080".to_owned(), true));
        assert_eq!(sum(&[&["1"], &["2^-24"]], "0x3f80000081"), ("0x3f80000080".to_owned(), false));
    }

    #[test]
    fn decimal_steps_are_rounded_once_each() {
        let of = |steps: &[&[&str]], is: &str| {
            let steps = steps.iter().map(|step| step.iter().map(|text| (*text).to_owned()).collect()).collect();
            let found = Decimal { digits: 5, steps, is: is.into() }.compute().unwrap();
            (found.text, found.agrees)
        };
        assert_eq!(of(&[&["fma", "1.0008", "1.0008", "-1"]], "1.6006e-3"), ("1.6006e-3".to_owned(), true));
        let separate: &[&[&str]] = &[&["multiply", "1.0008", "1.0008"], &["add", "#0", "-1"]];
        assert_eq!(of(separate, "1.6e-3"), ("1.6e-3".to_owned(), true));
        assert_eq!(of(separate, "1.6006e-3"), ("1.6e-3".to_owned(), false));
        // A tie is rounded to even.
        assert_eq!(of(&[&["add", "10000", "0.5"]], "1e4").0, "1e4");
        assert_eq!(of(&[&["add", "10001", "0.5"]], "1.0002e4").0, "1.0002e4");
    }
}
