//! Runs kernels: many warps in lockstep, one instruction at a time.
//!
//! Blocks run in waves. All lanes of a wave at the same instruction execute it together. When lanes diverge, those
//! furthest behind go first, so that they reconverge after loops and branches.

mod arithmetic;
mod copy;
mod float;
mod fragments;
mod group;
mod launch;
mod memory;
mod mma;
mod plan;
mod run;
mod tensor;
mod tensor_memory;
mod tensor_multiply;
mod under_way;
mod unit;
mod wave;
mod wmma;

pub(crate) use launch::Launch;
pub(crate) use plan::Plans;
pub(crate) use run::run;
pub(crate) use tensor_multiply::describe;
pub(crate) use unit::Unit;
