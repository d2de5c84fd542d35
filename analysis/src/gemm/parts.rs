//! The parts of a product's error: from the words, from the products of words that are left out, and from the unit.

use std::borrow::Cow;

use mxprobe_api::{BlockScale, Elements, Error, Format, Rounding};
use mxprobe_models::many::decode;

use super::{
    Algorithm, Matrix, Method, Parts, Products, Rounded, Scaling, Split, Unit,
    multiply::{OOTOMO_LIFT, words_of},
    quick::{self, Word, Words},
    reference::Reference,
    words::{scaled, words},
};

/// The parts of the error of D = A·B, as [`multiply`](super::multiply()) computed it without a C.
///
/// Products of f32 values and their words are exact in f64; sums are compensated.
///
/// # Errors
/// [`Error::is_invalid`] if the lengths do not fit.
pub fn parts(unit: &Unit, a: &Matrix, b: &Matrix, algorithm: &Algorithm, d: &Elements) -> Result<Parts, Error> {
    if a.columns != b.rows || d.len() != a.rows * b.columns {
        return Err(Error::invalid(format!(
            "A is {}×{}, B is {}×{}, and D has {} elements",
            a.rows,
            a.columns,
            b.rows,
            b.columns,
            d.len()
        )));
    }
    let id = unit.id();
    let split = Split { lift_bits: lift_bits(algorithm), ..algorithm.split };
    let words = [words_of(a, id, &split, true), words_of(b, id, &split, false)];
    Ok(parts_of_words(unit, (a, b), &words, algorithm, d))
}

pub(super) fn lift_bits(algorithm: &Algorithm) -> i32 {
    if algorithm.method == Method::Ootomo { OOTOMO_LIFT } else { algorithm.split.lift_bits }
}

/// Like [`parts`], from the words of A and of B.
pub fn parts_of_words(
    unit: &Unit,
    (a, b): (&Matrix, &Matrix),
    rounded: &[Rounded; 2],
    algorithm: &Algorithm,
    d: &Elements,
) -> Parts {
    let words = words_used(unit, (a, b), rounded, algorithm);
    quick::parts((a, b), &words, d).unwrap_or_else(|| nearly_exact((a, b), &words, d))
}

/// The values of words, and how an algorithm uses them.
pub(super) fn words_used<'a>(
    unit: &Unit,
    (a, b): (&Matrix, &Matrix),
    [of_a, of_b]: &'a [Rounded; 2],
    algorithm: &Algorithm,
) -> Words<'a> {
    let is_inexact = |of: &Rounded| of.inexact.last().is_some_and(|count| *count > 0);
    let inexact = is_inexact(of_a) || is_inexact(of_b);
    let leaves_out = algorithm.split.words > 1
        && algorithm.method != Method::Markidis
        && (algorithm.method == Method::Ootomo || algorithm.products == Products::Significant);
    let factors = (lift_bits(algorithm), unit.id().block_scale());
    let of = |matrix: &Matrix, of, by_rows| {
        let is_needed = inexact || leaves_out;
        if is_needed { unlifted(of, (matrix.rows, matrix.columns), by_rows, factors) } else { Vec::new() }
    };
    Words { of_a: of(a, of_a, true), of_b: of(b, of_b, false), inexact, leaves_out }
}

/// The parts from nearly exact dots of every element.
pub(super) fn nearly_exact((a, b): (&Matrix, &Matrix), words: &Words<'_>, d: &Elements) -> Parts {
    let exact = Reference::new(a, b);
    let of = |words: &[Word<'_>], matrix: &Matrix| words.iter().map(|word| word.matrix(matrix.rows)).collect();
    let (in_a, in_b): (Vec<_>, Vec<_>) = (of(&words.of_a, a), of(&words.of_b, b));
    let rounded = if words.inexact { Reference::new(&sum(&in_a), &sum(&in_b)) } else { exact.clone() };
    let given = if words.leaves_out { significant(&in_a, &in_b) } else { rounded.clone() };
    Parts {
        total: exact.errors(d),
        inputs: exact.errors_of(&rounded, &exact),
        left_out: exact.errors_of(&given, &rounded),
        unit: exact.errors_against(d, &given),
    }
}

/// Σ Aᵢ·Bⱼ over i + j ≤ p + 1, as one product: A₁ | … | Aₚ times the sums of the first p, …, 1 words of B.
fn significant(a: &[Matrix], b: &[Matrix]) -> Reference {
    let (p, Matrix { rows, columns: k, .. }) = (a.len(), &a[0]);
    let mut left = Matrix::zeros(*rows, p * k);
    for (word, matrix) in a.iter().enumerate() {
        for row in 0..*rows {
            left.values[row * p * k + word * k..][..*k].copy_from_slice(&matrix.values[row * k..][..*k]);
        }
    }
    let values = (0..p).flat_map(|word| sum(&b[..p - word]).into_owned().values).collect();
    Reference::new(&left, &Matrix { rows: p * k, columns: b[0].columns, values })
}

/// The sum of words. It is exact, because each word is a part of the bits of a value of f64.
fn sum(words: &[Matrix]) -> Cow<'_, Matrix> {
    let mut total = Cow::Borrowed(&words[0]);
    for word in &words[1..] {
        let total = total.to_mut();
        total.values.iter_mut().zip(&word.values).for_each(|(total, value)| *total += value);
    }
    total
}

