//! Dots and terms that an intermediate result holds exactly, unless its format is very narrow.

use mxprobe_api::{Decoded, Format, OperationId};

use crate::{dots::Dot, probes::Leaf};

/// Exponents of terms at which no intermediate format underflows or overflows, unless it is very narrow.
pub(in crate::identify) const MODERATE: std::ops::RangeInclusive<i32> = -14..=13;

/// Significand bits that every intermediate format holds, and those that hardly any addition cuts from a single term.
const SHORT: u32 = 8;
const VERY_SHORT: u32 = 5;

/// Returns the exponent of a normal value and its significand without trailing zeros, `None` for a zero, and `Err` for
/// anything else.
fn normal(format: Format, bits: u64) -> Result<Option<(i32, u64)>, ()> {
    match format.decode(bits) {
        Decoded::Zero { .. } => Ok(None),
        Decoded::Finite { significand, exponent, .. } if significand >> format.fraction_bits() > 0 => {
            Ok(Some((exponent, significand >> significand.trailing_zeros())))
        }
        _ => Err(()),
    }
}

/// Returns a leaf of a dot in the form of [`normal`]; a product is that of two such values.
fn term(id: &OperationId, dot: &Dot, leaf: Leaf) -> Result<Option<(i32, u128)>, ()> {
    match leaf {
        Leaf::C => Ok(normal(id.c, dot.c)?.map(|(exponent, odd)| (exponent, u128::from(odd)))),
        Leaf::Product(k) => Ok(normal(id.a, dot.a[k])?
            .zip(normal(id.b, dot.b[k])?)
            .map(|((x, of_x), (y, of_y))| (x + y, u128::from(of_x) * u128::from(of_y)))),
    }
}

/// Returns whether every term of a dot is zero, or made of normal values and with an exponent in [`MODERATE`].
pub(in crate::identify) fn is_moderate(id: &OperationId, dot: &Dot) -> bool {
    let fits = |leaf: Leaf| term(id, dot, leaf).is_ok_and(|term| term.is_none_or(|(at, _)| MODERATE.contains(&at)));
    fits(Leaf::C) && (0..dot.a.len()).all(|k| fits(Leaf::Product(k)))
}

/// Returns whether an intermediate format may change this term of a dot.
pub(in crate::identify) fn is_long(id: &OperationId, dot: &Dot, leaf: Leaf) -> bool {
    has_more_bits(id, dot, leaf, SHORT)
}

/// Returns whether an addition of few bits may change this term of a dot.
pub(in crate::identify) fn is_longer_than_few_bits(id: &OperationId, dot: &Dot, leaf: Leaf) -> bool {
    has_more_bits(id, dot, leaf, VERY_SHORT)
}

/// Returns whether a term of a dot is negative.
pub(in crate::identify) fn is_negative(id: &OperationId, dot: &Dot, leaf: Leaf) -> bool {
    let minus = |format: Format, bits: u64| format.negative_zero().is_some_and(|sign| bits & sign != 0);
    match leaf {
        Leaf::C => minus(id.c, dot.c),
        Leaf::Product(k) => minus(id.a, dot.a[k]) != minus(id.b, dot.b[k]),
    }
}

/// Returns whether a term of a dot has more significand bits than these, or an exponent outside of [`MODERATE`].
fn has_more_bits(id: &OperationId, dot: &Dot, leaf: Leaf, bits: u32) -> bool {
    let fits = |(at, odd): (i32, u128)| MODERATE.contains(&at) && odd >> bits == 0;
    !term(id, dot, leaf).is_ok_and(|term| term.is_none_or(fits))
}
