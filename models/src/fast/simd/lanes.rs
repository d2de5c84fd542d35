//! The vector operations from which the kernels are built, and their portable form.

/// The `exponent` of a zero: below every other.
pub(super) const LOW: i32 = -5000;

/// Vectors of f32 and i32 of one width.
///
/// # Safety
/// Methods may be called only if the processor has the instructions of the implementation. Pointers must be valid for
/// `WIDTH` elements, unless a method says otherwise.
pub(super) trait Lanes: Copy {
    const WIDTH: usize;
    type F: Copy;
    type I: Copy;

    unsafe fn load_f(from: *const f32) -> Self::F;
    unsafe fn store_f(to: *mut f32, value: Self::F);
    unsafe fn load_i(from: *const i32) -> Self::I;
    unsafe fn store_i(to: *mut i32, value: Self::I);
    unsafe fn splat_f(value: f32) -> Self::F;
    unsafe fn splat_i(value: i32) -> Self::I;
    unsafe fn mul(x: Self::F, y: Self::F) -> Self::F;
    unsafe fn add_f(x: Self::F, y: Self::F) -> Self::F;
    /// `x · y + z`, rounded once. The portable form rounds twice, which is the same if the product is exact.
    unsafe fn fma(x: Self::F, y: Self::F, z: Self::F) -> Self::F;
    /// The sum of the products of the low and of the high 16 bits, signed and wrapping.
    unsafe fn pairs(x: Self::I, y: Self::I) -> Self::I;
    unsafe fn add(x: Self::I, y: Self::I) -> Self::I;
    unsafe fn sub(x: Self::I, y: Self::I) -> Self::I;
    unsafe fn max(x: Self::I, y: Self::I) -> Self::I;
    unsafe fn min(x: Self::I, y: Self::I) -> Self::I;
    unsafe fn min_unsigned(x: Self::I, y: Self::I) -> Self::I;
    unsafe fn and(x: Self::I, y: Self::I) -> Self::I;
    unsafe fn or(x: Self::I, y: Self::I) -> Self::I;
    unsafe fn xor(x: Self::I, y: Self::I) -> Self::I;
    /// −1 where x > y, else 0.
    unsafe fn greater(x: Self::I, y: Self::I) -> Self::I;
    /// x where the mask's lanes are −1, y where they are 0.
    unsafe fn select(mask: Self::I, x: Self::I, y: Self::I) -> Self::I;
    unsafe fn bits(x: Self::F) -> Self::I;
    unsafe fn from_bits(x: Self::I) -> Self::F;
    /// Rounds toward zero; unspecified if the value does not fit.
    unsafe fn truncate(x: Self::F) -> Self::I;
    /// `2^x` for x from −127, which gives 0, to 127.
    unsafe fn power(x: Self::I) -> Self::F;
    /// The exponent of the leading one, at least `least`; `LOW` or less where x is 0. `LEAST` is false if `least`
    /// cannot matter.
    unsafe fn exponent<const LEAST: bool>(x: Self::F, least: Self::I) -> Self::I;
    /// `x · 2^t` rounded toward zero.
    unsafe fn align(x: Self::F, t: Self::I) -> Self::I;
    /// `sum · 2^unit` rounded toward zero, and −1 in lanes whose result is unknown.
    unsafe fn round_toward_zero(sum: Self::I, unit: Self::I) -> (Self::F, Self::I);
    /// `sum · 2^unit` rounded to nearest even as an f16, with zeros unsigned; −1 in lanes where it is infinite; and −1 in
    /// lanes whose result is unknown.
    unsafe fn round_to_f16(sum: Self::I, unit: Self::I) -> (Self::F, Self::I, Self::I);
    /// Rounds to nearest even as an f16; and −1 in lanes where the result is infinite, whose values are 2^16 or more.
    unsafe fn narrow_to_f16(x: Self::F) -> (Self::F, Self::I);
    /// The largest sum of a code of A and one of B over `len` products, by column. A's codes are four equal bytes each;
    /// B's are `stride` bytes apart and valid for `NG · WIDTH` bytes.
    unsafe fn widest<const NG: usize>(a: *const u32, b: *const u8, stride: usize, len: usize) -> [Self::I; NG];

