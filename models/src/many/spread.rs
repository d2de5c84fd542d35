//! The range of a matrix, and whether sums of products of two matrices are exact in f64.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use super::{blocked::Rows, exponent};
use crate::{Vectorised, pieces::in_threads, threads, vectorised};

/// The range of the values of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least magnitude other than 0; infinite if all are 0.
    pub least: f64,
    /// The largest magnitude.
    pub largest: f64,
    /// Whether some value is negative.
    pub is_signed: bool,
    /// Whether all values are finite.
    pub is_finite: bool,
}

impl Spread {
    /// The range of a matrix.
    #[must_use]
    pub fn of(matrix: &dyn Rows, lengths: (usize, usize)) -> Self {
        let whole = Mutex::new(Self { least: f64::INFINITY, largest: 0.0, is_signed: false, is_finite: true });
        each_piece(&[matrix], lengths, |[values]| {
            let part = vectorised(Range(values));
            let mut whole = whole.lock().expect("no thread panics with it");
            *whole = Self {
                least: whole.least.min(part.least),
                largest: whole.largest.max(part.largest),
                is_signed: whole.is_signed || part.is_signed,
                is_finite: whole.is_finite && part.is_finite,
            };
            true
        });
        whole.into_inner().expect("no thread panics with it")
    }
}

/// Whether every sum of products of rows of A (m×k) and columns of B (k×n) is exact in f64, in any order: all values of
/// a matrix are multiples of a power of two, and few bits above it.
#[must_use]
pub fn sums_are_exact(
    (a, of_a): (&dyn Rows, Spread),
    (b, of_b): (&dyn Rows, Spread),
    (m, n, k): (usize, usize, usize),
) -> bool {
    // Each factor has half of the bits of f64 that the number of products leaves.
    let bits = (53 - k.next_power_of_two().ilog2().cast_signed()) / 2;
    let is_on_grid = |matrix, spread: Spread, lengths| {
        if spread.largest == 0.0 {
            return true;
        }
        let unit = exponent(spread.largest) + 1 - bits;
        each_piece(&[matrix], lengths, |[values]| vectorised(OnGrid { values, unit }))
    };
    of_a.is_finite && of_b.is_finite && is_on_grid(a, of_a, (m, k)) && is_on_grid(b, of_b, (k, n))
}

/// The largest ratio of magnitudes of elements of two matrices, where 0/0 is 0.
#[must_use]
pub fn largest_ratio(of: &dyn Rows, to: &dyn Rows, lengths: (usize, usize)) -> f64 {
    let largest = Mutex::new(0f64);
    each_piece(&[of, to], lengths, |[of, to]| {
        let part = vectorised(Ratio { of, to });
        let mut largest = largest.lock().expect("no thread panics with it");
        *largest = largest.max(part);
        true
    });
    largest.into_inner().expect("no thread panics with it")
}

/// Elements that are read at a time.
const PIECE: usize = 1024;

/// Rows that a thread takes at a time.
const ROWS_AT_ONCE: usize = 16;

/// Calls `each` with pieces of the rows of matrices, until it returns false. Returns whether it never did.
fn each_piece<const N: usize>(
    matrices: &[&dyn Rows; N],
    (rows, columns): (usize, usize),
    each: impl Fn([&[f64]; N]) -> bool + Sync,
) -> bool {
    let failed = AtomicBool::new(false);
    in_threads(
        rows.div_ceil(ROWS_AT_ONCE),
        threads(),
        || [[0.0; PIECE]; N],
        |part, pieces| {
            let rows = part * ROWS_AT_ONCE..rows.min((part + 1) * ROWS_AT_ONCE);
            for (row, column) in rows.flat_map(|row| (0..columns).step_by(PIECE).map(move |column| (row, column))) {
                if failed.load(Ordering::Relaxed) {
                    return;
                }
                let count = PIECE.min(columns - column);
                for (matrix, piece) in matrices.iter().zip(&mut *pieces) {
                    matrix.read(row, column, &mut piece[..count]);
                }
                if !each(std::array::from_fn(|at| &pieces[at][..count])) {
                    failed.store(true, Ordering::Relaxed);
                }
            }
        },
    );
    !failed.into_inner()
}

