//! The specifications read literally, in f64, which holds every value here exactly.

use std::cmp::Ordering;

use mxprobe_api::{Encoded, Format, Overflow, Rounding, Subnormals};

pub(crate) const ROUNDINGS: [Rounding; 5] =
    [Rounding::NearestEven, Rounding::TowardZero, Rounding::Down, Rounding::Up, Rounding::ToOdd];

pub(crate) const OVERFLOWS: [Overflow; 4] = [Overflow::Infinity, Overflow::Ieee, Overflow::Nan, Overflow::Saturate];

pub(crate) const SUBNORMALS: [Subnormals; 4] = [
    Subnormals::Keep,
    Subnormals::FlushBeforeRounding,
    Subnormals::FlushAfterRounding,
    Subnormals::FlushToPositiveZero,
];

/// A format as its specification gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) format: Format,
    pub(crate) exponent_bits: i32,
    pub(crate) fraction_bits: i32,
    pub(crate) bias: i32,
    pub(crate) has_sign: bool,
    pub(crate) has_zero: bool,
    pub(crate) has_negative_zero: bool,
    /// The code of +∞.
    pub(crate) infinity: Option<u64>,
    /// The codes of NaN, without those that differ only in an unread bit.
    pub(crate) nan: fn(u64) -> bool,
    /// The NaN that overflow gives, for either sign.
    pub(crate) overflow_nan: Option<[u64; 2]>,
    pub(crate) largest: f64,
    pub(crate) smallest_normal: f64,
    pub(crate) smallest: f64,
}

/// A format without infinity and NaN: exponent bits, fraction bits, bias; largest, smallest normal and smallest value.
const fn finite(
    format: Format,
    (exponent_bits, fraction_bits, bias): (i32, i32, i32),
    [largest, smallest_normal, smallest]: [f64; 3],
) -> Spec {
    Spec {
        format,
        exponent_bits,
        fraction_bits,
        bias,
        has_sign: true,
        has_zero: true,
        has_negative_zero: true,
        infinity: None,
        nan: |_| false,
        overflow_nan: None,
        largest,
        smallest_normal,
        smallest,
    }
}

/// The floating formats of 8 bits or fewer.
pub(crate) const NARROW: [Spec; 9] = [
    // OCP OFP8 1.0, table 1: S.1111.111 is NaN, S.1111.110 is 448, S.0001.000 is 2^-6, S.0000.001 is 2^-9.
    Spec {
        nan: |code| code & 0x7f == 0x7f,
        overflow_nan: Some([0x7f, 0xff]),
        ..finite(Format::E4M3, (4, 3, 7), [448.0, 0.015625, 0.001953125])
    },
    // OCP OFP8 1.0, table 1: S.11111.00 is ∞, S.11111.{01,10,11} NaN, S.11110.11 is 57344.
    Spec {
        infinity: Some(0x7c),
        nan: |code| code & 0x7f > 0x7c,
        overflow_nan: Some([0x7e, 0xfe]),
        ..finite(Format::E5M2, (5, 2, 15), [57344.0, 0.00006103515625, 0.0000152587890625])
    },
    // arXiv:2206.02915: bias 8, 0x80 is the only NaN, 0x7f is 240.
    Spec {
        has_negative_zero: false,
        nan: |code| code == 0x80,
        overflow_nan: Some([0x80, 0x80]),
        ..finite(Format::E4M3FNUZ, (4, 3, 8), [240.0, 0.0078125, 0.0009765625])
    },
    // arXiv:2206.02915: bias 16, 0x80 is the only NaN, 0x7f is 57344.
    Spec {
        has_negative_zero: false,
        nan: |code| code == 0x80,
        overflow_nan: Some([0x80, 0x80]),
        ..finite(Format::E5M2FNUZ, (5, 2, 16), [57344.0, 0.000030517578125, 0.00000762939453125])
    },
    // OCP MX 1.0, table 3: largest 28, smallest normal 0.25, smallest 0.0625.
    finite(Format::E3M2, (3, 2, 3), [28.0, 0.25, 0.0625]),
    // OCP MX 1.0, table 3: largest 7.5, smallest normal 1, smallest 0.125.
    finite(Format::E2M3, (2, 3, 1), [7.5, 1.0, 0.125]),
    // OCP MX 1.0, table 4: largest 6, smallest normal 1, smallest 0.5.
    finite(Format::E2M1, (2, 1, 1), [6.0, 1.0, 0.5]),
    // PTX ISA 8.7, 5.2.3: e4m3 without its sign.
    Spec {
        has_sign: false,
        nan: |code| code == 0x7f,
        overflow_nan: Some([0x7f, 0x7f]),
        ..finite(Format::UE4M3, (4, 3, 7), [448.0, 0.015625, 0.001953125])
    },
    // OCP MX 1.0, 5.4.1: 2^(code − 127), 0xff is NaN; 2^127 and 2^-127 as f64 bits below.
    Spec {
        has_sign: false,
        has_zero: false,
        nan: |code| code == 0xff,
        overflow_nan: Some([0xff, 0xff]),
        ..finite(
            Format::UE8M0,
            (8, 0, 127),
            [
                f64::from_bits(0x47e0_0000_0000_0000),
                f64::from_bits(0x3800_0000_0000_0000),
                f64::from_bits(0x3800_0000_0000_0000),
            ],
        )
    },
];

