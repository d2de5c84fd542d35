//! The vector operations in AVX2 and FMA.

use std::arch::x86_64::*;

use super::lanes::{LOW, Lanes, operations};

/// Eight lanes. The processor must have AVX2 and FMA.
#[derive(Clone, Copy)]
pub(super) struct Avx2;

// SAFETY of every block below: the trait's contract says that the processor has AVX2 and FMA, and that pointers are
// valid for eight elements.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Avx2 {
    const WIDTH: usize = 8;
    type F = __m256;
    type I = __m256i;

    operations! {
        load_f(from: *const f32) -> Self::F { _mm256_loadu_ps(from) }
        store_f(to: *mut f32, value: Self::F) -> () { _mm256_storeu_ps(to, value) }
        load_i(from: *const i32) -> Self::I { _mm256_loadu_si256(from.cast()) }
        store_i(to: *mut i32, value: Self::I) -> () { _mm256_storeu_si256(to.cast(), value) }
        splat_f(value: f32) -> Self::F { _mm256_set1_ps(value) }
        splat_i(value: i32) -> Self::I { _mm256_set1_epi32(value) }
        mul(x: Self::F, y: Self::F) -> Self::F { _mm256_mul_ps(x, y) }
        add_f(x: Self::F, y: Self::F) -> Self::F { _mm256_add_ps(x, y) }
        fma(x: Self::F, y: Self::F, z: Self::F) -> Self::F { _mm256_fmadd_ps(x, y, z) }
        pairs(x: Self::I, y: Self::I) -> Self::I { _mm256_madd_epi16(x, y) }
        add(x: Self::I, y: Self::I) -> Self::I { _mm256_add_epi32(x, y) }
        sub(x: Self::I, y: Self::I) -> Self::I { _mm256_sub_epi32(x, y) }
        max(x: Self::I, y: Self::I) -> Self::I { _mm256_max_epi32(x, y) }
        min(x: Self::I, y: Self::I) -> Self::I { _mm256_min_epi32(x, y) }
        min_unsigned(x: Self::I, y: Self::I) -> Self::I { _mm256_min_epu32(x, y) }
        and(x: Self::I, y: Self::I) -> Self::I { _mm256_and_si256(x, y) }
        or(x: Self::I, y: Self::I) -> Self::I { _mm256_or_si256(x, y) }
        xor(x: Self::I, y: Self::I) -> Self::I { _mm256_xor_si256(x, y) }
        greater(x: Self::I, y: Self::I) -> Self::I { _mm256_cmpgt_epi32(x, y) }
        select(mask: Self::I, x: Self::I, y: Self::I) -> Self::I { _mm256_blendv_epi8(y, x, mask) }
        bits(x: Self::F) -> Self::I { _mm256_castps_si256(x) }
        from_bits(x: Self::I) -> Self::F { _mm256_castsi256_ps(x) }
        truncate(x: Self::F) -> Self::I { _mm256_cvttps_epi32(x) }
        power(x: Self::I) -> Self::F {
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(x, _mm256_set1_epi32(127))))
        }
    }

    #[inline(always)]
    unsafe fn exponent<const LEAST: bool>(x: Self::F, least: Self::I) -> Self::I {
        unsafe {
            let bits = _mm256_castps_si256(x);
            let magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(i32::MAX));
            let exponent = _mm256_sub_epi32(_mm256_srli_epi32::<23>(magnitude), _mm256_set1_epi32(127));
            let zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
            _mm256_blendv_epi8(_mm256_max_epi32(exponent, least), _mm256_set1_epi32(LOW), zero)
        }
    }
    #[inline(always)]
    unsafe fn align(x: Self::F, t: Self::I) -> Self::I {
        // Two factors, because 2^t alone may be out of range; see `aligning_in_halves`.
        unsafe {
            let half = _mm256_srai_epi32::<1>(t);
            let rest = _mm256_sub_epi32(t, half);
            _mm256_cvttps_epi32(_mm256_mul_ps(_mm256_mul_ps(x, Self::power(half)), Self::power(rest)))
        }
    }
    #[inline(always)]
    unsafe fn round_toward_zero(sum: Self::I, unit: Self::I) -> (Self::F, Self::I) {
        unsafe {
            let magnitude = _mm256_abs_epi32(sum);
            let nearest = _mm256_cvtepi32_ps(magnitude);
            // Where rounding to nearest went up, take one unit in the last place back.
            let down = _mm256_cmpgt_epi32(_mm256_cvttps_epi32(nearest), magnitude);
            let bits = _mm256_add_epi32(_mm256_castps_si256(nearest), down);
            let scaled = _mm256_add_epi32(bits, _mm256_slli_epi32::<23>(unit));
            let none = _mm256_cmpeq_epi32(sum, _mm256_setzero_si256());
            let sign = _mm256_and_si256(sum, _mm256_set1_epi32(i32::MIN));
            let subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x0080_0000), scaled);
            // 2^31 − 64 and more round to 2^31, which does not convert back to an integer; −2^31 has no magnitude.
            let huge = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7fff_ff7f));
            let huge = _mm256_or_si256(huge, magnitude);
            let unknown = _mm256_or_si256(_mm256_andnot_si256(none, subnormal), huge);
            let out = _mm256_or_si256(_mm256_andnot_si256(none, scaled), sign);
            (_mm256_castsi256_ps(out), unknown)
        }
    }
    #[inline(always)]
    unsafe fn round_to_f16(sum: Self::I, unit: Self::I) -> (Self::F, Self::I, Self::I) {
        unsafe {
            let magnitude = _mm256_abs_epi32(sum);
            let nearest = _mm256_cvtepi32_ps(magnitude);
            let back = _mm256_cvttps_epi32(nearest);
            // Rounds to odd: toward zero, with the lowest bit set if anything was lost.
            let down = _mm256_cmpgt_epi32(back, magnitude);
            let kept = _mm256_cmpeq_epi32(back, magnitude);
            let lost = _mm256_andnot_si256(kept, _mm256_set1_epi32(1));
            let bits = _mm256_or_si256(_mm256_add_epi32(_mm256_castps_si256(nearest), down), lost);
            let none = _mm256_cmpeq_epi32(sum, _mm256_setzero_si256());
            let scaled = _mm256_add_epi32(bits, _mm256_slli_epi32::<23>(unit));
            let odd = _mm256_castsi256_ps(_mm256_andnot_si256(none, scaled));
            let huge = _mm256_or_si256(_mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7fff_ff7f)), magnitude);
            let (rounded, infinite) = Self::narrow_to_f16(odd);
            let rounded = _mm256_castps_si256(rounded);
            let zero = _mm256_cmpeq_epi32(rounded, _mm256_setzero_si256());
            let sign = _mm256_andnot_si256(zero, _mm256_and_si256(sum, _mm256_set1_epi32(i32::MIN)));
            (_mm256_castsi256_ps(_mm256_or_si256(rounded, sign)), infinite, huge)
        }
    }
    #[inline(always)]
    unsafe fn narrow_to_f16(x: Self::F) -> (Self::F, Self::I) {
        unsafe {
            let bits = _mm256_castps_si256(x);
            let magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(i32::MAX));
            let sign = _mm256_andnot_si256(_mm256_set1_epi32(i32::MAX), bits);
            let tie = _mm256_and_si256(_mm256_srli_epi32::<13>(magnitude), _mm256_set1_epi32(1));
            let up = _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(0xfff)), tie);
            let normal = _mm256_and_si256(up, _mm256_set1_epi32(!0x1fff));
            // The unit in the last place of 0.5 is 2^−24, that of a subnormal f16.
            let half = _mm256_set1_ps(0.5);
            let subnormal = _mm256_sub_ps(_mm256_add_ps(_mm256_castsi256_ps(magnitude), half), half);
            let small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x3880_0000), magnitude);
            let rounded = _mm256_blendv_epi8(normal, _mm256_castps_si256(subnormal), small);
            let infinite = _mm256_cmpgt_epi32(rounded, _mm256_set1_epi32(0x477f_ffff));
            (_mm256_castsi256_ps(_mm256_or_si256(rounded, sign)), infinite)
        }
    }
    #[inline(always)]
    unsafe fn widest<const NG: usize>(a: *const u32, b: *const u8, stride: usize, len: usize) -> [Self::I; NG] {
        unsafe {
            let mut out = [_mm256_setzero_si256(); NG];
            if NG == 4 {
                let mut most = _mm256_setzero_si256();
                for k in 0..len {
                    let code = _mm256_set1_epi32(a.add(k).read().cast_signed());
                    let codes = _mm256_loadu_si256(b.add(k * stride).cast());
                    most = _mm256_max_epu8(most, _mm256_add_epi8(code, codes));
                }
                let (low, high) = (_mm256_castsi256_si128(most), _mm256_extracti128_si256::<1>(most));
                out[0] = _mm256_cvtepu8_epi32(low);
                out[1] = _mm256_cvtepu8_epi32(_mm_srli_si128::<8>(low));
                out[2] = _mm256_cvtepu8_epi32(high);
                out[3] = _mm256_cvtepu8_epi32(_mm_srli_si128::<8>(high));
            } else {
                for (group, out) in out.iter_mut().enumerate() {
                    let mut most = _mm_setzero_si128();
                    for k in 0..len {
                        let code = _mm_set1_epi32(a.add(k).read().cast_signed());
                        let codes = _mm_loadl_epi64(b.add(k * stride + group * 8).cast());
                        most = _mm_max_epu8(most, _mm_add_epi8(code, codes));
                    }
                    *out = _mm256_cvtepu8_epi32(most);
                }
            }
            out
        }
    }
}
