//! Numbers rounded to whole ones, and to whole units of a grid.

use mxprobe_api::Rounding;

use super::{
    lanes::Lanes,
    reals::{Reals, SIGN},
};
use crate::adder::Below;

/// From this number on, every number of f64 is whole.
const ALL_WHOLE: f64 = 4_503_599_627_370_496.0;

/// A unit as two factors, and their reciprocals: the reciprocal of a subnormal number is too large.
pub(super) struct Unit {
    factors: [Reals; 2],
    reciprocals: [Reals; 2],
}

impl Unit {
    #[inline(always)]
    pub(super) fn of(exponent: Lanes) -> Self {
        let half = exponent >> Lanes::all(1);
        let rest = exponent - half;
        Self {
            factors: [Reals::power_of_two(half), Reals::power_of_two(rest)],
            reciprocals: [Reals::power_of_two(-half), Reals::power_of_two(-rest)],
        }
    }

    /// A number in units.
    #[inline(always)]
    fn units(&self, value: Reals) -> Reals {
        value * self.reciprocals[0] * self.reciprocals[1]
    }

    /// Whole units as a number.
    #[inline(always)]
    fn number(&self, units: Reals) -> Reals {
        units * self.factors[0] * self.factors[1]
    }

    /// Numbers without what lies below the unit.
    #[inline(always)]
    pub(super) fn whole(&self, value: Reals) -> Reals {
        let units = self.units(value);
        value.select(!units.abs().is_below(Reals::all(ALL_WHOLE)), self.number(units.trunc()))
    }

    /// The whole units at a number or next below it, from those next toward zero.
    #[inline(always)]
    pub(super) fn below(&self, value: Reals, toward_zero: Reals) -> Reals {
        let unit = self.factors[0] * self.factors[1];
        toward_zero - unit.select(value.is_below(toward_zero), Reals::ZERO)
    }

    /// Numbers, and the smaller parts that do not fit them, whose magnitudes are rounded to whole units: to nearest, or to
    /// odd for [`Below::Sticky`].
    #[inline(always)]
    pub(super) fn nearest(&self, high: Reals, low: Reals, below: Below) -> (Reals, Reals) {
        let sign = high.bits() & SIGN;
        let signed = |magnitude: Reals| Reals::of_bits(magnitude.bits() ^ sign);
        let (high, low) = (high.abs(), signed(low));
        let (number, rest) = (self.units(high), self.units(low));
        // Where a number is too small to be scaled, it counts as what lies above zero units.
        let small = nearest_whole(number, high.select(number.is_zero(), low), Lanes::ZERO, below);
        // A whole number may be followed by more than half a unit.
        let is_whole = !number.is_below(Reals::all(ALL_WHOLE));
        let large = nearest_whole(rest, Reals::ZERO, is_odd(number), below);
        let whole = number.select(is_whole, small);
        (signed(self.number(whole)), signed(self.number(large.select(is_whole, Reals::ZERO))))
    }
}

#[inline(always)]
fn is_odd(whole: Reals) -> Lanes {
    let half = whole * Reals::all(0.5);
    !half.floor().is(half)
}

/// A number and a smaller part, of which one bit may be as high as half of the number's last one: the whole number at
/// their sum or next below it, how much of the number lies above that, and where anything does.
#[inline(always)]
fn floored(number: Reals, rest: Reals) -> (Reals, Reals, Lanes) {
    let floor = number.floor();
    let is_whole = floor.is(number);
    let floor = floor - one(is_whole & rest.is_below(Reals::ZERO));
    (floor, number - floor, !is_whole | !rest.is_zero())
}

#[inline(always)]
fn one(mask: Lanes) -> Reals {
    Reals::all(1.0).select(mask, Reals::ZERO)
}

/// Where a number and a smaller part, of which this much lies above a whole number, are nearer to the next one. Ties go
/// there in some lanes.
#[inline(always)]
fn is_nearer_above(above: Reals, rest: Reals, ties: Lanes) -> Lanes {
    let half = Reals::all(0.5);
    let beyond = Reals::ZERO.is_below(rest) | rest.is_zero() & ties;
    half.is_below(above) | above.is(half) & beyond
}

/// Magnitudes and smaller parts rounded to whole numbers as bits below a grid are. Whether the result is even counts the
/// other way round where they are added to an odd number.
#[inline(always)]
fn nearest_whole(number: Reals, rest: Reals, to_odd: Lanes, below: Below) -> Reals {
    let (floor, above, is_between) = floored(number, rest);
    let is_odd = is_odd(floor) ^ to_odd;
    let up = match below {
        Below::Sticky => is_between & !is_odd,
        Below::NearestAway => is_nearer_above(above, rest, Lanes::all(-1)),
        _ => is_nearer_above(above, rest, is_odd),
    };
    floor + one(up)
}

/// A number and a smaller part, of which one bit may be as high as half of its last one, rounded to a whole number.
#[inline(always)]
pub(super) fn whole(number: Reals, rest: Reals, rounding: Rounding) -> Reals {
    let (floor, above, is_between) = floored(number, rest);
    let up = match rounding {
        Rounding::Down => Lanes::ZERO,
        Rounding::Up => is_between,
        Rounding::TowardZero => is_between & number.is_negative(),
        Rounding::NearestEven => is_nearer_above(above, rest, is_odd(floor)),
        Rounding::ToOdd => is_between & !is_odd(floor),
    };
    floor + one(up)
}
