//! Aligning terms on a grid.

use dashu_int::{IBig, UBig, ops::BitTest};

use super::number::Finite;
use crate::{
    adder::{Below, Class},
    tree::Term,
};

pub(super) struct Aligned {
    pub(super) from: Term,
    pub(super) class: Class,
    pub(super) term: Finite,
}

/// Aligns a term to a whole number of `2^unit`.
pub(super) fn align(term: &Finite, unit: i32, below: Below) -> IBig {
    let signed = |magnitude: UBig| if term.negative { -IBig::from(magnitude) } else { IBig::from(magnitude) };
    let shift = term.lsb - unit;
    if shift >= 0 {
        return signed(term.magnitude.clone() << usize::try_from(shift).unwrap_or(0));
    }
    let shift = usize::try_from(-shift).unwrap_or(0);
    let kept = term.magnitude.clone() >> shift;
    let lost = term.magnitude.clone() - (kept.clone() << shift);
    if lost == UBig::ZERO {
        return signed(kept);
    }
    match below {
        Below::Truncate | Below::OnesComplement => signed(kept),
        Below::Floor => signed(kept) - IBig::from(u8::from(term.negative)),
        Below::Nearest => {
            let half = UBig::ONE << (shift - 1);
            let up = lost > half || (lost == half && kept.bit(0));
            signed(kept + UBig::from(u8::from(up)))
        }
        Below::NearestAway => {
            let half = UBig::ONE << (shift - 1);
            signed(kept + UBig::from(u8::from(lost >= half)))
        }
        Below::Sticky => signed(kept | UBig::ONE),
    }
}
