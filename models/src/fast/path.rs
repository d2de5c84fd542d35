//! The paths on which a dot can be computed.

use std::sync::OnceLock;

/// A path on which a dot is computed. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Path {
    /// Integers of any width: slow but obviously right.
    Exact,
    /// Words of 64 to 640 bits, one dot at a time.
    Scalar,
    /// Columns in lanes, without instructions beyond the target's baseline.
    Portable,
    /// Columns in lanes of AVX2.
    Avx2,
    /// Columns in lanes of AVX-512.
    Avx512,
}

/// The fastest path of this processor.
#[inline]
pub(super) fn fastest() -> Path {
    static FASTEST: OnceLock<Path> = OnceLock::new();
    *FASTEST.get_or_init(detected)
}

fn detected() -> Path {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
        {
            return Path::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Path::Avx2;
        }
    }
    Path::Portable
}
