//! Comparison of reports.

mod keys;
mod matching;
mod matrix;
mod measured;
mod reports;
mod same_device;

pub use keys::compared_answer;
pub use measured::{compare_growth, compare_throughput};
pub use reports::compare;
