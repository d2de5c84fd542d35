//! Recipes: how a library computes matrix products with a matrix unit.
//!
//! A recipe is data, a file that refers to a model: which operation computes, how k is divided among partial sums, how
//! these are merged, level by level, and how the sum is processed before it is stored. docs/recipes.md describes the
//! format.

mod difference;
mod divide;
mod epilogue;
mod expression;
mod gather;
mod library;
mod names;
mod program;
mod read;
mod structure;
mod sum;
#[cfg(test)]
mod tests;
mod trace;
mod types;
mod words;
mod write;

pub use difference::{Side, Verdict, Witness, decide, differences};
pub use expression::{Expression, Factor, Function};
pub use library::{load, shipped};
pub use program::Program;
pub use structure::Structure;
pub use trace::ElementTrace;
pub use types::{
    Case, Count, Division, Input, InputShape, Lengths, Level, MergeOrder, Recipe, Rest, SCHEMA, Shapes, Share, Start,
};
