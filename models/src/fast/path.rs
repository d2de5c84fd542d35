//! The paths on which a dot can be computed.

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