/// The values that the words contribute, decoded when they are read if that is all it takes.
fn unlifted<'a>(
    of: &'a Rounded,
    lengths: (usize, usize),
    by_rows: bool,
    (lift, scale): (i32, Option<BlockScale>),
) -> Vec<Word<'a>> {
    if lift == 0 && scale.is_none() && of.line_exponents.iter().all(|exponent| *exponent == 0) {
        return of.words.iter().map(|word| Word::Elements(word, lengths.1)).collect();
    }
    values_of_words(of, lengths, by_rows, (lift, scale)).into_iter().map(Word::Values).collect()
}

/// The values that the words contribute: with scales, without the lift, times the powers of two of lines.
fn values_of_words(
    of: &Rounded,
    (rows, columns): (usize, usize),
    by_rows: bool,
    (lift, scale): (i32, Option<BlockScale>),
) -> Vec<Matrix> {
    let exponent = |at: usize| of.line_exponents[if by_rows { at / columns.max(1) } else { at % columns.max(1) }];
    let value_of = |(word, elements): (usize, &Elements)| {
        let mut values = Vec::new();
        decode(elements.format(), elements.bytes(), &mut values);
        let lifted = lift * i32::try_from(word).expect("a few words");
        if lifted == 0 && scale.is_none() && of.line_exponents.iter().all(|exponent| *exponent == 0) {
            return Matrix { rows, columns, values };
        }
        for (at, value) in values.iter_mut().enumerate() {
            *value = scaled(*value, exponent(at) - lifted);
            if let Some(scale) = scale {
                let (row, column) = (at / columns, at % columns);
                let place = if by_rows {
                    row * columns.div_ceil(scale.block) + column / scale.block
                } else {
                    row / scale.block * columns + column
                };
                *value *= scale.format.to_f64(of.scales[word].get(place));
            }
        }
        Matrix { rows, columns, values }
    };
    of.words.iter().enumerate().map(value_of).collect()
}

