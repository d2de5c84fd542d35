//! `mxprobe` finds out how a matrix unit really computes.
//!
//! A device computes batches of tiles ([`mxprobe_api`]); [`probes`] ask it questions and answer them with evidence;
//! [`report`] holds what was learnt. Nothing here knows a vendor.

pub mod dots;
pub mod identify;
pub mod probes;
pub mod report;
