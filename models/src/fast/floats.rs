//! Moves c and d between their elements and f32 in lanes, which hold the values exactly.

use mxprobe_api::{Elements, Format};

use super::{
    operand::bits_of,
    simd::{Vectorised, vectorised},
};

/// Elements that are read at a time.
const AT_ONCE: usize = 64;

/// Whether [`load_floats`] and [`store_floats`] take this format.
pub(super) fn is_covered(format: Format) -> bool {
    matches!(format, Format::F32 | Format::F16 | Format::BF16)
}

/// Reads f32, f16 or bf16 elements from `start` on. Infinities stay infinite, and a NaN keeps its fraction bits at the top.
pub(super) fn load_floats(format: Format, from: &Elements, start: usize, into: &mut [f32]) {
    for (part, into) in into.chunks_mut(AT_ONCE).enumerate() {
        vectorised(Load { format, from, start: start + part * AT_ONCE, into });
    }
}

/// Writes values that are exact in `format`, f32, f16 or bf16, as its bits.
pub(super) fn store_floats(format: Format, from: &[f32], into: &mut [u8]) {
    vectorised(Store { format, from, into });
}

/// The work of reading elements, `AT_ONCE` at most.
struct Load<'a> {
    format: Format,
    from: &'a Elements,
    start: usize,
    into: &'a mut [f32],
}

impl Vectorised for Load<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut bits = [0; AT_ONCE];
        let bits = &mut bits[..self.into.len()];
        bits_of(self.from, self.start, bits);
        let slots = self.into.iter_mut().zip(bits.iter());
        match self.format {
            Format::F16 => slots.for_each(|(slot, bits)| *slot = from_half(*bits)),
            Format::BF16 => slots.for_each(|(slot, bits)| *slot = f32::from_bits(*bits << 16)),
            _ => slots.for_each(|(slot, bits)| *slot = f32::from_bits(*bits)),
        }
    }
}

/// The work of writing elements.
struct Store<'a> {
    format: Format,
    from: &'a [f32],
    into: &'a mut [u8],
}

impl Vectorised for Store<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn run(self) {
        let values = self.from.iter();
        let halves = self.into.as_chunks_mut::<2>().0;
        match self.format {
            Format::F16 => values.zip(halves).for_each(|(value, slot)| *slot = (to_half(*value) as u16).to_le_bytes()),
            Format::BF16 => {
                values.zip(halves).for_each(|(value, slot)| *slot = ((value.to_bits() >> 16) as u16).to_le_bytes());
            }
            _ => {
                let words = self.into.as_chunks_mut::<4>().0;
                values.zip(words).for_each(|(value, slot)| *slot = value.to_bits().to_le_bytes());
            }
        }
    }
}

#[inline(always)]
fn from_half(bits: u32) -> f32 {
    let (sign, wide) = ((bits & 0x8000) << 16, (bits & 0x7fff) << 13);
    // 2^112 moves the bias from 15 to 127, and makes a subnormal normal.
    let number = f32::from_bits(wide) * f32::from_bits(239 << 23);
    let special = 0x7f80_0000 | wide;
    let magnitude = if bits & 0x7c00 == 0x7c00 { special } else { number.to_bits() };
    f32::from_bits(magnitude | sign)
}

#[inline(always)]
fn to_half(value: f32) -> u32 {
    let bits = value.to_bits();
    // Exact, because the value is an f16: 2^−112 moves the bias, and makes a small one subnormal.
    let number = (value * f32::from_bits(15 << 23)).to_bits() >> 13 & 0x7fff;
    let special = 0x7c00 | (bits >> 13 & 0x3ff);
    let magnitude = if bits & 0x7f80_0000 == 0x7f80_0000 { special } else { number };
    magnitude | (bits >> 16 & 0x8000)
}
