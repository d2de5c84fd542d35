//! Two independent models of the bf16 instructions, and inputs that distinguish them from rival models.

use mxprobe_api::{Decoded, Format, Overflow, Rounding, Subnormals};

/// SplitMix64: the same numbers on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        u32::try_from(((self.bits() >> 32) * u64::from(limit)) >> 32).expect("below a 32-bit limit")
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::try_from(self.bits() >> 48).expect("16 bits")
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::try_from(self.bits() >> 32).expect("32 bits")
    }
}

/// The rules for each step of a dot. [`Rules::SPECIFIED`] is the unit; every other value is a rival to be refuted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Whether subnormal inputs are read as zero.
    pub(crate) daz: bool,
    /// The treatment of tiny results.
    pub(crate) subnormals: Subnormals,
    /// The rounding of each step.
    pub(crate) rounding: Rounding,
    /// Whether products are added without being rounded first.
    pub(crate) fused: bool,
}

impl Rules {
    /// binary32, RNE, inputs DAZ, output FTZ with tininess after rounding, fused (*specified*: Intel SDM volume 2,
    /// TDPBF16PS and VDPBF16PS, except tininess after rounding, which is *measured*).
    pub(crate) const SPECIFIED: Self =
        Self { daz: true, subnormals: Subnormals::FlushAfterRounding, rounding: Rounding::NearestEven, fused: true };

    /// Computes a·b + c of f32 bits, in integers; a NaN result is the first NaN of a, b, c, quieted, with its payload.
    pub(crate) fn fma(self, a: u32, b: u32, c: u32) -> u32 {
        if let Some(nan) = first_nan([a, b, c]) {
            return nan;
        }
        if !self.fused && c & 0x7fff_ffff != 0 {
            let product = Self { fused: true, ..self }.fma(a, b, (a ^ b) & SIGN);
            return Self { fused: true, ..self }.fma(product, ONE, c);
        }
        let value = |bits: u32| match Format::F32.decode(u64::from(bits)) {
            Decoded::Finite { negative, significand, .. } if self.daz && significand >> 23 == 0 => {
                Decoded::Zero { negative }
            }
            other => other,
        };
        let sign = |bits: u32| bits & SIGN != 0;
        let infinite = |bits| matches!(value(bits), Decoded::Infinity { .. });
        let zero = |bits| matches!(value(bits), Decoded::Zero { .. });
        if infinite(a) || infinite(b) {
            let product = INFINITY | (a ^ b) & SIGN;
            let is_invalid = zero(a) || zero(b) || (infinite(c) && c != product);
            return if is_invalid { INVALID } else { product };
        }
        if infinite(c) {
            return c;
        }
        let parts = |bits| match value(bits) {
            Decoded::Finite { significand, exponent, .. } => (u128::from(significand), exponent - 23),
            _ => (0, 0),
        };
        let ((a_int, a_exp), (b_int, b_exp), (c_int, c_exp)) = (parts(a), parts(b), parts(c));
        let (negative, magnitude, lsb) = add((sign(a ^ b), a_int * b_int, a_exp + b_exp), (sign(c), c_int, c_exp));
        let encoded = Format::F32.encode(negative, magnitude, lsb, self.rounding, Overflow::Ieee, self.subnormals);
        u32::try_from(encoded.bits).expect("32 bits")
    }
}

pub(crate) const INVALID: u32 = 0xffc0_0000;
pub(crate) const INFINITY: u32 = 0x7f80_0000;
pub(crate) const ONE: u32 = 0x3f80_0000;
const SIGN: u32 = 0x8000_0000;
const QUIET: u32 = 0x0040_0000;

pub(crate) fn is_nan(bits: u32) -> bool {
    bits & !SIGN > INFINITY
}

/// Returns the first NaN, quieted.
fn first_nan(operands: [u32; 3]) -> Option<u32> {
    operands.into_iter().find(|bits| is_nan(*bits)).map(|bits| bits | QUIET)
}

type Term = (bool, u128, i32);

/// Adds two terms of at most 48 bits: returns the exact sum, or one that rounds in the same way.
fn add(x: Term, y: Term) -> Term {
    if x.1 == 0 && y.1 == 0 {
        return (x.0 && y.0, 0, 0);
    }
    if x.1 == 0 {
        return y;
    }
    if y.1 == 0 {
        return x;
    }
    let top = |term: Term| term.2 + 128 - term.1.leading_zeros().cast_signed();
    let (large, small) = if top(x) >= top(y) { (x, y) } else { (y, x) };
    // Bits 90 or more below the top are replaced by a single sticky bit far below every rounding position.
    let lsb = (top(large) - 90).max(large.2.min(small.2)).min(large.2);
    let large_int = large.1 << (large.2 - lsb).unsigned_abs();
    let small_int = if small.2 >= lsb {
        small.1 << (small.2 - lsb).unsigned_abs()
    } else {
        let drop = (lsb - small.2).unsigned_abs();
        let kept = small.1.checked_shr(drop).unwrap_or(0);
        let lost = drop >= 128 || kept << drop != small.1;
        kept | u128::from(lost)
    };
    match (large.0 == small.0, large_int.cmp(&small_int)) {
        (true, _) => (large.0, large_int + small_int, lsb),
        (false, std::cmp::Ordering::Greater) => (large.0, large_int - small_int, lsb),
        (false, std::cmp::Ordering::Less) => (small.0, small_int - large_int, lsb),
        (false, std::cmp::Ordering::Equal) => (false, 0, 0),
    }
}

