//! Transposing small squares in registers.

/// Transposes a square of elements of two bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(in crate::fast) fn eight_by_eight_pairs(square: [[[u8; 2]; 8]; 8]) -> [[[u8; 2]; 8]; 8] {
    use std::arch::x86_64::{
        __m128i, _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi16, _mm_unpacklo_epi32,
        _mm_unpacklo_epi64,
    };
    // SAFETY: both are 128 bytes of which any bits are valid; every x86-64 processor has these instructions.
    unsafe {
        let [a, b, c, d, e, f, g, h] = std::mem::transmute::<[[[u8; 2]; 8]; 8], [__m128i; 8]>(square);
        let pairs = |x, y| (_mm_unpacklo_epi16(x, y), _mm_unpackhi_epi16(x, y));
        let fours = |x, y| (_mm_unpacklo_epi32(x, y), _mm_unpackhi_epi32(x, y));
        let eights = |x, y| [_mm_unpacklo_epi64(x, y), _mm_unpackhi_epi64(x, y)];
        let ((ab, ab_high), (cd, cd_high)) = (pairs(a, b), pairs(c, d));
        let ((ef, ef_high), (gh, gh_high)) = (pairs(e, f), pairs(g, h));
        let ((low_01, low_23), (low_45, low_67)) = (fours(ab, cd), fours(ab_high, cd_high));
        let ((high_01, high_23), (high_45, high_67)) = (fours(ef, gh), fours(ef_high, gh_high));
        let rows = [eights(low_01, high_01), eights(low_23, high_23), eights(low_45, high_45), eights(low_67, high_67)];
        std::mem::transmute::<[[__m128i; 2]; 4], [[[u8; 2]; 8]; 8]>(rows)
    }
}

/// Transposes a square of elements of two bytes.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(in crate::fast) fn eight_by_eight_pairs(square: [[[u8; 2]; 8]; 8]) -> [[[u8; 2]; 8]; 8] {
    std::array::from_fn(|row| std::array::from_fn(|column| square[column][row]))
}
