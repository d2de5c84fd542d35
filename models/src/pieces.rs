//! Work on many pieces, divided over threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Gives each of at most `threads` threads one piece after another until none are left. Each thread makes its `room`, which
/// its pieces share, once.
pub(crate) fn in_threads<R>(
    pieces: usize,
    threads: usize,
    room: impl Fn() -> R + Sync,
    work: impl Fn(usize, &mut R) + Sync,
) {
    let threads = threads.min(pieces).max(1);
    if threads == 1 {
        let mut room = room();
        (0..pieces).for_each(|piece| work(piece, &mut room));
        return;
    }
    let next = AtomicUsize::new(0);
    let run = || {
        let mut room = room();
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                break;
            }
            work(piece, &mut room);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
}
