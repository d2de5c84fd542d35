//! Rounds many values at a time into a format, in f64 arithmetic, which is exact here.

use mxprobe_api::{Encoding, Format, Rounding, Specials};

use crate::{Vectorised, vectorised};

/// The number of values that are rounded at a time: the fast result is used for all of them if all are in range.
const BLOCK: usize = 64;

const SIGN: u64 = 1 << 63;

/// A format's finite values as multiples of a power of two in each binade.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    rounding: Rounding,
    /// The factor that values are multiplied by before rounding, and its reciprocal, for the result.
    up: f64,
    down: f64,
    /// The smallest normal value; 1 for integers.
    smallest_normal: f64,
    /// The factor from a binade to 2^52 of its units: adding and subtracting the product rounds to a whole number of
    /// units.
    to_sum: f64,
    /// The factor from a binade to its unit.
    to_unit: f64,
    /// The range.
    least: f64,
    largest: f64,
    /// The bits of the largest magnitude whose result is in range, before it is multiplied by the factor, or of a
    /// smaller one.
    largest_magnitude: u64,
    is_integer: bool,
    /// Whether the format lacks −0.
    has_one_zero: bool,
    fraction_bits: u32,
    unread_bits: u32,
    sign_bit: u32,
    /// The offset to subtract from an exponent beside the units within its binade.
    bias: u64,
    mask: u64,
}

/// Returns the bits of a value that is out of range, and the remainder after them.
pub type Other<'a> = &'a dyn Fn(f64) -> (u64, f64);

/// 2^exponent, a normal value.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::from((exponent + 1023).cast_unsigned()) << 52)
}

impl Grid {
    /// The grid for values that are stored 2^lift times as large; `None` for f64, for block scales and for rounding to
    /// odd.
    #[must_use]
    pub fn of(format: Format, rounding: Rounding, lift: i32) -> Option<Self> {
        if rounding == Rounding::ToOdd || !(-1022..=1022).contains(&lift) {
            return None;
        }
        let (up, down) = (power_of_two(lift), power_of_two(-lift));
        let (least, largest) = (format.to_f64(format.largest(true)), format.to_f64(format.largest(false)));
        let magnitude = largest.min(-least).max(0.0) * down;
        let is_exact = magnitude.is_normal() && magnitude * up <= largest;
        let plain = Self {
            rounding,
            up,
            down,
            smallest_normal: 1.0,
            to_sum: power_of_two(52),
            to_unit: 1.0,
            least,
            largest,
            largest_magnitude: if is_exact { magnitude.to_bits() } else { 0 },
            is_integer: true,
            has_one_zero: false,
            fraction_bits: 0,
            unread_bits: 0,
            sign_bit: 0,
            bias: 0,
            mask: format.mask(),
        };
        let float = match format.encoding() {
            Encoding::Integer { .. } => return Some(plain),
            Encoding::Float(float) => float,
        };
        if float.fraction_bits > 50 || matches!(float.specials, Specials::UnsignedAllOnesNan | Specials::PowerOfTwo) {
            return None;
        }
        Some(Self {
            smallest_normal: power_of_two(float.min_exponent()),
            to_sum: power_of_two(52 - float.fraction_bits.cast_signed()),
            to_unit: power_of_two(-float.fraction_bits.cast_signed()),
            is_integer: false,
            has_one_zero: float.specials == Specials::NegativeZeroNan,
            fraction_bits: float.fraction_bits,
            unread_bits: float.unread_bits,
            sign_bit: float.exponent_bits + float.fraction_bits,
            bias: u64::from((1023 - float.bias + 1).cast_unsigned()) << float.fraction_bits,
            ..plain
        })
    }

