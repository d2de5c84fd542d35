//! The parts of the error of a large product, from plain products.

use mxprobe_api::{Elements, Format};
use mxprobe_models::many::{
    Arithmetic, Distance, Factors, Plain, Question, Rows, Signed, Spread, decode_into, distances, largest_ratio,
    sums_are_exact,
};

use super::{Errors, Matrix, Parts};

/// The words of A and of B, and which of them are multiplied. Without words if their sums are A and B and all their products
/// are computed.
pub(super) struct Words<'a> {
    pub(super) of_a: Vec<Word<'a>>,
    pub(super) of_b: Vec<Word<'a>>,
    /// Whether their sums differ from A or B.
    pub(super) inexact: bool,
    /// Whether only the products (i, j) with i + j ≤ p + 1 are computed.
    pub(super) leaves_out: bool,
}

/// The values of a word.
pub(super) enum Word<'a> {
    /// Those of a matrix of elements with this many columns.
    Elements(&'a Elements, usize),
    /// Others, which have scales or are lifted.
    Values(Matrix),
}

impl Word<'_> {
    /// All values.
    pub(super) fn matrix(&self, rows: usize) -> Matrix {
        match self {
            Self::Elements(elements, columns) => Matrix::of(rows, *columns, elements),
            Self::Values(matrix) => matrix.clone(),
        }
    }
}

impl Rows for Word<'_> {
    fn read(&self, row: usize, column: usize, into: &mut [f64]) {
        match self {
            Self::Elements(elements, columns) => {
                let size = elements.format().storage_bytes();
                let bytes = &elements.bytes()[(row * columns + column) * size..][..into.len() * size];
                decode_into(elements.format(), bytes, into);
            }
            Self::Values(matrix) => {
                into.copy_from_slice(&matrix.values[row * matrix.columns + column..][..into.len()]);
            }
        }
    }
}

