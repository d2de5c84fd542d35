//! Reports and screens of many machines: classes of equal behaviour, machines that deviate, what changed.
//!
//! Files are read in parallel, and of each only what is compared is kept: answers that are equal are kept once, whatever the number
//! of machines.

mod answers;
mod merge;
mod read;

pub use merge::{Merged, drift};
pub use read::{Source, sources};
