//! Adders: everything that one fused addition may do with its terms.

use std::collections::BTreeMap;

use mxprobe_api::{Format, Overflow, Rounding, Subnormals};

use crate::provenance::{Basis, Origin, Provenance};

/// One kind of fused addition: any number of terms, aligned on one grid, added exactly, rounded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adder {
    /// Its name in trees.
    pub name: String,
    /// The rules for the lowest bit kept; the highest of their results applies. Empty: nothing is lost.
    pub grid: Vec<GridRule>,
    /// How a term's bits below the grid are treated.
    pub below: Below,
    /// How many more bits a value (c or an earlier rounded result) loses than a product or a sum does.
    pub value_cut_bits: u32,
    /// When a value counts as 0 before bits are dropped.
    pub ignored_values: Option<IgnoredValues>,
    /// The number of carry bits above the bit of the largest exponent, beyond which the sum wraps. `None`: enough.
    pub carry_bits: Option<u32>,
    /// The number of fraction bits to which the sum is cut once it is normalised, before it is rounded.
    pub normalised_fraction_bits: Option<u32>,
    /// The lowest exponent that this cut counts with.
    pub normalised_exponent_floor: Option<i32>,
    /// How the bits lost to this cut are treated.
    pub normalised_below: Below,
    /// The operands that block scales multiply.
    pub scale: Scale,
    /// A product of magnitude 2^128 or more is an infinity.
    pub product_overflow: bool,
    /// The format of the result and how it is rounded.
    pub output: Output,
    /// The sign of a zero result.
    pub zero: ZeroSign,
    /// The bits of NaN results.
    pub nan: NanRules,
    /// Where the values come from.
    pub provenance: Provenance,
}

/// One rule for the grid: the largest exponent among some terms, minus the fraction bits kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridRule {
    /// The terms considered.
    pub terms: Class,
    /// How the exponent of a term is defined.
    pub exponent: Exponent,
    /// The number of bits kept below that exponent.
    pub fraction_bits: i32,
    /// The lowest value that the exponent counts as; sources call it the exponent of a zero term.
    pub exponent_floor: Option<i32>,
}

/// A class of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Every term.
    All,
    /// Products of a and b.
    Products,
    /// c, and results that were rounded to a format.
    Values,
    /// Results that were not rounded (`output = "wide"`).
    Sums,
}

/// How the exponent of a term is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exponent {
    /// A product's is the sum of its operands' exponents, so its significand lies in [0, 4); a subnormal has the
    /// smallest normal exponent; an unrounded sum has the exponent of its own grid rule.
    Operands,
    /// The exponent of the leading one.
    Leading,
}

/// How bits below a grid are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// Dropped from the magnitude.
    Truncate,
    /// Rounded down, toward −∞.
    Floor,
    /// Dropped from the magnitude. A term whose sign differs from that of the adder's value (c) is then added as its
    /// one's complement, one unit less than its negation, even if the term is zero, unless all terms are.
    OnesComplement,
    /// Rounded to nearest, ties to even.
    Nearest,
    /// Dropped from the magnitude, whose lowest kept bit is set if any lost bit was.
    Sticky,
    /// Rounded to nearest, ties away from zero: round half up of sign and magnitude.
    NearestAway,
}

impl Below {
    /// The rounding of a result that treats dropped bits the same way, except for ties.
    #[must_use]
    pub fn as_rounding(self) -> Rounding {
        match self {
            Self::Truncate | Self::OnesComplement => Rounding::TowardZero,
            Self::Floor => Rounding::Down,
            Self::Nearest | Self::NearestAway => Rounding::NearestEven,
            Self::Sticky => Rounding::ToOdd,
        }
    }
}

/// When a value is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredValues {
    /// Its leading bit lies more than this many places below the lowest bit kept of it.
    pub below_bits: i32,
    /// Does not apply if the grid is at this exponent or lower.
    pub unless_grid_at_most: Option<i32>,
}

/// The operands that block scales multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Each product; its exponent includes theirs.
    Products,
    /// The exact sum of the products; its exponent is that of the scales alone.
    Sum,
}

