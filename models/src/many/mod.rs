//! Work on many values of f64 at a time: decoding, rounding to a format, and nearly exact products.

mod decode;
mod grid;
mod product;
mod values;

pub use decode::decode;
pub use grid::{Grid, Other};
pub use product::product;
pub use values::{exponent, nan_bits, round, value};