    /// Computes `x + y` rounded to odd.
    ///
    /// The error of the sum to nearest is a number of the format, unless the sum overflows, in which case the lane is left
    /// anyway (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B). If the error is not 0 and the sum is even, the
    /// odd neighbour on the error's side is the next number.
    #[inline(always)]
    unsafe fn odd_sum(x: Self::F, y: Self::F) -> Self::F {
        // SAFETY: upheld by the caller.
        unsafe {
            let minus = |x: Self::F, y: Self::F| {
                Self::add_f(x, Self::from_bits(Self::xor(Self::bits(y), Self::splat_i(i32::MIN))))
            };
            let sum = Self::add_f(x, y);
            let of_y = minus(sum, x);
            let error = Self::bits(Self::add_f(minus(x, minus(sum, of_y)), minus(y, of_y)));
            let bits = Self::bits(sum);
            let inexact = Self::greater(Self::and(error, Self::splat_i(i32::MAX)), Self::splat_i(0));
            // An infinity stays infinite, to be detected at the end.
            let finite = Self::greater(Self::splat_i(0x7f80_0000), Self::and(bits, Self::splat_i(i32::MAX)));
            let inexact = Self::and(inexact, finite);
            let even = Self::greater(Self::splat_i(1), Self::and(bits, Self::splat_i(1)));
            let outward = Self::greater(Self::xor(error, bits), Self::splat_i(-1));
            let step = Self::select(outward, Self::splat_i(1), Self::splat_i(-1));
            Self::from_bits(Self::add(bits, Self::and(step, Self::and(inexact, even))))
        }
    }
    /// `x · y + z` rounded to odd, for a product that is an f32, and a result below 2^127.
    #[inline(always)]
    unsafe fn fma_to_odd(x: Self::F, y: Self::F, z: Self::F) -> Self::F {
        // SAFETY: upheld by the caller.
        unsafe { Self::odd_sum(Self::mul(x, y), z) }
    }
    /// Rounds to nearest even as an f16, with its infinities; a NaN remains one.
    #[inline(always)]
    unsafe fn as_f16(x: Self::F) -> Self::F {
        // SAFETY: upheld by the caller.
        unsafe {
            let (rounded, infinite) = Self::narrow_to_f16(x);
            let number = Self::select(infinite, Self::infinity_like(x), Self::bits(rounded));
            let magnitude = Self::and(Self::bits(x), Self::splat_i(i32::MAX));
            let is_nan = Self::greater(magnitude, Self::splat_i(0x7f80_0000));
            Self::from_bits(Self::select(is_nan, Self::bits(x), number))
        }
    }
    /// The bits of an infinity of this sign.
    #[inline(always)]
    unsafe fn infinity_like(x: Self::F) -> Self::I {
        // SAFETY: upheld by the caller.
        unsafe { Self::or(Self::and(Self::bits(x), Self::splat_i(i32::MIN)), Self::splat_i(0x7f80_0000)) }
    }
    #[inline(always)]
    unsafe fn negative_lanes(x: Self::I) -> u64 {
        let mut lanes = [0i32; 16];
        // SAFETY: no implementation has more than sixteen lanes; the rest is upheld by the caller.
        unsafe { Self::store_i(lanes.as_mut_ptr(), x) };
        lanes.iter().enumerate().fold(0, |mask, (lane, value)| mask | u64::from(*value < 0) << lane)
    }
}

/// Defines short operations. Their requirements on the processor and on pointers are those of [`Lanes`].
macro_rules! operations {
    ($($name:ident($($x:ident: $type:ty),*) -> $out:ty { $($body:tt)* })*) => {
        $(#[inline(always)]
        #[allow(unused_unsafe, clippy::undocumented_unsafe_blocks)]
        unsafe fn $name($($x: $type),*) -> $out {
            unsafe { $($body)* }
        })*
    };
}
pub(super) use operations;

/// Sixteen lanes in arrays, which the compiler vectorises.
#[derive(Clone, Copy)]
pub(super) struct Portable;

const N: usize = 16;

#[inline(always)]
fn map<T: Copy, U: Copy + Default>(x: [T; N], f: impl Fn(T) -> U) -> [U; N] {
    let mut out = [U::default(); N];
    for lane in 0..N {
        out[lane] = f(x[lane]);
    }
    out
}

