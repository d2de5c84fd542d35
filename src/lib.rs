//! `mxprobe` finds out how a matrix unit really computes.
//!
//! A device computes batches of tiles ([`mxprobe_api`]); [`probes`] ask it questions and answer them with evidence,
//! [`scalars`] those of IEEE 754 beside it;
//! [`identify`] fits an executable model to what it answers and tries to break it; [`dots`] draws inputs and makes them
//! simple; [`proof`] tells two models apart or proves them equal; [`gemm`] multiplies whole matrices, and [`tolerance`] says how
//! far their elements may be from the exact ones; [`mod@bench`]
//! measures throughput, and [`screen`] looks for units that compute wrongly now; [`session`] asks all that of one device and makes a report of it; [`findings`] are the answers,
//! [`report`] holds what was learnt, [`plot`] draws it, [`fleet`] merges what was learnt on many machines, [`shards`] the parts of one job, [`site`] makes pages of all units, and [`glossary`] says what its words mean. [`Backends`] is the command `mxprobe`, for the backends that it includes and for
//! any other. Nothing here knows a vendor.

pub mod bench;
mod cli;
mod clock;
pub mod dots;
pub mod findings;
pub mod fleet;
pub mod gemm;
pub mod glossary;
pub mod identify;
pub mod isolate;
mod literal;
mod nan_bits;
pub mod papers;
pub mod plain;
pub mod plot;
pub mod probes;
pub mod proof;
pub mod report;
pub mod scalars;
pub mod screen;
pub mod session;
mod shard;
pub mod shards;
pub mod site;
pub mod tolerance;

pub use cli::{Backends, open};
pub use shard::Shard;
