//! The number of threads that work is divided over.

use std::{num::NonZero, sync::OnceLock, thread};

/// The number of threads that this process may run in parallel, at least 1.
#[must_use]
pub fn threads() -> usize {
    // Cached, because the system reads files to determine it.
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}