/// The result of an adder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The sum itself, unrounded, for another adder.
    Wide,
    /// A floating format.
    Float {
        /// The format.
        format: Format,
        /// Fraction bits kept; the format's others are 0.
        fraction_bits: u32,
        /// The rounding.
        rounding: Rounding,
        /// The treatment of results beyond its range.
        overflow: Overflow,
        /// The treatment of results below its normal range.
        subnormals: Subnormals,
    },
    /// An integer format.
    Integer {
        /// The format.
        format: Format,
        /// Results beyond its range saturate; otherwise they wrap.
        saturates: bool,
    },
}

impl Output {
    /// The default output in a format. Floating-point results round to nearest even, overflow to infinity and keep
    /// subnormals; integers wrap.
    #[must_use]
    pub fn in_format(format: Format) -> Self {
        if format.is_integer() {
            return Self::Integer { format, saturates: false };
        }
        Self::Float {
            format,
            fraction_bits: format.fraction_bits(),
            rounding: Rounding::NearestEven,
            overflow: Overflow::Ieee,
            subnormals: Subnormals::Keep,
        }
    }
}

/// The sign of a zero result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroSign {
    /// As IEEE 754-2019, 6.3: if all terms are zeros of one sign, that sign; else +0, or −0 when rounding down. A
    /// result that underflows keeps its sign.
    Ieee,
    /// Always +0.
    Positive,
}

/// Which NaN is returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NanRules {
    /// The order of precedence of the causes.
    pub order: Vec<NanCause>,
    /// For a NaN in A or B: `None` gives the operand quieted, its payload kept at the top.
    pub operand: Option<u64>,
    /// For a NaN in c or in an earlier result: `None` gives it quieted.
    pub value: Option<u64>,
    /// For Inf·0 and Inf − Inf.
    pub invalid: u64,
}

/// Why a result is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanCause {
    /// A NaN in A or B, A first, in the order of the terms.
    Operand,
    /// A NaN in B, in the order of the terms; a rule without it treats one as any operand.
    B,
    /// A NaN in c or an earlier result, in the order of the terms.
    Value,
    /// Inf·0, Inf − Inf.
    Invalid,
}

impl Adder {
    /// The format to which its result is rounded, or `None` if the result stays wide.
    #[must_use]
    pub fn output_format(&self) -> Option<Format> {
        match self.output {
            Output::Wide => None,
            Output::Float { format, .. } | Output::Integer { format, .. } => Some(format),
        }
    }

    /// The floating format of its result, if it has one.
    #[must_use]
    pub fn float_format(&self) -> Option<Format> {
        if let Output::Float { format, .. } = self.output { Some(format) } else { None }
    }

    /// Whether a sum that is rounded to nearest and lies beyond the range is an infinity.
    pub(crate) fn becomes_infinite(&self) -> bool {
        matches!(self.output, Output::Float { overflow: Overflow::Ieee | Overflow::Infinity, .. })
    }

    /// Whether its sum is that of all its terms, each cut at the same unit.
    pub(crate) fn cuts_all_alike(&self) -> bool {
        self.value_cut_bits == 0 && self.ignored_values.is_none()
    }

    /// An adder with this output that loses nothing before it rounds.
    #[must_use]
    pub fn exact(name: &str, output: Output, nan: NanRules) -> Self {
        Self {
            name: name.to_owned(),
            grid: Vec::new(),
            below: Below::Truncate,
            value_cut_bits: 0,
            ignored_values: None,
            carry_bits: None,
            normalised_fraction_bits: None,
            normalised_exponent_floor: None,
            normalised_below: Below::Truncate,
            scale: Scale::Products,
            product_overflow: false,
            output,
            zero: ZeroSign::Ieee,
            nan,
            provenance: Provenance {
                origin: Origin { basis: Basis::Measured, source: String::new() },
                exceptions: BTreeMap::new(),
            },
        }
    }
}

/// The rules of an unrounded sum, which returns no NaN: operands take precedence over values, and these over invalid
/// operations.
impl Default for NanRules {
    fn default() -> Self {
        let order = vec![NanCause::Operand, NanCause::Value, NanCause::Invalid];
        Self { order, operand: None, value: None, invalid: 0 }
    }
}
