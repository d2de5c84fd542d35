//! What differs between reports.

mod keys;
mod matching;
mod matrix;
mod reports;
mod same_device;

pub use reports::compare;
