//! Finds the elements of a product that lie outside their tolerance.

use mxprobe_api::Elements;

use super::interval::{Element, Interval};

/// A product compared with its tolerance.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The number of elements of D.
    pub elements: usize,
    /// The number of elements for which every value is admissible, because partial sums may overflow.
    pub unbounded: usize,
    /// The largest share of its tolerance that an admissible element uses, from 0 to 1; NaN if no element has a
    /// tolerance.
    pub nearest: f64,
    /// The elements outside their tolerance, row by row.
    pub outside: Vec<Outside>,
}

/// An element that no admissible order produces.
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
    /// Its tolerance.
    pub element: Element,
    /// The distance from the value to the nearer end of the interval; NaN if either is NaN or infinite.
    pub beyond: f64,
    /// |d − exact| relative to the largest loss on that side; infinite if nothing may be lost, NaN if either is not a
    /// number.
    pub times: f64,
}

impl Checked {
    /// Compares D, with rows of `n` elements, with the tolerances of its elements.
    pub(super) fn new(d: &Elements, elements: Vec<Element>, n: usize) -> Self {
        let format = d.format();
        let mut checked = Self { elements: elements.len(), unbounded: 0, nearest: f64::NAN, outside: Vec::new() };
        for (at, (element, bits)) in elements.into_iter().zip(d.iter()).enumerate() {
            checked.unbounded += usize::from(element.interval == Interval::Unbounded);
            let value = format.to_f64(bits);
            let error = value - element.exact;
            let most = if error < 0.0 { element.down } else { element.up };
            // `exact` is itself rounded to f64.
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

    /// The element furthest outside, in units of its tolerance; NaN counts as furthest.
    #[must_use]
    pub fn worst(&self) -> Option<&Outside> {
        let rank = |outside: &Outside| if outside.times.is_nan() { f64::INFINITY } else { outside.times };
        self.outside.iter().max_by(|one, other| rank(one).total_cmp(&rank(other)))
    }
}
