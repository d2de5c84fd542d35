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
        let columns: Vec<Vec<f64>> =
            (0..b.columns).map(|column| (0..b.rows).map(|row| b.values[row * b.columns + column]).collect()).collect();
        let rows: Vec<&[f64]> = a.values.chunks(a.columns.max(1)).collect();
        let narrow = [a, b].into_iter().flat_map(|matrix| &matrix.values).all(|value| is_single(*value));
        let threads = super::threads();
        let per_thread = rows.len().div_ceil(threads).max(1);
        let mut dots: Vec<(f64, f64)> = Vec::with_capacity(rows.len() * columns.len());
        std::thread::scope(|scope| {
            let parts: Vec<_> = rows
                .chunks(per_thread)
                .map(|rows| {
                    let columns = &columns;
                    scope.spawn(move || {
                        let dot = |row: &[f64], column: &[f64]| {
                            if narrow { dot2(row, column, exact_product) } else { dot2(row, column, two_product) }
                        };
                        rows.iter().flat_map(|row| columns.iter().map(|column| dot(row, column))).collect::<Vec<_>>()
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

/// Σ x·y, compensated, and Σ |x·y|.
#[inline]
fn dot2(x: &[f64], y: &[f64], product_of: impl Fn(f64, f64) -> (f64, f64)) -> (f64, f64) {
    let (mut sum, mut low, mut magnitude) = (0f64, 0f64, 0f64);
    for (x, y) in x.iter().zip(y) {
        let (product, product_low) = product_of(*x, *y);
        let next = sum + product;
        let back = next - sum;
        low += (sum - (next - back)) + (product - back) + product_low;
        sum = next;
        magnitude += product.abs();
    }
    (sum + low, magnitude)
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
        let (sum, magnitude) = dot2(&[1e16, 1.0, -1e16], &[1.0, 1.0, 1.0], two_product);
        assert_eq!((sum, magnitude), (1.0, 2e16));
        let (product, low) = two_product(1.0 + f64::EPSILON, 1.0 + f64::EPSILON);
        assert_eq!((product, low), (1.0 + 2.0 * f64::EPSILON, f64::EPSILON * f64::EPSILON));
    }

    #[test]
    fn a_nan_is_an_infinite_error() {
        let one = Matrix::new(1, 1, vec![1.0]).unwrap();
        let nan = Elements::from_bits(Format::F32, [0x7fc0_0000]);
        assert!(errors(&one, &one, &nan).componentwise.is_infinite());
    }
}
