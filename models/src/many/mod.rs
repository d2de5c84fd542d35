//! Work on many values of f64 at a time: decoding, rounding to a format, and nearly exact products.

mod blocked;
mod decode;
mod distances;
mod grid;
mod product;
mod spread;
mod values;

pub use blocked::{Arithmetic, Factors, Plain, Region, Rows, blocked};
pub use decode::{decode, decode_into};
pub use distances::{Distance, Question, Signed, distances};
pub use grid::{Grid, Other};
pub use product::product;
pub use spread::{Spread, largest_ratio, sums_are_exact};
pub use values::{exponent, nan_bits, round, value};
