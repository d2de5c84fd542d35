//! The nearly exact product, and the distance of a computed product from it.

use std::ops::Range;

use mxprobe_api::Elements;
use mxprobe_models::{Vectorised, vectorised};

use super::Matrix;

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
    /// A·B by compensated dot products (Ogita, Rump and Oishi, SISC 2005, Dot2): as if in twice f64's precision and
    /// rounded once; and |A|·|B| in f64.
    pub(super) fn new(a: &Matrix, b: &Matrix) -> Self {
        let narrow = [a, b].into_iter().flat_map(|matrix| &matrix.values).all(|value| is_single(*value));
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
                        let found = if narrow {
                            vectorised(Dots::<'_, true> { a, b, rows: rows_of, panels: panels_of })
                        } else {
                            vectorised(Dots::<'_, false> { a, b, rows: rows_of, panels: panels_of })
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
                        magnitudes[at..at + count].copy_from_slice(&dots.magnitudes[..count]);
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
    sums: [f64; LANES],
    /// The rounding errors of the sums and of the products.
    lows: [f64; LANES],
    /// Σ |x·y|.
    magnitudes: [f64; LANES],
}

impl Lanes {
    const ZERO: Self = Self { sums: [0.0; LANES], lows: [0.0; LANES], magnitudes: [0.0; LANES] };

    fn products(&self) -> [f64; LANES] {
        std::array::from_fn(|lane| self.sums[lane] + self.lows[lane])
    }

    /// Adds x·y in each lane, compensated.
    #[inline(always)]
    fn add<const NARROW: bool>(&mut self, x: f64, y: &[f64; LANES]) {
        let lanes = self.sums.iter_mut().zip(&mut self.lows).zip(&mut self.magnitudes);
        for (((sum, low), magnitude), y) in lanes.zip(y) {
            let (product, product_low) = if NARROW { (x * y, 0.0) } else { two_product(x, *y) };
            let next = *sum + product;
            let back = next - *sum;
            *low += (*sum - (next - back)) + (product - back) + product_low;
            *sum = next;
            *magnitude += product.abs();
        }
    }
}

/// Multiplies rows of A by panels of columns of B. With `NARROW`, f64 must hold every product exactly. Returns the dots
/// of a panel, row after row, then those of the next panel.
struct Dots<'a, const NARROW: bool> {
    a: &'a Matrix,
    b: &'a Matrix,
    rows: Range<usize>,
    panels: Range<usize>,
}

impl<const NARROW: bool> Vectorised for Dots<'_, NARROW> {
    type Output = Vec<Lanes>;

    #[inline(always)]
    fn run(self) -> Vec<Lanes> {
        let Self { a, b, rows, panels } = self;
        let mut found = vec![Lanes::ZERO; rows.len() * panels.len()];
        let mut part = [[0.0; LANES]; AT_ONCE];
        for (panel, found) in panels.zip(found.chunks_mut(rows.len().max(1))) {
            let first = panel * LANES;
            let count = LANES.min(b.columns - first);
            for from in (0..b.rows).step_by(AT_ONCE) {
                let length = AT_ONCE.min(b.rows - from);
                for (line, row) in part[..length].iter_mut().zip(from..) {
                    line[..count].copy_from_slice(&b.values[row * b.columns + first..][..count]);
                }
                let mut row = rows.start;
                for lanes in found.chunks_mut(ROWS) {
                    let x = |row: usize| &a.values[row * a.columns + from..][..length];
                    if let [one, other] = lanes {
                        // Copied, so that they stay in registers.
                        let (mut first, mut second) = (*one, *other);
                        for ((x, z), y) in x(row).iter().zip(x(row + 1)).zip(&part) {
                            first.add::<NARROW>(*x, y);
                            second.add::<NARROW>(*z, y);
                        }
                        (*one, *other) = (first, second);
                    } else {
                        for lanes in lanes {
                            let mut sums = *lanes;
                            x(row).iter().zip(&part).for_each(|(x, y)| sums.add::<NARROW>(*x, y));
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

/// Whether f32 holds a value exactly.
#[expect(clippy::float_cmp, clippy::cast_possible_truncation, reason = "exactly, or not")]
fn is_single(value: f64) -> bool {
    f64::from(value as f32) == value
}

/// x·y and its rounding error, exact except for underflow (Dekker; Veltkamp's splitting).
#[inline(always)]
fn two_product(x: f64, y: f64) -> (f64, f64) {
    const SPLITTER: f64 = 134_217_729.0; // 2^27 + 1
    let halves = |value: f64| {
        let wide = SPLITTER * value;
        let high = wide - (wide - value);
        (high, value - high)
    };
    let product = x * y;
    let ((x_high, x_low), (y_high, y_low)) = (halves(x), halves(y));
    (product, x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low))
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
        let (product, low) = two_product(1.0 + f64::EPSILON, 1.0 + f64::EPSILON);
        assert_eq!((product, low), (1.0 + 2.0 * f64::EPSILON, f64::EPSILON * f64::EPSILON));
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
    fn a_nan_is_an_infinite_error() {
        let one = Matrix::new(1, 1, vec![1.0]).unwrap();
        let nan = Elements::from_bits(Format::F32, [0x7fc0_0000]);
        assert!(errors(&one, &one, &nan).componentwise.is_infinite());
    }
}
