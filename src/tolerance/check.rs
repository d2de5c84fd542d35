//! Elements of a product that lie outside of what they may be.

use mxprobe_api::Elements;

use super::interval::{Element, Interval};

/// What a product is, held against what it may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Elements of D.
    pub elements: usize,
    /// Elements that every value is admissible for: partial sums may overflow.
    pub unbounded: usize,
    /// The largest part of its tolerance that an element inside of it takes, from 0 to 1; NaN if none has a tolerance.
    pub nearest: f64,
    /// Elements that lie outside, row by row.
    pub outside: Vec<Outside>,
}

/// An element that no admissible order gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    /// Its row.
    pub row: usize,
    /// Its column.
    pub column: usize,
    /// Its bits.
    pub d: u64,
    /// Its value.
    pub value: f64,
    /// What it may be.
    pub element: Element,
    /// How far the value lies beyond the nearer end of the interval; NaN where either is no number, or infinite.
    pub beyond: f64,
    /// |d − exact| in units of what is lost at the most on that side; infinite if nothing may be lost, NaN if one of them is
    /// no number.
    pub times: f64,
}

impl Checked {
    /// D against its elements, `n` in a row.
    pub(super) fn new(d: &Elements, elements: Vec<Element>, n: usize) -> Self {
        let format = d.format();
        let mut checked = Self { elements: elements.len(), unbounded: 0, nearest: f64::NAN, outside: Vec::new() };
        for (at, (element, bits)) in elements.into_iter().zip(d.iter()).enumerate() {
            checked.unbounded += usize::from(element.interval == Interval::Unbounded);
            let value = format.to_f64(bits);
            let error = value - element.exact;
            let most = if error < 0.0 { element.down } else { element.up };
            // The exact value was rounded to f64 to say so.
            let times = if error == 0.0 { 0.0 } else { error.abs() / most };
            if element.interval.contains(format, bits) {
                if times.is_finite() && most > 0.0 {
                    checked.nearest = checked.nearest.max(times);
                }
                continue;
            }
            let beyond = match element.interval {
                Interval::Within { low, high } => {
                    let (low, high) = (format.to_f64(low), format.to_f64(high));
                    let beyond = (low - value).max(value - high);
                    if beyond.is_finite() { beyond } else { f64::NAN }
                }
                Interval::Nan | Interval::Unbounded => f64::NAN,
            };
            let (row, column) = (at / n, at % n);
            checked.outside.push(Outside { row, column, d: bits, value, element, beyond, times });
        }
        checked
    }

    /// Whether every element is admissible.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.outside.is_empty()
    }

    /// The element that lies furthest outside, in units of its tolerance; one that is no number first.
    #[must_use]
    pub fn worst(&self) -> Option<&Outside> {
        let rank = |outside: &Outside| if outside.times.is_nan() { f64::INFINITY } else { outside.times };
        self.outside.iter().max_by(|one, other| rank(one).total_cmp(&rank(other)))
    }
}
