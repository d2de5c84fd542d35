//! Lanes whose f32 and i32 are also available as two half vectors of f64, and their operations for sums on grids.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::lanes::Lanes;
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512, lanes::operations};

/// The operations for sums on grids. The contract is that of [`Lanes`].
pub(super) trait Halves: Lanes {
    /// A vector of half as many f64.
    type D: Copy;
    /// Whether sums in f64 can be rounded up and down at no cost; otherwise `add_up` and `add_down` round to nearest.
    const DIRECTED: bool;

    /// The bits 23 and up of a word that is not negative.
    unsafe fn field(x: Self::I) -> Self::I;
    /// `2^(x − 127)` for x from 1 to 254.
    unsafe fn biased_power(x: Self::I) -> Self::F;
    /// −1 where x is negative, else 0.
    unsafe fn sign(x: Self::I) -> Self::I;
    /// `x · 2^−by` rounded down; a `by` of 32 or more, or below 0, counts as 31.
    unsafe fn shift_down(x: Self::I, by: Self::I) -> Self::I;
    /// `x · 2^by`, wrapping, for `by` from 0 to 31.
    unsafe fn shift_up(x: Self::I, by: Self::I) -> Self::I;
    /// `x · 2^t` to nearest, exact if the result is normal; t from −254 to 254.
    unsafe fn scaled(x: Self::F, t: Self::I) -> Self::F;
    /// Rounds down; unspecified if the value does not fit.
    unsafe fn floor_to_int(x: Self::F) -> Self::I;
    /// −1 where x = y, else 0.
    unsafe fn equal(x: Self::I, y: Self::I) -> Self::I;
    /// Whether x > y in any lane.
    unsafe fn any_greater(x: Self::I, y: Self::I) -> bool;
    /// Rounds to nearest even.
    unsafe fn to_float(x: Self::I) -> Self::F;
    unsafe fn widen(x: Self::F) -> [Self::D; 2];
    unsafe fn widen_int(x: Self::I) -> [Self::D; 2];
    /// `2^x` for x from −1022 to 1023.
    unsafe fn wide_power(x: Self::I) -> [Self::D; 2];
    unsafe fn splat_d(value: f64) -> Self::D;
    unsafe fn mul_d(x: Self::D, y: Self::D) -> Self::D;
    unsafe fn add_d(x: Self::D, y: Self::D) -> Self::D;
    unsafe fn sub_d(x: Self::D, y: Self::D) -> Self::D;
    unsafe fn add_up(x: Self::D, y: Self::D) -> Self::D;
    unsafe fn add_down(x: Self::D, y: Self::D) -> Self::D;
    unsafe fn load_d(from: *const f64) -> Self::D;
    /// `x · y + z`, rounded once.
    unsafe fn fma_d(x: Self::D, y: Self::D, z: Self::D) -> Self::D;
    /// `x + y` rounded to odd, if it does not overflow.
    unsafe fn sum_to_odd(x: Self::D, y: Self::D) -> Self::D;
    /// `x + y` rounded to odd, for a y that is +0 or smaller than x; x if y is 0.
    unsafe fn corrected_to_odd(x: Self::D, y: Self::D) -> Self::D;
    /// The bitwise or.
    unsafe fn or_d(x: Self::D, y: Self::D) -> Self::D;
    /// All bits set where x is not 0, else no bits.
    unsafe fn nonzero(x: Self::D) -> Self::D;
    /// x where the mask's lanes have all bits set, y where they have no bits set.
    unsafe fn select_d(mask: Self::D, x: Self::D, y: Self::D) -> Self::D;
    unsafe fn any_nonzero(x: Self::D) -> bool;
    /// `sum + error` rounded to odd, where `sum` is that sum rounded to nearest.
    unsafe fn to_odd(sum: Self::D, error: Self::D) -> Self::D;
    unsafe fn max_d(x: Self::D, y: Self::D) -> Self::D;
    unsafe fn floor_d(x: Self::D) -> Self::D;
    unsafe fn truncate_d(x: Self::D) -> Self::D;
    /// Rounds down so that the `low` bits, from the lowest on, are clear.
    unsafe fn floor_bits(x: Self::D, low: i64) -> Self::D;
    /// The power of two at the leading one of a normal number's magnitude; 0 for 0.
    unsafe fn leading_power(x: Self::D) -> Self::D;
    /// `1 / x` for a power of two.
    unsafe fn reciprocal(x: Self::D) -> Self::D;
    /// Rounds to nearest even.
    unsafe fn narrow(x: [Self::D; 2]) -> Self::F;
    /// Rounds toward zero; values that are too large become the largest number.
    unsafe fn narrow_toward_zero(x: [Self::D; 2]) -> Self::F;