/// The sum of words, which is exact, because each word is a part of the bits of a value of f64.
struct Sum<'a>(&'a [Word<'a>]);

impl Rows for Sum<'_> {
    fn read(&self, row: usize, column: usize, into: &mut [f64]) {
        let (first, rest) = self.0.split_first().expect("at least one word");
        first.read(row, column, into);
        let mut more = vec![0.0; if rest.is_empty() { 0 } else { into.len() }];
        for word in rest {
            word.read(row, column, &mut more);
            into.iter_mut().zip(&more).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// A₂ | … | Aₚ.
struct Beside<'a>(&'a [Word<'a>], usize);

impl Rows for Beside<'_> {
    fn read(&self, row: usize, column: usize, into: &mut [f64]) {
        let Self(words, columns) = *self;
        let mut at = 0;
        while at < into.len() {
            let (word, within) = ((column + at) / columns, (column + at) % columns);
            let count = (columns - within).min(into.len() - at);
            words[word].read(row, within, &mut into[at..][..count]);
            at += count;
        }
    }
}

/// The sums of the last 1, …, p − 1 words of B, one below the other.
struct Below<'a>(&'a [Word<'a>], usize);

impl Rows for Below<'_> {
    fn read(&self, row: usize, column: usize, into: &mut [f64]) {
        let Self(words, rows) = *self;
        Sum(&words[words.len() - 1 - row / rows..]).read(row % rows, column, into);
    }
}

/// Below this many products, nearly exact dots take no longer.
const FEWEST_PRODUCTS: usize = 1 << 24;

/// Below this many rows or columns, too.
const FEWEST_LINES: usize = 48;

/// The longest sums for which rows of A are packed, which takes as much memory as these rows.
const LONGEST_SUM: usize = 1 << 16;

/// Magnitudes whose products and their sums are normal values of f32.
const LEAST: f64 = 1.0 / (1u64 << 60) as f64;
const LARGEST: f64 = (1u64 << 50) as f64;

/// The parts of the error of D; `None` if they are better computed from nearly exact products: D has the precision of
/// these, the matrices are small, sums are long, or a loss of f64 may be seen in the errors.
pub(super) fn parts((a, b): (&Matrix, &Matrix), words: &Words<'_>, d: &Elements) -> Option<Parts> {
    let (m, n, k) = (a.rows, b.columns, a.columns);
    let is_small = m.min(n) < FEWEST_LINES || m * n * k < FEWEST_PRODUCTS;
    if is_small || k > LONGEST_SUM || d.format() == Format::F64 { None } else { parts_of_any(a, b, words, d) }
}

fn parts_of_any(a: &Matrix, b: &Matrix, words: &Words<'_>, d: &Elements) -> Option<Parts> {
    let (m, n, k) = (a.rows, b.columns, a.columns);
    let (of_a, of_b) = (Plain { values: &a.values, columns: k }, Plain { values: &b.values, columns: n });
    let (spread_a, spread_b) = (Spread::of(&of_a, (m, k)), Spread::of(&of_b, (k, n)));
    let is_normal = |spread: Spread| spread.is_finite && spread.least >= LEAST && spread.largest <= LARGEST;
    if !is_normal(spread_a) || !is_normal(spread_b) {
        return None;
    }
    let values = |a, b, k| Factors { a, b, k, arithmetic: Arithmetic::Values };
    let loss = |factors: &Factors<'_>, spreads: (Spread, Spread)| {
        let is_exact = sums_are_exact((factors.a, spreads.0), (factors.b, spreads.1), (m, n, factors.k));
        if is_exact { 0.0 } else { factors.loss() }
    };
    let mut products = vec![values(&of_a, &of_b, k)];
    let mut losses = vec![loss(&products[0], (spread_a, spread_b))];
    let (in_a, in_b) = (Sum(&words.of_a), Sum(&words.of_b));
    if words.inexact {
        let rounded = values(&in_a, &in_b, k);
        let larger = largest_ratio(&in_a, &of_a, (m, k)) * largest_ratio(&in_b, &of_b, (k, n));
        losses.push(loss(&rounded, (Spread::of(&in_a, (m, k)), Spread::of(&in_b, (k, n)))) * larger);
        products.push(rounded);
    }
    let rounded = products.len() - 1;
    let (beside, below) = (Beside(words.of_a.get(1..).unwrap_or_default(), k), Below(&words.of_b, k));
    if words.leaves_out {
        let left_out = values(&beside, &below, k * beside.0.len());
        let ratios = beside.0.iter().enumerate().map(|(at, word)| {
            let rest = Sum(&words.of_b[words.of_b.len() - 1 - at..]);
            largest_ratio(word, &of_a, (m, k)) * largest_ratio(&rest, &of_b, (k, n))
        });
        losses.push(left_out.loss() * ratios.sum::<f64>());
        products.push(left_out);
    }
    let sizes = if spread_a.is_signed || spread_b.is_signed {
        products.push(Factors { arithmetic: Arithmetic::Sizes, ..products[0] });
        losses.push(products[products.len() - 1].loss());
        products.len() - 1
    } else {
        0
    };
    let signed = |given, products: &[(usize, f64)]| Signed { given, products: products.to_vec() };
    let mut of_unit = vec![(rounded, -1.0)];
    let mut wanted = vec![signed(true, &[(0, -1.0)])];
    if words.leaves_out {
        of_unit.push((rounded + 1, 1.0));
        wanted.push(signed(false, &[(rounded + 1, 1.0)]));
    }
    if words.inexact {
        wanted.push(signed(false, &[(rounded, 1.0), (0, -1.0)]));
    }
    wanted.push(signed(true, &of_unit));
    let given = Word::Elements(d, n);
    let question = Question { given: &given, products: &products, sizes, signed: &wanted, loss: &losses };
    let mut found = distances(&question, (m, n))?.into_iter().map(Errors::from);
    let mut next = |is_some: bool| if is_some { found.next() } else { Some(Errors::ZERO) };
    let (total, left_out, inputs) = (next(true)?, next(words.leaves_out)?, next(words.inexact)?);
    Some(Parts { total, inputs, left_out, unit: next(true)? })
}

impl Errors {
    const ZERO: Self = Self { componentwise: 0.0, normwise: 0.0 };
}

impl From<Distance> for Errors {
    fn from(Distance { componentwise, normwise }: Distance) -> Self {
        Self { componentwise, normwise }
    }
}

#[cfg(test)]
mod tests {
    use mxprobe_models::load;

    use super::*;
    use crate::gemm::{
        Algorithm, Split, Uniform, Unit,
        multiply::{multiply, words_of},
        parts::{
            lift_bits, nearly_exact,
            tests::{MULTIWORD, WAYS},
            words_used,
        },
    };

    /// Checks that plain products give the parts that nearly exact dots give.
    fn check((model, id): (&str, &str), algorithm: &Algorithm, (a, b): (&Matrix, &Matrix)) {
        let unit = Unit::of_model(&load(model).unwrap(), &id.parse().unwrap()).unwrap();
        let d = multiply(&unit, a, b, None, algorithm).unwrap().d;
        let split = Split { lift_bits: lift_bits(algorithm), ..algorithm.split };
        let rounded = [words_of(a, unit.id(), &split, true), words_of(b, unit.id(), &split, false)];
        let words = words_used(&unit, (a, b), &rounded, algorithm);
        let plain = parts_of_any(a, b, &words, &d).expect("errors far above those of f64");
        let exact = nearly_exact((a, b), &words, &d);
        for (plain, exact, name) in [
            (plain.total, exact.total, "total"),
            (plain.inputs, exact.inputs, "inputs"),
            (plain.left_out, exact.left_out, "left out"),
            (plain.unit, exact.unit, "unit"),
        ] {
            // Nearly exact dots of what is left out are a difference of two roundings to f64.
            let is_close = |one: f64, other: f64, most: f64| {
                one.to_bits() == other.to_bits() || (one - other).abs() <= other * most + 4.0 * f64::EPSILON
            };
            assert!(is_close(plain.componentwise, exact.componentwise, 1e-9), "{name}, {id}: {plain:?} {exact:?}");
            assert!(is_close(plain.normwise, exact.normwise, 1e-5), "{name}, {id}: {plain:?} {exact:?}");
        }
    }

    fn drawn((m, n, k): (usize, usize, usize), low: f64) -> (Matrix, Matrix) {
        let mut uniform = Uniform::new(4);
        (uniform.matrix(m, k, low, 1.0, true), uniform.matrix(k, n, low, 1.0, true))
    }

    #[test]
    fn plain_products_give_the_parts_of_nearly_exact_dots_for_every_way_to_use_words() {
        let h100 = ("h100", "mma.m16n8k16.f32.f16.f16.f32");
        for (lengths, low) in [((50, 60, 300), 0.0), ((50, 60, 300), -1.0), ((193, 225, 97), -1.0)] {
            let (a, b) = drawn(lengths, low);
            for algorithm in WAYS {
                check(h100, &algorithm, (&a, &b));
            }
            check(("rtx5090", "mma.m16n8k32.f32.e4m3.e4m3.f32.block32.ue8m0"), &MULTIWORD, (&a, &b));
            check(h100, &MULTIWORD, (&a.in_words(Format::F16, 1), &b.in_words(Format::F16, 1)));
        }
    }

    #[test]
    fn exact_results_and_infinite_ones_are_seen() {
        let integers = |rows: usize, columns: usize, scale: f64| {
            let values = (0..rows * columns).map(|at| f64::from(u8::try_from(at * 37 % 251).unwrap()) - 125.0);
            Matrix::new(rows, columns, values.map(|value| value * scale).collect()).unwrap()
        };
        let (a, b) = (integers(9, 200, 1.0), integers(200, 11, 1.0));
        let s8 = ("h100", "mma.m16n8k32.s32.s8.s8.s32");
        check(s8, &MULTIWORD, (&a, &b));
        let unit = Unit::of_model(&load(s8.0).unwrap(), &s8.1.parse().unwrap()).unwrap();
        let (product, rounded) = crate::gemm::multiply_words(&unit, &a, &b, None, &MULTIWORD).unwrap();
        let words = words_used(&unit, (&a, &b), &rounded, &MULTIWORD);
        let of = |d: &Elements| parts_of_any(&a, &b, &words, d).unwrap().total;
        assert_eq!(of(&product.d), Errors::ZERO);
        let mut wrong = product.d.clone();
        wrong.set(98, wrong.get(98) ^ 1);
        assert_eq!(of(&wrong), crate::gemm::errors(&a, &b, &wrong));
        assert!(of(&wrong).componentwise > 0.0);
        // Beyond the range of f16: some results are infinite.
        check(("h100", "mma.m16n8k16.f16.f16.f16.f16"), &MULTIWORD, (&integers(9, 200, 8.0), &b));
    }

    #[test]
    fn errors_near_those_of_f64_are_left_to_nearly_exact_dots() {
        let (a, b) = drawn((9, 11, 200), -1.0);
        let unit = Unit::of_model(&load("h100").unwrap(), &"mma.m8n8k4.f64.f64.f64.f64".parse().unwrap()).unwrap();
        let (product, rounded) = crate::gemm::multiply_words(&unit, &a, &b, None, &MULTIWORD).unwrap();
        let words = words_used(&unit, (&a, &b), &rounded, &MULTIWORD);
        assert_eq!(parts_of_any(&a, &b, &words, &product.d), None);
        // Values beyond f32 are, too.
        let mut large = a.clone();
        large.values[7] = 1e30;
        assert_eq!(parts_of_any(&large, &b, &words, &product.d), None);
    }
}
