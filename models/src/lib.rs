//! Executable models of matrix units.
//!
//! A model is data: a file in `units/`, which says how the terms of a dot are joined (a tree of fused adders) and how
//! each adder aligns, adds and rounds, with the source of every value. One exact evaluator runs them all; fast paths
//! must agree with it bit for bit.
#![deny(unsafe_code)]

mod adder;
mod cards;
mod document;
mod exact;
mod explain;
mod fast;
mod gemm;
mod library;
mod model;
mod named;
mod parameters;
mod provenance;
mod read;
pub mod recipe;
mod shipped;
mod trace;
mod tree;
mod write;

pub use adder::{Adder, Below, Class, Exponent, GridRule, IgnoredValues, NanCause, NanRules, Output, Scale, ZeroSign};
pub use cards::{Card, cards, find, is_called};
pub use exact::{Dot, Exact, Observer, Step, Value, evaluate};
pub use fast::{Evaluator, Path, Sample, Vectorised, vectorised};
pub use gemm::{multiply, threads};
pub use library::load;
pub use model::{Flush, Model, SCHEMA, Unit, Variant, plan_of};
pub use parameters::{Choice, Choices, PARAMETERS, Parameter, RULE, Setting, Tried, Turn, documentation};
pub use provenance::{Basis, Origin, Provenance};
pub use shipped::shipped;
pub use trace::Trace;
pub use tree::{Plan, PlanNode, Term};
