//! Operands unpacked once, so that dots need not decode bit fields.

use std::sync::OnceLock;

use mxprobe_api::{Decoded, Elements, FloatEncoding, Format, Specials};

/// The sign bit of [`Unpacked::kind`].
pub(super) const NEGATIVE: u32 = 1;
/// A zero.
pub(super) const ZERO: u32 = 2;
/// An infinity.
pub(super) const INFINITE: u32 = 4;
/// A NaN; the significand is its payload.
pub(super) const NAN: u32 = 8;
/// Neither finite nor zero.
pub(super) const SPECIAL: u32 = INFINITE | NAN;

/// One element: `±significand · 2^(exponent − fraction bits)`, and its kind.
///
/// A subnormal has the smallest normal exponent. A zero has significand 0 and exponent 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unpacked {
    pub significand: u64,
    pub exponent: i32,
    pub kind: u32,
}

impl Unpacked {
    /// Builds an element from its significand, and its kind and exponent in one word.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    fn in_two((significand, rest): (u64, u64)) -> Self {
        Self { significand, exponent: (rest as u32).cast_signed(), kind: (rest >> 32) as u32 }
    }
}

/// The kind of a product of two kinds: its sign, and zero, infinite or NaN if either factor is.
#[inline]
pub(super) fn kind_of_product(a: u32, b: u32) -> u32 {
    (a | b) & !NEGATIVE | (a ^ b) & NEGATIVE
}

/// The elements that codes of one byte stand for.
type Codes = [Unpacked; 256];

/// How most elements of a format are read: finite values.
#[derive(Clone, Copy)]
struct Finite {
    unread_bits: u32,
    fraction_bits: u32,
    field_mask: u64,
    /// The first exponent field that is left to others: the highest, if it has NaN or infinities.
    unusual: u64,
    bias: i32,
    sign_bit: u32,
    sign_mask: u64,
    /// Whether a zero with a sign bit is left to others: it is the NaN of some formats.
    minus_zero_is_nan: bool,
    /// Whether subnormals are left to others.
    flush: bool,
}

impl Finite {
    #[inline]
    fn of(float: FloatEncoding, flush: bool) -> Self {
        let field_mask = (1 << float.exponent_bits) - 1;
        Self {
            unread_bits: float.unread_bits,
            fraction_bits: float.fraction_bits,
            field_mask,
            unusual: match float.specials {
                Specials::None | Specials::NegativeZeroNan => field_mask + 1,
                _ => field_mask,
            },
            bias: float.bias,
            sign_bit: float.exponent_bits + float.fraction_bits,
            sign_mask: u64::from(float.is_signed()),
            minus_zero_is_nan: float.specials == Specials::NegativeZeroNan,
            flush,
        }
    }

    /// Reads an element; `None` if it is another one. Processors do not predict signs and zeros of random elements, so only
    /// what is left to others takes a branch.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn read(&self, bits: u64) -> Option<Unpacked> {
        let read = bits >> self.unread_bits;
        let field = read >> self.fraction_bits & self.field_mask;
        let fraction = read & ((1 << self.fraction_bits) - 1);
        let sign = (read >> self.sign_bit & self.sign_mask) as u32;
        let (is_low, has_fraction) = (field == 0, fraction != 0);
        let is_zero = is_low & !has_fraction;
        let is_left = (field >= self.unusual)
            | (is_low & has_fraction & self.flush)
            | (is_zero & (sign != 0) & self.minus_zero_is_nan);
        if is_left {
            return None;
        }
        let of_zero = if is_zero { ZERO } else { 0 };
        // Exponent fields have at most 11 bits.
        let exponent = (field as u32 | u32::from(is_low)).cast_signed() - self.bias;
        Some(Unpacked {
            significand: fraction | u64::from(!is_low) << self.fraction_bits,
            exponent: if is_zero { 0 } else { exponent },
            kind: of_zero | (sign * NEGATIVE),
        })
    }
}

/// How elements of one operand are read: the format, and whether subnormals are zeros.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    pub format: Format,
    /// The format's encoding, if it is a floating format whose significands have a leading one.
    usual: Option<FloatEncoding>,
    flush: bool,
    to_positive: bool,
}

impl Reader {
    pub(super) fn new(format: Format, flush: bool, to_positive: bool) -> Self {
        let usual = format.as_float().filter(|float| float.specials != Specials::PowerOfTwo);
        Self { format, usual, flush: flush && !format.is_integer(), to_positive }
    }