#[inline(always)]
fn map2<T: Copy, S: Copy, U: Copy + Default>(x: [T; N], y: [S; N], f: impl Fn(T, S) -> U) -> [U; N] {
    let mut out = [U::default(); N];
    for lane in 0..N {
        out[lane] = f(x[lane], y[lane]);
    }
    out
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
impl Lanes for Portable {
    const WIDTH: usize = N;
    type F = [f32; N];
    type I = [i32; N];

    #[inline(always)]
    unsafe fn load_f(from: *const f32) -> Self::F {
        // SAFETY: valid for sixteen elements by contract; the array has the alignment of its element.
        unsafe { from.cast::<[f32; N]>().read() }
    }
    #[inline(always)]
    unsafe fn store_f(to: *mut f32, value: Self::F) {
        // SAFETY: as in `load_f`.
        unsafe { to.cast::<[f32; N]>().write(value) }
    }
    #[inline(always)]
    unsafe fn load_i(from: *const i32) -> Self::I {
        // SAFETY: as in `load_f`.
        unsafe { from.cast::<[i32; N]>().read() }
    }
    #[inline(always)]
    unsafe fn store_i(to: *mut i32, value: Self::I) {
        // SAFETY: as in `load_f`.
        unsafe { to.cast::<[i32; N]>().write(value) }
    }

    operations! {
        splat_f(value: f32) -> Self::F { [value; N] }
        splat_i(value: i32) -> Self::I { [value; N] }
        mul(x: Self::F, y: Self::F) -> Self::F { map2(x, y, |x, y| x * y) }
        add_f(x: Self::F, y: Self::F) -> Self::F { map2(x, y, |x, y| x + y) }
        add(x: Self::I, y: Self::I) -> Self::I { map2(x, y, i32::wrapping_add) }
        sub(x: Self::I, y: Self::I) -> Self::I { map2(x, y, i32::wrapping_sub) }
        max(x: Self::I, y: Self::I) -> Self::I { map2(x, y, i32::max) }
        min(x: Self::I, y: Self::I) -> Self::I { map2(x, y, i32::min) }
        min_unsigned(x: Self::I, y: Self::I) -> Self::I {
            map2(x, y, |x, y| x.cast_unsigned().min(y.cast_unsigned()).cast_signed())
        }
        and(x: Self::I, y: Self::I) -> Self::I { map2(x, y, |x, y| x & y) }
        or(x: Self::I, y: Self::I) -> Self::I { map2(x, y, |x, y| x | y) }
        xor(x: Self::I, y: Self::I) -> Self::I { map2(x, y, |x, y| x ^ y) }
        greater(x: Self::I, y: Self::I) -> Self::I { map2(x, y, |x, y| -i32::from(x > y)) }
        bits(x: Self::F) -> Self::I { map(x, |x| x.to_bits().cast_signed()) }
        from_bits(x: Self::I) -> Self::F { map(x, |x| f32::from_bits(x.cast_unsigned())) }
        power(x: Self::I) -> Self::F { map(x, |x| f32::from_bits(((x + 127) << 23).cast_unsigned())) }
    }

    #[inline(always)]
    unsafe fn fma(x: Self::F, y: Self::F, z: Self::F) -> Self::F {
        let mut out = [0.0; N];
        for lane in 0..N {
            out[lane] = x[lane] * y[lane] + z[lane];
        }
        out
    }
    #[inline(always)]
    unsafe fn pairs(x: Self::I, y: Self::I) -> Self::I {
        map2(x, y, |x, y| {
            let low = i32::from(x as i16) * i32::from(y as i16);
            low.wrapping_add((x >> 16) * (y >> 16))
        })
    }
    #[inline(always)]
    unsafe fn select(mask: Self::I, x: Self::I, y: Self::I) -> Self::I {
        let mut out = [0; N];
        for lane in 0..N {
            out[lane] = (mask[lane] & x[lane]) | (!mask[lane] & y[lane]);
        }
        out
    }
    #[inline(always)]
    unsafe fn truncate(x: Self::F) -> Self::I {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_mm_cvttps_epi32, _mm_loadu_ps, _mm_storeu_si128};
            let mut out = [0; N];
            for part in (0..N).step_by(4) {
                // SAFETY: SSE2 is part of the target; four elements from `part` on are within the arrays.
                unsafe {
                    let four = _mm_loadu_ps(x.as_ptr().add(part));
                    _mm_storeu_si128(out.as_mut_ptr().add(part).cast(), _mm_cvttps_epi32(four));
                }
            }
            out
        }
        #[cfg(not(target_arch = "x86_64"))]
        map(x, |x| x as i32)
    }
    #[inline(always)]
    unsafe fn exponent<const LEAST: bool>(x: Self::F, least: Self::I) -> Self::I {
        map2(x, least, |x, least| {
            let magnitude = (x.to_bits() & 0x7fff_ffff).cast_signed();
            let exponent = ((magnitude >> 23) - 127).max(least);
            let zero = -i32::from(magnitude == 0);
            (zero & LOW) | (!zero & exponent)
        })
    }
    #[inline(always)]
    unsafe fn align(x: Self::F, t: Self::I) -> Self::I {
        let half = map(t, |t| t >> 1);
        let rest = map2(t, half, |t, half| t - half);
        // SAFETY: no instructions beyond the baseline are needed; see `aligning_in_halves`.
        unsafe { Self::truncate(Self::mul(Self::mul(x, Self::power(half)), Self::power(rest))) }
    }
    #[inline(always)]
    unsafe fn round_toward_zero(sum: Self::I, unit: Self::I) -> (Self::F, Self::I) {
        let magnitude = map(sum, |sum| sum.wrapping_abs());
        let nearest = map(magnitude, |magnitude| magnitude as f32);
        // SAFETY: no instructions beyond the baseline are needed.
        let back = unsafe { Self::truncate(nearest) };
        let mut out = [0.0; N];
        let mut unknown = [0; N];
        for lane in 0..N {
            // Where rounding to nearest went up, take one unit in the last place back. 2^31 − 64 and more round to
            // 2^31, which does not convert back to an integer.
            let down = -i32::from(back[lane] > magnitude[lane]);
            let bits = nearest[lane].to_bits().cast_signed() + down;
            let scaled = bits.wrapping_add(unit[lane] << 23);
            let some = -i32::from(sum[lane] != 0);
            let sign = sum[lane] & i32::MIN;
            unknown[lane] = -i32::from(magnitude[lane] > 0x7fff_ff7f)
                | (-i32::from(scaled < 0x0080_0000) & some)
                | (magnitude[lane] >> 31);
            out[lane] = f32::from_bits(((scaled & some) | sign).cast_unsigned());
        }
        (out, unknown)
    }
    #[inline(always)]
    unsafe fn round_to_f16(sum: Self::I, unit: Self::I) -> (Self::F, Self::I, Self::I) {
        let magnitude = map(sum, |sum| sum.wrapping_abs());
        let nearest = map(magnitude, |magnitude| magnitude as f32);
        // SAFETY: no instructions beyond the baseline are needed.
        let back = unsafe { Self::truncate(nearest) };
        let mut odd = [0.0; N];
        let mut unknown = [0; N];
        for lane in 0..N {
            // Rounds to odd: toward zero, with the lowest bit set if anything was lost.
            let down = -i32::from(back[lane] > magnitude[lane]);
            let lost = i32::from(back[lane] != magnitude[lane]);
            let bits = (nearest[lane].to_bits().cast_signed() + down) | lost;
            let some = -i32::from(sum[lane] != 0);
            unknown[lane] = -i32::from(magnitude[lane] > 0x7fff_ff7f) | (magnitude[lane] >> 31);
            odd[lane] = f32::from_bits((bits.wrapping_add(unit[lane] << 23) & some).cast_unsigned());
        }
        // SAFETY: no instructions beyond the baseline are needed.
        let (rounded, infinite) = unsafe { Self::narrow_to_f16(odd) };
        let mut out = [0.0; N];
        for lane in 0..N {
            let sign = if rounded[lane].to_bits() == 0 { 0 } else { sum[lane].cast_unsigned() & 0x8000_0000 };
            out[lane] = f32::from_bits(rounded[lane].to_bits() | sign);
        }
        (out, infinite, unknown)
    }
    #[inline(always)]
    unsafe fn narrow_to_f16(x: Self::F) -> (Self::F, Self::I) {
        let mut out = [0.0; N];
        let mut infinite = [0; N];
        for lane in 0..N {
            let bits = x[lane].to_bits();
            let (sign, magnitude) = (bits & 0x8000_0000, bits & 0x7fff_ffff);
            let normal = (magnitude + 0xfff + (magnitude >> 13 & 1)) & !0x1fff;
            // The unit in the last place of 0.5 is 2^−24, that of a subnormal f16.
            let subnormal = ((f32::from_bits(magnitude) + 0.5) - 0.5).to_bits();
            let small = 0u32.wrapping_sub(u32::from(magnitude < 0x3880_0000));
            let rounded = (small & subnormal) | (!small & normal);
            infinite[lane] = -i32::from(rounded >= 0x4780_0000);
            out[lane] = f32::from_bits(rounded | sign);
        }
        (out, infinite)
    }
    #[inline(always)]
    unsafe fn widest<const NG: usize>(a: *const u32, b: *const u8, stride: usize, len: usize) -> [Self::I; NG] {
        let mut out = [[0; N]; NG];
        for (group, out) in out.iter_mut().enumerate() {
            let mut most = [0u8; N];
            for k in 0..len {
                // SAFETY: valid for `len` codes and `NG · WIDTH` bytes by contract.
                let (code, codes) =
                    unsafe { (*a.add(k) as u8, b.add(k * stride + group * N).cast::<[u8; N]>().read()) };
                for lane in 0..N {
                    most[lane] = most[lane].max(codes[lane].wrapping_add(code));
                }
            }
            *out = map(most, i32::from);
        }
        out
    }
}
