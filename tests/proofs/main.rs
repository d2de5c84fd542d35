//! What is proved about models, and that the formulas it is proved with say what the exact evaluator computes.
#![allow(missing_docs, clippy::print_stderr, clippy::print_stdout)]

mod carry;
mod evaluators;
mod neighbours;
mod pairs;
mod shipped;
