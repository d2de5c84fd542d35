//! What differs between reports.

mod keys;
mod matching;
mod reports;
mod same_device;

pub use matching::is_layout;
pub use reports::compare;
