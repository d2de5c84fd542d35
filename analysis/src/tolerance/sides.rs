//! How far a result may lie below and above the exact one.

use std::ops::Add;

use mxprobe_api::Rounding;
use mxprobe_models::Below;

/// The signs of a dot's nonzero terms. A sum of terms of one sign keeps it through every rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    /// No term is negative.
    Positive,
    /// No term is positive.
    Negative,
    /// Terms of both signs may occur.
    Mixed,
}

/// The losses that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// All, of terms with these signs.
    All(Signs),
    /// Those that may take a partial sum beyond the sums of the terms of each sign. What moves toward zero cannot.
    Outward,
}

impl Signs {
    /// All three.
    pub(super) const ALL: [Self; 3] = [Self::Positive, Self::Negative, Self::Mixed];
}

/// The most that is lost: the result lies at most `down` below and at most `up` above the exact one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sides {
    /// The loss below.
    pub down: f64,
    /// The loss above.
    pub up: f64,
}

impl Sides {
    /// The same loss on both sides.
    pub(super) fn both(most: f64) -> Self {
        Self { down: most, up: most }
    }

    /// The loss of an operation that moves every magnitude toward zero.
    pub(super) fn toward_zero(most: f64, counted: Counted) -> Self {
        match counted {
            Counted::All(Signs::Positive) => Self { down: most, up: 0.0 },
            Counted::All(Signs::Negative) => Self { down: 0.0, up: most },
            Counted::All(Signs::Mixed) => Self::both(most),
            Counted::Outward => Self::both(0.0),
        }
    }

    /// The loss of cutting a term at the grid, in units of the grid: less than this, or at most this.
    pub(super) fn cut(below: Below, counted: Counted) -> Self {
        match below {
            Below::Truncate => Self::toward_zero(1.0, counted),
            Below::Floor => Self { down: 1.0, up: 0.0 },
            Below::Nearest | Below::NearestAway => Self::both(0.5),
            Below::Sticky | Below::OnesComplement => Self::both(1.0),
        }
    }

    /// The loss of rounding a result, in units in the last place.
    pub(super) fn rounded(rounding: Rounding, counted: Counted) -> Self {
        match rounding {
            Rounding::NearestEven => Self::both(0.5),
            Rounding::TowardZero => Self::toward_zero(1.0, counted),
            Rounding::Down => Self { down: 1.0, up: 0.0 },
            Rounding::Up => Self { down: 0.0, up: 1.0 },
            Rounding::ToOdd => Self::both(1.0),
        }
    }

    /// Multiplies both sides.
    pub(super) fn times(self, factor: f64) -> Self {
        // A factor of 0 gives 0, even if this is infinite.
        let of = |side: f64| if factor == 0.0 { 0.0 } else { factor * side };
        Self { down: of(self.down), up: of(self.up) }
    }

    /// The larger loss on each side.
    pub(super) fn max(self, other: Self) -> Self {
        Self { down: self.down.max(other.down), up: self.up.max(other.up) }
    }

    /// The larger of the two losses.
    #[must_use]
    pub fn most(self) -> f64 {
        self.down.max(self.up)
    }
}

impl Add for Sides {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { down: self.down + other.down, up: self.up + other.up }
    }
}

/// A loss: `absolute`, plus the smaller of two bounds that follow from the largest exponent e and from Q, the sum of
/// 2^(sum of the operands' exponents) over all products: `relative`·2^e, and `beside`·2^e + `of_products`·Q.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Loss {
    pub(super) relative: Sides,
    pub(super) beside: Sides,
    pub(super) of_products: Sides,
    pub(super) absolute: Sides,
}

impl Loss {
    /// A loss that depends on e alone.
    pub(super) fn of(relative: Sides, absolute: Sides) -> Self {
        Self { relative, beside: relative, of_products: Sides::default(), absolute }
    }

    /// The loss of this many additions of different products. Since Q is that of all products, its part stays.
    pub(super) fn times(self, factor: f64) -> Self {
        let Self { relative, beside, of_products, absolute } = self;
        let [relative, beside, absolute] = [relative, beside, absolute].map(|sides| sides.times(factor));
        Self { relative, beside, of_products, absolute }
    }

    /// The larger loss of each part and side.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            relative: self.relative.max(other.relative),
            beside: self.beside.max(other.beside),
            of_products: self.of_products.max(other.of_products),
            absolute: self.absolute.max(other.absolute),
        }
    }
}

/// The loss of additions of different products.
impl Add for Loss {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            relative: self.relative + other.relative,
            beside: self.beside + other.beside,
            of_products: self.of_products.max(other.of_products),
            absolute: self.absolute + other.absolute,
        }
    }
}

/// 2^exponent; 0 and infinity beyond the range of f64.
pub(super) fn power_of_two(exponent: i32) -> f64 {
    f64::from(exponent).exp2()
}
