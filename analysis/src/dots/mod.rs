//! Dots, the inputs of one element of D: drawing and simplifying them.
//!
//! The classes of inputs are those with which the conformance suite compares devices; [`Draw`] goes through all of them
//! and mixes in what single classes rarely contain: subnormal operands, zeros of both signs, equal terms.

mod draw;
mod edges;
mod simplest;
mod sparse;

pub use draw::{Draw, draw, seed_of};
pub(crate) use edges::{Edges, signed};
pub use mxprobe_dots::{CLASSES, Dot, Maker, Random, pack, pack_from};

pub use simplest::{cost, simplest};
pub(crate) use sparse::Sparse;
