//! Matrices as sums of words of a narrow format.

use mxprobe_api::{Elements, Format, Overflow, Rounding, Subnormals};

use super::{Matrix, values::nan_bits};

/// How values become words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// How many words.
    pub words: usize,
    /// How each is rounded.
    pub rounding: Rounding,
    /// Powers of two that are taken out first.
    pub scaling: Scaling,
    /// Word i is stored 2^(i·bits) times as large as it counts, so that small words do not underflow. 0: as it counts.
    pub lift_bits: i32,
}

/// Powers of two that are taken out of a matrix before it is split, and given back to the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// None.
    None,
    /// Of each line (row of A, column of B), so that its largest magnitude lies in [1, 2).
    Lines,
}

/// A matrix in words.
#[derive(Clone, Debug)]
pub struct Rounded {
    /// The words, the largest first: the matrix is their sum, each divided by 2^(i·`lift_bits`), as far as they reach.
    pub words: Vec<Elements>,
    /// The exponent of 2 that was taken out of each line.
    pub line_exponents: Vec<i32>,
    /// Elements that the first words do not hold exactly: the first alone, the first two, …
    pub inexact: Vec<usize>,
}

/// Splits a matrix: word i is fl(X − word 1 − … − word i−1), each difference exact.
///
/// X is the matrix, its lines (rows if `by_rows`, else columns) scaled as [`Split::scaling`] says. Differences are those of
/// f64, which are exact here: what is left of a value after words of fewer bits were taken off has no more bits than the
/// value. Results beyond the format's range are its infinity, or its largest value where it has none; subnormals are kept.
/// A NaN keeps its sign and what fits of its fraction in the first word, and the others are +0.
#[must_use]
pub fn words(matrix: &Matrix, format: Format, split: &Split, by_rows: bool) -> Rounded {
    let line = |at: usize| if by_rows { at / matrix.columns.max(1) } else { at % matrix.columns.max(1) };
    let lines = if by_rows { matrix.rows } else { matrix.columns };
    let line_exponents = match split.scaling {
        Scaling::None => vec![0; lines],
        Scaling::Lines => {
            let mut largest = vec![0f64; lines];
            for (at, value) in matrix.values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
                largest[line(at)] = largest[line(at)].max(value.abs());
            }
            largest.into_iter().map(exponent).collect()
        }
    };
    let threads = super::threads();
    let per_thread = matrix.values.len().div_ceil(threads).max(1 << 12);
    let parts: Vec<Part> = std::thread::scope(|scope| {
        let parts: Vec<_> = matrix
            .values
            .chunks(per_thread)
            .enumerate()
            .map(|(part, values)| {
                let (line, line_exponents) = (&line, &line_exponents);
                let exponent = move |at: usize| -line_exponents[line(part * per_thread + at)];
                scope.spawn(move || {
                    let values = match split.scaling {
                        Scaling::None => values.to_vec(),
                        Scaling::Lines => {
                            values.iter().enumerate().map(|(at, value)| scaled(*value, exponent(at))).collect()
                        }
                    };
                    Part::of(values, format, split)
                })
            })
            .collect();
        parts.into_iter().map(|part| part.join().expect("rounding does not panic")).collect()
    });
    let word = |at: usize| {
        let bytes: Vec<&[u8]> = parts.iter().map(|part| part.words[at].bytes()).collect();
        Elements::from_bytes(format, bytes.concat()).expect("elements of this format")
    };
    Rounded {
        words: (0..split.words).map(word).collect(),
        inexact: (0..split.words).map(|at| parts.iter().map(|part| part.inexact[at]).sum()).collect(),
        line_exponents,
    }
}

/// Consecutive elements in words.
struct Part {
    words: Vec<Elements>,
    inexact: Vec<usize>,
}

impl Part {
    /// Of values whose lines are scaled already.
    fn of(mut rest: Vec<f64>, format: Format, split: &Split) -> Self {
        let mut part = Self { words: Vec::new(), inexact: Vec::new() };
        for word in 0..split.words {
            let lift = split.lift_bits * i32::try_from(word).expect("a few words");
            let bytes = match format.storage_bytes() {
                1 => next_word::<1>(&mut rest, format, split.rounding, lift),
                2 => next_word::<2>(&mut rest, format, split.rounding, lift),
                4 => next_word::<4>(&mut rest, format, split.rounding, lift),
                _ => next_word::<8>(&mut rest, format, split.rounding, lift),
            };
            part.words.push(Elements::from_bytes(format, bytes).expect("elements of this format"));
            part.inexact.push(rest.iter().filter(|value| **value != 0.0).count());
        }
        part
    }
}

