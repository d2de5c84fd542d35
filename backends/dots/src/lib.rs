//! Inputs directed at what matrix units do differently, for any formats: what probes, models and the conformance suite draw
//! from alike.
//!
//! A [`Dot`] is the input of one element of D; [`pack`] gives many of them places in tiles. [`Maker`] makes dots of each of
//! the [`CLASSES`], the same for a seed on every machine: what it draws comes from a [`Random`].
//!
//! ```
//! use mxprobe_dots::{CLASSES, Maker};
//!
//! let id: mxprobe_api::OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse()?;
//! let ties = CLASSES.iter().position(|(name, _)| *name == "ties").expect("a class of this name");
//! let dot = Maker::new(&id, 1).make(ties, 0).expect("a class of floating formats");
//! assert_eq!((dot.a.len(), dot.b.len()), (16, 16));
//! # Ok::<(), mxprobe_api::Error>(())
//! ```
#![forbid(unsafe_code)]

mod classes;
mod dot;
mod maker;

pub use classes::CLASSES;
pub use dot::{Dot, pack, pack_from, place};
pub use maker::Maker;
pub use mxprobe_api::Random;
