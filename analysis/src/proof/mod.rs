//! Two models: a dot on which they differ, or a proof that there is none.

mod adder;
pub mod algorithms;
mod alignment;
pub mod canonical;
pub mod carry;
pub mod circuit;
pub mod cnf;
pub mod conditions;
pub mod decide;
pub mod dot;
mod integer;
mod lift;
pub mod logic;
mod nan;
pub mod neighbours;
mod number;
pub mod panel;
pub mod parts;
pub mod properties;
mod rounding;
pub mod rup;
pub mod search;
pub mod smt;
pub mod solver;
pub mod words;
