//! The interval of one element of D, which contains the result of every admissible order.

use mxprobe_api::{Format, Rounding};

use super::{
    bound::{Bound, ROUNDED},
    exact::Exact,
    sides::Signs,
    terms::{Sums, Terms},
};

/// The results that a bound admits for one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Those from `low` to `high`, both included, as bits of D's format; infinities count as values.
    Within {
        /// The lowest result.
        low: u64,
        /// The highest result.
        high: u64,
    },
    /// A NaN with any bits.
    Nan,
    /// Any result: a partial sum may leave the range of its format.
    Unbounded,
}

impl Interval {
    /// Whether these bits of D's format are admissible. Zeros of either sign are equal.
    #[must_use]
    pub fn contains(self, format: Format, bits: u64) -> bool {
        let value = format.to_f64(bits);
        match self {
            Self::Within { low, high } => format.to_f64(low) <= value && value <= format.to_f64(high),
            Self::Nan => value.is_nan(),
            Self::Unbounded => true,
        }
    }
}

/// One element of D: its exact value and its tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Element {
    /// The exact sum of the operands as the unit reads them, as the nearest f64; NaN if it is one.
    pub exact: f64,
    /// The furthest a result may lie below it.
    pub down: f64,
    /// The furthest a result may lie above it.
    pub up: f64,
    /// The admissible results.
    pub interval: Interval,
}

impl Element {
    pub(super) fn nan() -> Self {
        Self { exact: f64::NAN, down: 0.0, up: 0.0, interval: Interval::Nan }
    }

    fn unbounded(exact: f64) -> Self {
        Self { exact, down: f64::INFINITY, up: f64::INFINITY, interval: Interval::Unbounded }
    }

    /// An element whose result is the same in every order.
    pub(super) fn exactly(exact: f64, bits: u64) -> Self {
        Self { exact, down: 0.0, up: 0.0, interval: Interval::Within { low: bits, high: bits } }
    }
}

impl Sums {
    fn signs(&self) -> Signs {
        match (self.positive.is_zero(), self.negative.is_zero()) {
            (_, true) => Signs::Positive,
            (true, false) => Signs::Negative,
            (false, false) => Signs::Mixed,
        }
    }

    pub(super) fn exact(&self) -> Exact {
        self.positive.minus(&self.negative)
    }
}

/// The most that is lost below and above, exactly.
struct Spread {
    down: Exact,
    up: Exact,
}

impl Bound {
    /// The tolerance of terms in a format; the bound must be that of dots with or without c, as these terms have it.
    pub(super) fn element(&self, terms: &Terms, format: Format) -> Element {
        let Terms::Sums(sums) = terms else { return Element::nan() };
        let exact = sums.exact();
        let value = exact.to_f64();
        let spread = self.spread(sums);
        let largest = Exact::of(self.largest());
        // Whether partial sums of that sign stay within the range of every format.
        let fits = |of_sign: &Exact, more: &Exact| of_sign.plus(more) <= largest;
        let (fits_above, fits_below) = match &spread {
            Some(spread) => (fits(&sums.positive, &spread.up), fits(&sums.negative, &spread.down)),
            None => (false, false),
        };
        if let Some(negative) = sums.infinite {
            let fits_opposite = if negative { fits_above } else { fits_below };
            let infinity = format.infinity(negative).filter(|_| fits_opposite);
            let value = if negative { f64::NEG_INFINITY } else { f64::INFINITY };
            return infinity.map_or(Element::unbounded(value), |bits| Element::exactly(value, bits));
        }
        let (Some(Spread { down, up }), true) = (spread, fits_above && fits_below) else {
            return Element::unbounded(value);
        };
        let low = exact.minus(&down).rounded(format, Rounding::Up);
        let high = exact.plus(&up).rounded(format, Rounding::Down);
        Element { exact: value, down: down.to_f64(), up: up.to_f64(), interval: Interval::Within { low, high } }
    }

    /// The most that these sums lose; `None` if they may grow without limit.
    fn spread(&self, sums: &Sums) -> Option<Spread> {
        if sums.positive.is_zero() && sums.negative.is_zero() {
            return Some(Spread { down: Exact::zero(), up: Exact::zero() });
        }
        let signs = sums.signs();
        let (relative, absolute, outward) = (self.relative(signs), self.absolute(signs), self.outward());
        let largest = if sums.positive > sums.negative { &sums.positive } else { &sums.negative };
        let least = self.least_exponent().max(sums.exponent.unwrap_or(i32::MIN));
        let at = |exponent: i32, relative: f64, absolute: f64| {
            Exact::of(relative).scaled(exponent).plus(&Exact::of(absolute))
        };
        let [beside, of_products] = self.split(signs);
        let most = |exponent: i32, [relative, beside, of_products, absolute]: [f64; 4]| {
            let whole = at(exponent, relative, absolute);
            if of_products == 0.0 {
                return whole;
            }
            whole.min(at(exponent, beside, absolute + of_products * sums.powers * ROUNDED))
        };
        let mut exponent = largest.exponent().unwrap_or(least).max(least);
        if sums.lowest.is_some_and(|lowest| self.is_lossless(lowest, exponent)) {
            return Some(Spread { down: Exact::zero(), up: Exact::zero() });
        }
        let mut uniform = None;
        // The exponent of the largest partial sum must also cover what was lost so far.
        for _ in 0..MOST_STEPS {
            let down = most(exponent, [relative.down, beside.down, of_products.down, absolute.down]);
            let up = most(exponent, [relative.up, beside.up, of_products.up, absolute.up]);
            let needed = largest.plus(&at(exponent, outward.0, outward.1)).exponent().unwrap_or(least).max(least);
            if needed <= exponent {
                uniform = Some(Spread { down, up });
                break;
            }
            exponent = needed;
        }
        if !self.along().is_finite() {
            return uniform;
        }
        let magnitudes = sums.positive.plus(&sums.negative);
        let aligned = Exact::of(sums.small as f64).scaled(sums.exponent.unwrap_or(0));
        let least = self.least_exponent();
        let path = |relative: f64, absolute: f64| {
            if relative == 0.0 && absolute == 0.0 {
                return Exact::zero();
            }
            let rest = at(least, relative, absolute);
            let grown = Exact::of(1.0 + self.along());
            magnitudes.plus(&aligned).times(&Exact::of(self.along())).plus(&rest.times(&grown))
        };
        let path = Spread { down: path(relative.down, absolute.down), up: path(relative.up, absolute.up) };
        Some(match uniform {
            Some(Spread { down, up }) => Spread { down: down.min(path.down), up: up.min(path.up) },
            None => path,
        })
    }
}

/// The most powers of two that a sum may grow by.
const MOST_STEPS: usize = 64;