impl Matrix {
    /// The nearest matrix whose elements are sums of this many words of a format, each rounded to nearest from the
    /// remainder of those before it: words of that format hold it exactly.
    #[must_use]
    pub fn in_words(&self, format: Format, count: usize) -> Self {
        let split = Split { words: count, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };
        let found = words(self, format, &split, true);
        sum(&values_of_words(&found, (self.rows, self.columns), true, (0, None))).into_owned()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use mxprobe_models::load;

    use super::*;
    use crate::gemm::{Accumulation, Uniform, multiply};

    const PLAIN: Split = Split { words: 1, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };
    pub(in crate::gemm) const MULTIWORD: Algorithm = Algorithm {
        method: Method::Multiword,
        split: PLAIN,
        products: Products::Significant,
        accumulation: Accumulation::Unit,
    };

    /// Every way to use words.
    pub(in crate::gemm) const WAYS: [Algorithm; 7] = [
        MULTIWORD,
        Algorithm { split: Split { words: 2, ..PLAIN }, ..MULTIWORD },
        Algorithm { split: Split { words: 2, ..PLAIN }, products: Products::All, ..MULTIWORD },
        Algorithm { split: Split { words: 3, lift_bits: 11, ..PLAIN }, ..MULTIWORD },
        Algorithm { split: Split { words: 2, scaling: Scaling::Lines, ..PLAIN }, ..MULTIWORD },
        Algorithm { split: Split { words: 2, ..PLAIN }, method: Method::Markidis, ..MULTIWORD },
        Algorithm { split: Split { words: 2, ..PLAIN }, method: Method::Ootomo, ..MULTIWORD },
    ];

    fn unit(model: &str, id: &str) -> Unit {
        Unit::of_model(&load(model).unwrap(), &id.parse().unwrap()).unwrap()
    }

    fn drawn(k: usize) -> (Matrix, Matrix) {
        let mut uniform = Uniform::new(4);
        (uniform.matrix(5, k, -0.5, 0.5, true), uniform.matrix(k, 7, -0.5, 0.5, true))
    }

    #[test]
    fn the_error_of_a_unit_that_adds_exactly_is_that_of_rounding_inputs() {
        // A product of two values of f16, and a sum of two such products, are exact in f32.
        let unit = unit("mi100", "mfma.m32n32k8.f32.f16.f16.f32");
        let (a, b) = (Matrix::new(1, 1, vec![1.0 / 3.0]).unwrap(), Matrix::new(1, 1, vec![3.0]).unwrap());
        let d = multiply(&unit, &a, &b, None, &MULTIWORD).unwrap().d;
        let found = parts(&unit, &a, &b, &MULTIWORD, &d).unwrap();
        assert_eq!((found.unit.componentwise, found.left_out.componentwise), (0.0, 0.0));
        assert_eq!(found.inputs, found.total);
        assert!(found.total.componentwise > 1e-5);
    }

    #[test]
    fn parts_of_an_error_add_up_to_it_for_every_way_to_use_words() {
        let unit = unit("v100", "mma.m8n8k4.f32.f16.f16.f32");
        let (a, b) = drawn(200);
        for algorithm in WAYS {
            let d = multiply(&unit, &a, &b, None, &algorithm).unwrap().d;
            let Parts { total, inputs, left_out, unit: of_unit } = parts(&unit, &a, &b, &algorithm, &d).unwrap();
            let sum = [inputs, left_out, of_unit].map(|part| part.componentwise);
            assert!(total.componentwise <= sum.iter().sum::<f64>() * 1.001, "{algorithm:?}: {total:?} {sum:?}");
            let is_partial = split_leaves_out(&algorithm);
            assert_eq!(left_out.componentwise > 0.0, is_partial, "{algorithm:?}: {left_out:?}");
            if algorithm.split.words == 1 {
                assert!(inputs.componentwise > 100.0 * of_unit.componentwise, "{inputs:?} {of_unit:?}");
            }
        }
    }

    fn split_leaves_out(algorithm: &Algorithm) -> bool {
        algorithm.split.words > 1 && algorithm.method != Method::Markidis && algorithm.products == Products::Significant
    }

    #[test]
    fn elements_drawn_as_sums_of_words_leave_an_error_of_the_unit_alone() {
        let (model, id) = ("a100", "mma.m16n8k16.f32.f16.f16.f32");
        let unit = unit(model, id);
        let (a, b) = drawn(128);
        for words in 1..=2 {
            let (a, b) = (a.in_words(Format::F16, words), b.in_words(Format::F16, words));
            let algorithm = Algorithm { split: Split { words, ..PLAIN }, products: Products::All, ..MULTIWORD };
            let product = multiply(&unit, &a, &b, None, &algorithm).unwrap();
            assert_eq!((product.inexact_a, product.inexact_b), (0, 0), "{words} words");
            let found = parts(&unit, &a, &b, &algorithm, &product.d).unwrap();
            assert_eq!((found.inputs.componentwise, found.unit), (0.0, found.total), "{words} words");
        }
        // Elements are the originals rounded to 22 bits or to the smallest subnormal of f16.
        let two = a.in_words(Format::F16, 2);
        for (two, one) in two.values.iter().zip(&a.values) {
            assert!((two - one).abs() <= (one.abs() * f64::from(-22).exp2()).max(f64::from(-25).exp2()), "{two} {one}");
        }
    }

    #[test]
    fn words_with_scales_count_with_their_scales() {
        let unit = unit("rtx5090", "mma.m16n8k32.f32.e4m3.e4m3.f32.block32.ue8m0");
        let (a, b) = drawn(70);
        let algorithm = Algorithm { split: Split { words: 2, ..PLAIN }, ..MULTIWORD };
        let d = multiply(&unit, &a, &b, None, &algorithm).unwrap().d;
        let found = parts(&unit, &a, &b, &algorithm, &d).unwrap();
        assert!(found.inputs.componentwise > 1e-4 && found.unit.componentwise < 1e-5, "{found:?}");
    }
}
