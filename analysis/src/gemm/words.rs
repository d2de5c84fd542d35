//! Matrices as sums of words of a narrow format.

use mxprobe_api::{Elements, Format, Rounding};
use mxprobe_models::many::{Grid, exponent, round};

use super::Matrix;

/// How values are split into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The number of words.
    pub words: usize,
    /// How each word is rounded.
    pub rounding: Rounding,
    /// The powers of two that are divided out first.
    pub scaling: Scaling,
    /// Word i is stored 2^(i·bits) times as large as the value it represents, so that small words do not underflow. 0
    /// stores the value itself.
    pub lift_bits: i32,
}

/// Powers of two that are divided out of a matrix before it is split, and multiplied into the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// No scaling.
    None,
    /// One for each line (row of A, column of B), so that its largest magnitude is in [1, 2).
    Lines,
}

/// A matrix in words.
#[derive(Clone, Debug, Default)]
pub struct Rounded {
    /// The words, the largest first: the matrix is the sum of the words, each divided by 2^(i·`lift_bits`), except for
    /// the remainder after the last one.
    pub words: Vec<Elements>,
    /// The exponent of 2 that was divided out of each line.
    pub line_exponents: Vec<i32>,
    /// The number of elements that the first words do not hold exactly: the first alone, the first two, …
    pub inexact: Vec<usize>,
    /// The scales of each word's blocks, if the operation has block scales.
    pub scales: Vec<Elements>,
}

/// Splits a matrix: word i is fl(X − word 1 − … − word i−1), each difference exact.
///
/// X is the matrix, its lines (rows if `by_rows`, otherwise columns) scaled as [`Split::scaling`] says. Differences are
/// computed in f64, which is exact here: the remainder of a value after words of fewer bits are subtracted has no more
/// bits than the value. Results beyond the format's range are its infinity, and the other words +0; if the format has
/// no infinity, they are its largest value (NaN in FNUZ formats if the value is infinite). Subnormals are kept. A NaN
/// keeps its sign and as much of its fraction as fits in the first word, and the other words are +0; if the format has
/// no NaN, each word is its largest value.
#[must_use]
pub fn words(matrix: &Matrix, format: Format, split: &Split, by_rows: bool) -> Rounded {
    words_in(&mut Spare::default(), matrix, format, split, by_rows)
}

/// Memory of words that are no longer needed: writing to it costs no page faults, as new memory does.
#[derive(Debug, Default)]
pub(super) struct Spare(Vec<Vec<u8>>);

impl Spare {
    /// Takes the memory of words, unless they are scaled: nothing takes that again.
    pub(super) fn keep(&mut self, words: Rounded) {
        if words.scales.is_empty() {
            self.0.extend(words.words.into_iter().map(Elements::into_bytes));
        }
    }

    /// Memory for a word, with any values.
    fn take(&mut self, len: usize) -> Vec<u8> {
        let fits = self.0.iter().position(|bytes| bytes.len() == len);
        fits.map_or_else(|| vec![0; len], |at| self.0.swap_remove(at))
    }
}

/// Like [`words`], in spare memory, as far as there is some.
pub(super) fn words_in(spare: &mut Spare, matrix: &Matrix, format: Format, split: &Split, by_rows: bool) -> Rounded {
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
    let size = format.storage_bytes();
    let mut bytes: Vec<Vec<u8>> = (0..split.words).map(|_| spare.take(matrix.values.len() * size)).collect();
    let mut inexact = vec![0; split.words];
    let per_thread = matrix.values.len().div_ceil(mxprobe_models::threads()).max(ELEMENTS_PER_THREAD);
    std::thread::scope(|scope| {
        let mut rest: Vec<&mut [u8]> = bytes.iter_mut().map(Vec::as_mut_slice).collect();
        let mut parts = Vec::new();
        for (part, values) in matrix.values.chunks(per_thread).enumerate() {
            // The bytes of these values in each word.
            let own: Vec<&mut [u8]> = rest
                .iter_mut()
                .map(|rest| rest.split_off_mut(..values.len() * size).expect("bytes of all values"))
                .collect();
            let (line, line_exponents) = (&line, &line_exponents);
            let exponent = move |at: usize| match split.scaling {
                Scaling::None => 0,
                Scaling::Lines => -line_exponents[line(part * per_thread + at)],
            };
            parts.push((values, own, exponent));
        }
        let last = parts.pop();
        let others: Vec<_> = parts
            .into_iter()
            .map(|(values, own, exponent)| scope.spawn(move || write_words(values, exponent, format, split, own)))
            .collect();
        let mut add = |counts: Vec<usize>| inexact.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
        if let Some((values, own, exponent)) = last {
            add(write_words(values, exponent, format, split, own));
        }
        others.into_iter().for_each(|part| add(part.join().expect("rounding does not panic")));
    });
    let elements = |bytes| Elements::from_bytes(format, bytes).expect("elements of this format");
    Rounded { words: bytes.into_iter().map(elements).collect(), inexact, line_exponents, scales: Vec::new() }
}