    /// Reads an element.
    #[inline]
    pub(super) fn read(self, bits: u64) -> Unpacked {
        let finite = self.usual.and_then(|float| Finite::of(float, self.flush).read(bits));
        finite.unwrap_or_else(|| Unpacked::in_two(self.read_in_two(bits)))
    }

    /// Returns two words, which travel in registers: fields written to memory one by one are slow to read back as a
    /// whole.
    #[inline(never)]
    fn read_in_two(&self, bits: u64) -> (u64, u64) {
        let Unpacked { significand, exponent, kind } = self.read_any(bits);
        (significand, u64::from(kind) << 32 | u64::from(exponent.cast_unsigned()))
    }

    fn read_any(self, bits: u64) -> Unpacked {
        let sign = |negative: bool| if negative { NEGATIVE } else { 0 };
        match self.format.decode(bits) {
            Decoded::Nan { negative, payload } => {
                Unpacked { significand: payload, exponent: 0, kind: NAN | sign(negative) }
            }
            Decoded::Infinity { negative } => Unpacked { significand: 0, exponent: 0, kind: INFINITE | sign(negative) },
            Decoded::Zero { negative } => Unpacked { significand: 0, exponent: 0, kind: ZERO | sign(negative) },
            Decoded::Finite { negative, significand, .. }
                if self.flush && significand >> self.format.fraction_bits() == 0 =>
            {
                Unpacked { significand: 0, exponent: 0, kind: ZERO | sign(negative && !self.to_positive) }
            }
            Decoded::Finite { negative, significand, exponent } => {
                Unpacked { significand, exponent, kind: sign(negative) }
            }
        }
    }

    /// The bits of an element as it was read: a flushed one gives the zero that it counts as.
    pub(super) fn write(self, element: Unpacked) -> u64 {
        let negative = element.kind & NEGATIVE != 0;
        let Some(encoding) = self.format.as_float() else {
            let value = if negative { element.significand.wrapping_neg() } else { element.significand };
            return value & self.format.mask();
        };
        let sign = u64::from(negative && encoding.is_signed()) << (self.format.bits() - 1 - encoding.unread_bits);
        let field = if element.kind & NAN != 0 {
            let ones = ((1 << encoding.exponent_bits) - 1) << encoding.fraction_bits;
            if self.format.nan() == Some(sign) { 0 } else { ones | element.significand }
        } else if element.kind & INFINITE != 0 {
            self.format.infinity(false).unwrap_or(0) >> encoding.unread_bits
        } else if element.kind & ZERO != 0 {
            0
        } else if element.significand >> encoding.fraction_bits == 0 {
            element.significand
        } else {
            // A power of two has no implicit leading one.
            let biased = u64::from((element.exponent + encoding.bias).cast_unsigned());
            (biased << encoding.fraction_bits) + (element.significand & ((1 << encoding.fraction_bits) - 1))
        };
        (sign | field) << encoding.unread_bits
    }

    /// Reads `count` elements from `start` on.
    pub(super) fn append(self, from: &Elements, start: usize, count: usize, into: &mut Vec<Unpacked>) {
        if let Some(codes) = self.codes() {
            let elements = &from.bytes()[start..start + count];
            return into.extend(elements.iter().map(|code| codes[usize::from(*code)]));
        }
        match from.format().storage_bytes() {
            2 => self.append_sized::<2>(from, start, count, into),
            4 => self.append_sized::<4>(from, start, count, into),
            _ => self.append_sized::<8>(from, start, count, into),
        }
    }

    /// Reads elements in order.
    pub(super) fn read_all(self, bits: &[u64], into: &mut Vec<Unpacked>) {
        match self.codes() {
            Some(codes) => into.extend(bits.iter().map(|bits| codes[usize::from(bits.to_le_bytes()[0])])),
            None => self.extend(into, bits.iter().copied()),
        }
    }

    /// Reads these elements. What is read of the encoding is read once for all of them.
    #[inline]
    fn extend(self, into: &mut Vec<Unpacked>, elements: impl ExactSizeIterator<Item = u64>) {
        let reader = &self;
        match self.usual.map(|float| Finite::of(float, self.flush)) {
            Some(finite) => into.extend(
                elements.map(|bits| finite.read(bits).unwrap_or_else(|| Unpacked::in_two(reader.read_in_two(bits)))),
            ),
            None => into.extend(elements.map(|bits| reader.read(bits))),
        }
    }

