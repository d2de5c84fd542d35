//! Merges reports and screens of many machines into classes of equal behaviour, machines that deviate, and changes
//! since an earlier merge.
//!
//! Files are read in parallel, and only what is compared is kept in memory. Equal answers are kept once, whatever the
//! number of machines.

mod answers;
mod merge;
mod read;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use merge::{Merged, drift};
pub use read::{Source, sources};
#[cfg(feature = "sqlite")]
pub use sqlite::{TABLES, write_sqlite};
