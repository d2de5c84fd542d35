//! `mxprobe` determines how a matrix unit really computes.
//!
//! A device computes batches of tiles ([`mxprobe_api`]). [`probes`] ask it questions and answer them with evidence;
//! [`scalars`] asks those of IEEE 754 about its scalar arithmetic. [`identify`] fits an executable model to its answers
//! and tries to refute it. [`dots`] draws inputs and simplifies them; [`proof`] tells two models apart or proves them
//! equal. [`gemm`] multiplies whole matrices, and [`tolerance`] bounds the distance of their elements from the exact
//! ones. [`mod@bench`] measures throughput, and [`screen`] searches for units that currently compute wrongly.
//! [`session`] runs all that on one device and produces a report.
//!
//! [`findings`] are the answers, [`report`] holds the results, [`plot`] draws them, [`fleet`] merges the results of
//! many machines, [`shards`] merges the parts of one job, [`site`] generates pages about all units, and [`glossary`] explains the terms. [`Backends`] is the
//! command `mxprobe`, for the backends included here and for any other. Nothing here depends on a vendor.

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
