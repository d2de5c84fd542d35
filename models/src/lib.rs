//! Executable models of matrix units.
//!
//! A model is data: a file in `units/`, which says how the terms of a dot are joined (a tree of fused adders) and how
//! each adder aligns, adds and rounds, with the source of every value. One exact evaluator runs them all; fast paths must
//! agree with it bit for bit.
#![deny(unsafe_code)]

mod compose;
mod document;
mod exact;
mod explain;
mod fast;
mod gemm;
mod library;
mod model;
mod trace;
mod tree;

pub use compose::plan_of;
pub use exact::{Dot, evaluate};
pub use fast::{Evaluator, Path, Sample, Vectorised, vectorised};
pub use gemm::multiply;
pub use library::{load, shipped};
pub use model::{
    Adder, Basis, Below, Class, Exponent, Flush, GridRule, IgnoredValues, Model, NanCause, NanRules, Origin, Output,
    Provenance, SCHEMA, Scale, Unit, Variant, ZeroSign,
};
pub use trace::{Exact, Observer, Step, Trace, Value};
pub use tree::{Plan, PlanNode, Term};
