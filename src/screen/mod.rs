//! Screening: does a device compute every bit as its model does, on each of its units, now?
//!
//! Inputs are drawn from a seed and packed into blocks of tiles. The model computes the digests of the right results
//! once ([`Golden`]), and a [`Cache`] keeps them. The device then computes the blocks over and over and compares
//! digests next to its units ([`mxprobe_api::screen`]). A device that chains instructions does so on further blocks, at
//! full rate. Words are compared only if a digest is wrong, to name the place
//! that wrong words have in common.

mod ask;
mod cache;
mod export;
mod golden;
mod model;
mod place;

pub use ask::{Settings, screen_one};
pub use cache::Cache;
pub use export::{log_line, problem_line, prometheus};
pub use golden::{BLOCK_ELEMENTS, ELEMENTS, Golden, Inputs, Reference};
pub use model::model_of;
