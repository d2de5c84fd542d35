//! The compiled evaluator of one dot: any plan, words of fixed width, no allocation.
//!
//! It follows the exact evaluator step by step. If a sum might not fit the word, the whole dot is abandoned and
//! computed again with a wider word: first `i64`, then `i128`, 320 and 640 bits, and finally the exact evaluator. Every
//! step that could lose a bit checks for it, so that there is either the exact evaluator's result or none.

mod abreast;
mod align;
mod compiled;
mod finite;
mod output;
mod repeats;
mod special;
mod wide;
mod word;

pub(super) use abreast::{DOTS, Known, Room, Source};
pub(super) use compiled::{Compiled, Scratch, ScratchOf, UnpackedDot, significand_bits};
