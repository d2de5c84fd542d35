//! Identifies how a library computes a product with its unit: the recipe of the product, seen from outside.
//!
//! The search determines which elements of D are computed alike, then the tree over k, then the levels that give this
//! tree, and then their parameters: the unit inside, formats and rounding of partial sums, and the epilogue. The
//! resulting recipe is compared with the device on random elements. A product that no candidate explains is refused,
//! with an input that shows it.

mod boundary;
mod candidate;
mod check;
mod compute;
mod fit;
mod invariance;
mod levels;
mod own;
mod pool;
mod product;
mod proof;
mod recipe;
mod regions;
mod run;
mod scale;
mod smallest;
mod stored;
mod tree;
mod units;
mod values;

pub use boundary::explains;
pub use invariance::{Invariance, ShapeOf, ShapeWitness, compare_shapes};
pub use proof::{SameRecipe, same_recipe};
pub use run::{Found, GemmEffort, GemmIdentification, GemmOutcome, Part, identify_gemm};
pub use smallest::Unexplained;
