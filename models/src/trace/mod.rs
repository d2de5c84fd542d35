//! How the exact evaluator came to its result: what it tells an observer, step by step.

mod text;

use std::fmt;

use dashu_int::{UBig, ops::BitTest};
use mxprobe_api::{Decoded, Format, OperationId};

use crate::{
    exact::{Dot, evaluate_observed},
    model::Model,
    tree::Term,
};

/// Told what happens inside a dot while the exact evaluator computes it.
pub trait Observer {
    /// One step; whoever does not want it does not call `step`, and it is not built.
    fn observe(&mut self, step: impl FnOnce() -> Step);
}

/// Looks away.
impl Observer for () {
    fn observe(&mut self, _: impl FnOnce() -> Step) {}
}

/// One step of the evaluation of a dot, in the order in which they happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A fused addition begins: the index of its node in the plan, and of its adder in the model.
    Addition {
        /// The node.
        node: usize,
        /// The adder.
        adder: usize,
    },
    /// What one term is worth, exactly.
    Term {
        /// Where it comes from.
        term: Term,
        /// Its value; a NaN for Inf·0 too.
        value: Value,
        /// The exponent it is aligned by where products count as the sum of their operands' exponents; a zero has none.
        exponent: Option<i32>,
    },
    /// NaN or infinities decide the result; nothing is aligned.
    Special,
    /// The grid: the exponent of the lowest bit kept, and the largest exponent that it hangs from; none where every bit
    /// of every term is kept.
    Grid {
        /// The exponent of the lowest bit kept.
        unit: i32,
        /// The largest exponent.
        exponent: Option<i32>,
    },
    /// A value too small for this adder to count.
    Ignored {
        /// Where it comes from.
        term: Term,
    },
    /// What is left of a term on the grid.
    Aligned {
        /// Where it comes from.
        term: Term,
        /// What is added.
        kept: Exact,
    },
    /// The sum of what was kept.
    Sum(Exact),
    /// What is left of the sum where it wraps: there are so many carry bits.
    Wrapped {
        /// Carry bits.
        carry_bits: u32,
        /// What is left.
        value: Exact,
    },
    /// The sum times the scales of its block.
    Scaled(Exact),
    /// What is left of the sum once it is normalised and cut.
    Cut(Exact),
    /// The result handed on unrounded.
    Unrounded(Value),
    /// The result in a format.
    Rounded {
        /// The format.
        format: Format,
        /// Its bits.
        bits: u64,
    },
}

/// A value on its way through a tree.
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

    /// What is missing of it in `kept`, without its sign: |self| − |kept|, where `kept` has the sign of `self` or is 0;
    /// negative where `kept` is larger in magnitude. `None` where the signs differ.
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

/// Exactly, in hexadecimal as C's `%a` writes it: `0x1.8p-3` is 1.5·2^−3.
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

/// Every step of one dot.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The steps, first to last.
    pub steps: Vec<Step>,
    /// d.
    pub result: u64,
}

impl Observer for Vec<Step> {
    fn observe(&mut self, step: impl FnOnce() -> Step) {
        self.push(step());
    }
}

impl Trace {
    /// How `model` computes a dot of an operation, or `None` if it lacks the operation.
    ///
    /// # Panics
    /// If the dot has fewer products than the operation's k.
    #[must_use]
    pub fn of(model: &Model, id: &OperationId, dot: Dot<'_>) -> Option<Self> {
        let (unit, plan) = model.plan(id)?;
        let mut steps = Vec::new();
        let result = evaluate_observed(&model.adders, unit, &plan, id, dot, &mut steps);
        Some(Self { steps, result })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load;

    fn exact(format: Format, bits: u64) -> Exact {
        Exact::decode(format, bits).unwrap()
    }

    #[test]
    fn exact_values_are_written_in_hexadecimal() {
        for (format, bits, text) in [
            (Format::F32, 0x3fc0_0000, "0x1.8p+0"),
            (Format::F32, 0x8000_0001, "-0x1p-149"),
            (Format::F32, 0x3f80_0001, "0x1.000002p+0"),
            (Format::F16, 0x3555, "0x1.554p-2"),
            (Format::F32, 0x8000_0000, "-0"),
        ] {
            assert_eq!(exact(format, bits).to_string(), text);
        }
    }

    #[test]
    fn what_is_lost_is_the_difference_of_magnitudes() {
        let (whole, kept) = (exact(Format::F32, 0xbfc0_0000), exact(Format::F32, 0xbf80_0000));
        assert_eq!(whole.lost(&kept), Some(exact(Format::F32, 0x3f00_0000)));
        assert_eq!(kept.lost(&whole), Some(exact(Format::F32, 0xbf00_0000)));
        assert_eq!(whole.lost(&exact(Format::F32, 0x3f80_0000)), None);
    }

    #[test]
    fn a_trace_tells_every_step_and_ends_with_the_evaluator_s_result() {
        let model = load("v100").unwrap();
        let id: OperationId = "mma.m8n8k4.f32.f16.f16.f32".parse().unwrap();
        // 2^15 + 2^-9, of which the grid keeps the first alone.
        let (a, b) = ([0x7800, 0x0400, 0, 0], [0x3c00, 0x4800, 0, 0]);
        let trace = Trace::of(&model, &id, Dot { a: &a, b: &b, c: 0, scales: None }).unwrap();
        assert!(trace.steps.contains(&Step::Grid { unit: -8, exponent: Some(15) }), "{:?}", trace.steps);
        assert!(trace.steps.contains(&Step::Aligned { term: Term::Product(1), kept: exact(Format::F32, 0) }));
        assert_eq!(trace.steps.last(), Some(&Step::Rounded { format: Format::F32, bits: 0x4700_0000 }));
        assert_eq!(trace.result, 0x4700_0000);
    }
}