    /// Every code, if an element takes one byte.
    fn codes(self) -> Option<&'static Codes> {
        static KNOWN: [OnceLock<Box<Codes>>; 3 * Format::ALL.len()] = [const { OnceLock::new() }; _];
        if self.format.storage_bytes() > 1 {
            return None;
        }
        let format = Format::ALL.iter().position(|format| *format == self.format)?;
        let rule = usize::from(self.flush) + usize::from(self.flush && self.to_positive);
        let read = || Box::new(std::array::from_fn(|code| self.read(code as u64)));
        Some(KNOWN[3 * format + rule].get_or_init(read))
    }

    fn append_sized<const SIZE: usize>(self, from: &Elements, start: usize, count: usize, into: &mut Vec<Unpacked>) {
        let elements = &from.bytes().as_chunks::<SIZE>().0[start..start + count];
        self.extend(
            into,
            elements.iter().map(|bytes| {
                let mut bits = [0; 8];
                bits[..SIZE].copy_from_slice(bytes);
                u64::from_le_bytes(bits)
            }),
        );
    }

    /// Reads the elements at `start + i·stride` for each `i` below `len`.
    pub(super) fn gather(self, from: &Elements, start: usize, stride: usize, into: &mut [Unpacked]) {
        for (index, slot) in into.iter_mut().enumerate() {
            *slot = self.read(from.get(start + index * stride));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_small_formats_is_written_as_it_was_read() {
        for format in Format::ALL.into_iter().filter(|format| format.bits() <= 16) {
            let reader = Reader::new(format, false, false);
            for bits in 0..=format.mask() {
                let written = reader.write(reader.read(bits));
                // The sign of a scale is not read.
                let wanted = if format == Format::UE4M3 { bits & 0x7f } else { bits };
                assert_eq!(written, wanted, "{}", format.hex(bits));
            }
        }
    }

    #[test]
    fn every_way_to_read_gives_what_decoding_gives() {
        let parts = |element: Unpacked| (element.significand, element.exponent, element.kind);
        for format in Format::ALL.into_iter().filter(|format| format.bits() <= 16) {
            for (flush, to_positive) in [(false, false), (true, false), (true, true)] {
                let reader = Reader::new(format, flush, to_positive);
                for bits in 0..=format.mask() {
                    let mut all = Vec::new();
                    reader.read_all(&[bits], &mut all);
                    reader.append(&Elements::from_bits(format, [bits]), 0, 1, &mut all);
                    all.push(reader.read(bits));
                    let decoded = parts(reader.read_any(bits));
                    assert!(all.iter().all(|element| parts(*element) == decoded), "{}", format.hex(bits));
                }
            }
        }
    }

    #[test]
    fn registers_are_written_without_what_is_not_read() {
        for (format, mask) in [(Format::TF32, 0xffff_e000), (Format::F32, 0xffff_ffff), (Format::S32, 0xffff_ffff)] {
            let reader = Reader::new(format, false, false);
            for bits in
                [0u64, 0x8000_0000, 0x3f80_0001, 0x7f80_0000, 0xff80_0000, 0xffff_ffff, 0x8000_2000, 0x7fff_ffff]
            {
                assert_eq!(reader.write(reader.read(bits)), bits & mask, "{}", format.hex(bits));
            }
        }
    }

    #[test]
    fn zeros_and_subnormals_of_wide_formats_are_read_as_they_are_decoded() {
        let parts = |element: Unpacked| (element.significand, element.exponent, element.kind);
        for format in [Format::TF32, Format::F32, Format::F64] {
            let sign = format.negative_zero().unwrap();
            // The lowest bits of tf32 are not read.
            for (bits, flush) in [0, 1, 0x1fff, 0x2000, 0x3fff, 0x7f_ffff, 0x80_0000, format.one()]
                .into_iter()
                .flat_map(|bits| [bits, bits | sign])
                .flat_map(|bits| [(bits, false), (bits, true)])
            {
                let reader = Reader::new(format, flush, true);
                assert_eq!(parts(reader.read(bits)), parts(reader.read_any(bits)), "{} {flush}", format.hex(bits));
            }
        }
    }
}
