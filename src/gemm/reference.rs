//! The nearly exact product, and the distance of a computed product from it.

use std::ops::Range;

use mxprobe_api::Elements;
use mxprobe_models::{Vectorised, vectorised};

use super::{Matrix, words::exponent};

/// The distance of a computed product from the exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// max over i, j of |Ĉ − C| / (|A|·|B|).
    pub componentwise: f64,
    /// ‖Ĉ − C‖ / ‖C‖ in Frobenius norms.
    pub normwise: f64,
}

/// The product of two matrices and of their magnitudes.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    product: Vec<f64>,
    magnitudes: Vec<f64>,
}

impl Reference {
    /// A·B as if in twice f64's precision and rounded once, and |A|·|B| in f64.
    ///
    /// A sum starts at 1.5·2^e, where 2^e exceeds every possible sum of magnitudes, so that its last place never changes.
    /// A fused multiply-add then rounds each product to that place, which adds it without an error, and the remainder
    /// of the product is known exactly (Rump's extraction; "Ultimately fast accurate summation", SISC 2009). Remainders
    /// have a sum of their own.
    pub(super) fn new(a: &Matrix, b: &Matrix) -> Self {
        let is_positive = |matrix: &Matrix| matrix.values.iter().all(|value| *value >= 0.0);
        let signed = !(is_positive(a) && is_positive(b));
        let (of_rows, of_columns) = (largest_of_rows(a), largest_of_columns(b));
        let largest = (&of_rows[..], &of_columns[..]);
        let across = b.columns.div_ceil(LANES);
        // Bands of rows, and also panels of columns if there are few rows.
        let threads = mxprobe_models::threads().min(1 + a.rows * b.columns * a.columns / PRODUCTS_PER_THREAD);
        let down = threads.min(a.rows.div_ceil(ROWS)).max(1);
        let per_band = a.rows.div_ceil(down).next_multiple_of(ROWS).max(1);
        let per_part = across.div_ceil(threads.div_ceil(down)).max(1);
        let mut product = vec![0.0; a.rows * b.columns];
        let mut magnitudes = product.clone();
        std::thread::scope(|scope| {
            let mut parts = Vec::new();
            for first_row in (0..a.rows).step_by(per_band) {
                for first_panel in (0..across).step_by(per_part) {
                    let rows = first_row..(first_row + per_band).min(a.rows);
                    let panels = first_panel..(first_panel + per_part).min(across);
                    let work = move || {
                        let (rows_of, panels_of) = (rows.clone(), panels.clone());
                        let found = if signed {
                            vectorised(Dots::<'_, true> { a, b, largest, rows: rows_of, panels: panels_of })
                        } else {
                            vectorised(Dots::<'_, false> { a, b, largest, rows: rows_of, panels: panels_of })
                        };
                        (rows, panels, found)
                    };
                    parts.push(scope.spawn(work));
                }
            }
            for part in parts {
                let (rows, panels, found) = part.join().expect("sums do not panic");
                let mut found = found.into_iter();
                for panel in panels {
                    let first = panel * LANES;
                    let count = LANES.min(b.columns - first);
                    for row in rows.clone() {
                        let dots = found.next().expect("dots of every row and panel");
                        let at = row * b.columns + first;
                        product[at..at + count].copy_from_slice(&dots.products()[..count]);
                        let sizes = if signed { &dots.magnitudes } else { &dots.products() };
                        magnitudes[at..at + count].copy_from_slice(&sizes[..count]);
                    }
                }
            }
        });
        Self { product, magnitudes }
    }

    /// The distance of a computed product from this one.
    pub(super) fn errors(&self, computed: &Elements) -> Errors {
        self.errors_against(computed, self)
    }

    /// The distance of a computed product from another one, relative to this one's sizes.
    pub(super) fn errors_against(&self, computed: &Elements, other: &Self) -> Errors {
        let values = computed.iter().map(|bits| computed.format().to_f64(bits));
        self.relative(values.zip(&other.product).map(|(value, other)| value - other))
    }

    /// The distance between two products, relative to this one's sizes.
    pub(super) fn errors_of(&self, one: &Self, other: &Self) -> Errors {
        self.relative(one.product.iter().zip(&other.product).map(|(one, other)| one - other))
    }

    /// The sizes of differences, relative to |A|·|B| and to A·B.
    fn relative(&self, differences: impl Iterator<Item = f64>) -> Errors {
        let (mut componentwise, mut difference, mut norm) = (0f64, 0f64, 0f64);
        for (at, error) in differences.enumerate() {
            let error = error.abs();
            let relative = if self.magnitudes[at] > 0.0 { error / self.magnitudes[at] } else { error };
            // A NaN counts as an infinite error.
            componentwise = if relative.is_nan() { f64::INFINITY } else { componentwise.max(relative) };
            difference += error * error;
            norm += self.product[at] * self.product[at];
        }
        let normwise = if norm > 0.0 { (difference / norm).sqrt() } else { difference.sqrt() };
        Errors { componentwise, normwise }
    }
}

/// The distance of a computed product from A·B.
#[must_use]
pub fn errors(a: &Matrix, b: &Matrix, computed: &Elements) -> Errors {
    Reference::new(a, b).errors(computed)
}

/// Columns whose dots are computed in parallel lanes: a single dot would wait for each of its own sums.
const LANES: usize = 16;

/// Rows that are computed in parallel, for the same reason.
const ROWS: usize = 2;

/// Products along k that are computed for every row before the next ones, so that their part of B stays in the L1
/// cache.
const AT_ONCE: usize = 128;

/// Starting a thread costs as much as some hundred thousand products.
const PRODUCTS_PER_THREAD: usize = 400_000;

/// Dots of one row and a panel of columns.
#[derive(Clone, Copy)]
struct Lanes {
    /// Where the sums started.
    starts: [f64; LANES],
    sums: [f64; LANES],
    /// Sums of the remainders.
    lows: [f64; LANES],
    /// Σ |x·y|, if some value is negative.
    magnitudes: [f64; LANES],
}

impl Lanes {
    const ZERO: Self = Self { starts: [0.0; LANES], sums: [0.0; LANES], lows: [0.0; LANES], magnitudes: [0.0; LANES] };

    /// Lanes for a row whose largest magnitude is `x`, and columns whose largest are `y`, with sums of `k` products.
    fn starting(x: f64, y: &[f64], k: usize) -> Self {
        let mut lanes = Self::ZERO;
        for (start, y) in lanes.starts.iter_mut().zip(y) {
            let bound = x * y * (k as f64 + 1.0);
            let above = if bound.is_infinite() { MOST_START } else { exponent(bound) + 2 };
            *start = 1.5 * f64::from(above.clamp(LEAST_START, MOST_START)).exp2();
        }
        lanes.sums = lanes.starts;
        lanes
    }

    fn products(&self) -> [f64; LANES] {
        std::array::from_fn(|lane| (self.sums[lane] - self.starts[lane]) + self.lows[lane])
    }

    /// Adds x·y in each lane; `sizes` are |y|.
    #[inline(always)]
    fn add<const SIGNED: bool>(&mut self, x: f64, y: &[f64; LANES], sizes: &[f64; LANES]) {
        let size = x.abs();
        for lane in 0..LANES {
            let sum = x.mul_add(y[lane], self.sums[lane]);
            let added = sum - self.sums[lane];
            self.lows[lane] += x.mul_add(y[lane], -added);
            self.sums[lane] = sum;
            if SIGNED {
                self.magnitudes[lane] = size.mul_add(sizes[lane], self.magnitudes[lane]);
            }
        }
    }
}

/// The exponents that sums start at: below, remainders would underflow; above, sums would overflow.
const LEAST_START: i32 = -900;
const MOST_START: i32 = 1022;

fn largest_of_rows(a: &Matrix) -> Vec<f64> {
    let largest = |row: &[f64]| row.iter().fold(0f64, |largest, value| largest.max(value.abs()));
    if a.columns == 0 { vec![0.0; a.rows] } else { a.values.chunks_exact(a.columns).map(largest).collect() }
}

fn largest_of_columns(b: &Matrix) -> Vec<f64> {
    let mut largest = vec![0f64; b.columns];
    for row in b.values.chunks_exact(b.columns.max(1)) {
        largest.iter_mut().zip(row).for_each(|(largest, value)| *largest = largest.max(value.abs()));
    }
    largest
}

/// Multiplies rows of A by panels of columns of B. Without `SIGNED`, every value is positive. Returns the dots of a
/// panel, row after row, then those of the next panel.
struct Dots<'a, const SIGNED: bool> {
    a: &'a Matrix,
    b: &'a Matrix,
    /// The largest magnitudes of each row of A and of each column of B.
    largest: (&'a [f64], &'a [f64]),
    rows: Range<usize>,
    panels: Range<usize>,
}

impl<const SIGNED: bool> Vectorised for Dots<'_, SIGNED> {
    type Output = Vec<Lanes>;

