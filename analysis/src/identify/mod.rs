//! Identification of a unit: builds an executable model of an operation without prior knowledge, and then tries to
//! refute it.
//!
//! The tree comes from experiments on the order of summation. The parameters of its adders come from one batch of
//! structured inputs and a search through everything that a model file can express. The model found is then attacked
//! with new inputs, and the search goes on with those on which it fails. A unit that no model explains is reported as
//! such, never fitted.

mod attack;
mod beforehand;
mod bend;
mod candidates;
mod document;
mod dots;
mod fitting;
mod gemm;
mod known;
mod one;
mod outcome;
mod readings;
mod refute;
mod repeats;
mod run;
mod shape;
mod tree;
mod trees;
mod verify;
mod words;

pub use crate::nan_bits::NanBits;
pub use document::model_of;
pub use dots::blocks::{Counted, count_blocks, dots_of_shard};
pub use gemm::{
    Found, GemmEffort, GemmIdentification, GemmOutcome, Invariance, Part, SameRecipe, ShapeOf, ShapeWitness,
    Unexplained, compare_shapes, explains, identify_gemm, same_recipe,
};
pub use known::{EXPECTED, as_expected, disagreements, equals};
pub use one::identify;
pub use outcome::{Arithmetic, Effort, Identification, Outcome};
pub use verify::{Comparison, verify};
pub use words::parameters;
