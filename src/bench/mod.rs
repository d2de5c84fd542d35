//! Throughput: how many operations a second a unit does when nothing but the unit holds it up.
//!
//! [`measure`] times chains of multiply-adds whose operands stay in registers ([`mxprobe_api::Timing`]), after it has seen
//! that they compute what [`mxprobe_api::execute`] does; [`conclude`] holds operations against each other and against what
//! the vendor promises.

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
