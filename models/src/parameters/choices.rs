//! The choices of parameters, in the order in which a search tries them, the default first.

use mxprobe_api::{Overflow, Rounding, Subnormals};

use crate::adder::{Below, Class, Exponent, Scale, ZeroSign};

/// One value of a parameter: its name in files, and its descriptions.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The name in files.
    pub name: &'static str,
    /// The words that `explain` prints.
    pub words: &'static str,
    /// The words in the summary of `identify`; empty for a default that needs no mention.
    pub brief: &'static str,
    /// The text for docs/model-format.md, if the row of the parameter does not say it.
    pub meaning: &'static str,
}

/// A type whose values are choices of a parameter.
pub trait Choices: Copy + PartialEq + 'static {
    /// All values, with their names and words.
    const ALL: &'static [(Self, Choice)];

    /// All values.
    fn values() -> impl Iterator<Item = Self> {
        Self::ALL.iter().map(|(value, _)| *value)
    }

    /// Its index among all values.
    #[must_use]
    fn place(self) -> usize {
        Self::ALL.iter().position(|(value, _)| *value == self).unwrap_or_default()
    }

    /// Its names and words.
    #[must_use]
    fn choice(self) -> &'static Choice {
        &Self::ALL[self.place()].1
    }
}

/// For each value: its name, its words, its brief words and, optionally, its meaning.
macro_rules! choices {
    ($kind:ty: $($value:expr => $name:literal, $words:literal, $brief:literal $(, $meaning:literal)?;)+) => {
        impl Choices for $kind {
            const ALL: &'static [(Self, Choice)] = &[$((
                $value,
                Choice { name: $name, words: $words, brief: $brief, meaning: concat!($($meaning)?) },
            )),+];
        }
    };
}

choices! { Below:
    Self::Truncate => "truncate", "truncated: dropped from the magnitude, with no sticky bit", "the rest is truncated",
        "dropped from the magnitude, without a sticky bit";
    Self::Floor => "floor", "floored, toward minus infinity", "the rest is floored", "rounded toward −∞";
    Self::Nearest => "nearest", "rounded to nearest, ties to even", "the rest is rounded to nearest",
        "rounded to nearest, ties to even";
    Self::Sticky => "sticky", "or-ed into the lowest bit kept", "the rest is kept as a sticky bit",
        "dropped from the magnitude, whose lowest kept bit is set if any lost bit was";
    Self::OnesComplement => "ones-complement",
        "truncated, and a term of the other sign than c is added as its one's complement",
        "the rest is truncated, opposite signs in one's complement",
        "dropped from the magnitude; then a term whose sign differs from that of the adder's value (c) is added as its \
         one's complement, one unit less than its negation, even where it is a zero, unless all terms are zeros";
    Self::NearestAway => "nearest-away", "rounded to nearest, ties away from zero",
        "the rest is rounded to nearest, ties away",
        "rounded to nearest, ties away from zero: half a unit is added to the magnitude and what lies below the unit is \
         dropped, which is rounding half up of sign and magnitude";
}

choices! { Class:
    Self::All => "all", "any term", "all terms";
    Self::Products => "products", "the products", "products";
    Self::Values => "values", "c and rounded results", "c or an earlier result";
    Self::Sums => "sums", "the unrounded sums", "unrounded sums";
}

choices! { Exponent:
    Self::Operands => "operands", "exponent (a product's is the sum of its operands', not normalised)",
        "the largest exponent, products not renormalised,";
    Self::Leading => "leading", "leading bit", "the largest leading bit";
}

choices! { Scale:
    Self::Products => "products", "", "";
    Self::Sum => "sum", "block scales multiply the sum, whose exponent is that of the scales alone", "scales the sum";
}

choices! { Rounding:
    Self::NearestEven => "nearest-even", "to nearest, ties to even", "RNE";
    Self::TowardZero => "toward-zero", "toward zero", "RZ";
    Self::Down => "down", "down", "RD";
    Self::Up => "up", "up", "RU";
    Self::ToOdd => "to-odd", "to odd", "RO";
}

choices! { Overflow:
    Self::Ieee => "ieee", "what IEEE 754 says for its rounding", "";
    Self::Infinity => "infinity", "infinity", "overflow is infinite";
    Self::Nan => "nan", "NaN", "overflow is NaN";
    Self::Saturate => "saturate", "the largest finite value", "overflow saturates";
}

// Whether sums beyond the range of an integer saturate.
choices! { bool:
    false => "wrap", "wrap", "wrapping";
    true => "saturate", "are clamped to it", "saturating";
}

choices! { Subnormals:
    Self::Keep => "keep", "subnormal results are kept", "";
    Self::FlushAfterRounding => "flush-after-rounding",
        "results that are subnormal after rounding become zeros of their sign", "FTZ after rounding";
    Self::FlushBeforeRounding => "flush-before-rounding",
        "results that are subnormal before rounding become zeros of their sign", "FTZ before rounding";
    Self::FlushToPositiveZero => "flush-to-positive-zero",
        "results that are subnormal after rounding become +0", "FTZ to +0";
}

choices! { ZeroSign:
    Self::Ieee => "ieee", "a zero result has the sign IEEE 754 gives it", "";
    Self::Positive => "positive", "a zero result is always +0", "zero is +0";
}
