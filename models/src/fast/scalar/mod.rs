//! The compiled evaluator of one dot: any plan, words of fixed width, no allocation.
//!
//! It follows the exact evaluator step by step. Where a sum might not fit the word, the whole dot is given up and taken
//! again with a wider word: first `i64`, then `i128`, 320 and 640 bits, at last the exact evaluator. Every step that could lose a bit
//! checks, so that a result is either the exact evaluator's or none.

mod abreast;
mod align;
mod compiled;
mod output;
mod special;
mod wide;
mod word;

pub(super) use abreast::{DOTS, Known, Source};
pub(super) use compiled::{Compiled, Scratch, UnpackedDot, significand_bits};
