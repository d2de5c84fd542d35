//! Dots: the inputs of one element of D, how they are drawn, and how they are made simple.
//!
//! The classes of inputs are those by which the conformance suite compares devices; [`Draw`] goes through all of them
//! and mixes in what single classes hold too rarely: subnormal operands, zeros of both signs, equal terms.

mod draw;
mod edges;
mod simplest;
mod sparse;

pub use draw::{Draw, draw, seed_of};
pub(crate) use edges::Edges;
pub use mxprobe_dots::{CLASSES, Dot, Maker, Random, pack, pack_from};
pub use simplest::{cost, simplest};
pub(crate) use sparse::Sparse;
