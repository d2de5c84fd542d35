//! Number formats: their names and encodings.

mod encoding;
mod rounding;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Error;
use encoding::encode_integer;
pub use encoding::{Encoding, FloatEncoding, Specials};
pub use rounding::{Decoded, Encoded, Overflow, Rounding, Subnormals};

/// A number format: a name and an encoding. [`Format::ALL`] lists them all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Format {
    name: &'static str,
    encoding: Encoding,
}

const fn float(name: &'static str, exponent_bits: u32, fraction_bits: u32, bias: i32, specials: Specials) -> Format {
    let encoding = FloatEncoding { exponent_bits, fraction_bits, bias, unread_bits: 0, specials };
    Format { name, encoding: Encoding::Float(encoding) }
}

const fn register32(name: &'static str) -> Format {
    let encoding =
        FloatEncoding { exponent_bits: 8, fraction_bits: 10, bias: 127, unread_bits: 13, specials: Specials::Ieee };
    Format { name, encoding: Encoding::Float(encoding) }
}

const fn integer(name: &'static str, bits: u32, signed: bool) -> Format {
    Format { name, encoding: Encoding::Integer { bits, signed } }
}

/// The formats. Widths and biases are *specified*: IEEE 754-2019 table 3.5; OCP OFP8 1.0; OCP MX 1.0; PTX ISA 8.7,
/// 5.2.3; FNUZ: AMD Instinct MI300 ISA, 7.1.
impl Format {
    /// IEEE 754 binary64: 11 exponent bits, 52 fraction bits.
    pub const F64: Self = float("f64", 11, 52, 1023, Specials::Ieee);
    /// IEEE 754 binary32: 8 exponent bits, 23 fraction bits.
    pub const F32: Self = float("f32", 8, 23, 127, Specials::Ieee);
    /// NVIDIA's TensorFloat-32: 8 exponent bits, 10 fraction bits; the low 13 bits of its 32-bit register are not read.
    pub const TF32: Self = register32("tf32");
    /// AMD's name for the encoding of [`TF32`](Self::TF32).
    pub const XF32: Self = register32("xf32");
    /// bfloat16, the upper half of an f32: 8 exponent bits, 7 fraction bits.
    pub const BF16: Self = float("bf16", 8, 7, 127, Specials::Ieee);
    /// IEEE 754 binary16: 5 exponent bits, 10 fraction bits.
    pub const F16: Self = float("f16", 5, 10, 15, Specials::Ieee);
    /// OCP E4M3: no infinity; the largest value is 448.
    pub const E4M3: Self = float("e4m3", 4, 3, 7, Specials::AllOnesNan);
    /// OCP E5M2: infinities and NaN as in IEEE 754; the largest value is 57344.
    pub const E5M2: Self = float("e5m2", 5, 2, 15, Specials::Ieee);
    /// E4M3 with bias 8, one NaN, and neither infinity nor −0; the largest value is 240.
    pub const E4M3FNUZ: Self = float("e4m3fnuz", 4, 3, 8, Specials::NegativeZeroNan);
    /// E5M2 with bias 16, one NaN, and neither infinity nor −0; the largest value is 57344.
    pub const E5M2FNUZ: Self = float("e5m2fnuz", 5, 2, 16, Specials::NegativeZeroNan);
    /// OCP E3M2, 6 bits: neither infinity nor NaN; the largest value is 28.
    pub const E3M2: Self = float("e3m2", 3, 2, 3, Specials::None);
    /// OCP E2M3, 6 bits: neither infinity nor NaN; the largest value is 7.5.
    pub const E2M3: Self = float("e2m3", 2, 3, 1, Specials::None);
    /// OCP E2M1, 4 bits: neither infinity nor NaN; the largest value is 6.
    pub const E2M1: Self = float("e2m1", 2, 1, 1, Specials::None);
    /// A block scale of OCP MX formats: a power of two from 2^−127 to 2^127.
    pub const UE8M0: Self = float("ue8m0", 8, 0, 127, Specials::PowerOfTwo);
    /// The block scale of NVFP4: E4M3 whose sign bit is not read.
    pub const UE4M3: Self = float("ue4m3", 4, 3, 7, Specials::UnsignedAllOnesNan);
    /// An 8-bit integer, two's complement.
    pub const S8: Self = integer("s8", 8, true);
    /// An unsigned 8-bit integer.
    pub const U8: Self = integer("u8", 8, false);
    /// A 4-bit integer, two's complement.
    pub const S4: Self = integer("s4", 4, true);
    /// An unsigned 4-bit integer.
    pub const U4: Self = integer("u4", 4, false);
    /// A 16-bit integer, two's complement.
    pub const S16: Self = integer("s16", 16, true);
    /// A 32-bit integer, two's complement.
    pub const S32: Self = integer("s32", 32, true);
    /// An unsigned 32-bit integer.
    pub const U32: Self = integer("u32", 32, false);

