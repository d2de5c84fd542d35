//! Intermediate numbers of a tree, and the causes of NaN.

use dashu_int::{UBig, ops::BitTest};
use mxprobe_api::{Decoded, Format};

use super::step::{self, Exact};
use crate::{
    adder::{Adder, Exponent, NanCause},
    convert::{converted, quieted},
    model::Flush,
};

/// An intermediate number of a tree.
#[derive(Clone, Debug)]
pub(super) enum Number {
    /// In a format: an operand, c or a rounded result.
    Bits { format: Format, bits: u64, value: Value },
    /// An unrounded sum.
    Wide(Value),
    /// An unrounded sum that is NaN, with its causes.
    WideNan(NanCauses),
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Nan,
    Infinity { negative: bool },
    Finite(Finite),
}

impl Value {
    pub(super) fn traced(&self) -> step::Value {
        match self {
            Self::Nan => step::Value::Nan,
            Self::Infinity { negative } => step::Value::Infinity { negative: *negative },
            Self::Finite(finite) => step::Value::Finite(finite.traced()),
        }
    }

    pub(super) fn exponent(&self) -> Option<i32> {
        match self {
            Self::Finite(finite) => finite.exponent,
            Self::Nan | Self::Infinity { .. } => None,
        }
    }
}

/// `±magnitude · 2^lsb`. The exponent is the one used for alignment; a true zero has none.
#[derive(Clone, Debug)]
pub(super) struct Finite {
    pub(super) negative: bool,
    pub(super) magnitude: UBig,
    pub(super) lsb: i32,
    pub(super) exponent: Option<i32>,
}

impl Number {
    pub(super) fn value(&self) -> &Value {
        match self {
            Self::Bits { value, .. } | Self::Wide(value) => value,
            Self::WideNan(_) => &Value::Nan,
        }
    }

    /// Whether it is a subnormal value of a floating format.
    pub(super) fn is_subnormal(&self) -> bool {
        let Self::Bits { format, value: Value::Finite(finite), .. } = self else { return false };
        let length = UBig::ONE << format.fraction_bits() as usize;
        !format.is_integer() && finite.exponent.is_some() && finite.magnitude < length
    }
}

impl Finite {
    pub(super) fn zero(negative: bool) -> Self {
        Self { negative, magnitude: UBig::ZERO, lsb: 0, exponent: None }
    }

    pub(super) fn traced(&self) -> Exact {
        Exact::new(self.negative, self.magnitude.clone(), self.lsb)
    }

    pub(super) fn leading(&self) -> Option<i32> {
        let length = i32::try_from(self.magnitude.bit_len()).expect("far below 2^31 bits");
        (length > 0).then(|| self.lsb + length - 1)
    }

    pub(super) fn exponent_by(&self, rule: Exponent) -> Option<i32> {
        match rule {
            Exponent::Operands => self.exponent,
            Exponent::Leading => self.leading(),
        }
    }
}

pub(super) fn read(format: Format, bits: u64) -> Number {
    let value = match format.decode(bits) {
        Decoded::Nan { .. } => Value::Nan,
        Decoded::Infinity { negative } => Value::Infinity { negative },
        Decoded::Zero { negative } => Value::Finite(Finite::zero(negative)),
        Decoded::Finite { negative, significand, exponent } => Value::Finite(Finite {
            negative,
            magnitude: UBig::from(significand),
            lsb: exponent - format.fraction_bits().cast_signed(),
            exponent: Some(exponent),
        }),
    };
    Number::Bits { format, bits, value }
}

pub(super) fn flushed(number: Number, flush: bool, rule: Flush) -> Number {
    if !flush || !number.is_subnormal() {
        return number;
    }
    match number {
        Number::Bits { format, value: Value::Finite(finite), .. } => {
            let zero = Finite::zero(finite.negative && !rule.to_positive);
            let bits = if zero.negative { 1 << (format.bits() - 1) } else { 0 };
            Number::Bits { format, bits, value: Value::Finite(zero) }
        }
        other => other,
    }
}

pub(super) struct Operands {
    pub(super) a: Number,
    pub(super) b: Number,
    pub(super) scales: Option<(Number, Number)>,
}

