//! The nearly exact product, and the distance of a computed product from it.

use mxprobe_api::Elements;
use mxprobe_models::many::product;

use super::Matrix;

/// The distance of a computed product from the exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// max over i, j of |Ĉ − C| / (|A|·|B|).
    pub componentwise: f64,
    /// ‖Ĉ − C‖ / ‖C‖ in Frobenius norms.
    pub normwise: f64,
}

/// The parts of D − A·B, each relative to |A|·|B| componentwise and to A·B normwise. They add up: none is larger than
/// the sum of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// D − A·B.
    pub total: Errors,
    /// Â·B̂ − A·B, where Â and B̂ are the sums of the words of A and B: the rounding of inputs.
    pub inputs: Errors,
    /// The sum of the products of words that are not computed.
    pub left_out: Errors,
    /// D − the exact sum of the products of words that are computed: the loss in the unit and in additions outside it.
    pub unit: Errors,
}

/// The product of two matrices and of their magnitudes.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    product: Vec<f64>,
    magnitudes: Vec<f64>,
}

impl Reference {
    /// A·B as if in twice f64's precision and rounded once, and |A|·|B| in f64.
    pub(super) fn new(a: &Matrix, b: &Matrix) -> Self {
        let (product, magnitudes) = product(&a.values, &b.values, (a.rows, b.columns, a.columns));
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
