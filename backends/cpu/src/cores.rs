//! One thread per core.

use std::collections::BTreeSet;

/// Returns one logical processor of each core that this process may use; empty if the system does not tell.
pub(crate) fn one_of_each_core() -> Vec<usize> {
    let mut seen = BTreeSet::new();
    allowed().into_iter().filter(|cpu| seen.insert(core_of(*cpu))).collect()
}

/// Returns the package and number of a logical processor's core, or the processor's own number if Linux does not tell.
fn core_of(cpu: usize) -> (String, String) {
    let read = |name: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
        std::fs::read_to_string(path).map(|text| text.trim().to_owned()).ok()
    };
    match (read("physical_package_id"), read("core_id")) {
        (Some(package), Some(core)) => (package, core),
        _ => (String::new(), cpu.to_string()),
    }
}

/// The length of an affinity mask in words of 64 logical processors.
#[cfg(target_os = "linux")]
const WORDS: usize = 64;

#[cfg(target_os = "linux")]
unsafe extern "C" {
    safe fn sched_getaffinity(thread: i32, bytes: usize, mask: &mut [u64; WORDS]) -> i32;
    safe fn sched_setaffinity(thread: i32, bytes: usize, mask: &[u64; WORDS]) -> i32;
}

/// Returns the logical processors that this thread may run on, in ascending order.
#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    let mut mask = [0u64; WORDS];
    // glibc and musl return 0; the bytes are those of the array.
    if sched_getaffinity(0, size_of_val(&mask), &mut mask) != 0 {
        return Vec::new();
    }
    (0..WORDS * 64).filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 == 1).collect()
}

/// Pins this thread to a logical processor; returns `false` if that is refused and the thread may move.
#[cfg(target_os = "linux")]
pub(crate) fn stay_on(cpu: usize) -> bool {
    let mut mask = [0u64; WORDS];
    let Some(word) = mask.get_mut(cpu / 64) else { return false };
    *word = 1 << (cpu % 64);
    sched_setaffinity(0, size_of_val(&mask), &mask) == 0
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    (0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get)).collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn stay_on(_: usize) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_core_and_a_thread_can_stay_on_it() {
        let cores = one_of_each_core();
        assert!(!cores.is_empty());
        std::thread::spawn(move || {
            let last = *cores.last().expect("a core");
            let stays = stay_on(last);
            #[cfg(target_os = "linux")]
            assert_eq!((stays, allowed()), (true, vec![last]));
        })
        .join()
        .expect("the thread ends");
    }
}
