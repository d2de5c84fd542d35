//! The steps that an observer sees while a dot is evaluated.

use std::fmt;

use dashu_int::{UBig, ops::BitTest};
use mxprobe_api::{Decoded, Format};

use crate::tree::Term;

/// Receives the steps of a dot while the exact evaluator computes it.
pub trait Observer {
    /// Receives one step. An observer that does not need it does not call `step`, so that it is never built.
    fn observe(&mut self, step: impl FnOnce() -> Step);
}

/// Ignores every step.
impl Observer for () {
    fn observe(&mut self, _: impl FnOnce() -> Step) {}
}

/// One step of the evaluation of a dot. Steps are observed in the order in which they happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A fused addition begins: the index of its node in the plan, and of its adder in the model.
    Addition {
        /// The node.
        node: usize,
        /// The adder.
        adder: usize,
    },
    /// The exact value of one term.
    Term {
        /// Its origin.
        term: Term,
        /// Its value; Inf·0 is a NaN too.
        value: Value,
        /// The exponent used for alignment if a product's exponent is the sum of its operands'; a zero has none.
        exponent: Option<i32>,
    },
    /// NaN or infinities decide the result; nothing is aligned.
    Special,
    /// The grid: the exponent of the lowest bit kept, and the largest exponent, from which it follows; `None` if every
    /// bit of every term is kept.
    Grid {
        /// The exponent of the lowest bit kept.
        unit: i32,
        /// The largest exponent.
        exponent: Option<i32>,
    },
    /// A value too small for this adder to count.
    Ignored {
        /// Its origin.
        term: Term,
    },
    /// A term on the grid.
    Aligned {
        /// Its origin.
        term: Term,
        /// The part that is added.
        kept: Exact,
    },
    /// The sum of the parts that were kept.
    Sum(Exact),
    /// The sum after it wrapped to the available carry bits.
    Wrapped {
        /// Carry bits.
        carry_bits: u32,
        /// The wrapped sum.
        value: Exact,
    },
    /// The sum times the scales of its block.
    Scaled(Exact),
    /// The sum after it was normalised and cut.
    Cut(Exact),
    /// The result, passed on unrounded.
    Unrounded(Value),
    /// The result in a format.
    Rounded {
        /// The format.
        format: Format,
        /// Its bits.
        bits: u64,
    },
}

/// An intermediate value of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Not a number.
    Nan,
    /// An infinity.
    Infinity {
        /// Its sign.
        negative: bool,
    },
    /// A finite number.
    Finite(Exact),
}

/// `±magnitude · 2^lsb`, of any width; a zero has a sign.
#[derive(Clone, Debug)]
pub struct Exact {
    negative: bool,
    magnitude: UBig,
    lsb: i32,
}

impl Exact {
    /// `±magnitude · 2^lsb`.
    pub(crate) fn new(negative: bool, magnitude: UBig, lsb: i32) -> Self {
        let zeros = magnitude.trailing_zeros().unwrap_or(0);
        let lsb = if magnitude == UBig::ZERO { 0 } else { lsb + i32::try_from(zeros).unwrap_or(0) };
        Self { negative, magnitude: magnitude >> zeros, lsb }
    }

    /// The value of finite bits; `None` for NaN and infinities.
    #[must_use]
    pub fn decode(format: Format, bits: u64) -> Option<Self> {
        match format.decode(bits) {
            Decoded::Nan { .. } | Decoded::Infinity { .. } => None,
            Decoded::Zero { negative } => Some(Self::new(negative, UBig::ZERO, 0)),
            Decoded::Finite { negative, significand, exponent } => {
                Some(Self::new(negative, UBig::from(significand), exponent - format.fraction_bits().cast_signed()))
            }
        }
    }

    /// Whether it is a zero of either sign.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.magnitude == UBig::ZERO
    }

    /// Whether its sign is negative.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// The part of its magnitude that `kept` lacks: |self| − |kept|, where `kept` is 0 or has the sign of `self`.
    /// Negative if `kept` is larger in magnitude; `None` if the signs differ.
    #[must_use]
    pub fn lost(&self, kept: &Self) -> Option<Self> {
        if !kept.is_zero() && kept.negative != self.negative {
            return None;
        }
        let low = self.lsb.min(kept.lsb);
        let at = |value: &Self| value.magnitude.clone() << usize::try_from(value.lsb - low).unwrap_or(0);
        let (whole, kept) = (at(self), at(kept));
        Some(if whole >= kept { Self::new(false, whole - kept, low) } else { Self::new(true, kept - whole, low) })
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Self) -> bool {
        let same = self.magnitude == other.magnitude && self.lsb == other.lsb;
        same && (self.negative == other.negative || self.is_zero())
    }
}

impl Eq for Exact {}

/// Writes the exact value in hexadecimal, as C's `%a` does: `0x1.8p-3` is 1.5·2^−3.
impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        if self.is_zero() {
            return f.pad(&format!("{sign}0"));
        }
        let length = self.magnitude.bit_len();
        let exponent = self.lsb + i32::try_from(length).unwrap_or(0) - 1;
        let fraction = self.magnitude.clone() - (UBig::ONE << (length - 1));
        let digits = (length - 1).div_ceil(4);
        let digits = match digits {
            0 => String::new(),
            digits => format!(".{:0>digits$}", format!("{:x}", fraction << (digits * 4 - (length - 1)))),
        };
        f.pad(&format!("{sign}0x1{digits}p{exponent:+}"))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nan => f.pad("NaN"),
            Self::Infinity { negative: false } => f.pad("Inf"),
            Self::Infinity { negative: true } => f.pad("-Inf"),
            Self::Finite(exact) => exact.fmt(f),
        }
    }
}
