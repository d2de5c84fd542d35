//! Executable models of matrix units.
//!
//! A model is data: a file in `units/`, which says how the terms of a dot are joined (a tree of fused adders) and how
//! each adder aligns, adds and rounds, with the source of every value. One exact evaluator ([`evaluate`]) runs them
//! all; the fast paths of [`Evaluator`] must agree with it bit for bit. [`multiply`] computes whole matrices, and
//! [`Trace`] shows one dot step by step. A [`recipe`] describes how a library computes a matrix product with a unit.
//!
//! The two fp8 instructions of an H100 compute different sums from the same operands, 1·1 and 2^-7·2^-7:
//!
//! ```
//! use mxprobe_api::{Format, OperationId};
//! use mxprobe_models::{Dot, Evaluator, load};
//!
//! let model = load("h100")?;
//! let wgmma: OperationId = "wgmma.m64n8k32.f32.e4m3.e4m3.f32".parse()?;
//! let mma: OperationId = "mma.m16n8k32.f32.e4m3.e4m3.f32".parse()?;
//!
//! let mut a = [0; 32];
//! a[0] = Format::E4M3.from_f64(1.0);
//! a[1] = Format::E4M3.from_f64(0.0078125);
//! let dot = Dot { a: &a, b: &a, c: 0, scales: None };
//!
//! assert_eq!(Evaluator::new(&model, &wgmma)?.dot(dot)?, 0x3f80_0000); // 1
//! assert_eq!(Evaluator::new(&model, &mma)?.dot(dot)?, 0x3f80_0200); // 1 + 2^-14
//! # Ok::<(), mxprobe_api::Error>(())
//! ```
#![deny(unsafe_code)]

mod adder;
mod cards;
mod convert;
mod document;
mod exact;
mod explain;
mod fast;
mod gemm;
mod library;
pub mod many;
mod model;
mod named;
mod parameters;
mod pieces;
mod provenance;
mod read;
pub mod recipe;
mod shipped;
mod trace;
mod tree;
mod write;

pub use adder::{Adder, Below, Class, Exponent, GridRule, IgnoredValues, NanCause, NanRules, Output, Scale, ZeroSign};
pub use cards::{Card, cards, find, is_called};
pub use convert::holds;
pub use exact::{Dot, Exact, Observer, Step, Value, evaluate};
pub use fast::{Evaluator, Path, Sample, Vectorised, vectorised};
pub use gemm::multiply;
pub use library::load;
pub use model::{Flush, Model, SCHEMA, Unit, Variant, plan_of};
pub use mxprobe_api::threads;
pub use parameters::{Choice, Choices, PARAMETERS, Parameter, RULE, Setting, Tried, Turn, documentation};
pub use provenance::{Basis, Origin, Provenance};
pub use shipped::shipped;
pub use trace::Trace;
pub use tree::{Plan, PlanNode, Term};
