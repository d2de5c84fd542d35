//! The vector operations in AVX-512.

use std::arch::x86_64::*;

use super::lanes::{Lanes, operations};

/// Sixteen lanes. The processor must have AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy)]
pub(super) struct Avx512;

const TOWARD_ZERO: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;

// SAFETY of every block below: the trait's contract says that the processor has these parts of AVX-512, and that
// pointers are valid for sixteen elements.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Avx512 {
    const WIDTH: usize = 16;
    type F = __m512;
    type I = __m512i;

    operations! {
        load_f(from: *const f32) -> Self::F { _mm512_loadu_ps(from) }
        store_f(to: *mut f32, value: Self::F) -> () { _mm512_storeu_ps(to, value) }
        load_i(from: *const i32) -> Self::I { _mm512_loadu_si512(from.cast()) }
        store_i(to: *mut i32, value: Self::I) -> () { _mm512_storeu_si512(to.cast(), value) }
        splat_f(value: f32) -> Self::F { _mm512_set1_ps(value) }
        splat_i(value: i32) -> Self::I { _mm512_set1_epi32(value) }
        mul(x: Self::F, y: Self::F) -> Self::F { _mm512_mul_ps(x, y) }
        add_f(x: Self::F, y: Self::F) -> Self::F { _mm512_add_ps(x, y) }
        fma(x: Self::F, y: Self::F, z: Self::F) -> Self::F { _mm512_fmadd_ps(x, y, z) }
        pairs(x: Self::I, y: Self::I) -> Self::I { _mm512_madd_epi16(x, y) }
        add(x: Self::I, y: Self::I) -> Self::I { _mm512_add_epi32(x, y) }
        sub(x: Self::I, y: Self::I) -> Self::I { _mm512_sub_epi32(x, y) }
        max(x: Self::I, y: Self::I) -> Self::I { _mm512_max_epi32(x, y) }
        min(x: Self::I, y: Self::I) -> Self::I { _mm512_min_epi32(x, y) }
        min_unsigned(x: Self::I, y: Self::I) -> Self::I { _mm512_min_epu32(x, y) }
        and(x: Self::I, y: Self::I) -> Self::I { _mm512_and_si512(x, y) }
        or(x: Self::I, y: Self::I) -> Self::I { _mm512_or_si512(x, y) }
        xor(x: Self::I, y: Self::I) -> Self::I { _mm512_xor_si512(x, y) }
        greater(x: Self::I, y: Self::I) -> Self::I { _mm512_movm_epi32(_mm512_cmpgt_epi32_mask(x, y)) }
        select(mask: Self::I, x: Self::I, y: Self::I) -> Self::I {
            _mm512_mask_blend_epi32(_mm512_movepi32_mask(mask), y, x)
        }
        bits(x: Self::F) -> Self::I { _mm512_castps_si512(x) }
        from_bits(x: Self::I) -> Self::F { _mm512_castsi512_ps(x) }
        truncate(x: Self::F) -> Self::I { _mm512_cvttps_epi32(x) }
        power(x: Self::I) -> Self::F {
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(_mm512_add_epi32(x, _mm512_set1_epi32(127))))
        }
        align(x: Self::F, t: Self::I) -> Self::I { _mm512_cvttps_epi32(_mm512_scalef_ps(x, _mm512_cvtepi32_ps(t))) }
    }

    #[inline(always)]
    unsafe fn exponent<const LEAST: bool>(x: Self::F, least: Self::I) -> Self::I {
        unsafe {
            // For 0 it is −∞, which becomes the lowest integer.
            let exponent = _mm512_cvttps_epi32(_mm512_getexp_ps(x));
            if LEAST {
                let some = _mm512_cmpgt_epi32_mask(exponent, _mm512_set1_epi32(i32::MIN));
                _mm512_mask_max_epi32(exponent, some, exponent, least)
            } else {
                exponent
            }
        }
    }
    #[inline(always)]
    unsafe fn round_toward_zero(sum: Self::I, unit: Self::I) -> (Self::F, Self::I) {
        unsafe {
            let value = _mm512_cvt_roundepi32_ps::<TOWARD_ZERO>(sum);
            let scaled = _mm512_scalef_round_ps::<TOWARD_ZERO>(value, _mm512_cvtepi32_ps(unit));
            (scaled, _mm512_setzero_si512())
        }
    }
    #[inline(always)]
    unsafe fn round_to_f16(sum: Self::I, unit: Self::I) -> (Self::F, Self::I, Self::I) {
        unsafe {
            // Rounds to odd: toward zero, with the lowest bit set if anything was lost.
            let value = _mm512_cvt_roundepi32_ps::<TOWARD_ZERO>(sum);
            let lost = _mm512_cmpneq_epi32_mask(_mm512_cvttps_epi32(value), sum);
            let bits = _mm512_castps_si512(value);
            let odd = _mm512_mask_or_epi32(bits, lost, bits, _mm512_set1_epi32(1));
            let scaled = _mm512_scalef_ps(_mm512_castsi512_ps(odd), _mm512_cvtepi32_ps(unit));
            let (rounded, infinite) = Self::narrow_to_f16(scaled);
            // −0 becomes +0.
            (_mm512_add_ps(rounded, _mm512_setzero_ps()), infinite, _mm512_setzero_si512())
        }
    }
    #[inline(always)]
    unsafe fn narrow_to_f16(x: Self::F) -> (Self::F, Self::I) {
        unsafe {
            let half = _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
            let value = _mm512_cvtph_ps(half);
            let magnitude = _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(i32::MAX));
            let infinite = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f7f_ffff));
            (value, _mm512_movm_epi32(infinite))
        }
    }
    #[inline(always)]
    unsafe fn fma_to_odd(x: Self::F, y: Self::F, z: Self::F) -> Self::F {
        unsafe {
            // Neighbours if the sum is inexact, of which one is odd. Of the zeros of an exact sum, the one rounded up is
            // that of rounding to nearest.
            let up = _mm512_fmadd_round_ps::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(x, y, z);
            let down = _mm512_fmadd_round_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(x, y, z);
            let odd = _mm512_test_epi32_mask(_mm512_castps_si512(down), _mm512_set1_epi32(1));
            _mm512_mask_mov_ps(up, odd, down)
        }
    }
    #[inline(always)]
    unsafe fn as_f16(x: Self::F) -> Self::F {
        unsafe { _mm512_cvtph_ps(_mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x)) }
    }
    #[inline(always)]
    unsafe fn widest<const NG: usize>(a: *const u32, b: *const u8, stride: usize, len: usize) -> [Self::I; NG] {
        unsafe {
            let mut out = [_mm512_setzero_si512(); NG];
            if NG == 4 {
                let mut most = _mm512_setzero_si512();
                for k in 0..len {
                    let code = _mm512_set1_epi32(a.add(k).read().cast_signed());
                    let codes = _mm512_loadu_si512(b.add(k * stride).cast());
                    most = _mm512_max_epu8(most, _mm512_add_epi8(code, codes));
                }
                out[0] = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(most));
                out[1] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<1>(most));
                out[2] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<2>(most));
                out[3] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<3>(most));
            } else {
                for (group, out) in out.iter_mut().enumerate() {
                    let mut most = _mm_setzero_si128();
                    for k in 0..len {
                        let code = _mm_set1_epi32(a.add(k).read().cast_signed());
                        let codes = _mm_loadu_si128(b.add(k * stride + group * 16).cast());
                        most = _mm_max_epu8(most, _mm_add_epi8(code, codes));
                    }
                    *out = _mm512_cvtepu8_epi32(most);
                }
            }
            out
        }
    }
}