    /// Rounds values, subtracts the results from them, and writes the bits of the results, as many bytes each as
    /// `bytes` has per value. For NaN and for results out of range, `other` returns the bits and the remainder. Returns
    /// the number of values with a nonzero remainder.
    pub fn round(self, values: &mut [f64], bytes: &mut [u8], other: Other<'_>) -> usize {
        // Other roundings and integers are rare, and each width of vectors takes room in the program.
        match (self.rounding == Rounding::NearestEven, self.is_integer) {
            (true, false) => vectorised(Round::<'_, true, false> { grid: self, values, bytes, other }),
            (true, true) => Round::<'_, true, true> { grid: self, values, bytes, other }.run(),
            (false, false) => Round::<'_, false, false> { grid: self, values, bytes, other }.run(),
            (false, true) => Round::<'_, false, true> { grid: self, values, bytes, other }.run(),
        }
    }

    /// Whether all values lie within the range, and so do their results.
    #[inline(always)]
    fn holds<const INTEGER: bool>(&self, values: &[f64; BLOCK]) -> bool {
        if INTEGER {
            // Ranges of integers are not symmetric.
            return values.iter().all(|value| (self.least..=self.largest).contains(&(value * self.up)));
        }
        // The bits of magnitudes are in the order of their values, and those of a NaN above all others.
        let magnitudes = values.iter().map(|value| value.to_bits() & !SIGN);
        magnitudes.fold(0, u64::max) <= self.largest_magnitude
    }

    /// The bits of the result, the remainder of the value, and whether the result is in range.
    #[inline(always)]
    fn one<const NEAREST: bool, const INTEGER: bool>(&self, value: f64) -> (u64, f64, bool) {
        const EXPONENT: u64 = 0x7ff << 52;
        let lifted = value * self.up;
        let bits = lifted.to_bits();
        let sign = bits & SIGN;
        let magnitude = f64::from_bits(bits & !SIGN);
        // The power of two at the start of the binade, or of the subnormals.
        let binade = f64::from_bits(bits & EXPONENT);
        // As one instruction: there is no NaN among values whose result counts.
        let binade = if binade > self.smallest_normal { binade } else { self.smallest_normal };
        let binade = if INTEGER { 1.0 } else { binade };
        let sum = binade * self.to_sum;
        let mut rounded = (magnitude + sum) - sum;
        if !NEAREST {
            let unit = binade * self.to_unit;
            let away = match self.rounding {
                Rounding::Down => sign != 0,
                Rounding::Up => sign == 0,
                _ => false,
            };
            let too_large = if rounded > magnitude { unit } else { 0.0 };
            let too_small = if rounded < magnitude { unit } else { 0.0 };
            rounded = if away { rounded + too_small } else { rounded - too_large };
        }
        let signed = f64::from_bits(rounded.to_bits() | sign);
        let code = if INTEGER {
            // Below 2^51 the low bits of the sum are those of the number, in two's complement.
            (signed + 1.5 * self.to_sum).to_bits() & self.mask
        } else {
            // The sum counts the units within the binade, the implicit one among them; subnormals have none, and the
            // exponent of the smallest normal values.
            let units = (magnitude + sum).to_bits().wrapping_sub(sum.to_bits());
            let units = if NEAREST { units } else { (rounded + sum).to_bits().wrapping_sub(sum.to_bits()) };
            let field = units.wrapping_add((binade.to_bits() >> (52 - self.fraction_bits)).wrapping_sub(self.bias));
            let has_sign = sign >> (63 - self.sign_bit);
            let has_sign = if self.has_one_zero & (field == 0) { 0 } else { has_sign };
            (field | has_sign) << self.unread_bits
        };
        (code, value - signed * self.down, (signed >= self.least) & (signed <= self.largest))
    }
}

/// The work of [`Grid::round`].
struct Round<'a, const NEAREST: bool, const INTEGER: bool> {
    grid: Grid,
    values: &'a mut [f64],
    bytes: &'a mut [u8],
    other: Other<'a>,
}

impl<const NEAREST: bool, const INTEGER: bool> Vectorised for Round<'_, NEAREST, INTEGER> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Self { grid, values, bytes, other } = self;
        let size = bytes.len() / values.len().max(1);
        let mut inexact = 0;
        let mut codes = [0u64; BLOCK];
        for (values, bytes) in values.chunks_mut(BLOCK).zip(bytes.chunks_mut(BLOCK * size)) {
            match <&mut [f64; BLOCK]>::try_from(&mut *values) {
                Ok(values) if grid.holds::<INTEGER>(values) => {
                    for (value, code) in values.iter_mut().zip(&mut codes) {
                        (*code, *value, _) = grid.one::<NEAREST, INTEGER>(*value);
                        inexact += u64::from(*value != 0.0);
                    }
                }
                _ => {
                    for (value, code) in values.iter_mut().zip(&mut codes) {
                        (*code, *value) = one_by_one::<NEAREST, INTEGER>(&grid, *value, other);
                        inexact += u64::from(*value != 0.0);
                    }
                }
            }
            store(&codes[..values.len()], bytes, size);
        }
        usize::try_from(inexact).expect("no more than values")
    }
}

/// Rounds one value of a block in which some are out of range.
#[inline(never)]
fn one_by_one<const NEAREST: bool, const INTEGER: bool>(grid: &Grid, value: f64, other: Other<'_>) -> (u64, f64) {
    let (code, rest, fits) = grid.one::<NEAREST, INTEGER>(value);
    if fits { (code, rest) } else { other(value) }
}