    #[inline(always)]
    fn run(self) -> Vec<Lanes> {
        let Self { a, b, largest: (of_rows, of_columns), rows, panels } = self;
        let mut found = vec![Lanes::ZERO; rows.len() * panels.len()];
        let (mut part, mut sizes) = ([[0.0; LANES]; AT_ONCE], [[0.0; LANES]; AT_ONCE]);
        for (panel, found) in panels.zip(found.chunks_mut(rows.len().max(1))) {
            let first = panel * LANES;
            let count = LANES.min(b.columns - first);
            let starts =
                rows.clone().map(|row| Lanes::starting(of_rows[row], &of_columns[first..first + count], b.rows));
            found.iter_mut().zip(starts).for_each(|(lanes, start)| *lanes = start);
            for from in (0..b.rows).step_by(AT_ONCE) {
                let length = AT_ONCE.min(b.rows - from);
                for (line, row) in part[..length].iter_mut().zip(from..) {
                    line[..count].copy_from_slice(&b.values[row * b.columns + first..][..count]);
                }
                if SIGNED {
                    sizes.iter_mut().zip(&part).for_each(|(sizes, line)| *sizes = line.map(f64::abs));
                }
                let mut row = rows.start;
                for lanes in found.chunks_mut(ROWS) {
                    let x = |row: usize| &a.values[row * a.columns + from..][..length];
                    if let [one, other] = lanes {
                        // Copied, so that they stay in registers.
                        let (mut first, mut second) = (*one, *other);
                        for (((x, z), y), sizes) in x(row).iter().zip(x(row + 1)).zip(&part).zip(&sizes) {
                            first.add::<SIGNED>(*x, y, sizes);
                            second.add::<SIGNED>(*z, y, sizes);
                        }
                        (*one, *other) = (first, second);
                    } else {
                        for lanes in lanes {
                            let mut sums = *lanes;
                            let lines = x(row).iter().zip(&part).zip(&sizes);
                            lines.for_each(|((x, y), sizes)| sums.add::<SIGNED>(*x, y, sizes));
                            *lanes = sums;
                        }
                    }
                    row += ROWS;
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxprobe_api::Format;

    #[test]
    fn cancellation_does_not_hide_what_is_left() {
        let ones = Matrix::new(3, 1, vec![1.0; 3]).unwrap();
        let found = Reference::new(&Matrix::new(1, 3, vec![1e16, 1.0, -1e16]).unwrap(), &ones);
        assert_eq!((found.product, found.magnitudes), (vec![1.0], vec![2e16]));
        // (1 + ε)² − (1 + 2ε) = ε², which f64 loses of the product.
        let small = f64::from(-30).exp2();
        let one = 1.0 + small;
        let a = Matrix::new(1, 2, vec![one, -1.0]).unwrap();
        let b = Matrix::new(2, 1, vec![one, one + small]).unwrap();
        assert_eq!(Reference::new(&a, &b).product, vec![small * small]);
    }

    #[test]
    fn every_row_meets_every_column_whatever_their_number() {
        let values = |count: usize| (0..count).map(|at| f64::from(u32::try_from(at * 7 % 13).unwrap()) - 6.0).collect();
        for (m, n, k) in [(1, 1, 1), (3, 19, 5), (16, 8, 4), (2, 7, 0), (1, 70, 300), (33, 33, 257)] {
            let (a, b) = (Matrix::new(m, k, values(m * k)).unwrap(), Matrix::new(k, n, values(k * n)).unwrap());
            let reference = Reference::new(&a, &b);
            for at in 0..m * n {
                let products = (0..k).map(|l| a.values[at / n * k + l] * b.values[l * n + at % n]);
                let dot = products.fold(0.0, |sum, product| sum + product);
                assert_eq!(reference.product[at].to_bits(), dot.to_bits(), "{m}×{n}×{k}: {at}");
            }
        }
    }

    #[test]
    fn values_of_any_size_and_sign_are_added_as_integers_are() {
        let mut random = mxprobe_api::Random(5);
        for spread in [0, 29] {
            let mut draw = |count: usize| -> Vec<f64> {
                let mut value = || {
                    let size = f64::from(u32::try_from(random.bits() >> 40).unwrap()) - f64::from(1 << 23);
                    size * f64::from(random.between(0, spread)).exp2()
                };
                (0..count).map(|_| value()).collect()
            };
            let (m, n, k) = (3, 18, 200);
            let (a, b) = (Matrix::new(m, k, draw(m * k)).unwrap(), Matrix::new(k, n, draw(k * n)).unwrap());
            let reference = Reference::new(&a, &b);
            for at in 0..m * n {
                // Below 2^53 each, so that 200 products fit.
                #[expect(clippy::cast_possible_truncation, reason = "the values are small integers")]
                let products = (0..k).map(|l| a.values[at / n * k + l] as i128 * b.values[l * n + at % n] as i128);
                let (dot, sizes) = products.fold((0, 0), |(dot, sizes), p| (dot + p, sizes + p.abs()));
                assert_eq!(reference.product[at].to_bits(), (dot as f64).to_bits(), "{at}");
                assert!((reference.magnitudes[at] - sizes as f64).abs() <= sizes as f64 * 1e-13, "{at}");
            }
        }
    }

    #[test]
    fn a_nan_is_an_infinite_error() {
        let one = Matrix::new(1, 1, vec![1.0]).unwrap();
        let nan = Elements::from_bits(Format::F32, [0x7fc0_0000]);
        assert!(errors(&one, &one, &nan).componentwise.is_infinite());
    }
}
