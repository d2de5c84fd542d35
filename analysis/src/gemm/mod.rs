//! Products of whole matrices on one unit, device or model: words, order, accumulation, and the remaining error.
//!
//! A product here is D = A·B + C of any m, n, k. Elements of A and B are values; each is given to the unit as one or
//! more *words* of the operation's format ([`words`]), and the products of words are added as an [`Algorithm`] says.
//! Values are rounded only where the algorithm says so; [`Algorithm`]'s documentation describes every step.

mod accumulation;
mod blocks;
mod bound;
mod growth;
mod multiply;
mod parts;
mod quick;
mod random;
mod reference;
mod smallest_block;
mod theory;
mod unit;
mod words;
mod yardstick;

pub use accumulation::{Accumulation, Block};
pub use growth::single;
pub use growth::{
    Bounds, Cause, Curve, Drawn, Experiment, Fit, Fits, Growth, Interval, Point, Step, Variant, grow, merge,
};
pub use multiply::multiply_words;
pub use multiply::{Algorithm, Method, Product, Products, multiply};
pub use parts::parts;
pub use parts::parts_of_words;
pub use random::Uniform;
pub use reference::{Errors, Parts, errors};
pub use smallest_block::{BlockError, BlockErrors, Draw, block_errors};
pub use theory::{Published, Theory};
pub use unit::Unit;
pub use words::{Rounded, Scaling, Split, words};
pub use yardstick::{Race, Way, Yardstick, compare};

pub use mxprobe_models::many::value;

use mxprobe_api::{Elements, Error, Format};
use mxprobe_models::many::{decode, nan_bits};

/// A matrix of values, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// The values, `rows · columns` of them.
    pub values: Vec<f64>,
}

impl Matrix {
    /// A matrix from its values, row-major.
    ///
    /// # Errors
    /// If there are not `rows · columns` values.
    pub fn new(rows: usize, columns: usize, values: Vec<f64>) -> Result<Self, Error> {
        if rows.checked_mul(columns) != Some(values.len()) {
            return Err(Error::invalid(format!("{} values do not fill a {rows}×{columns} matrix", values.len())));
        }
        Ok(Self { rows, columns, values })
    }

    /// A matrix of +0.
    #[must_use]
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![0.0; rows * columns] }
    }

    /// The values of elements of a format, row-major.
    #[must_use]
    pub fn of(rows: usize, columns: usize, bits: &Elements) -> Self {
        let mut values = Vec::new();
        decode(bits.format(), bits.bytes(), &mut values);
        Self { rows, columns, values }
    }

    /// Appends the values of elements, each in the fewest whole bytes that hold its format, little-endian. Ignores bits
    /// above the format's width, and a partial element at the end.
    pub fn decode(format: Format, bytes: &[u8], into: &mut Vec<f64>) {
        decode(format, bytes, into);
    }

    /// The bits of values that a format holds exactly.
    ///
    /// # Errors
    /// If the format does not hold a value: names the first such value and its place. A NaN keeps its sign and as much
    /// of its fraction as fits.
    pub fn exactly(&self, format: Format, name: &str) -> Result<Elements, Error> {
        let mut bits = Elements::from_bits(format, []);
        for (at, value) in self.values.iter().enumerate() {
            let element = if value.is_nan() { nan_bits(format, *value) } else { format.from_f64(*value) };
            let back = format.to_f64(element);
            if back.to_bits() != value.to_bits() && !(back.is_nan() && value.is_nan()) {
                return Err(Error::invalid(format!(
                    "{name}[{}, {}] is {value:e}, which {format} does not hold exactly",
                    at / self.columns.max(1),
                    at % self.columns.max(1)
                )));
            }
            bits.push(element);
        }
        Ok(bits)
    }
}
