//! Work that is divided over threads.

use std::{
    iter,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

/// As much as the main thread usually has: documents may be nested deeply.
const STACK_BYTES: usize = 8 << 20;

/// Makes pieces in order on this thread, and works on each of them on any of so many threads, of which this is one.
/// Returns the results in order, with `None` for pieces that were not made.
pub fn aside<T: Send, R: Send>(
    pieces: usize,
    threads: usize,
    mut make: impl FnMut(usize) -> Option<T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<Option<R>> {
    // Only places are sent, so that the channel is compiled once and not for each type of piece.
    let (sender, made) = mpsc::channel();
    let made = Mutex::new(made);
    let to_do: Vec<Mutex<Option<T>>> = (0..pieces).map(|_| Mutex::new(None)).collect();
    let run = || {
        let mut done = Vec::new();
        loop {
            let next = locked(&made).recv();
            let Ok(at) = next else { return done };
            let piece = locked::<Option<T>>(&to_do[at]).take();
            done.extend(piece.map(|piece| (at, work(piece))));
        }
    };
    let mut results: Vec<Option<R>> = (0..pieces).map(|_| None).collect();
    thread::scope(|scope| {
        let other = || thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
        // If the system has no more threads, fewer do the work.
        let others: Vec<_> = (1..threads.min(pieces)).map_while(|_| other().ok()).collect();
        for (at, place) in to_do.iter().enumerate() {
            if let Some(piece) = make(at) {
                *locked(place) = Some(piece);
                // The receiver lives as long as this function.
                let _ = sender.send(at);
            }
        }
        drop(sender);
        let mine = run();
        let of_others = others.into_iter().flat_map(|other| other.join().expect("the work does not panic"));
        for (at, result) in of_others.chain(mine) {
            results[at] = Some(result);
        }
    });
    results
}

/// Divides the numbers below `count` among so many threads, of which this is one: each takes the next number when it has
/// done with its last. Returns what each thread made of its own.
pub fn divided<P: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(&mut dyn Iterator<Item = usize>) -> P + Sync,
) -> Vec<P> {
    let next = AtomicUsize::new(0);
    let run = || work(&mut iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|at| *at < count));
    thread::scope(|scope| {
        let other = || thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
        // If the system has no more threads, fewer do the work.
        let others: Vec<_> = (1..threads.min(count)).map_while(|_| other().ok()).collect();
        let mine = run();
        let of_others = others.into_iter().map(|other| other.join().expect("the work does not panic"));
        iter::once(mine).chain(of_others).collect()
    })
}

/// What a mutex holds, whatever happened to a thread that held it.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_taken_once_and_every_thread_hands_in_what_it_made() {
        for threads in [0, 1, 2, 5] {
            let parts = divided(100, threads, |numbers| numbers.collect::<Vec<_>>());
            assert_eq!(parts.len(), threads.max(1));
            assert!(parts.iter().all(|part| part.is_sorted()));
            let mut all = parts.concat();
            all.sort_unstable();
            assert_eq!(all, (0..100).collect::<Vec<_>>(), "{threads} threads");
        }
        assert_eq!(divided(0, 5, |numbers| numbers.count()), [0]);
    }

    #[test]
    fn results_are_in_order_whatever_the_number_of_threads() {
        for threads in [1, 2, 5] {
            let mut made = Vec::new();
            let results = aside(
                100,
                threads,
                |at| {
                    made.push(at);
                    (at % 3 != 0).then_some(at)
                },
                |piece| 2 * piece,
            );
            assert_eq!(made, (0..100).collect::<Vec<_>>());
            let expected: Vec<Option<usize>> = (0..100).map(|at| (at % 3 != 0).then_some(2 * at)).collect();
            assert_eq!(results, expected, "{threads} threads");
        }
    }
}
