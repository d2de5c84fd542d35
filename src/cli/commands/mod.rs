//! A command a file: it parses what was given, chooses, calls, prints.

pub(super) mod bench;
pub(super) mod check;
pub(super) mod compare;
pub(super) mod conformance;
pub(super) mod distinguish;
mod each;
pub(super) mod eval;
pub(super) mod explain;
pub(super) mod gemm;
mod identified;
pub(super) mod identify;
mod identify_gemm;
pub(super) mod invariance;
pub(super) mod list;
pub(super) mod manual;
mod measured;
pub(super) mod papers;
mod recipes;
pub(super) mod report;
mod resumed;
pub(super) mod run;
mod shapes;
pub(super) mod site;
pub(super) mod tolerance;
pub(super) mod validate;
pub(super) mod verify;
pub(super) mod worker;
