//! What is computed in arrays of lanes, compiled for each kind of vectors.

use crate::fast::path::Path;

/// Something computed in arrays, of which the compiler makes vectors.
pub(in crate::fast) trait InLanes {
    /// To be inlined, with all that it calls.
    fn run(&mut self);
}

/// Runs a task in the widest vectors of this processor that `path` allows.
pub(in crate::fast) fn in_lanes(path: Path, task: &mut impl InLanes) {
    #[cfg(target_arch = "x86_64")]
    if path >= Path::Avx2 && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        if path >= Path::Avx512
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512cd")
        {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { in_avx512(task) };
        }
        // SAFETY: as above.
        return unsafe { in_avx2(task) };
    }
    task.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma")]
fn in_avx512(task: &mut impl InLanes) {
    task.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn in_avx2(task: &mut impl InLanes) {
    task.run();
}
