//! Decodes the bits of many values at a time.

use mxprobe_api::{Encoding, Format, Specials};

use super::value;

/// The number of elements that are decoded at a time.
const BLOCK: usize = 64;

/// Appends the values of elements of a format, each in the fewest whole bytes that hold it, little-endian: for each, the
/// result of [`value`]. Ignores a partial element at the end.
pub fn decode(format: Format, bytes: &[u8], into: &mut Vec<f64>) {
    let start = into.len();
    into.resize(start + bytes.len() / format.storage_bytes(), 0.0);
    decode_into(format, bytes, &mut into[start..]);
}

/// Writes the values of elements of a format, as [`decode`] appends them, until the bytes or the places end.
pub fn decode_into(format: Format, bytes: &[u8], values: &mut [f64]) {
    if let Encoding::Integer { bits: width, signed } = format.encoding() {
        for (bytes, value) in bytes.chunks_exact(format.storage_bytes()).zip(values) {
            // Shifted to the top bit, so that the sign is the type's own.
            let high = bits(bytes) << (64 - width);
            *value = if signed { (high.cast_signed() >> (64 - width)) as f64 } else { (high >> (64 - width)) as f64 };
        }
        return;
    }
    if format == Format::F64 {
        bytes.as_chunks().0.iter().zip(values).for_each(|(bytes, value)| *value = f64::from_le_bytes(*bytes));
        return;
    }
    match (Fields::of(format), format.storage_bytes()) {
        (Some(fields), 1) => Decode::<'_, 1> { fields, format, bytes, values }.run(),
        (Some(fields), 2) => Decode::<'_, 2> { fields, format, bytes, values }.run(),
        (Some(fields), 4) => Decode::<'_, 4> { fields, format, bytes, values }.run(),
        (_, size) => {
            for (bytes, value_of) in bytes.chunks_exact(size).zip(values) {
                *value_of = value(format, bits(bytes));
            }
        }
    }
}

/// Reads bits from a few bytes, little-endian.
#[inline(always)]
fn bits(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// The positions of sign, exponent and fraction, which are moved to where f64 has them: a factor corrects the bias, and
/// normalises subnormals.
#[derive(Clone, Copy)]
struct Fields {
    unread_bits: u32,
    magnitude_bits: u32,
    fraction_bits: u32,
    factor: f64,
    /// Magnitudes from here on are NaN or infinite.
    special: u64,
    /// The only code that is a NaN, sign included.
    nan: u64,
}

impl Fields {
    fn of(format: Format) -> Option<Self> {
        let Encoding::Float(float) = format.encoding() else { return None };
        let magnitude_bits = float.exponent_bits + float.fraction_bits;
        let ones = (1u64 << magnitude_bits) - 1;
        let (special, nan) = match float.specials {
            Specials::Ieee => (ones & !((1 << float.fraction_bits) - 1), u64::MAX),
            Specials::AllOnesNan => (ones, u64::MAX),
            Specials::NegativeZeroNan => (u64::MAX, ones + 1),
            Specials::None => (u64::MAX, u64::MAX),
            Specials::UnsignedAllOnesNan | Specials::PowerOfTwo => return None,
        };
        // f64 itself has no exponent range left for the factor.
        (float.exponent_bits <= 8).then(|| Self {
            unread_bits: float.unread_bits,
            magnitude_bits,
            fraction_bits: float.fraction_bits,
            factor: f64::from(1023 - float.bias).exp2(),
            special,
            nan,
        })
    }

    /// Decodes one element: its value, and whether it is a number.
    #[inline(always)]
    fn one(&self, bits: u64) -> (f64, bool) {
        let bits = bits >> self.unread_bits;
        let magnitude = bits & ((1 << self.magnitude_bits) - 1);
        let sign = (bits >> self.magnitude_bits & 1) << 63;
        let raw = f64::from_bits(magnitude << (52 - self.fraction_bits) | sign);
        (raw * self.factor, (magnitude < self.special) & (bits != self.nan))
    }
}

/// The work of [`decode`].
struct Decode<'a, const SIZE: usize> {
    fields: Fields,
    format: Format,
    bytes: &'a [u8],
    values: &'a mut [f64],
}

impl<const SIZE: usize> Decode<'_, SIZE> {
    fn run(self) {
        let Self { fields, format, bytes, values } = self;
        for (bytes, values) in bytes.as_chunks::<SIZE>().0.chunks(BLOCK).zip(values.chunks_mut(BLOCK)) {
            let mut are_numbers = true;
            for (bytes, value_of) in bytes.iter().zip(&mut *values) {
                let (found, is_number) = fields.one(bits(bytes));
                *value_of = found;
                are_numbers &= is_number;
            }
            if !are_numbers {
                for (bytes, value_of) in bytes.iter().zip(values) {
                    *value_of = value(format, bits(bytes));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_decoded_many_at_a_time_as_it_is_alone() {
        for format in Format::ALL {
            let size = format.storage_bytes();
            // Every code of 16 bits; for wider formats every upper half, with two lower ones.
            let bits = format.bits().min(16);
            let codes = (0..1u64 << bits).flat_map(|code| {
                let high = code << (format.bits() - bits);
                [high, high | (format.mask() >> bits & 0x5555_5555)]
            });
            let codes: Vec<u64> = codes.collect();
            let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()[..size].to_vec()).collect();
            let mut values = vec![7.0];
            decode(format, &bytes, &mut values);
            assert_eq!(values.len(), codes.len() + 1);
            for (code, found) in codes.iter().zip(&values[1..]) {
                let wanted = value(format, *code);
                assert_eq!(found.to_bits(), wanted.to_bits(), "{} of {format}", format.hex(*code));
            }
        }
    }
}
