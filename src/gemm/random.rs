//! Reproducible random matrices.

use mxprobe_models::many;

use super::Matrix;

/// NumPy's legacy stream, `numpy.random.RandomState(seed).random_sample()`.
pub struct Uniform(many::Uniform);

impl Uniform {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self(many::Uniform::new(seed))
    }

    /// The next value, in [0, 1): a multiple of 2^−53.
    pub fn next_value(&mut self) -> f64 {
        self.0.next_value()
    }

    /// A matrix of values in (low, high], computed as high − (high − low)·u and rounded to f32 if `narrow`.
    pub fn matrix(&mut self, rows: usize, columns: usize, low: f64, high: f64, narrow: bool) -> Matrix {
        let mut drawn = Matrix::zeros(rows, columns);
        self.0.fill(low, high, narrow, &mut drawn.values);
        drawn
    }
}