/// Starting a thread costs as much as rounding some ten thousand elements.
const ELEMENTS_PER_THREAD: usize = 1 << 16;

/// Elements that are split at a time, so that their remainders stay in the L1 cache.
const AT_ONCE: usize = 1 << 10;

/// Writes the words of consecutive elements, and counts the elements that the first words do not hold exactly.
fn write_words(
    values: &[f64],
    exponent: impl Fn(usize) -> i32,
    format: Format,
    split: &Split,
    mut into: Vec<&mut [u8]>,
) -> Vec<usize> {
    let size = format.storage_bytes();
    let mut inexact = vec![0; split.words];
    let mut rest = [0f64; AT_ONCE];
    let lifts = (0..split.words).map(|word| split.lift_bits * i32::try_from(word).expect("a few words"));
    let grids: Vec<(i32, Option<Grid>)> = lifts.map(|lift| (lift, Grid::of(format, split.rounding, lift))).collect();
    for (chunk, values) in values.chunks(AT_ONCE).enumerate() {
        let first = chunk * AT_ONCE;
        let rest = &mut rest[..values.len()];
        rest.copy_from_slice(values);
        if split.scaling != Scaling::None {
            rest.iter_mut().enumerate().for_each(|(at, value)| *value = scaled(*value, exponent(first + at)));
        }
        for ((into, inexact), (lift, grid)) in into.iter_mut().zip(&mut inexact).zip(&grids) {
            let bytes = &mut into[first * size..][..values.len() * size];
            let one = |value: f64| next_word(value, format, split.rounding, *lift);
            *inexact += match grid {
                Some(grid) => grid.round(rest, bytes, &one),
                None => {
                    for (value, place) in rest.iter_mut().zip(bytes.chunks_exact_mut(size)) {
                        let (bits, left) = one(*value);
                        place.copy_from_slice(&bits.to_le_bytes()[..size]);
                        *value = left;
                    }
                    rest.iter().filter(|value| **value != 0.0).count()
                }
            };
        }
    }
    inexact
}

/// The bits of the next word of a value, stored 2^lift times as large, and the remainder of the value.
fn next_word(value: f64, format: Format, rounding: Rounding, lift: i32) -> (u64, f64) {
    let bits = round(scaled(value, lift), format, rounding);
    let taken = scaled(format.to_f64(bits), -lift);
    (bits, if taken.is_finite() { value - taken } else { 0.0 })
}

/// value · 2^exponent, exact except for overflow and underflow of f64.
pub(super) fn scaled(value: f64, exponent: i32) -> f64 {
    if exponent == 0 {
        return value;
    }
    // In steps, so that every factor is in range.
    let mut rest = exponent;
    let mut value = value;
    while rest != 0 {
        let step = rest.clamp(-LONGEST_STEP, LONGEST_STEP);
        value *= power_of_two(step);
        rest -= step;
    }
    value
}

/// The largest exponent e for which both 2^e and 2^−e are normal values of f64.
const LONGEST_STEP: i32 = 1022;

