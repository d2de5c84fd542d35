//! The exact evaluator: integers of any width, one obviously right path for every model.

mod align;
mod evaluate;
mod fuse;
mod number;
mod output;
mod step;
mod sum;

pub use evaluate::{Dot, evaluate};
pub use step::{Exact, Observer, Step, Value};
pub(crate) use {
    evaluate::evaluate_observed,
    fuse::{Bits, Fused, fuse},
    output::cut_encoding,
};
