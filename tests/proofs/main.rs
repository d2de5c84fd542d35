//! Proofs about models, and checks that their formulas agree with the exact evaluator.
#![allow(missing_docs, clippy::print_stderr, clippy::print_stdout)]

mod carry;
mod evaluators;
mod neighbours;
mod pairs;
mod shipped;