/// The wider formats whose every value, and half a unit in its last place, is an f64.
pub(crate) const WIDE: [Spec; 4] = [
    Spec {
        infinity: Some(0x7c00),
        nan: |code| code & 0x7fff > 0x7c00,
        overflow_nan: Some([0x7e00, 0xfe00]),
        // 2^-24, 5.96e-8.
        ..finite(Format::F16, (5, 10, 15), [65504.0, 0.00006103515625, f64::from_bits(0x3e70_0000_0000_0000)])
    },
    Spec {
        infinity: Some(0x7f80),
        nan: |code| code & 0x7fff > 0x7f80,
        overflow_nan: Some([0x7fc0, 0xffc0]),
        // (2 − 2^-7) · 2^127, 2^-126, 2^-133.
        ..finite(
            Format::BF16,
            (8, 7, 127),
            [
                f64::from_bits(0x47ef_e000_0000_0000),
                f64::from_bits(0x3810_0000_0000_0000),
                f64::from_bits(0x37a0_0000_0000_0000),
            ],
        )
    },
    Spec {
        infinity: Some(0x7f80_0000),
        nan: |code| code & 0x7fff_ffff > 0x7f80_0000,
        overflow_nan: Some([0x7fc0_0000, 0xffc0_0000]),
        // (2 − 2^-10) · 2^127, 2^-126, 2^-136.
        ..finite(
            Format::TF32,
            (8, 10, 127),
            [
                f64::from_bits(0x47ef_fc00_0000_0000),
                f64::from_bits(0x3810_0000_0000_0000),
                f64::from_bits(0x3770_0000_0000_0000),
            ],
        )
    },
    Spec {
        infinity: Some(0x7f80_0000),
        nan: |code| code & 0x7fff_ffff > 0x7f80_0000,
        overflow_nan: Some([0x7fc0_0000, 0xffc0_0000]),
        // (2 − 2^-23) · 2^127, 2^-126, 2^-149.
        ..finite(
            Format::F32,
            (8, 23, 127),
            [
                f64::from_bits(0x47ef_ffff_e000_0000),
                f64::from_bits(0x3810_0000_0000_0000),
                f64::from_bits(0x36a0_0000_0000_0000),
            ],
        )
    },
];

/// 2^exponent for exponents of normal f64 numbers.
pub(crate) fn power_of_two(exponent: i32) -> f64 {
    assert!((-1022..=1023).contains(&exponent), "{exponent}");
    f64::from_bits(u64::try_from(exponent + 1023).expect("not negative") << 52)
}

/// ⌊log2 x⌋ for a positive normal f64.
pub(crate) fn floor_log2(x: f64) -> i32 {
    assert!(x.is_normal() && x > 0.0, "{x:e}");
    i32::try_from(x.to_bits() >> 52).expect("eleven bits") - 1023
}

/// Equality of values that are not NaN; the sign of zeros is checked elsewhere.
pub(crate) fn same(x: f64, y: f64) -> bool {
    x.partial_cmp(&y) == Some(Ordering::Equal)
}

impl Spec {
    fn max_field(self) -> u64 {
        1 << self.exponent_bits
    }

    /// Low bits of the code that are not part of the number.
    pub(crate) fn unread_bits(self) -> u32 {
        if self.format == Format::TF32 { 13 } else { 0 }
    }

    /// (−1)^s · 2^(field − bias) · (1 + fraction / 2^M), or 2^(1 − bias) · fraction / 2^M if the field is 0.
    ///
    /// Only for codes of finite values.
    pub(crate) fn value(self, code: u64) -> f64 {
        let code = code >> self.unread_bits();
        let fraction = code % (1 << self.fraction_bits);
        let field = code >> self.fraction_bits;
        let (negative, field) =
            if self.has_sign { (field >= self.max_field(), field % self.max_field()) } else { (false, field) };
        let field = i32::try_from(field % self.max_field()).expect("a field");
        let parts = f64::from(u32::try_from(fraction).expect("a fraction")) / power_of_two(self.fraction_bits);
        let magnitude = if field == 0 && self.has_zero {
            power_of_two(1 - self.bias) * parts
        } else {
            power_of_two(field - self.bias) * (1.0 + parts)
        };
        if negative { -magnitude } else { magnitude }
    }