/// Stores bits as elements of `size` bytes.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the bits of a format of this size")]
fn store(codes: &[u64], bytes: &mut [u8], size: usize) {
    match size {
        1 => bytes.iter_mut().zip(codes).for_each(|(byte, code)| *byte = *code as u8),
        2 => bytes
            .as_chunks_mut()
            .0
            .iter_mut()
            .zip(codes)
            .for_each(|(place, code)| *place = (*code as u16).to_le_bytes()),
        4 => bytes
            .as_chunks_mut()
            .0
            .iter_mut()
            .zip(codes)
            .for_each(|(place, code)| *place = (*code as u32).to_le_bytes()),
        _ => bytes.as_chunks_mut().0.iter_mut().zip(codes).for_each(|(place, code)| *place = code.to_le_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::many::round;
    use mxprobe_api::{Elements, Random};

    /// Rounds values one by one with [`Format::encode`].
    fn wanted(values: &[f64], format: Format, rounding: Rounding) -> Vec<u64> {
        values.iter().map(|value| round(*value, format, rounding)).collect()
    }

    fn rounded(values: &[f64], format: Format, rounding: Rounding) -> (Vec<u64>, usize) {
        let grid = Grid::of(format, rounding, 0).unwrap();
        let mut bytes = vec![0; values.len() * format.storage_bytes()];
        let taken = std::cell::Cell::new(0);
        let other = |value| {
            taken.set(taken.get() + 1);
            (round(value, format, rounding), 0.0)
        };
        grid.round(&mut values.to_vec(), &mut bytes, &other);
        let elements = Elements::from_bytes(format, bytes).unwrap();
        (elements.iter().collect(), taken.get())
    }

    #[test]
    fn values_are_rounded_many_at_a_time_as_one_by_one() {
        let mut random = Random(7);
        let mut part = || (random.bits() >> 11) as f64 / 2f64.powi(53);
        for format in Format::ALL {
            for rounding in [Rounding::NearestEven, Rounding::TowardZero, Rounding::Down, Rounding::Up] {
                let Some(grid) = Grid::of(format, rounding, 0) else { continue };
                // Values of the format or near them, the midpoint to the next one, and the neighbours of a value in
                // f64.
                let bits = format.bits().min(16);
                let high = |code: u64| format.to_f64(code << (format.bits() - bits));
                let every = (0..1u64 << bits).map(high).filter(|value| value.is_finite());
                let ulp = |value: f64| (value.abs().max(grid.smallest_normal) * grid.to_unit).max(f64::MIN_POSITIVE);
                let values: Vec<f64> = every
                    .flat_map(|value| {
                        let next = value + ulp(value);
                        let between = value + (next - value) * part();
                        [value, value.next_up(), value.next_down(), value.midpoint(next), between]
                    })
                    .filter(|value| (grid.least..=grid.largest).contains(value))
                    .collect();
                let (found, others) = rounded(&values, format, rounding);
                for ((value, found), wanted) in values.iter().zip(&found).zip(wanted(&values, format, rounding)) {
                    assert_eq!(*found, wanted, "{value:e} in {format}, {rounding:?}");
                }
                // No unsigned value is below zero; otherwise almost none is out of range.
                assert!(grid.least == 0.0 || others < 8, "{others} of {} in {format}, {rounding:?}", values.len());
            }
        }
        assert!(Grid::of(Format::F64, Rounding::NearestEven, 0).is_none());
        assert!(Grid::of(Format::F16, Rounding::ToOdd, 0).is_none());
        assert!(Grid::of(Format::UE8M0, Rounding::NearestEven, 0).is_none());
    }

    #[test]
    fn what_is_out_of_range_is_handed_on_and_nothing_else_of_its_block() {
        let mut values: Vec<f64> = (0..200u32).map(|at| f64::from(at) * 0.37).collect();
        values[3] = f64::NAN;
        values[70] = 1e6;
        values[199] = f64::NEG_INFINITY;
        let (found, others) = rounded(&values, Format::F16, Rounding::NearestEven);
        assert_eq!((found, others), (wanted(&values, Format::F16, Rounding::NearestEven), 3));
    }

    #[test]
    fn values_at_the_ends_of_the_range_are_rounded_as_one_by_one_and_lifted_ones_too() {
        for format in Format::ALL {
            for (rounding, lift) in [(Rounding::NearestEven, 0), (Rounding::NearestEven, 11), (Rounding::Up, 0)] {
                let Some(grid) = Grid::of(format, rounding, lift) else { continue };
                let ends = [grid.least, grid.largest];
                let beside = ends.iter().flat_map(|end| [end.next_down(), *end, end.next_up(), end * 1.01, end * 1.5]);
                for end in beside {
                    // A block of values that are in range, but for one.
                    let mut values = [0.0; BLOCK];
                    values[BLOCK / 2] = end * grid.down;
                    let lifted: Vec<f64> = values.iter().map(|value| value * grid.up).collect();
                    let mut bytes = vec![0; BLOCK * format.storage_bytes()];
                    let other = |value: f64| (round(value * grid.up, format, rounding), 0.0);
                    grid.round(&mut values.clone(), &mut bytes, &other);
                    let found = Elements::from_bytes(format, bytes).unwrap();
                    assert_eq!(found.to_bits(), wanted(&lifted, format, rounding), "{end:e} in {format}, lift {lift}");
                }
            }
        }
    }
}
