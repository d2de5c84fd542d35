//! The exact product, nearly, and how far from it a computed one is.

use mxprobe_api::Elements;

use super::Matrix;

/// How far a computed product is from the exact one.
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
        let rows: Vec<&[f64]> = (0..a.rows).map(|row| &a.values[row * a.columns..][..a.columns]).collect();
        let blocks: Vec<Vec<[f64; LANES]>> = (0..b.columns).step_by(LANES).map(|first| block(b, first)).collect();
        let narrow = [a, b].into_iter().flat_map(|matrix| &matrix.values).all(|value| is_single(*value));
        let threads = super::threads();
        let per_thread = rows.len().div_ceil(threads).max(1);
        let mut dots: Vec<(f64, f64)> = Vec::with_capacity(rows.len() * b.columns);
        std::thread::scope(|scope| {
            let parts: Vec<_> = rows
                .chunks(per_thread)
                .map(|rows| {
                    let blocks = &blocks;
                    scope.spawn(move || {
                        let mut dots = vec![(0.0, 0.0); rows.len() * b.columns];
                        for (at, block) in blocks.iter().enumerate() {
                            let first = at * LANES;
                            for (row, dots) in rows.iter().zip(dots.chunks_mut(b.columns)) {
                                let found = if narrow {
                                    dot2(row, block, exact_product)
                                } else {
                                    dot2(row, block, two_product)
                                };
                                dots[first..].iter_mut().zip(found).for_each(|(to, dot)| *to = dot);
                            }
                        }
                        dots
                    })
                })
                .collect();
            for part in parts {
                dots.extend(part.join().expect("sums do not panic"));
            }
        });
        let (product, magnitudes) = dots.into_iter().unzip();
        Self { product, magnitudes }
    }

    /// How far a computed product is from this one.
    pub(super) fn errors(&self, computed: &Elements) -> Errors {
        let (mut componentwise, mut difference, mut norm) = (0f64, 0f64, 0f64);
        for (at, bits) in computed.iter().enumerate() {
            let error = (computed.format().to_f64(bits) - self.product[at]).abs();
            let relative = if self.magnitudes[at] > 0.0 { error / self.magnitudes[at] } else { error };
            // A NaN is no small error.
            componentwise = if relative.is_nan() { f64::INFINITY } else { componentwise.max(relative) };
            difference += error * error;
            norm += self.product[at] * self.product[at];
        }
        let normwise = if norm > 0.0 { (difference / norm).sqrt() } else { difference.sqrt() };
        Errors { componentwise, normwise }
    }
}

/// How far a computed product is from A·B.
#[must_use]
pub fn errors(a: &Matrix, b: &Matrix, computed: &Elements) -> Errors {
    Reference::new(a, b).errors(computed)
}

/// Columns whose dots are computed side by side, each by itself: one alone would wait for each of its own sums.
const LANES: usize = 8;

/// Columns of a matrix from `first` on; those beyond the last are +0.
fn block(b: &Matrix, first: usize) -> Vec<[f64; LANES]> {
    let count = LANES.min(b.columns - first);
    let line = |row: usize| {
        let mut lanes = [0.0; LANES];
        lanes[..count].copy_from_slice(&b.values[row * b.columns + first..][..count]);
        lanes
    };
    (0..b.rows).map(line).collect()
}

/// Σ x·y, compensated, and Σ |x·y|, of each column.
#[inline]
fn dot2(x: &[f64], block: &[[f64; LANES]], product_of: impl Fn(f64, f64) -> (f64, f64)) -> [(f64, f64); LANES] {
    let (mut sums, mut lows, mut magnitudes) = ([0f64; LANES], [0f64; LANES], [0f64; LANES]);
    for (x, y) in x.iter().zip(block) {
        for lane in 0..LANES {
            let (product, product_low) = product_of(*x, y[lane]);
            let sum = sums[lane];
            let next = sum + product;
            let back = next - sum;
            lows[lane] += (sum - (next - back)) + (product - back) + product_low;
            sums[lane] = next;
            magnitudes[lane] += product.abs();
        }
    }
    std::array::from_fn(|lane| (sums[lane] + lows[lane], magnitudes[lane]))
}

/// Whether f32 holds a value.
#[expect(clippy::float_cmp, clippy::cast_possible_truncation, reason = "exactly, or not")]
fn is_single(value: f64) -> bool {
    f64::from(value as f32) == value
}

/// The product of two f32 values, which f64 holds.
fn exact_product(x: f64, y: f64) -> (f64, f64) {
    (x * y, 0.0)
}

/// x·y and its rounding error, exactly but for underflow (Dekker; Veltkamp's splitting).
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
        let found = dot2(&[1e16, 1.0, -1e16], &block(&ones, 0), two_product);
        assert_eq!(found[..2], [(1.0, 2e16), (0.0, 0.0)]);
        let (product, low) = two_product(1.0 + f64::EPSILON, 1.0 + f64::EPSILON);
        assert_eq!((product, low), (1.0 + 2.0 * f64::EPSILON, f64::EPSILON * f64::EPSILON));
    }

    #[test]
    fn every_row_meets_every_column_whatever_their_number() {
        let values = |count: usize| (0..count).map(|at| f64::from(u32::try_from(at * 7 % 13).unwrap()) - 6.0).collect();
        for (m, n, k) in [(1, 1, 1), (3, 19, 5), (16, 8, 4), (2, 7, 0)] {
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