/// A second implementation of [`Rules::SPECIFIED`], in f64 with the sum rounded to odd: faster, and shares no code with
/// the first.
#[inline]
pub(crate) fn fma_in_f64(a: u32, b: u32, c: u32) -> u32 {
    if let Some(nan) = first_nan([a, b, c]) {
        return nan;
    }
    let value = |bits: u32| {
        let is_tiny = bits & INFINITY == 0;
        f64::from(f32::from_bits(if is_tiny { bits & SIGN } else { bits }))
    };
    // Exact: 24 bits times 24 bits, exponents from −252 to 255.
    let product = value(a) * value(b);
    let c = value(c);
    let sum = product + c;
    if sum.is_nan() {
        return INVALID;
    }
    // Knuth's two-sum: the exact error of the addition.
    let back = sum - product;
    let error = (product - (sum - back)) + (c - back);
    let is_exact = error.to_bits() << 1 == 0;
    let odd = if sum.is_infinite() || is_exact || sum.to_bits() & 1 == 1 {
        sum
    } else if (error > 0.0) == (sum > 0.0) {
        f64::from_bits(sum.to_bits() + 1)
    } else {
        f64::from_bits(sum.to_bits() - 1)
    };
    // Below 2^-126 − 2^-151 the result rounded with an unbounded exponent is below 2^-126.
    if odd.abs() < f64::from_bits(0x380f_ffff_f000_0000) {
        return u32::from(odd.is_sign_negative()) << 31;
    }
    // One rounding, RNE, by the language's conversion.
    #[expect(clippy::cast_possible_truncation)]
    let rounded = odd as f32;
    rounded.to_bits()
}

fn wide(bf16: u16) -> u32 {
    u32::from(bf16) << 16
}

/// VDPBF16PS as specified: the odd element first, each a multiply-add into the accumulator. A NaN result is the first
/// NaN of a0, b0, a1, b1, c.
#[inline]
pub(crate) fn vdpbf16ps(fma: impl Fn(u32, u32, u32) -> u32, a: [u16; 2], b: [u16; 2], c: u32) -> u32 {
    fma(wide(a[0]), wide(b[0]), fma(wide(a[1]), wide(b[1]), c))
}

/// TDPBF16PS as specified: two chains from +0, of the even and of the odd k, joined, then added to c. If there are
/// several NaN, c's takes precedence, then that of the even chain.
pub(crate) fn tdpbf16ps(
    fma: impl Fn(u32, u32, u32) -> u32,
    a: impl Fn(usize) -> u16,
    b: impl Fn(usize) -> u16,
    c: u32,
) -> u32 {
    let (mut even, mut odd) = (0, 0);
    for k in (0..32).step_by(2) {
        even = fma(wide(a(k)), wide(b(k)), even);
        odd = fma(wide(a(k + 1)), wide(b(k + 1)), odd);
    }
    // x + y is x·1 + y, which also gives the NaN of x precedence over that of y.
    fma(c, ONE, fma(even, ONE, odd))
}

/// The distribution of a dot's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    UniformBits,
    NarrowExponents,
    MiddleExponents,
    FiniteExponents,
    UnderflowEdge,
    OverflowEdge,
    Specials,
    PowersOfTwo,
    Ties,
    Cancellation,
    Tininess,
}

pub(crate) const CLASSES: [Class; 11] = [
    Class::UniformBits,
    Class::NarrowExponents,
    Class::MiddleExponents,
    Class::FiniteExponents,
    Class::UnderflowEdge,
    Class::OverflowEdge,
    Class::Specials,
    Class::PowersOfTwo,
    Class::Ties,
    Class::Cancellation,
    Class::Tininess,
];

pub(crate) const SPECIAL_BF16: [u16; 24] = [
    0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x8080, 0x3f80, 0xbf80, 0x4000, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81,
    0xff85, 0x7fc0, 0x7fc1, 0xffc2, 0x7fff, 0xffbf, 0x5f80, 0xdf80, 0x1f80, 0x9f80,
];

pub(crate) const SPECIAL_F32: [u32; 24] = [
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f80_0001,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7f80_0001,
    0xff80_5678,
    0x7fc0_0000,
    0x7fc1_2345,
    0xffc6_789a,
    0x7fff_ffff,
    0xffbf_ffff,
    0x7f00_0000,
    0xff00_0000,
    0x0040_0000,
    0x8040_0000,
];

