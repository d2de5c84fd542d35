//! Reproducible random matrices.

use rand_mt::Mt;

use super::Matrix;

/// NumPy's legacy stream, `numpy.random.RandomState(seed).random_sample()`: the 32-bit MT19937, seeded with Knuth's
/// initialisation, two draws per value.
pub struct Uniform {
    twister: Mt,
}

impl Uniform {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self { twister: Mt::new(seed) }
    }

    /// The next value, in [0, 1): a multiple of 2^−53.
    pub fn next_value(&mut self) -> f64 {
        let high = f64::from(self.twister.next_u32() >> 5);
        let low = f64::from(self.twister.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    /// A matrix of values in (low, high], computed as high − (high − low)·u and rounded to f32 if `narrow`.
    #[expect(clippy::cast_possible_truncation, reason = "f32 is asked for")]
    pub fn matrix(&mut self, rows: usize, columns: usize, low: f64, high: f64, narrow: bool) -> Matrix {
        let mut value = || {
            let value = high - (high - low) * self.next_value();
            if narrow { f64::from(value as f32) } else { value }
        };
        Matrix { rows, columns, values: (0..rows * columns).map(|_| value()).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_possible_truncation, clippy::float_cmp, reason = "the same bits")]
    fn the_stream_is_numpys() {
        // numpy 1.26: RandomState(12345).random_sample(4).
        let mut stream = Uniform::new(12345);
        let expected =
            [0.929_616_092_817_147_9, 0.316_375_554_581_785_9, 0.183_918_811_677_094_45, 0.204_560_278_553_039_7];
        for value in expected {
            assert_eq!(stream.next_value(), value);
        }
        let matrix = Uniform::new(1).matrix(2, 3, -0.5, 0.5, true);
        assert!(matrix.values.iter().all(|value| *value > -0.5 && *value <= 0.5));
        assert!(matrix.values.iter().all(|value| f64::from(*value as f32) == *value));
    }
}