/// The next word of values of a format of `SIZE` bytes, stored 2^lift times as large, which is then taken off them.
fn next_word<const SIZE: usize>(rest: &mut [f64], format: Format, rounding: Rounding, lift: i32) -> Vec<u8> {
    let normal = Normal::of(format, rounding);
    let mut bytes = vec![0; rest.len() * SIZE];
    for (value, place) in rest.iter_mut().zip(bytes.as_chunks_mut::<SIZE>().0) {
        let lifted = scaled(*value, lift);
        let fast = normal.and_then(|normal| normal.round(lifted));
        let (bits, rounded) = fast.unwrap_or_else(|| {
            let bits = round(lifted, format, rounding);
            (bits, format.to_f64(bits))
        });
        let taken = scaled(rounded, -lift);
        *value = if taken.is_finite() { *value - taken } else { 0.0 };
        place.copy_from_slice(&bits.to_le_bytes()[..SIZE]);
    }
    bytes
}

/// Fraction bits of f64: a decoded significand counts units of 2^(exponent − 52).
const F64_FRACTION_BITS: i32 = 52;

/// The exponent of the leading bit; 0 for zero.
pub(super) fn exponent(value: f64) -> i32 {
    match Format::F64.decode(value.to_bits()) {
        mxprobe_api::Decoded::Finite { significand, exponent, .. } => {
            exponent - F64_FRACTION_BITS + i32::try_from(significand.ilog2()).expect("below 64")
        }
        _ => 0,
    }
}

/// value · 2^exponent, exact but for overflow and underflow of f64.
pub(super) fn scaled(value: f64, exponent: i32) -> f64 {
    if exponent == 0 {
        return value;
    }
    // In steps, so that no factor leaves the range.
    let mut rest = exponent;
    let mut value = value;
    while rest != 0 {
        let step = rest.clamp(-LONGEST_STEP, LONGEST_STEP);
        value *= power_of_two(step);
        rest -= step;
    }
    value
}

/// The exponents of powers of two that are normal values of f64, of both signs.
const LONGEST_STEP: i32 = 1022;

/// 2^exponent, exactly; `exponent` within f64's normal range.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::try_from(exponent + 1023).expect("a normal exponent") << 52)
}

/// Rounds values whose results are zero or normal numbers, to nearest or toward zero, in a few steps: most are.
#[derive(Clone, Copy)]
struct Normal {
    /// Fraction bits of f64 that the format does not have.
    dropped: u32,
    /// Exponents that f64's bits may have, biased.
    exponents: (u64, u64),
    /// What is taken off a biased exponent of f64.
    bias: u64,
    sign: u32,
    to_nearest: bool,
}

impl Normal {
    /// For f16 and bf16; `None` for others and for other directions.
    fn of(format: Format, rounding: Rounding) -> Option<Self> {
        let to_nearest = match rounding {
            Rounding::NearestEven => true,
            Rounding::TowardZero => false,
            _ => return None,
        };
        let float = format.as_float().filter(|_| matches!(format, Format::F16 | Format::BF16))?;
        let biased = |exponent: i32| u64::try_from(exponent + 1023).expect("f64 holds the format");
        Some(Self {
            dropped: 52 - float.fraction_bits,
            // Of the largest exponent some round up to infinity.
            exponents: (biased(float.min_exponent()), biased(float.max_exponent() - 1)),
            bias: biased(-float.bias),
            sign: format.bits() - 1,
            to_nearest,
        })
    }

    /// The bits and the value of the result.
    fn round(self, value: f64) -> Option<(u64, f64)> {
        let bits = value.to_bits();
        let (sign, magnitude) = (bits >> 63, bits & (u64::MAX >> 1));
        if magnitude == 0 {
            return Some((sign << self.sign, value));
        }
        let exponent = magnitude >> 52;
        if exponent < self.exponents.0 || exponent > self.exponents.1 {
            return None;
        }
        let unit = 1u64 << self.dropped;
        let up = if self.to_nearest { unit / 2 - 1 + (magnitude >> self.dropped & 1) } else { 0 };
        let kept = (magnitude + up) >> self.dropped;
        let rounded = f64::from_bits(sign << 63 | kept << self.dropped);
        Some((sign << self.sign | (kept - (self.bias << (52 - self.dropped))), rounded))
    }
}