/// Multiplies the operands and their scales. The result is NaN if one of them is NaN, and for Inf·0.
pub(super) fn multiply(operands: &Operands) -> Value {
    let mut factors = vec![operands.a.value(), operands.b.value()];
    if let Some((a, b)) = &operands.scales {
        factors.extend([a.value(), b.value()]);
    }
    let mut negative = false;
    let (mut infinite, mut zero) = (false, false);
    let mut product = Finite { negative: false, magnitude: UBig::ONE, lsb: 0, exponent: Some(0) };
    for factor in factors {
        match factor {
            Value::Nan => return Value::Nan,
            Value::Infinity { negative: sign } => {
                negative ^= sign;
                infinite = true;
            }
            Value::Finite(finite) => {
                negative ^= finite.negative;
                zero |= finite.exponent.is_none();
                product.magnitude *= &finite.magnitude;
                product.lsb += finite.lsb;
                product.exponent = product.exponent.zip(finite.exponent).map(|(x, y)| x + y);
            }
        }
    }
    match (infinite, zero) {
        (true, true) => Value::Nan,
        (true, false) => Value::Infinity { negative },
        (false, true) => Value::Finite(Finite::zero(negative)),
        (false, false) => Value::Finite(Finite { negative, ..product }),
    }
}

/// Why a result is NaN: the first number of each cause. An unrounded sum passes them on, so that the adder that rounds
/// can choose.
#[derive(Clone, Debug, Default)]
pub(super) struct NanCauses {
    pub(super) operand: Option<Box<Number>>,
    pub(super) b: Option<Box<Number>>,
    pub(super) value: Option<Box<Number>>,
    pub(super) invalid: bool,
}

impl NanCauses {
    /// Records the first NaN among the operands and their scales, if any, and says whether there is one.
    pub(super) fn note_operands(&mut self, operands: &Operands) -> bool {
        let scales = operands.scales.iter().flat_map(|(a, b)| [a, b]);
        let mut numbers = [&operands.a, &operands.b].into_iter().chain(scales);
        if matches!(operands.b.value(), Value::Nan) {
            self.b.get_or_insert_with(|| Box::new(operands.b.clone()));
        }
        let nan = numbers.find(|number| matches!(number.value(), Value::Nan));
        if let Some(nan) = nan {
            self.operand.get_or_insert_with(|| Box::new(nan.clone()));
        }
        nan.is_some()
    }

    pub(super) fn note_value(&mut self, number: &Number) {
        match number {
            Number::WideNan(earlier) => {
                self.operand = self.operand.take().or_else(|| earlier.operand.clone());
                self.b = self.b.take().or_else(|| earlier.b.clone());
                self.value = self.value.take().or_else(|| earlier.value.clone());
                self.invalid |= earlier.invalid;
            }
            Number::Bits { value: Value::Nan, .. } => {
                self.value.get_or_insert_with(|| Box::new(number.clone()));
            }
            _ => {}
        }
    }

    pub(super) fn any(&self) -> bool {
        self.operand.is_some() || self.value.is_some() || self.invalid
    }

    pub(super) fn bits(&self, adder: &Adder, format: Format) -> u64 {
        let rules = &adder.nan;
        let of = |number: &Number, fixed: Option<u64>| {
            fixed.unwrap_or_else(|| passed_on(number, format).unwrap_or(rules.invalid))
        };
        let first = rules.order.iter().find_map(|cause| match cause {
            NanCause::Operand => self.operand.as_ref().map(|number| of(number, rules.operand)),
            NanCause::B => self.b.as_ref().map(|number| of(number, rules.operand)),
            NanCause::Value => self.value.as_ref().map(|number| of(number, rules.value)),
            NanCause::Invalid => self.invalid.then_some(rules.invalid),
        });
        first.unwrap_or(rules.invalid)
    }
}

/// A NaN in another format; `None` if either format has no payload.
fn passed_on(number: &Number, to: Format) -> Option<u64> {
    let Number::Bits { format, bits, .. } = number else { return None };
    quieted(*format, *bits, to)
}

/// An operand in the format to which it is converted.
pub(super) fn in_format(number: Number, to: Option<Format>) -> Number {
    match (number, to) {
        (Number::Bits { format, bits, .. }, Some(to)) => read(to, converted(format, bits, to)),
        (number, _) => number,
    }
}