    /// A sum and its error.
    #[inline(always)]
    unsafe fn two_sum(x: Self::D, y: Self::D) -> (Self::D, Self::D) {
        // SAFETY: upheld by the caller.
        unsafe {
            let sum = Self::add_d(x, y);
            let of_y = Self::sub_d(sum, x);
            (sum, Self::add_d(Self::sub_d(x, Self::sub_d(sum, of_y)), Self::sub_d(y, of_y)))
        }
    }
}

// SAFETY of every block below: the trait's contract says that the processor has these parts of AVX-512.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::undocumented_unsafe_blocks)]
impl Halves for Avx512 {
    type D = __m512d;
    const DIRECTED: bool = true;

    operations! {
        field(x: Self::I) -> Self::I { _mm512_srli_epi32::<23>(x) }
        biased_power(x: Self::I) -> Self::F { _mm512_castsi512_ps(_mm512_slli_epi32::<23>(x)) }
        sign(x: Self::I) -> Self::I { _mm512_srai_epi32::<31>(x) }
        shift_down(x: Self::I, by: Self::I) -> Self::I { _mm512_srav_epi32(x, by) }
        shift_up(x: Self::I, by: Self::I) -> Self::I { _mm512_sllv_epi32(x, by) }
        floor_to_int(x: Self::F) -> Self::I { _mm512_cvt_roundps_epi32::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(x) }
        equal(x: Self::I, y: Self::I) -> Self::I { _mm512_movm_epi32(_mm512_cmpeq_epi32_mask(x, y)) }
        to_float(x: Self::I) -> Self::F { _mm512_cvtepi32_ps(x) }
        scaled(x: Self::F, t: Self::I) -> Self::F { _mm512_scalef_ps(x, _mm512_cvtepi32_ps(t)) }
        any_greater(x: Self::I, y: Self::I) -> bool { _mm512_cmpgt_epi32_mask(x, y) != 0 }
        widen(x: Self::F) -> [Self::D; 2] {
            [_mm512_cvtps_pd(_mm512_castps512_ps256(x)), _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(x))]
        }
        widen_int(x: Self::I) -> [Self::D; 2] {
            [_mm512_cvtepi32_pd(_mm512_castsi512_si256(x)), _mm512_cvtepi32_pd(_mm512_extracti32x8_epi32::<1>(x))]
        }
        wide_power(x: Self::I) -> [Self::D; 2] {
            let biased = _mm512_add_epi32(x, _mm512_set1_epi32(1023));
            let low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(biased));
            let high = _mm512_cvtepi32_epi64(_mm512_extracti32x8_epi32::<1>(biased));
            [_mm512_castsi512_pd(_mm512_slli_epi64::<52>(low)), _mm512_castsi512_pd(_mm512_slli_epi64::<52>(high))]
        }
        splat_d(value: f64) -> Self::D { _mm512_set1_pd(value) }
        mul_d(x: Self::D, y: Self::D) -> Self::D { _mm512_mul_pd(x, y) }
        add_d(x: Self::D, y: Self::D) -> Self::D { _mm512_add_pd(x, y) }
        sub_d(x: Self::D, y: Self::D) -> Self::D { _mm512_sub_pd(x, y) }
        add_up(x: Self::D, y: Self::D) -> Self::D {
            _mm512_add_round_pd::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(x, y)
        }
        add_down(x: Self::D, y: Self::D) -> Self::D {
            _mm512_add_round_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(x, y)
        }
        load_d(from: *const f64) -> Self::D { _mm512_loadu_pd(from) }
        fma_d(x: Self::D, y: Self::D, z: Self::D) -> Self::D { _mm512_fmadd_pd(x, y, z) }
        sum_to_odd(x: Self::D, y: Self::D) -> Self::D {
            // Neighbours if the sum is inexact, of which one is odd. Of the zeros of an exact sum, the one rounded up is
            // that of rounding to nearest.
            let (up, down) = (Self::add_up(x, y), Self::add_down(x, y));
            let odd = _mm512_test_epi64_mask(_mm512_castpd_si512(down), _mm512_set1_epi64(1));
            _mm512_mask_mov_pd(up, odd, down)
        }
        corrected_to_odd(x: Self::D, y: Self::D) -> Self::D {
            // −0 plus +0, rounded down, is −0.
            let (up, down) = (Self::add_up(x, y), Self::add_down(x, y));
            let odd = _mm512_test_epi64_mask(_mm512_castpd_si512(up), _mm512_set1_epi64(1));
            _mm512_mask_mov_pd(down, odd, up)
        }
        or_d(x: Self::D, y: Self::D) -> Self::D { _mm512_or_pd(x, y) }
        nonzero(x: Self::D) -> Self::D {
            _mm512_castsi512_pd(_mm512_movm_epi64(_mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(x, _mm512_setzero_pd())))
        }
        select_d(mask: Self::D, x: Self::D, y: Self::D) -> Self::D {
            _mm512_mask_blend_pd(_mm512_movepi64_mask(_mm512_castpd_si512(mask)), y, x)
        }
        any_nonzero(x: Self::D) -> bool { _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(x, _mm512_setzero_pd()) != 0 }
        to_odd(sum: Self::D, error: Self::D) -> Self::D {
            let (bits, of_error) = (_mm512_castpd_si512(sum), _mm512_castpd_si512(error));
            let one = _mm512_set1_epi64(1);
            let inexact = _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(error, _mm512_setzero_pd());
            let moved = _mm512_mask_testn_epi64_mask(inexact, bits, one);
            let step = _mm512_or_si512(_mm512_srai_epi64::<63>(_mm512_xor_si512(bits, of_error)), one);
            _mm512_castsi512_pd(_mm512_mask_add_epi64(bits, moved, bits, step))
        }
        max_d(x: Self::D, y: Self::D) -> Self::D { _mm512_max_pd(x, y) }
        floor_d(x: Self::D) -> Self::D { _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(x) }
        truncate_d(x: Self::D) -> Self::D { _mm512_roundscale_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(x) }
        floor_bits(x: Self::D, low: i64) -> Self::D {
            let (bits, low) = (_mm512_castpd_si512(x), _mm512_set1_epi64(low));
            // The magnitude of a negative number grows.
            let up = _mm512_and_si512(_mm512_srai_epi64::<63>(bits), low);
            _mm512_castsi512_pd(_mm512_andnot_si512(low, _mm512_add_epi64(bits, up)))
        }
        leading_power(x: Self::D) -> Self::D { _mm512_and_pd(x, _mm512_set1_pd(f64::INFINITY)) }
        reciprocal(x: Self::D) -> Self::D {
            _mm512_castsi512_pd(_mm512_sub_epi64(_mm512_set1_epi64(2046 << 52), _mm512_castpd_si512(x)))
        }
        narrow(x: [Self::D; 2]) -> Self::F {
            _mm512_insertf32x8::<1>(_mm512_castps256_ps512(_mm512_cvtpd_ps(x[0])), _mm512_cvtpd_ps(x[1]))
        }
        narrow_toward_zero(x: [Self::D; 2]) -> Self::F {
            let low = _mm512_cvt_roundpd_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(x[0]);
            let high = _mm512_cvt_roundpd_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(x[1]);
            _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high)
        }
    }
}