/// The bits of a value rounded into a format.
fn round(value: f64, format: Format, rounding: Rounding) -> u64 {
    match Format::F64.decode(value.to_bits()) {
        mxprobe_api::Decoded::Finite { negative, significand, exponent } => {
            let overflow = if format.infinity(false).is_some() { Overflow::Ieee } else { Overflow::Saturate };
            let lowest = exponent - F64_FRACTION_BITS;
            format.encode(negative, u128::from(significand), lowest, rounding, overflow, Subnormals::Keep).bits
        }
        mxprobe_api::Decoded::Nan { .. } => nan_bits(format, value),
        _ => format.from_f64(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Split = Split { words: 2, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };

    #[test]
    fn two_words_of_f16_hold_22_bits() {
        let value = 1.0 + f64::from(-20).exp2();
        let matrix = Matrix::new(1, 1, vec![value]).unwrap();
        let split = words(&matrix, Format::F16, &PLAIN, true);
        assert_eq!([split.words[0].get(0), split.words[1].get(0)], [0x3c00, 0x0010]);
        assert_eq!(split.inexact, [1, 0]);
        let one = words(&matrix, Format::F16, &Split { words: 1, ..PLAIN }, true);
        assert_eq!(one.inexact, [1]);
    }

    #[test]
    fn lifted_words_do_not_underflow() {
        let value = f64::from(-10).exp2() * (1.0 + f64::from(-20).exp2());
        let matrix = Matrix::new(1, 1, vec![value]).unwrap();
        assert_eq!(words(&matrix, Format::F16, &PLAIN, true).inexact[1], 1);
        let lifted = words(&matrix, Format::F16, &Split { lift_bits: 11, ..PLAIN }, true);
        assert_eq!((lifted.inexact[1], Format::F16.to_f64(lifted.words[1].get(0))), (0, f64::from(-19).exp2()));
    }

    #[test]
    fn powers_of_two_beyond_the_range_of_f64_are_taken_in_steps() {
        let least = f64::from_bits(1);
        assert_eq!(scaled(least, 2_097).to_bits(), f64::from(1023).exp2().to_bits());
        assert_eq!(scaled(f64::from(1023).exp2(), -2_097).to_bits(), least.to_bits());
        assert!(scaled(1.0, 4_000).is_infinite() && scaled(1.0, -4_000) == 0.0);
    }

    #[test]
    fn lines_are_scaled_to_the_binade_of_one() {
        let matrix = Matrix::new(2, 2, vec![3e5, 1.0, 1e-9, 0.0]).unwrap();
        let split = words(&matrix, Format::F16, &Split { scaling: Scaling::Lines, ..PLAIN }, true);
        assert_eq!(split.line_exponents, [18, -30]);
        let columns = words(&matrix, Format::F16, &Split { scaling: Scaling::Lines, ..PLAIN }, false);
        assert_eq!(columns.line_exponents, [18, 0]);
    }

    #[test]
    fn normal_numbers_are_rounded_as_all_are() {
        let mut stream = crate::gemm::Uniform::new(7);
        for format in [Format::F16, Format::BF16] {
            for rounding in [Rounding::NearestEven, Rounding::TowardZero] {
                let normal = Normal::of(format, rounding).unwrap();
                let every = (0..1u64 << 16).filter(|bits| format.to_f64(*bits).is_finite());
                // Each value of the format, the middle to the next one, and what lies beside both.
                let mut taken = 0;
                for value in every.map(|bits| format.to_f64(bits)) {
                    let next = f64::from_bits(value.to_bits() + (1 << normal.dropped));
                    let between = value + (next - value) * stream.next_value();
                    for value in [value, value.next_up(), value.next_down(), value.midpoint(next), between] {
                        if let Some((bits, rounded)) = normal.round(value) {
                            let wanted = round(value, format, rounding);
                            assert_eq!(bits, wanted, "{value:e} in {format}, {rounding:?}");
                            assert_eq!(rounded.to_bits(), format.to_f64(wanted).to_bits(), "{value:e} in {format}");
                            taken += 1;
                        }
                    }
                }
                assert!(taken > 250_000, "{taken} of {format}");
            }
        }
        assert!(
            Normal::of(Format::BF16, Rounding::Up).is_none()
                && Normal::of(Format::E4M3, Rounding::NearestEven).is_none()
        );
    }

    #[test]
    fn specials_stay_what_they_are() {
        let matrix = Matrix::new(1, 3, vec![f64::NAN, f64::INFINITY, -0.0]).unwrap();
        let split = words(&matrix, Format::BF16, &PLAIN, true);
        assert!(Format::BF16.to_f64(split.words[0].get(0)).is_nan());
        assert_eq!([split.words[0].get(1), split.words[0].get(2)], [0x7f80, 0x8000]);
        assert_eq!([split.words[1].get(0), split.words[1].get(1)], [0, 0]);
    }
}