    /// The code of a magnitude that the format holds, found by inverting the formula.
    pub(crate) fn code(self, magnitude: f64) -> u64 {
        let code = if magnitude < self.smallest_normal {
            magnitude / power_of_two(1 - self.bias - self.fraction_bits)
        } else {
            let exponent = floor_log2(magnitude);
            let field = f64::from(exponent + self.bias);
            (field + (magnitude / power_of_two(exponent) - 1.0)) * power_of_two(self.fraction_bits)
        };
        assert!(same(code.trunc(), code), "{}: cannot represent {magnitude:e}", self.format);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let code = code as u64;
        code << self.unread_bits()
    }

    fn sign(self, negative: bool) -> u64 {
        if negative && self.has_sign { 1 << (self.format.bits() - 1) } else { 0 }
    }

    fn zero(self, negative: bool) -> u64 {
        if self.has_negative_zero { self.sign(negative) } else { 0 }
    }

    /// Rounds ±x, x > 0 with some bits to spare in f64, by the definitions.
    pub(crate) fn encode(
        self,
        negative: bool,
        x: f64,
        rounding: Rounding,
        overflow: Overflow,
        subnormals: Subnormals,
    ) -> Encoded {
        // Rounded to M fraction bits as if the exponent had no lower bound.
        let free = round_to(x, power_of_two(floor_log2(x) - self.fraction_bits), rounding, negative);
        let tiny_after = free < self.smallest_normal;
        let flush = match subnormals {
            Subnormals::Keep => false,
            Subnormals::FlushBeforeRounding => x < self.smallest_normal,
            Subnormals::FlushAfterRounding | Subnormals::FlushToPositiveZero => tiny_after,
        };
        if flush {
            let bits = self.zero(negative && subnormals != Subnormals::FlushToPositiveZero);
            return Encoded { bits, inexact: true, overflow: false, underflow: true };
        }
        let rounded = if x < self.smallest_normal {
            round_to(x, self.smallest_normal / power_of_two(self.fraction_bits), rounding, negative)
        } else {
            free
        };
        if rounded > self.largest {
            let away = match rounding {
                Rounding::NearestEven => true,
                Rounding::TowardZero | Rounding::ToOdd => false,
                Rounding::Down => negative,
                Rounding::Up => !negative,
            };
            let sign = self.sign(negative);
            let largest = self.code(self.largest) | sign;
            let nan = self.overflow_nan.map(|nan| nan[usize::from(negative)]);
            let infinity = self.infinity.map(|infinity| infinity | sign).or(nan);
            let bits = match overflow {
                Overflow::Infinity => infinity,
                Overflow::Ieee if away => infinity,
                Overflow::Nan => nan,
                Overflow::Ieee | Overflow::Saturate => None,
            };
            return Encoded { bits: bits.unwrap_or(largest), inexact: true, overflow: true, underflow: false };
        }
        let inexact = !same(rounded, x);
        let bits = if !self.has_zero && rounded < self.smallest {
            // A format without zero: anything below the smallest value becomes that value.
            return Encoded { bits: 0, inexact, overflow: false, underflow: inexact && tiny_after };
        } else if rounded <= 0.0 {
            self.zero(negative)
        } else {
            self.code(rounded) | self.sign(negative)
        };
        Encoded { bits, inexact, overflow: false, underflow: inexact && tiny_after }
    }
}

/// x as a multiple of the grid, a power of two.
fn round_to(x: f64, grid: f64, rounding: Rounding, negative: bool) -> f64 {
    let steps = x / grid;
    let below = steps.floor();
    let rest = steps - below;
    let below_is_odd = !same((below / 2.0).floor() * 2.0, below);
    let up = match rounding {
        Rounding::NearestEven => rest > 0.5 || (same(rest, 0.5) && below_is_odd),
        Rounding::TowardZero => false,
        Rounding::Down => negative && rest > 0.0,
        Rounding::Up => !negative && rest > 0.0,
        Rounding::ToOdd => rest > 0.0 && !below_is_odd,
    };
    (below + f64::from(u8::from(up))) * grid
}

/// x > 0 as `magnitude · 2^lsb_exponent`, exactly.
pub(crate) fn exact(x: f64) -> (u128, i32) {
    assert!(x.is_normal());
    let significand = x.to_bits() & ((1 << 52) - 1) | 1 << 52;
    (u128::from(significand), floor_log2(x) - 52)
}
