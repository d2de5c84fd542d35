//! The elements of eight dots side by side.

use super::{
    lanes::Lanes,
    sum::{NO_EXPONENT, Scales, Terms},
};
use crate::{
    adder::Class,
    fast::unpack::{NEGATIVE, SPECIAL, ZERO},
};

/// One element of each dot: significands, and exponents with kinds in the upper half.
#[derive(Clone, Copy)]
pub(super) struct Elements {
    pub(super) significands: Lanes,
    pub(super) rest: Lanes,
}

impl Elements {
    pub(super) const POSITIVE_ZERO: Self = Self { significands: Lanes::ZERO, rest: Lanes::all((ZERO as i64) << 32) };

    /// Reads the elements as terms; the mask says where they are NaN or infinite.
    #[inline(always)]
    pub(super) fn terms(&self, class: Class, fraction_bits: i32) -> (Terms, Lanes) {
        let (lsb, exponent) = self.exponents(fraction_bits);
        let magnitude = self.significands;
        (Terms { class, negative: self.holds(NEGATIVE), magnitude, lsb, exponent }, self.are_special())
    }

    /// Reads the elements as products of scales.
    #[inline(always)]
    pub(super) fn scales(&self, fraction_bits: i32) -> Scales {
        let (lsb, exponents) = self.exponents(fraction_bits);
        Scales { significands: self.significands, lsb, exponents }
    }

    /// Where the elements are NaN or infinite.
    #[inline(always)]
    pub(super) fn are_special(&self) -> Lanes {
        self.holds(SPECIAL)
    }

    /// The places of the lowest bits and the exponents; [`NO_EXPONENT`] for a zero.
    #[inline(always)]
    fn exponents(&self, fraction_bits: i32) -> (Lanes, Lanes) {
        let half = Lanes::all(32);
        let exponent = self.rest << half >> half;
        let lsb = exponent - Lanes::all(i64::from(fraction_bits));
        (lsb, Lanes::all(NO_EXPONENT).select(self.holds(ZERO), exponent))
    }

    /// Where the elements are of a kind.
    #[inline(always)]
    fn holds(&self, kind: u32) -> Lanes {
        !(self.rest & Lanes::all(i64::from(kind) << 32)).is_zero()
    }
}
