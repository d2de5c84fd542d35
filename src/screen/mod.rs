//! Screening: does a device compute every bit as its model does, on each of its units, now?
//!
//! Inputs are drawn from a seed and put into blocks of tiles; the model says once what the digests of the right results are
//! ([`Golden`]), and a [`Cache`] keeps them. The device then computes the blocks again and again and compares digests beside its units
//! ([`mxprobe_api::screen`]). Only where a digest is wrong are words compared, and the place that they have in common is named.

mod ask;
mod cache;
mod export;
mod golden;
mod model;
mod place;

pub use ask::{Settings, screen_one};
pub use cache::Cache;
pub use export::{log_line, problem_line, prometheus};
pub use golden::{BLOCK_ELEMENTS, BLOCKS, Golden};
pub use model::model_of;
