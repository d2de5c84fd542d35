//! Inputs that target the differences between matrix units, for any formats, shared by probes, models and the
//! conformance suite.
//!
//! A [`Dot`] is the input of one element of D; [`pack`] places many of them in tiles. [`Maker`] makes dots of each of
//! the [`CLASSES`]; as it draws from a [`Random`], the dots for a seed are the same on every machine.
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
mod line;
mod maker;

pub use classes::CLASSES;
pub use dot::{Dot, pack, pack_from, place};
pub use line::{read_plain, write_answers};
pub use maker::Maker;
pub use mxprobe_api::Random;
