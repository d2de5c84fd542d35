//! The elements of eight dots side by side.

use super::{
    lanes::Lanes,
    sum::{NO_EXPONENT, Terms},
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
        let half = Lanes::all(32);
        let exponent = self.rest << half >> half;
        let holds = |bit: u32| !(self.rest & Lanes::all(i64::from(bit) << 32)).is_zero();
        let lsb = exponent - Lanes::all(i64::from(fraction_bits));
        let exponent = Lanes::all(NO_EXPONENT).select(holds(ZERO), exponent);
        let magnitude = self.significands;
        (Terms { class, negative: holds(NEGATIVE), magnitude, lsb, exponent }, holds(SPECIAL))
    }
}
