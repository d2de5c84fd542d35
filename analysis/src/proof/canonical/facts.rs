//! The known properties of a term, over all dots.

use mxprobe_api::{Encoding, Format, Specials};
use mxprobe_models::{Class, Flush, NanCause};

/// Bounds of a term or of a result, over all dots.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// Its class in the additions that take it.
    pub class: Class,
    /// Whether it is always +0.
    pub zero: bool,
    /// A finite value is a multiple of 2^low.
    pub low: i32,
    /// A finite value is less than 2^top in magnitude.
    pub top: i32,
    /// The smallest and the largest exponent of its operands, if it has one.
    pub exponents: (i32, i32),
    /// Its exponent by operands is at most this much above its own lowest bit.
    pub significand_bits: i32,
    /// Whether the exponent by operands of a nonzero value is also that of its leading bit.
    pub normalised: bool,
    /// The smallest and the largest value of an integer.
    pub whole: Option<(i128, i128)>,
    /// Whether it may be −0.
    pub negative_zero: bool,
    /// Whether it may be an infinity.
    pub infinite: bool,
    /// The causes by which it may be NaN: an operand, a value, an invalid operation.
    pub nan: Causes,
    /// For a value, the bits of every NaN that it may be.
    pub nan_bits: NanBits,
    /// For a product, its scale block, and `low`, `top` and the largest exponent as if its scales were in [1, 2).
    pub block: Option<(usize, (i32, i32, i32))>,
}

/// The reasons why something may be NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Causes {
    pub operand: bool,
    pub value: bool,
    pub invalid: bool,
}

impl Causes {
    pub(super) fn any(self) -> bool {
        self.operand || self.value || self.invalid
    }

    pub(super) fn has(self, cause: NanCause) -> bool {
        match cause {
            NanCause::Operand | NanCause::B => self.operand,
            NanCause::Value => self.value,
            NanCause::Invalid => self.invalid,
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            operand: self.operand || other.operand,
            value: self.value || other.value,
            invalid: self.invalid || other.invalid,
        }
    }
}

/// The bits of the NaN that a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NanBits {
    /// The value is never NaN.
    Never,
    /// These bits of this format, always.
    Known(Format, u64),
    /// Any bits.
    Any,
}

impl NanBits {
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, bits) | (bits, Self::Never) => bits,
            (one, other) if one == other => one,
            _ => Self::Any,
        }
    }
}

/// Bounds of a sum before it is rounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub low: i32,
    pub top: i32,
    /// The highest and the lowest bit set of a sum are at most this far apart.
    pub length: i32,
    /// The smallest and the largest value of an integer sum.
    pub whole: Option<(i128, i128)>,
}

impl Facts {
    /// The largest distance between the highest and the lowest bit set.
    pub(super) fn length(&self) -> i32 {
        let within = self.top - self.low - 1;
        match self.class {
            Class::Values => self.significand_bits.min(within),
            // A product's significand is below 4, so its leading bit may be one above the exponent.
            Class::Products => (self.significand_bits + 1).min(within),
            Class::All | Class::Sums => within,
        }
    }

    /// The constant +0.
    pub(super) fn zero() -> Self {
        Self {
            class: Class::Values,
            zero: true,
            low: 0,
            top: 0,
            exponents: (0, 0),
            significand_bits: 0,
            normalised: true,
            whole: Some((0, 0)),
            negative_zero: false,
            infinite: false,
            nan: Causes::default(),
            nan_bits: NanBits::Never,
            block: None,
        }
    }

    /// An operand, as read: its subnormals are zeros if it is `flushed`.
    pub(super) fn operand(format: Format, flush: Flush, flushed: bool) -> Self {
        let own = Self::of(format, flushed);
        if !flush.normalises(format) {
            return own;
        }
        Self { exponents: (own.low, own.exponents.1), normalised: true, ..own }
    }

    /// A value of a format, as a term of class `Values`.
    pub(super) fn of(format: Format, flushed: bool) -> Self {
        match format.encoding() {
            Encoding::Float(float) => {
                let (least, most) = (float.min_exponent(), float.max_exponent());
                let fraction_bits = float.fraction_bits.cast_signed();
                let nan = float.specials != Specials::None;
                Self {
                    class: Class::Values,
                    zero: false,
                    low: least - fraction_bits,
                    top: most + 1,
                    exponents: (least, most),
                    significand_bits: fraction_bits,
                    normalised: flushed || fraction_bits == 0,
                    whole: None,
                    negative_zero: format.negative_zero().is_some(),
                    infinite: float.specials == Specials::Ieee,
                    nan: Causes { value: nan, ..Causes::default() },
                    nan_bits: if nan { NanBits::Any } else { NanBits::Never },
                    block: None,
                }
            }
            Encoding::Integer { bits, signed } => {
                let bits = bits.cast_signed();
                let whole = if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
                Self { whole: Some(whole), top: bits, normalised: false, zero: false, ..Self::zero() }
            }
        }
    }

    /// The product of factors.
    pub(super) fn product(factors: &[Self], overflows: bool) -> Self {
        let mut product = Self {
            class: Class::Products,
            zero: false,
            low: 0,
            top: 0,
            exponents: (0, 0),
            significand_bits: 0,
            // The product of two significands in [1, 2) may be 2 or more.
            normalised: factors.iter().filter(|factor| factor.significand_bits > 0).count() <= 1
                && factors.iter().all(|factor| factor.normalised),
            whole: Some((1, 1)),
            negative_zero: true,
            infinite: factors.iter().any(|factor| factor.infinite),
            nan: Causes::default(),
            nan_bits: NanBits::Never,
            block: None,
        };
        for factor in factors {
            product.low += factor.low;
            product.top += factor.top;
            product.exponents.0 += factor.exponents.0;
            product.exponents.1 += factor.exponents.1;
            product.significand_bits += factor.significand_bits;
            product.whole = product.whole.zip(factor.whole).map(|(one, other)| {
                let ends = [one.0 * other.0, one.0 * other.1, one.1 * other.0, one.1 * other.1];
                let (least, most) = (ends.iter().min(), ends.iter().max());
                (least.copied().unwrap_or(0), most.copied().unwrap_or(0))
            });
        }
        product.nan.operand = factors.iter().any(|factor| factor.nan.any());
        product.nan.invalid = product.infinite;
        // With `overflows`, a product of 2^128 or more is an infinity.
        product.infinite |= overflows && product.top > 128;
        product
    }
}