    /// Every format.
    pub const ALL: [Self; 22] = [
        Self::F64,
        Self::F32,
        Self::TF32,
        Self::XF32,
        Self::BF16,
        Self::F16,
        Self::E4M3,
        Self::E5M2,
        Self::E4M3FNUZ,
        Self::E5M2FNUZ,
        Self::E3M2,
        Self::E2M3,
        Self::E2M1,
        Self::UE8M0,
        Self::UE4M3,
        Self::S8,
        Self::U8,
        Self::S4,
        Self::U4,
        Self::S16,
        Self::S32,
        Self::U32,
    ];

    /// Finds a format by name.
    ///
    /// # Errors
    /// If there is none with that name; the text lists all formats.
    pub fn named(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.name == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|format| format.name).collect();
            Error::invalid(format!("`{name}` is not a format; the formats are {}", names.join(" ")))
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Its encoding.
    #[must_use]
    pub fn encoding(self) -> Encoding {
        self.encoding
    }

    /// The floating encoding, or `None` for an integer.
    #[must_use]
    #[inline]
    pub fn as_float(self) -> Option<FloatEncoding> {
        match self.encoding {
            Encoding::Float(float) => Some(float),
            Encoding::Integer { .. } => None,
        }
    }

    /// Whether it holds integers.
    #[must_use]
    pub fn is_integer(self) -> bool {
        matches!(self.encoding, Encoding::Integer { .. })
    }

    /// Width in bits, unread bits included: 32 for tf32, 6 for e3m2.
    #[must_use]
    #[inline]
    pub fn bits(self) -> u32 {
        match self.encoding {
            Encoding::Float(float) => float.bits(),
            Encoding::Integer { bits, .. } => bits,
        }
    }

    /// The fewest whole bytes (1, 2, 4 or 8) that hold one element.
    #[must_use]
    #[inline]
    pub fn storage_bytes(self) -> usize {
        self.bits().div_ceil(8).next_power_of_two() as usize
    }

    /// A mask with all its bits set.
    #[must_use]
    #[inline]
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// Fraction bits: 23 for f32, 0 for an integer.
    #[must_use]
    pub fn fraction_bits(self) -> u32 {
        self.as_float().map_or(0, |float| float.fraction_bits)
    }

    /// The bits of 1.
    #[must_use]
    pub fn one(self) -> u64 {
        self.truncated(false, 1, 0)
    }

    /// Formats bits as full-width lower-case hexadecimal: `0x3f800000`, `0x9` for e2m1.
    #[must_use]
    pub fn hex(self, bits: u64) -> String {
        format!("{:#0width$x}", bits & self.mask(), width = self.bits().div_ceil(4) as usize + 2)
    }

    /// Reads full-width hexadecimal, as [`hex`](Self::hex) writes it; upper case is accepted.
    ///
    /// # Errors
    /// If the text is not `0x` followed by the format's number of digits, or if the number is wider than the format.
    pub fn parse_hex(self, text: &str) -> Result<u64, Error> {
        let digits = self.bits().div_ceil(4) as usize;
        let digit = |bits: u64, byte: u8| Some(bits << 4 | u64::from(char::from(byte).to_digit(16)?));
        let body = text.strip_prefix("0x").filter(|body| body.len() == digits);
        match body.and_then(|body| body.bytes().try_fold(0, digit)) {
            Some(bits) if bits <= self.mask() => Ok(bits),
            _ => Err(self.wrong_hex(text)),
        }
    }

