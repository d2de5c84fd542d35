//! Every format of 8 bits or fewer exhaustively, the others over directed and random values, against oracles that share
//! nothing with the codec: the formulas of the specifications in f64, `rustc_apfloat`, `half`, and the language.

mod integers;
mod naive;
mod narrow;
mod text;
mod wide;
