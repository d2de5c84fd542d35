//! Two models: a dot on which they differ, or a proof that there is none.

mod adder;
pub mod circuit;
pub mod cnf;
pub mod dot;
mod integer;
pub mod logic;
mod number;
mod rounding;
pub mod rup;
pub mod search;
pub mod solver;
pub mod words;