/// 2^exponent, exactly; `exponent` within f64's normal range.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::try_from(exponent + 1023).expect("a normal exponent") << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Split = Split { words: 2, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };

    #[test]
    fn words_in_the_memory_of_others_are_the_same() {
        let drawn = |seed, rows, columns| crate::gemm::Uniform::new(seed).matrix(rows, columns, -1.0, 1.0, true);
        let mut spare = Spare::default();
        for (rows, columns) in [(300, 40), (300, 40), (7, 9), (300, 40)] {
            let matrix = drawn(7, rows, columns);
            for format in [Format::BF16, Format::E4M3] {
                let found = words_in(&mut spare, &matrix, format, &PLAIN, true);
                let wanted = words(&matrix, format, &PLAIN, true);
                assert_eq!(
                    (&found.words, &found.inexact),
                    (&wanted.words, &wanted.inexact),
                    "{format} {rows}×{columns}"
                );
                let places: Vec<_> = found.words.iter().map(|word| word.bytes().as_ptr()).collect();
                spare.keep(found);
                let again = words_in(&mut spare, &drawn(1, rows, columns), format, &PLAIN, true);
                assert!(again.words.iter().all(|word| places.contains(&word.bytes().as_ptr())));
                assert_ne!(again.words, wanted.words);
                spare.keep(again);
            }
        }
    }

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
    fn specials_stay_what_they_are() {
        let matrix = Matrix::new(1, 3, vec![f64::NAN, f64::INFINITY, -0.0]).unwrap();
        let split = words(&matrix, Format::BF16, &PLAIN, true);
        assert!(Format::BF16.to_f64(split.words[0].get(0)).is_nan());
        assert_eq!([split.words[0].get(1), split.words[0].get(2)], [0x7f80, 0x8000]);
        assert_eq!([split.words[1].get(0), split.words[1].get(1)], [0, 0]);
    }

    #[test]
    fn beyond_the_range_of_a_format_without_infinity_is_its_largest_value_and_nan_is_nan_or_the_largest() {
        let matrix = Matrix::new(1, 6, vec![1e9, -1e9, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN]).unwrap();
        let one =
            |format| words(&matrix, format, &Split { words: 1, ..PLAIN }, true).words[0].iter().collect::<Vec<_>>();
        // PTX ISA, cvt: .satfinite; a NaN becomes +MAX_NORM if the format has no NaN.
        assert_eq!(one(Format::E2M1), [0x7, 0xf, 0x7, 0xf, 0x7, 0x7]);
        assert_eq!(one(Format::E3M2), [0x1f, 0x3f, 0x1f, 0x3f, 0x1f, 0x1f]);
        assert_eq!(one(Format::E2M3), [0x1f, 0x3f, 0x1f, 0x3f, 0x1f, 0x1f]);
        assert_eq!(one(Format::E4M3), [0x7e, 0xfe, 0x7e, 0xfe, 0x7f, 0x7f]);
        assert_eq!(one(Format::E4M3FNUZ), [0x7f, 0xff, 0x80, 0x80, 0x80, 0x80]);
        assert_eq!(one(Format::E5M2FNUZ), [0x7f, 0xff, 0x80, 0x80, 0x80, 0x80]);
        // IEEE 754's formats have an infinity and a NaN with a sign.
        assert_eq!(one(Format::E5M2), [0x7c, 0xfc, 0x7c, 0xfc, 0x7e, 0xfe]);
        assert_eq!(one(Format::F16), [0x7c00, 0xfc00, 0x7c00, 0xfc00, 0x7e00, 0xfe00]);
        assert_eq!(one(Format::S8), [0x7f, 0x80, 0x7f, 0x80, 0, 0]);
        assert_eq!(one(Format::U4), [0xf, 0, 0xf, 0, 0, 0]);
    }

    #[test]
    fn what_lies_beyond_the_range_of_one_word_is_left_to_the_next() {
        let matrix = Matrix::new(1, 2, vec![1000.0, f64::INFINITY]).unwrap();
        let split = words(&matrix, Format::E4M3, &Split { words: 3, ..PLAIN }, true);
        let values = |at: usize| [0, 1, 2].map(|word: usize| Format::E4M3.to_f64(split.words[word].get(at)));
        assert_eq!((values(0), values(1)), ([448.0, 448.0, 104.0], [448.0; 3]));
    }
}