// SAFETY of every block below: the trait's contract says that the processor has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::undocumented_unsafe_blocks)]
impl Halves for Avx2 {
    type D = __m256d;
    const DIRECTED: bool = false;

    operations! {
        field(x: Self::I) -> Self::I { _mm256_srli_epi32::<23>(x) }
        biased_power(x: Self::I) -> Self::F { _mm256_castsi256_ps(_mm256_slli_epi32::<23>(x)) }
        sign(x: Self::I) -> Self::I { _mm256_srai_epi32::<31>(x) }
        shift_down(x: Self::I, by: Self::I) -> Self::I { _mm256_srav_epi32(x, by) }
        shift_up(x: Self::I, by: Self::I) -> Self::I { _mm256_sllv_epi32(x, by) }
        floor_to_int(x: Self::F) -> Self::I { _mm256_cvttps_epi32(_mm256_floor_ps(x)) }
        equal(x: Self::I, y: Self::I) -> Self::I { _mm256_cmpeq_epi32(x, y) }
        to_float(x: Self::I) -> Self::F { _mm256_cvtepi32_ps(x) }
        scaled(x: Self::F, t: Self::I) -> Self::F {
            let half = _mm256_srai_epi32::<1>(t);
            _mm256_mul_ps(_mm256_mul_ps(x, Self::power(half)), Self::power(_mm256_sub_epi32(t, half)))
        }
        any_greater(x: Self::I, y: Self::I) -> bool { _mm256_movemask_epi8(_mm256_cmpgt_epi32(x, y)) != 0 }
        widen(x: Self::F) -> [Self::D; 2] {
            [_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x))]
        }
        widen_int(x: Self::I) -> [Self::D; 2] {
            [_mm256_cvtepi32_pd(_mm256_castsi256_si128(x)), _mm256_cvtepi32_pd(_mm256_extracti128_si256::<1>(x))]
        }
        wide_power(x: Self::I) -> [Self::D; 2] {
            let biased = _mm256_add_epi32(x, _mm256_set1_epi32(1023));
            let low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(biased));
            let high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(biased));
            [_mm256_castsi256_pd(_mm256_slli_epi64::<52>(low)), _mm256_castsi256_pd(_mm256_slli_epi64::<52>(high))]
        }
        splat_d(value: f64) -> Self::D { _mm256_set1_pd(value) }
        mul_d(x: Self::D, y: Self::D) -> Self::D { _mm256_mul_pd(x, y) }
        add_d(x: Self::D, y: Self::D) -> Self::D { _mm256_add_pd(x, y) }
        sub_d(x: Self::D, y: Self::D) -> Self::D { _mm256_sub_pd(x, y) }
        add_up(x: Self::D, y: Self::D) -> Self::D { _mm256_add_pd(x, y) }
        add_down(x: Self::D, y: Self::D) -> Self::D { _mm256_add_pd(x, y) }
        load_d(from: *const f64) -> Self::D { _mm256_loadu_pd(from) }
        fma_d(x: Self::D, y: Self::D, z: Self::D) -> Self::D { _mm256_fmadd_pd(x, y, z) }
        sum_to_odd(x: Self::D, y: Self::D) -> Self::D {
            let (sum, error) = Self::two_sum(x, y);
            Self::to_odd(sum, error)
        }
        corrected_to_odd(x: Self::D, y: Self::D) -> Self::D {
            let (sum, error) = Self::two_sum(x, y);
            Self::select_d(Self::nonzero(y), Self::to_odd(sum, error), x)
        }
        or_d(x: Self::D, y: Self::D) -> Self::D { _mm256_or_pd(x, y) }
        nonzero(x: Self::D) -> Self::D { _mm256_cmp_pd::<_CMP_NEQ_UQ>(x, _mm256_setzero_pd()) }
        select_d(mask: Self::D, x: Self::D, y: Self::D) -> Self::D { _mm256_blendv_pd(y, x, mask) }
        any_nonzero(x: Self::D) -> bool {
            _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_NEQ_UQ>(x, _mm256_setzero_pd())) != 0
        }
        to_odd(sum: Self::D, error: Self::D) -> Self::D {
            let (bits, of_error) = (_mm256_castpd_si256(sum), _mm256_castpd_si256(error));
            let (one, zero) = (_mm256_set1_epi64x(1), _mm256_setzero_si256());
            let inexact = _mm256_castpd_si256(_mm256_cmp_pd::<_CMP_NEQ_UQ>(error, _mm256_setzero_pd()));
            let even = _mm256_cmpeq_epi64(_mm256_and_si256(bits, one), zero);
            let inward = _mm256_cmpgt_epi64(zero, _mm256_xor_si256(bits, of_error));
            let step = _mm256_and_si256(_mm256_or_si256(inward, one), _mm256_and_si256(inexact, even));
            _mm256_castsi256_pd(_mm256_add_epi64(bits, step))
        }
        max_d(x: Self::D, y: Self::D) -> Self::D { _mm256_max_pd(x, y) }
        floor_d(x: Self::D) -> Self::D { _mm256_floor_pd(x) }
        truncate_d(x: Self::D) -> Self::D { _mm256_round_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(x) }
        floor_bits(x: Self::D, low: i64) -> Self::D {
            let (bits, low) = (_mm256_castpd_si256(x), _mm256_set1_epi64x(low));
            let up = _mm256_and_si256(_mm256_cmpgt_epi64(_mm256_setzero_si256(), bits), low);
            _mm256_castsi256_pd(_mm256_andnot_si256(low, _mm256_add_epi64(bits, up)))
        }
        leading_power(x: Self::D) -> Self::D { _mm256_and_pd(x, _mm256_set1_pd(f64::INFINITY)) }
        reciprocal(x: Self::D) -> Self::D {
            _mm256_castsi256_pd(_mm256_sub_epi64(_mm256_set1_epi64x(2046 << 52), _mm256_castpd_si256(x)))
        }
        narrow(x: [Self::D; 2]) -> Self::F { _mm256_set_m128(_mm256_cvtpd_ps(x[1]), _mm256_cvtpd_ps(x[0])) }
        narrow_toward_zero(x: [Self::D; 2]) -> Self::F {
            _mm256_set_m128(narrow_half_toward_zero(x[1]), narrow_half_toward_zero(x[0]))
        }
    }
}

/// Rounds toward zero, by cutting to the precision of f32: 24 bits, or whole units of 2^−149.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unused_unsafe)]
unsafe fn narrow_half_toward_zero(x: __m256d) -> __m128 {
    // SAFETY: the caller's processor has AVX2.
    unsafe {
        let cut = _mm256_and_pd(x, _mm256_castsi256_pd(_mm256_set1_epi64x(-1 << 29)));
        let unit = _mm256_set1_pd(f64::from_bits((1023 - 149) << 52));
        let units = _mm256_mul_pd(x, _mm256_set1_pd(f64::from_bits((1023 + 149) << 52)));
        let small = _mm256_mul_pd(_mm256_round_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(units), unit);
        let magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
        let is_small = _mm256_cmp_pd::<_CMP_LT_OQ>(magnitude, _mm256_set1_pd(f64::from_bits((1023 - 126) << 52)));
        let largest = _mm256_set1_pd(f64::from(f32::MAX));
        let bounded = _mm256_min_pd(_mm256_max_pd(cut, _mm256_sub_pd(_mm256_setzero_pd(), largest)), largest);
        _mm256_cvtpd_ps(_mm256_blendv_pd(bounded, small, is_small))
    }
}
