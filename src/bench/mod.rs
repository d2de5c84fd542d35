//! Throughput: the number of operations per second of a unit that nothing else slows down.
//!
//! [`measure`] times chains of multiply-adds whose operands stay in registers ([`mxprobe_api::Timing`]), after it has
//! checked that they compute the same as [`mxprobe_api::execute`]; [`conclude`] compares operations with each other and
//! with the vendor's specification.

mod conclude;
mod measure;
mod operands;
mod order;
mod peaks;

pub use conclude::conclude;
pub use measure::{Settings, measure};
pub use order::headline_first;
pub use peaks::boost_peak;

pub(crate) use operands::operands;
