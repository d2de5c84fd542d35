//! A file or folder per command: it parses the arguments, chooses devices, calls the library, and prints.
//!
//! The private files that are not commands hold what several commands share, such as `each`, the loop over the
//! operations of a device, or one mode of a command, such as `identify_gemm`.

pub(super) mod bench;
mod boundary;
pub(super) mod check;
pub(super) mod compare;
pub(super) mod conformance;
pub(super) mod distinguish;
mod each;
pub(super) mod eval;
pub(super) mod explain;
pub(super) mod fleet;
pub(super) mod gemm;
mod identified;
pub(super) mod identify;
mod identify_gemm;
pub(super) mod invariance;
pub(super) mod list;
pub(super) mod manual;
mod measured;
pub(super) mod merge;
pub(super) mod papers;
mod recipes;
pub(super) mod report;
mod resumed;
pub(super) mod run;
pub(super) mod screen;
mod shapes;
pub(super) mod site;
pub(super) mod tolerance;
pub(super) mod validate;
pub(super) mod verify;
pub(super) mod worker;