/// Values that are compared in parallel.
const LANES: usize = 16;

struct Range<'a>(&'a [f64]);

impl Vectorised for Range<'_> {
    type Output = Spread;

    #[inline(always)]
    fn run(self) -> Spread {
        let (mut least, mut largest) = ([f64::INFINITY; LANES], [0f64; LANES]);
        let (mut lowest, mut nan) = ([0f64; LANES], [0f64; LANES]);
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        for values in chunks.iter().chain([&last]) {
            for lane in 0..LANES {
                let size = values[lane].abs();
                let some = if size > 0.0 { size } else { f64::INFINITY };
                least[lane] = if some < least[lane] { some } else { least[lane] };
                largest[lane] = if size > largest[lane] { size } else { largest[lane] };
                lowest[lane] = if values[lane] < lowest[lane] { values[lane] } else { lowest[lane] };
                // NaN unless the value is finite.
                nan[lane] += values[lane] * 0.0;
            }
        }
        Spread {
            least: least.into_iter().fold(f64::INFINITY, f64::min),
            largest: largest.into_iter().fold(0.0, f64::max),
            is_signed: lowest.iter().any(|value| *value < 0.0),
            is_finite: !nan.iter().any(|value| value.is_nan()),
        }
    }
}

/// Whether all values are multiples of 2^unit; they are below 2^(unit + 51).
struct OnGrid<'a> {
    values: &'a [f64],
    unit: i32,
}

impl Vectorised for OnGrid<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let start = 1.5 * f64::from(self.unit + 52).exp2();
        #[expect(clippy::float_cmp, reason = "exact or not")]
        self.values.iter().fold(true, |all, value| all & ((value + start) - start == *value))
    }
}

struct Ratio<'a> {
    of: &'a [f64],
    to: &'a [f64],
}

impl Vectorised for Ratio<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let ratios = self.of.iter().zip(self.to).map(|(of, to)| if *of == 0.0 { 0.0 } else { (of / to).abs() });
        ratios.fold(0.0, |largest, ratio| if ratio > largest { ratio } else { largest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::many::Plain;

    fn spread(values: &[f64]) -> Spread {
        Spread::of(&Plain { values, columns: values.len() }, (1, values.len()))
    }

    #[test]
    fn the_range_of_values_leaves_zeros_aside() {
        let found = spread(&[0.0, -0.0, 0.25, 3.0]);
        assert_eq!(found, Spread { least: 0.25, largest: 3.0, is_signed: false, is_finite: true });
        let long: Vec<f64> = (1..3000).map(f64::from).chain([-5e3]).collect();
        assert_eq!(spread(&long), Spread { least: 1.0, largest: 5e3, is_signed: true, is_finite: true });
        assert!(!spread(&[1.0, f64::INFINITY]).is_finite && !spread(&[f64::NAN, 1.0]).is_finite);
    }

    #[test]
    fn sums_are_exact_as_long_as_f64_holds_their_bits() {
        // 4 products leave 51 bits: 25 for each factor.
        let is_exact = |value: f64| {
            let values = [value, 1.0, 0.0, -1.0];
            let (a, b) = (Plain { values: &values, columns: 4 }, Plain { values: &values, columns: 1 });
            sums_are_exact((&a, spread(&values)), (&b, spread(&values)), (1, 1, 4))
        };
        let last = f64::from(25).exp2() - 1.0;
        assert!(is_exact(last) && is_exact(1.0 / 1024.0) && is_exact(f64::from(-24).exp2()));
        assert!(!is_exact(last + 1.0) && !is_exact(f64::from(-25).exp2()) && !is_exact(1.0 / 3.0));
    }

    #[test]
    fn the_largest_ratio_takes_a_zero_of_zero_as_zero() {
        let of = |values: &[f64], to: &[f64]| {
            largest_ratio(&Plain { values, columns: 2 }, &Plain { values: to, columns: 2 }, (2, 2))
        };
        assert!((of(&[1.0, -3.0, 0.0, 0.0], &[2.0, 2.0, 5.0, 0.0]) - 1.5).abs() < f64::EPSILON);
        assert!(of(&[1.0; 4], &[1.0, 1.0, 0.0, 1.0]).is_infinite());
    }
}
