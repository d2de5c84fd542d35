//! Work that several threads take parts of.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Takes the next part that no thread has taken; returns it with its index.
pub(crate) fn taken<'a, T>(next: &AtomicUsize, parts: &'a [T]) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    parts.get(at).map(|part| (at, part))
}

/// Runs `work` on `threads` threads, including this one.
pub(crate) fn on_threads(threads: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(&work)));
        work();
    });
}
