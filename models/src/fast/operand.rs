//! Decodes the bits of many factors to f32, several at a time.

use mxprobe_api::{Elements, Format, Specials};

/// A decoder of factors in one format, made of shifts that the compiler can vectorise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    unread_bits: u32,
    fraction_bits: u32,
    magnitude_bits: u32,
    pub bias: i32,
    /// The smallest magnitude that is NaN or infinite.
    special: u32,
    /// The magnitude that is infinite, if the format has one.
    infinite: u32,
    /// The only code that is NaN, including its sign.
    nan: u32,
    flush: bool,
    to_positive: bool,
    /// Whether each block has its own base exponent.
    pub dynamic: bool,
    pub base: i32,
}

/// The exponent of a zero. Two of them, or one and any other exponent, add up to less than any product's.
pub(super) const ABSENT: i32 = -8000;
/// The exponents of an infinity and of a NaN, chosen so that the sum of two exponents shows the class of the product:
/// the sum is above 60,000 for NaN times anything, at most 16,000 for infinity times zero, and between the two for
/// infinity times a number.
pub(super) const INFINITE: i32 = 20_000;
pub(super) const NAN: i32 = 100_000;

/// How far below the base exponents remain distinct in a code.
const DEPTH: i32 = 63;

impl Operand {
    pub(super) fn new(format: Format, flush: bool, to_positive: bool) -> Option<Self> {
        let encoding = format.as_float().filter(|float| float.exponent_bits <= 8 && float.fraction_bits <= 23)?;
        let magnitude_bits = encoding.exponent_bits + encoding.fraction_bits;
        let ones = (1u32 << magnitude_bits) - 1;
        let special = match encoding.specials {
            Specials::Ieee => ones & !((1 << encoding.fraction_bits) - 1),
            Specials::AllOnesNan => ones,
            Specials::NegativeZeroNan | Specials::None => u32::MAX,
            Specials::UnsignedAllOnesNan | Specials::PowerOfTwo => return None,
        };
        let infinite = if encoding.specials == Specials::Ieee { special } else { u32::MAX };
        let nan = if encoding.specials == Specials::NegativeZeroNan { ones + 1 } else { u32::MAX };
        let largest = format.largest(false) >> encoding.unread_bits >> encoding.fraction_bits;
        let base = i32::try_from(largest).ok()? - encoding.bias;
        let dynamic = encoding.exponent_bits > 5;
        Some(Self {
            unread_bits: encoding.unread_bits,
            fraction_bits: encoding.fraction_bits,
            magnitude_bits,
            bias: encoding.bias,
            special,
            infinite,
            nan,
            flush,
            to_positive,
            dynamic,
            base,
        })
    }

    /// The magnitude's bits, or 0 if the value is not a number or counts as 0; the sign at its place in an f32; and
    /// whether the value is special: infinite or NaN.
    #[inline(always)]
    pub(super) fn split(&self, bits: u32) -> (u32, u32, bool) {
        let bits = bits >> self.unread_bits;
        let magnitude = bits & ((1 << self.magnitude_bits) - 1);
        let sign = (bits >> self.magnitude_bits & 1) << 31;
        let special = (magnitude >= self.special) | (bits == self.nan);
        let none = special | (self.flush & (magnitude >> self.fraction_bits == 0));
        (if none { 0 } else { magnitude }, sign, special)
    }

    /// Whether the bits are those of a NaN.
    #[inline(always)]
    pub(super) fn is_nan(&self, bits: u32) -> bool {
        let bits = bits >> self.unread_bits;
        let magnitude = bits & ((1 << self.magnitude_bits) - 1);
        (magnitude >= self.special) & (magnitude != self.infinite) | (bits == self.nan)
    }

    /// The exponent field, 1 for a subnormal, 0 for a zero.
    #[inline(always)]
    pub(super) fn field(&self, magnitude: u32) -> i32 {
        let field = (magnitude >> self.fraction_bits).max(1).cast_signed();
        if magnitude == 0 { 0 } else { field }
    }

    /// The factor that scales a raw value so that exponent `base` becomes 0.
    #[inline(always)]
    #[allow(clippy::cast_sign_loss)]
    pub(super) fn factor(&self, base: i32) -> f32 {
        let exponent = 127 - self.bias - base;
        // 2^−127 is subnormal.
        if exponent < -126 { f32::from_bits(0x0040_0000) } else { f32::from_bits(((exponent + 127) as u32) << 23) }
    }

    /// The value, or NaN for specials. It is exact, because every format here fits f32.
    #[inline(always)]
    pub(super) fn value(&self, bits: u32) -> f32 {
        let (magnitude, sign, special) = self.split(bits);
        // A flushed value, not a zero of its own, counts as +0.
        let was_zero = bits >> self.unread_bits & ((1 << self.magnitude_bits) - 1) == 0;
        let sign = if self.to_positive & (magnitude == 0) & !was_zero { 0 } else { sign };
        let raw = f32::from_bits(magnitude << (23 - self.fraction_bits) | sign);
        if special { f32::NAN } else { raw * self.factor(0) }
    }