    /// The error for text that is not a number of this format.
    #[cold]
    fn wrong_hex(self, text: &str) -> Error {
        let digits = self.bits().div_ceil(4) as usize;
        let why = match text.strip_prefix("0x") {
            None => "it does not start with 0x".to_owned(),
            Some(body) if !body.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                "not all of it is hexadecimal".to_owned()
            }
            Some(body) if body.len() != digits => {
                format!("it has {} digit{}", body.len(), if body.len() == 1 { "" } else { "s" })
            }
            Some(_) => format!("it does not fit {} bits", self.bits()),
        };
        Error::invalid(format!("`{text}` is not valid {self}: {why}; {self} is written as 0x and {digits} hex digits"))
    }

    /// Decodes `bits` exactly. Bits above the width are ignored.
    ///
    /// Never fails: every code of every format decodes.
    #[must_use]
    #[inline]
    pub fn decode(self, bits: u64) -> Decoded {
        match self.encoding {
            Encoding::Float(float) => float.decode(bits),
            Encoding::Integer { bits: width, signed } => {
                let bits = bits & self.mask();
                let negative = signed && bits >> (width - 1) == 1;
                match if negative { (1 << width) - bits } else { bits } {
                    0 => Decoded::Zero { negative: false },
                    significand => Decoded::Finite { negative, significand, exponent: 0 },
                }
            }
        }
    }

    /// Rounds `±magnitude · 2^lsb_exponent` into the format, once.
    ///
    /// A magnitude of 0 gives the zero of that sign (+0 if the format lacks −0, or the smallest value of a format
    /// without zero). An integer format rounds to an integer and saturates on overflow, whatever `overflow` says.
    #[must_use]
    pub fn encode(
        self,
        negative: bool,
        magnitude: u128,
        lsb_exponent: i32,
        rounding: Rounding,
        overflow: Overflow,
        subnormals: Subnormals,
    ) -> Encoded {
        match self.encoding {
            Encoding::Float(float) => float.encode(negative, magnitude, lsb_exponent, rounding, overflow, subnormals),
            Encoding::Integer { bits, signed } => {
                encode_integer(bits, signed, negative, magnitude, lsb_exponent, rounding)
            }
        }
    }

    /// Rounds `±significand · 2^lsb_exponent` into the format toward zero, saturated and with subnormals: the bits that
    /// [`encode`](Self::encode) gives with [`Rounding::TowardZero`], [`Overflow::Saturate`] and [`Subnormals::Keep`].
    #[must_use]
    #[inline]
    pub fn truncated(self, negative: bool, significand: u64, lsb_exponent: i32) -> u64 {
        match self.encoding {
            Encoding::Float(float) => float.truncated(negative, significand, lsb_exponent),
            Encoding::Integer { bits, signed } => {
                let magnitude = u128::from(significand);
                encode_integer(bits, signed, negative, magnitude, lsb_exponent, Rounding::TowardZero).bits
            }
        }
    }

    /// The bits of the largest finite value of that sign.
    #[must_use]
    pub fn largest(self, negative: bool) -> u64 {
        match self.encoding {
            Encoding::Float(float) => float.with_sign(negative, float.largest()),
            Encoding::Integer { bits, signed: true } if negative => 1 << (bits - 1),
            Encoding::Integer { bits, signed: true } => (1 << (bits - 1)) - 1,
            Encoding::Integer { .. } if negative => 0,
            Encoding::Integer { .. } => self.mask(),
        }
    }

    /// The bits of infinity, or `None` if the format has none.
    #[must_use]
    pub fn infinity(self, negative: bool) -> Option<u64> {
        let float = self.as_float().filter(|float| float.specials == Specials::Ieee)?;
        let field = ((1 << float.exponent_bits) - 1) << float.fraction_bits;
        Some(float.with_sign(negative, field))
    }

    /// The bits of −0, or `None` if the format has none.
    #[must_use]
    #[inline]
    pub fn negative_zero(self) -> Option<u64> {
        let float = self.as_float().filter(|float| float.is_signed())?;
        let bits = float.with_sign(true, 0);
        (self.decode(bits) == Decoded::Zero { negative: true }).then_some(bits)
    }

    /// The bits of a quiet NaN without payload, or `None` if the format has none.
    #[must_use]
    pub fn nan(self) -> Option<u64> {
        let float = self.as_float()?;
        Some(float.nan_field()? << float.unread_bits)
    }

    /// The value of the bits as an f64, for display: exact for every format here, s32 and u32 included.
    #[must_use]
    pub fn to_f64(self, bits: u64) -> f64 {
        match self.decode(bits) {
            Decoded::Nan { .. } => f64::NAN,
            Decoded::Infinity { negative: false } => f64::INFINITY,
            Decoded::Infinity { negative: true } => f64::NEG_INFINITY,
            Decoded::Zero { negative } => {
                if negative {
                    -0.0
                } else {
                    0.0
                }
            }
            Decoded::Finite { negative, significand, exponent } => {
                let encoded = Self::F64.encode(
                    negative,
                    u128::from(significand),
                    exponent - self.fraction_bits().cast_signed(),
                    Rounding::NearestEven,
                    Overflow::Ieee,
                    Subnormals::Keep,
                );
                f64::from_bits(encoded.bits)
            }
        }
    }

    /// Rounds an f64 into the format (RNE, overflow to infinity or NaN); NaN gives [`nan`](Self::nan) or 0.
    #[must_use]
    pub fn from_f64(self, value: f64) -> u64 {
        match Self::F64.decode(value.to_bits()) {
            Decoded::Nan { .. } => self.nan().unwrap_or(0),
            Decoded::Infinity { negative } => {
                self.infinity(negative).or_else(|| self.nan()).unwrap_or_else(|| self.largest(negative))
            }
            Decoded::Zero { negative } => {
                self.encode(negative, 0, 0, Rounding::NearestEven, Overflow::Infinity, Subnormals::Keep).bits
            }
            Decoded::Finite { negative, significand, exponent } => {
                let lsb = exponent - 52;
                let magnitude = u128::from(significand);
                self.encode(negative, magnitude, lsb, Rounding::NearestEven, Overflow::Infinity, Subnormals::Keep).bits
            }
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl TryFrom<String> for Format {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        Self::named(&name)
    }
}

impl From<Format> for String {
    fn from(format: Format) -> Self {
        format.name.to_owned()
    }
}
