//! Plain code, compiled again for the processor's widest vectors.

use crate::fast::path::{Path, fastest};

/// Work that the compiler turns into vectors of whatever width it is compiled for.
pub trait Vectorised {
    /// The result.
    type Output;

    /// Does the work. It and everything it calls must be `#[inline(always)]`, to be compiled for the width.
    fn run(self) -> Self::Output;
}

/// Does work with the widest vectors of this processor. Operations are never fused or reordered, so the results do not
/// depend on the width.
pub fn vectorised<W: Vectorised>(work: W) -> W::Output {
    on_vectors(fastest(), work).unwrap_or_else(W::run)
}

/// Does work with AVX-512; `None` if the processor lacks it.
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "only x86-64 has AVX-512"))]
pub(crate) fn on_avx512<W: Vectorised>(work: W) -> Option<W::Output> {
    match fastest() {
        // SAFETY: the processor has the instructions, as `fastest` found.
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => Some(unsafe { with_avx512(work) }),
        _ => None,
    }
}

/// Does work with the widest vectors that both this processor and `path` support; hands it back if there are none.
///
/// # Errors
/// Returns the work if it was not done.
pub(in crate::fast) fn on_vectors<W: Vectorised>(path: Path, work: W) -> Result<W::Output, W> {
    match path.min(fastest()) {
        // SAFETY: the processor has the instructions, as `fastest` found.
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => Ok(unsafe { with_avx512(work) }),
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Path::Avx2 => Ok(unsafe { with_avx2(work) }),
        _ => Err(work),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma")]
fn with_avx512<W: Vectorised>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2<W: Vectorised>(work: W) -> W::Output {
    work.run()
}