    /// Whether the format is f16.
    pub(super) fn is_half(&self) -> bool {
        self.has_ieee_specials() && self.fraction_bits == 10 && self.magnitude_bits == 15
    }

    /// Whether its infinities and NaN are those of an IEEE 754 format.
    pub(super) fn has_ieee_specials(&self) -> bool {
        self.infinite != u32::MAX
    }

    /// The value; an infinity, or a NaN with the same fraction bits at the top, for the specials of an IEEE 754 format.
    #[inline(always)]
    pub(super) fn value_or_special(&self, bits: u32) -> f32 {
        let read = bits >> self.unread_bits & ((1 << self.magnitude_bits) - 1);
        let (_, sign, special) = self.split(bits);
        let fraction = (read & ((1 << self.fraction_bits) - 1)) << (23 - self.fraction_bits);
        if special { f32::from_bits(sign | 0x7f80_0000 | fraction) } else { self.value(bits) }
    }

    /// The significand with its sign, in [0, 2), and the exponent: [`ABSENT`] for a zero; [`INFINITE`] or [`NAN`] for
    /// specials, whose significand is 1 and their fraction.
    #[inline(always)]
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn parts(&self, bits: u32) -> (f32, i32) {
        let (magnitude, sign, special) = self.split(bits);
        let read = bits >> self.unread_bits & ((1 << self.magnitude_bits) - 1);
        let sign = if self.to_positive & (magnitude == 0) & (read != 0) & !special { 0 } else { sign };
        let field = magnitude >> self.fraction_bits;
        let leading = u32::from(field != 0) << self.fraction_bits;
        let significand = (magnitude & ((1 << self.fraction_bits) - 1)) | leading;
        let ulp = f32::from_bits((127 - self.fraction_bits) << 23);
        let fraction = (read & ((1 << self.fraction_bits) - 1)) << (23 - self.fraction_bits);
        let one = f32::from_bits(127 << 23 | fraction);
        let value = if special { one } else { significand.cast_signed() as f32 * ulp };
        let exponent = if magnitude == 0 { ABSENT } else { field.max(1).cast_signed() - self.bias };
        let of_special = if read == self.infinite { INFINITE } else { NAN };
        (f32::from_bits(value.to_bits() | sign), if special { of_special } else { exponent })
    }

    /// Whether [`Operand::pack_plain`] reads this format.
    pub(super) fn is_plain(&self) -> bool {
        !self.dynamic && !self.flush && self.unread_bits == 0 && self.nan == u32::MAX
    }

    /// As [`Operand::pack`], relative to the format's own base, for formats that [`Operand::is_plain`] names: in half the
    /// instructions. The last word is not 0 for specials.
    #[inline(always)]
    pub(super) fn pack_plain(&self, bits: u32, factor: f32) -> (f32, u8, u32) {
        let read = bits & ((1 << self.magnitude_bits) - 1);
        let sign = bits >> self.magnitude_bits << 31;
        let special = ones_if(read >= self.special);
        let magnitude = read & !special;
        // No exponent of such a format lies below the codes' depth.
        let field = (magnitude >> self.fraction_bits).max(1);
        let code = (field + (127 - self.bias - self.base).cast_unsigned()) & ones_if(magnitude != 0);
        let raw = f32::from_bits(magnitude << (23 - self.fraction_bits) | sign);
        // At most 127.
        #[allow(clippy::cast_possible_truncation)]
        (raw * factor, code as u8, special)
    }

    /// The value relative to `2^base`, and its code.
    #[inline(always)]
    pub(super) fn pack(&self, bits: u32, base: i32, factor: f32) -> (f32, u8, bool) {
        let (magnitude, sign, special) = self.split(bits);
        // The fields move to those of an f32. A subnormal becomes a subnormal f32, and the product is normal again.
        let raw = f32::from_bits(magnitude << (23 - self.fraction_bits) | sign);
        let relative = self.field(magnitude) - self.bias - base;
        let code = if magnitude == 0 { 0 } else { 127 + relative.max(-DEPTH) };
        // At most 127.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        (raw * factor, code as u8, special)
    }
}

/// Returns a word whose bits are all set if `condition` holds, and 0 otherwise, which vectors compute without branches.
#[inline(always)]
fn ones_if(condition: bool) -> u32 {
    if condition { u32::MAX } else { 0 }
}

/// Reads elements from `start` on as bits, as many as `into` holds.
#[inline(always)]
pub(super) fn bits_of(elements: &Elements, start: usize, into: &mut [u32]) {
    let size = elements.format().storage_bytes();
    let bytes = &elements.bytes()[start * size..][..into.len() * size];
    match size {
        1 => into.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = u32::from(*byte)),
        2 => into
            .iter_mut()
            .zip(bytes.chunks_exact(2))
            .for_each(|(slot, pair)| *slot = u32::from(u16::from_le_bytes([pair[0], pair[1]]))),
        _ => into
            .iter_mut()
            .zip(bytes.chunks_exact(4))
            .for_each(|(slot, four)| *slot = u32::from_le_bytes([four[0], four[1], four[2], four[3]])),
    }
}
