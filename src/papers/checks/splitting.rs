//! Matrices in words: the remainders, the sizes of the words, and the number of their products.

use mxprobe_api::{Error, Format, OperationId, Rounding};
use serde::Deserialize;

use crate::papers::computed::Computed;
use crate::{
    gemm::{
        Accumulation, Algorithm, Interval, Matrix, Method, Products, Scaling, Split, Theory, Uniform, Unit, multiply,
        words,
    },
    papers::Target,
};

/// Words of drawn elements.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Splitting {
    format: String,
    words: u32,
    asks: Asks,
}

/// The property of words to check.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asks {
    /// (2.3): the remainder is at most u^p·|A|.
    Left,
    /// (2.6): |Aᵢ|·|Bⱼ| is at most u^(i + j − 2)·(1 + u)²·|A|·|B|.
    Products,
}

/// The number of elements. They are in (0.5, 1], so none of their words underflows.
const ELEMENTS: usize = 10_000;

impl Splitting {
    pub(super) fn compute(&self) -> Result<Computed, Error> {
        let format = Format::named(&self.format)?;
        let count = usize::try_from(self.words).map_err(|error| Error::invalid(error.to_string()))?;
        let none = || Error::invalid(format!("{format} is not a floating-point format"));
        let theory = Theory::of(format, count, Accumulation::Unit).ok_or_else(none)?;
        let matrix = Uniform::new(1).matrix(1, ELEMENTS, 0.5, 1.0, true);
        let split = Split { words: count, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };
        let found = words(&matrix, format, &split, true);
        let word = |of: usize, at: usize| format.to_f64(found.words[of].get(at));
        let most = |value: &dyn Fn(usize) -> f64| (0..ELEMENTS).map(value).fold(0.0, f64::max);
        match self.asks {
            Asks::Left => {
                let left = |at: usize| {
                    let rest = (0..count).fold(matrix.values[at], |rest, of| rest - word(of, at));
                    rest.abs() / matrix.values[at].abs()
                };
                let (left, bound) = (most(&left), theory.low.powi(self.words.cast_signed()));
                Ok(Computed { text: format!("{left:.2e} at the most, of {bound:.2e}"), agrees: left <= bound })
            }
            Asks::Products => {
                let mut nearest = 0f64;
                for i in 1..=self.words {
                    let of = usize::try_from(i - 1).map_err(|error| Error::invalid(error.to_string()))?;
                    let size = most(&|at| word(of, at).abs() / matrix.values[at].abs());
                    // |B₁| reaches its bound if it is rounded up, so i alone decides.
                    nearest = nearest.max(size / (theory.word_product(i, 1) / (1.0 + theory.low)));
                }
                Ok(Computed { text: format!("{nearest:.4} of the bound at the most"), agrees: nearest <= 1.0 })
            }
        }
    }
}

/// The number of products of words that an algorithm takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// A pattern of the operation.
    operation: String,
    words: usize,
    #[serde(default)]
    all_products: bool,
    /// The expected number.
    products: usize,
}

impl Count {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        let asked = target.asked()?;
        let id: OperationId = target.operation(&asked, &self.operation, 0)?.id;
        let unit = Unit::new(asked.device.clone(), &id)?;
        let (low, high) = Interval::Positive.ends();
        let mut uniform = Uniform::new(1);
        let mut drawn = || -> Matrix { uniform.matrix(4, 4, low, high, true) };
        let split = Split { words: self.words, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };
        let products = if self.all_products { Products::All } else { Products::Significant };
        let algorithm = Algorithm { method: Method::Multiword, split, products, accumulation: Accumulation::Unit };
        let found = multiply(&unit, &drawn(), &drawn(), None, &algorithm)?.products;
        Ok(Computed { text: format!("{found} products"), agrees: found == self.products })
    }
}
