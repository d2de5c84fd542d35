//! What differs between reports.

mod keys;
mod matching;
mod measured;
mod reports;
mod same_device;

pub use matching::is_layout;
pub use measured::{compare_growth, compare_throughput};
pub use reports::compare;
