//! Identification of a unit: builds an executable model of an operation without prior knowledge, and then tries to
//! refute it.
//!
//! The tree comes from experiments on the order of summation. The parameters of its adders come from one batch of
//! structured inputs and a search through everything that a model file can express. The model found is then attacked
//! with new inputs, and the search goes on with those on which it fails. A unit that no model explains is reported as
//! such, never fitted.

mod attack;
mod bend;
mod beside;
mod blocks;
mod climb;
mod directed;
mod document;
mod experiments;
mod expression;
mod fit;
mod flattened;
mod focus;
mod gemm;
mod groups;
mod guessed;
mod hypothesis;
mod integers;
mod known;
mod live;
mod moderate;
mod moves;
mod nan;
mod nodes;
mod one;
mod outcome;
mod payloads;
mod pool;
mod proposals;
mod refine;
mod repeats;
mod rivals;
mod run;
mod scored;
mod search;
mod shapes;
mod simplify;
mod skeleton;
mod symmetric;
mod thresholds;
mod tiles;
mod trees;
mod united;
mod verify;
mod words;
mod wrapped;
mod written;

pub use crate::nan_bits::NanBits;
pub use blocks::{Counted, count_blocks, dots_of_shard};
pub use document::model_of;
pub use gemm::{
    Found, GemmEffort, GemmIdentification, GemmOutcome, Invariance, Part, SameRecipe, ShapeOf, ShapeWitness,
    Unexplained, compare_shapes, explains, identify_gemm, same_recipe,
};
pub use known::{EXPECTED, as_expected, disagreements, equals};
pub use one::identify;
pub use outcome::{Arithmetic, Effort, Identification, Outcome};
pub use verify::{Comparison, verify};
pub use words::parameters;