fn bf16(random: &mut Random, low: u32, high: u32, fraction_mask: u16) -> u16 {
    let exponent = u16::try_from(low + random.below(high - low + 1)).expect("an exponent field");
    let bits = random.u16();
    bits & 0x8000 | exponent << 7 | bits & 0x7f & fraction_mask
}

fn f32_bits(random: &mut Random, low: u32, high: u32, fraction_mask: u32) -> u32 {
    let exponent = low + random.below(high - low + 1);
    let bits = random.u32();
    bits & 0x8000_0000 | exponent << 23 | bits & 0x007f_ffff & fraction_mask
}

/// a, b and c of one dot of two products.
pub(crate) fn draw(class: Class, random: &mut Random) -> ([u16; 2], [u16; 2], u32) {
    let both = |random: &mut Random, low, high, mask| [bf16(random, low, high, mask), bf16(random, low, high, mask)];
    match class {
        Class::UniformBits => ([random.u16(), random.u16()], [random.u16(), random.u16()], random.u32()),
        Class::NarrowExponents => {
            (both(random, 125, 129, 0x7f), both(random, 125, 129, 0x7f), f32_bits(random, 124, 131, !0))
        }
        Class::MiddleExponents => {
            (both(random, 112, 142, 0x7f), both(random, 112, 142, 0x7f), f32_bits(random, 100, 150, !0))
        }
        Class::FiniteExponents => {
            (both(random, 0, 254, 0x7f), both(random, 0, 254, 0x7f), f32_bits(random, 0, 254, !0))
        }
        Class::UnderflowEdge => (both(random, 48, 68, 0x7f), both(random, 48, 68, 0x7f), f32_bits(random, 0, 8, !0)),
        Class::OverflowEdge => {
            (both(random, 186, 194, 0x7f), both(random, 186, 194, 0x7f), f32_bits(random, 248, 254, !0))
        }
        Class::Specials => {
            let special = |random: &mut Random| match random.below(4) {
                0 => random.u16(),
                _ => SPECIAL_BF16[random.below(24) as usize],
            };
            let c = match random.below(4) {
                0 => random.u32(),
                _ => SPECIAL_F32[random.below(24) as usize],
            };
            ([special(random), special(random)], [special(random), special(random)], c)
        }
        Class::PowersOfTwo => (both(random, 100, 154, 0), both(random, 100, 154, 0), f32_bits(random, 90, 164, 0)),
        Class::Ties => {
            // Products of few bits near half a unit in the last place of c.
            let mask = [!0, 1, 3, 0x7f_fffe][random.below(4) as usize];
            let c = f32_bits(random, 120, 134, mask);
            let near = |random: &mut Random| {
                let half_ulp = (c >> 23 & 0xff) - 24;
                let product = half_ulp + random.below(4) - 2;
                let a = 110 + random.below(30);
                let field = |exponent: u32, random: &mut Random| {
                    let exponent = u16::try_from(exponent.clamp(1, 254)).expect("an exponent field");
                    random.u16() & 0x8000 | exponent << 7 | [0, 0x40, 1, 0x7f][random.below(4) as usize]
                };
                (field(a, random), field(product + 127 - a, random))
            };
            let ((a0, b0), (a1, b1)) = (near(random), near(random));
            ([a0, a1], [b0, b1], c)
        }
        Class::Cancellation => {
            let (a, mut b) = (both(random, 110, 144, 0x7f), both(random, 110, 144, 0x7f));
            let value = |bits: u16| f32::from_bits(wide(bits));
            let mut a = a;
            let c = match random.below(3) {
                // The products cancel each other.
                0 => {
                    a[1] = b[0];
                    b[1] = a[0] ^ 0x8000;
                    f32_bits(random, 100, 150, !0)
                }
                // c cancels one product, up to some units in the last place.
                which => {
                    let k = (which - 1) as usize;
                    let product = (-(value(a[k]) * value(b[k]))).to_bits();
                    product.wrapping_add(random.below(3)).wrapping_sub(1)
                }
            };
            (a, b, c)
        }
        Class::Tininess => {
            // ±(2^-126 + a few units in the last place), and products from 2^-156 to 2^-146.
            let c = (0x0080_0000 + random.below(3)) | random.u32() & 0x8000_0000;
            let tiny = |random: &mut Random| {
                let total = 254 - 146 - random.below(11);
                let a = 40 + random.below(28);
                let exponent = |field: u32| u16::try_from(field).expect("an exponent field") << 7;
                let (s, t) = (random.u16(), random.u16());
                let few = [0, 0, 0x40, 0x7f];
                (
                    s & 0x8000 | exponent(a) | few[random.below(4) as usize],
                    t & 0x8000 | exponent(total - a) | few[random.below(4) as usize],
                )
            };
            let ((a0, b0), (a1, b1)) = (tiny(random), tiny(random));
            if random.below(2) == 0 { ([a0, 0], [b0, 0], c) } else { ([a0, a1], [b0, b1], c) }
        }
    }
}
