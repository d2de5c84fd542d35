//! Combines products of words into one product.

use mxprobe_api::{Elements, Error, Format, GemmOperands, OperationId};

use super::{
    Accumulation, Block, Matrix, Rounded, Split, Unit,
    blocks::block_words,
    unit::Lengths,
    words::{Spare, scaled, words_in},
};
use crate::in_order::InOrder;

/// The products that are computed in addition to A1·B1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// Ai·Bj with i + j ≤ p + 1: the products left out are as small as the remainders of the words.
    Significant,
    /// Every Ai·Bj.
    All,
}

/// A way to use the words, named after those who proposed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Fasi, Higham, Lopez, Mary and Mikaitis, SISC 2023, Algorithms 2.1, 4.1 and 4.4: the products from the smallest
    /// to the largest, C chained through them in the unit; [`Accumulation`] applies to A1·B1, the others are added in
    /// the unit.
    Multiword,
    /// Markidis et al., IPDPSW 2018: p = 2, all four products, from the smallest to the largest, C chained through
    /// them.
    Markidis,
    /// Ootomo and Yokota, IJHPCA 2022: p = 2, second words lifted by 2^11; A1·B1 is added outside the unit, in f32 to
    /// nearest, after every operation along k; A2·B1 + A1·B2 are chained in the unit from +0 and added at the end,
    /// divided by 2^11, in f32 to nearest. C is added last, in f32 to nearest.
    Ootomo,
}

/// Everything that decides the bits of a product apart from the unit and the matrices.
///
/// [`multiply`] performs these steps in this order:
/// 1. A is split by rows and B by columns, as [`words`](super::words) says.
/// 2. C, if any, is the start of the sum (`Ootomo`: it is added last); it must be exact in the operation's format.
///    With line scaling C must be absent, since the sum is scaled.
/// 3. The products of words (i, j) are taken with i + j descending and, for equal i + j, i descending. Each is D =
///    Ai·Bj + (the last D), along all of k in the unit, one operation after another. With lifted words each i + j has
///    its own sum, from +0; these are added in f32 to nearest, smallest first, divided by 2^(lift·(i + j − 2)), which
///    is exact.
/// 4. A1·B1 with a block accumulation: blocks of k, each from +0 in the unit; S starts as the last D and becomes S +
///    block in f32 or f64, to nearest, k ascending. f64 is rounded to f32 at the end.
/// 5. With line scaling, D(i, j) is multiplied by the powers of two of row i and column j: exact except for underflow
///    and overflow of f32, which are rounded to nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// The way to use the words.
    pub method: Method,
    /// How A and B are split into words.
    pub split: Split,
    /// The products of words that are computed.
    pub products: Products,
    /// Where A1·B1 is added.
    pub accumulation: Accumulation,
}

/// A product, with statistics.
#[derive(Clone, Debug)]
pub struct Product {
    /// D, m×n, row-major: in the operation's format, or f32 if sums were computed outside the unit.
    pub d: Elements,
    /// Elements of A that its words do not hold exactly.
    pub inexact_a: usize,
    /// Elements of B that its words do not hold exactly.
    pub inexact_b: usize,
    /// The number of products of words that were computed.
    pub products: usize,
}

/// Computes D = A·B + C.
///
/// # Errors
/// [`Error::is_invalid`] if lengths do not fit, C is not exact, or the parts of the algorithm do not go together;
/// [`Error::is_unsupported`] if the operation cannot do it; otherwise the errors of the device.
pub fn multiply(
    unit: &Unit,
    a: &Matrix,
    b: &Matrix,
    c: Option<&Matrix>,
    algorithm: &Algorithm,
) -> Result<Product, Error> {
    multiply_words(unit, a, b, c, algorithm).map(|(product, _)| product)
}

/// Like [`multiply`]; also returns the words of A and of B.
pub fn multiply_words(
    unit: &Unit,
    a: &Matrix,
    b: &Matrix,
    c: Option<&Matrix>,
    algorithm: &Algorithm,
) -> Result<(Product, [Rounded; 2]), Error> {
    let lengths = check(unit, a, b, c, algorithm)?;
    let id = unit.id();
    let split = match algorithm.method {
        Method::Ootomo => Split { lift_bits: OOTOMO_LIFT, ..algorithm.split },
        _ => algorithm.split,
    };
    let (of_a, of_b) = (words_of(a, id, &split, true), words_of(b, id, &split, false));
    let start = match c {
        Some(c) => c.exactly(id.c, "C")?,
        None => Elements::zeros(id.c, lengths.m * lengths.n),
    };
    let product = join(unit, lengths, (&of_a, &of_b), start, &Algorithm { split, ..*algorithm })?;
    Ok((product, [of_a, of_b]))
}

/// Splits A (`of_a`) or B into the words of an operation.
pub(super) fn words_of(matrix: &Matrix, id: &OperationId, split: &Split, of_a: bool) -> Rounded {
    words_of_in(&mut Spare::default(), matrix, id, split, of_a)
}

/// Like [`words_of`], in spare memory, as far as there is some; scaled words always take new memory.
pub(super) fn words_of_in(spare: &mut Spare, matrix: &Matrix, id: &OperationId, split: &Split, of_a: bool) -> Rounded {
    let format = if of_a { id.a } else { id.b };
    match id.block_scale() {
        Some(scale) => block_words(matrix, format, scale, (split.words, split.rounding), of_a),
        None => words_in(spare, matrix, format, split, of_a),
    }
}

/// The product of matrices that are already split, into as many words as the algorithm uses or more.
pub(super) fn join(
    unit: &Unit,
    lengths: Lengths,
    (of_a, of_b): (&Rounded, &Rounded),
    start: Elements,
    algorithm: &Algorithm,
) -> Result<Product, Error> {
    let Split { words, lift_bits, .. } = algorithm.split;
    let work = Work { unit, lengths, of_a, of_b, words, lift: lift_bits };
    let (d, products) = match algorithm.method {
        Method::Ootomo => work.ootomo(&start)?,
        _ if lift_bits == 0 => work.chained(start, algorithm)?,
        _ => work.levels(&start, algorithm)?,
    };
    let d = unscale(d, lengths, of_a, of_b);
    let inexact = |of: &Rounded| of.inexact[words - 1];
    Ok(Product { d, inexact_a: inexact(of_a), inexact_b: inexact(of_b), products })
}

/// The products of matrices that are already split, from +0: A1·B1 in the unit along all of k, and for each block in
/// f32 and in f64 (Algorithms 4.2 to 4.4). The other products are computed once.
pub(super) fn join_in_blocks(
    unit: &Unit,
    lengths: Lengths,
    (of_a, of_b): (&Rounded, &Rounded),
    algorithm: &Algorithm,
    blocks: &[Block],
) -> Result<(Elements, Vec<[Elements; 2]>), Error> {
    let work = Work { unit, lengths, of_a, of_b, words: algorithm.split.words, lift: 0 };
    let mut pairs = work.pairs(algorithm);
    let last = pairs.pop().expect("A1·B1");
    let before = work.added(Elements::zeros(unit.id().c, lengths.m * lengths.n), &pairs, Accumulation::Unit)?;
    let blocked = blocks.iter().map(|block| work.in_blocks(&before, *block)).collect::<Result<_, _>>()?;
    Ok((work.product(last, &before)?, blocked))
}

/// More words than a value of f64 has bits.
const MOST_WORDS: usize = 64;

/// The lift that f64 has exponent range for beyond the values of f32.
const MOST_LIFT_BITS: usize = 512;

/// Bits by which Ootomo and Yokota lift second words.
pub(super) const OOTOMO_LIFT: i32 = 11;

fn check(unit: &Unit, a: &Matrix, b: &Matrix, c: Option<&Matrix>, algorithm: &Algorithm) -> Result<Lengths, Error> {
    if a.columns != b.rows {
        return Err(Error::invalid(format!(
            "A is {}×{} and B is {}×{}: A has {} columns, B {} rows",
            a.rows, a.columns, b.rows, b.columns, a.columns, b.rows
        )));
    }
    if let Some(c) = c.filter(|c| (c.rows, c.columns) != (a.rows, b.columns)) {
        return Err(Error::invalid(format!("C is {}×{}, and A·B is {}×{}", c.rows, c.columns, a.rows, b.columns)));
    }
    fits(unit, algorithm)?;
    if c.is_some() && algorithm.split.scaling != super::Scaling::None {
        return Err(Error::invalid("C cannot be used with line scaling: the sums are scaled, and C is not"));
    }
    Ok(Lengths { m: a.rows, n: b.columns, k: a.columns })
}

/// Checks that the parts of an algorithm go together on this unit.
pub(super) fn fits(unit: &Unit, algorithm: &Algorithm) -> Result<(), Error> {
    let id = unit.id();
    if algorithm.split.words == 0 {
        return Err(Error::invalid("0 words: at least one is needed"));
    }
    if algorithm.split.words > MOST_WORDS {
        return Err(Error::invalid(format!("{} words: at most {MOST_WORDS} are possible", algorithm.split.words)));
    }
    let last = algorithm.split.words.saturating_sub(1) * usize::try_from(algorithm.split.lift_bits).unwrap_or(0);
    if last > MOST_LIFT_BITS {
        return Err(Error::invalid(format!(
            "{} words, each lifted by {} more bits: the last by {last}, and at most {MOST_LIFT_BITS} are possible",
            algorithm.split.words, algorithm.split.lift_bits
        )));
    }
    if algorithm.split.words > 1 && id.is_integer() {
        return Err(Error::unsupported(format!("{id} multiplies integers, which are not split into words")));
    }
    if algorithm.method != Method::Multiword && algorithm.split.words != 2 {
        return Err(Error::invalid(format!("{:?} takes 2 words, not {}", algorithm.method, algorithm.split.words)));
    }
    let outside = algorithm.accumulation != Accumulation::Unit
        || algorithm.method == Method::Ootomo
        || algorithm.split.lift_bits != 0
        || algorithm.split.scaling != super::Scaling::None;
    if outside && id.d != Format::F32 {
        return Err(Error::unsupported(format!("sums outside the unit are in f32, but {id} returns {}", id.d)));
    }
    if let Some(scale) = id.block_scale() {
        scales_fit(algorithm, scale.block)?;
    }
    match algorithm.accumulation.block() {
        Some(Block::Products(0)) => return Err(Error::invalid("a block of 0 products")),
        Some(Block::Count(0)) => return Err(Error::invalid("0 blocks: at least one is needed")),
        _ => {}
    }
    if algorithm.method == Method::Ootomo && algorithm.accumulation != Accumulation::Unit {
        return Err(Error::invalid(
            "Ootomo and Yokota's method adds every operation outside the unit and takes no other blocks",
        ));
    }
    Ok(())
}

/// Checks that an algorithm goes together with scales that this many products share.
fn scales_fit(algorithm: &Algorithm, products: usize) -> Result<(), Error> {
    if algorithm.split.lift_bits != 0 || algorithm.method == Method::Ootomo {
        return Err(Error::invalid("block scales already lift small words, which cannot be lifted as well"));
    }
    if algorithm.split.scaling != super::Scaling::None {
        return Err(Error::invalid("block scales replace line scaling, and cannot be combined with it"));
    }
    if let Some(Block::Products(block)) = algorithm.accumulation.block()
        && !block.is_multiple_of(products)
    {
        return Err(Error::invalid(format!(
            "a block of {block} products ends within one of the {products} products that share a scale"
        )));
    }
    Ok(())
}

/// A product in progress.
struct Work<'a> {
    unit: &'a Unit,
    lengths: Lengths,
    of_a: &'a Rounded,
    of_b: &'a Rounded,
    /// The number of words to use.
    words: usize,
    lift: i32,
}

impl Work<'_> {
    /// Pairs of words, counted from 0, from the smallest product to the largest.
    fn pairs(&self, algorithm: &Algorithm) -> Vec<(usize, usize)> {
        let words = self.words;
        let kept = |i: usize, j: usize| match (algorithm.method, algorithm.products) {
            (Method::Markidis, _) | (_, Products::All) => true,
            _ => i + j < words,
        };
        let all = (0..words).flat_map(|i| (0..words).map(move |j| (i, j)));
        let mut pairs: Vec<(usize, usize)> = all.filter(|(i, j)| kept(*i, *j)).collect();
        pairs.order_by_key(|(i, j)| (std::cmp::Reverse(i + j), std::cmp::Reverse(*i)));
        pairs
    }

    fn product(&self, (i, j): (usize, usize), c: &Elements) -> Result<Elements, Error> {
        let Lengths { m, n, k } = self.lengths;
        let (a, b) = (&self.of_a.words[i], &self.of_b.words[j]);
        let (scale_a, scale_b) = (self.of_a.scales.get(i), self.of_b.scales.get(j));
        self.unit.multiply(&GemmOperands { m, n, k, a, b, c, scale_a, scale_b })
    }

    /// Adds products to a sum, one after another, A1·B1 as the accumulation says.
    fn added(&self, mut sum: Elements, pairs: &[(usize, usize)], at: Accumulation) -> Result<Elements, Error> {
        for pair in pairs {
            sum = match at {
                Accumulation::F32 { block } if *pair == (0, 0) => self.blocked(&sum, block, false)?,
                Accumulation::F64 { block } if *pair == (0, 0) => self.blocked(&sum, block, true)?,
                _ => self.product(*pair, &sum)?,
            };
        }
        Ok(sum)
    }

    /// Chains C through every product, in the unit.
    fn chained(&self, start: Elements, algorithm: &Algorithm) -> Result<(Elements, usize), Error> {
        let pairs = self.pairs(algorithm);
        let id = self.unit.id();
        if pairs.len() > 1 && id.c != id.d {
            return Err(Error::unsupported(format!("{id} cannot chain: d is {} and c is {}", id.d, id.c)));
        }
        let sum = self.added(start, &pairs, algorithm.accumulation)?;
        Ok((sum, pairs.len()))
    }

    /// A1·B1 in blocks of k, added to `start` outside the unit, in f32 or (`wide`) in f64.
    fn blocked(&self, start: &Elements, block: Block, wide: bool) -> Result<Elements, Error> {
        let [narrow, double] = self.in_blocks(start, block)?;
        Ok(if wide { double } else { narrow })
    }

    /// A1·B1 in blocks of k, added to `start` outside the unit: in f32, and in f64 rounded to f32 at the end.
    fn in_blocks(&self, start: &Elements, block: Block) -> Result<[Elements; 2], Error> {
        let Lengths { m, n, k } = self.lengths;
        // Products that share a scale stay in one block.
        let shared = self.unit.id().block_scale().map_or(1, |scale| scale.block);
        let block = block.products(k).next_multiple_of(shared);
        let (a, b) = (&self.of_a.words[0], &self.of_b.words[0]);
        let zeros = Elements::zeros(self.unit.id().c, m * n);
        let mut narrow: Vec<f32> = values_f32(start);
        let mut double: Vec<f64> = narrow.iter().map(|value| f64::from(*value)).collect();
        for first in (0..k).step_by(block) {
            let count = block.min(k - first);
            let (of_a, of_b) = (columns(a, m, k, first, count), rows(b, n, first, count));
            let scales = self.unit.id().block_scale().map(|scale| {
                let (blocks, first, count) =
                    (k.div_ceil(scale.block), first / scale.block, count.div_ceil(scale.block));
                let (of_a, of_b) = (&self.of_a.scales[0], &self.of_b.scales[0]);
                (columns(of_a, m, blocks, first, count), rows(of_b, n, first, count))
            });
            let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
            let operands = GemmOperands { m, n, k: count, a: &of_a, b: &of_b, c: &zeros, scale_a, scale_b };
            let sums = self.unit.multiply(&operands)?;
            for (at, sum) in values_f32(&sums).into_iter().enumerate() {
                double[at] += f64::from(sum);
                narrow[at] += sum;
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "rounded to f32 once, at the end")]
        let double: Vec<f32> = double.into_iter().map(|value| value as f32).collect();
        Ok([bits_f32(&narrow), bits_f32(&double)])
    }

    /// Lifted words: each i + j has its own sum, and these are added outside the unit.
    fn levels(&self, start: &Elements, algorithm: &Algorithm) -> Result<(Elements, usize), Error> {
        let pairs = self.pairs(algorithm);
        let zeros = Elements::zeros(self.unit.id().c, start.len());
        let mut total = values_f32(start);
        for level in pairs.chunk_by(|one, other| one.0 + one.1 == other.0 + other.1) {
            let sum = self.added(zeros.clone(), level, algorithm.accumulation)?;
            let exponent = -self.lift * i32::try_from(level[0].0 + level[0].1).expect("a few words");
            add_scaled(&mut total, &values_f32(&sum), exponent);
        }
        Ok((bits_f32(&total), pairs.len()))
    }

    /// Ootomo and Yokota's method.
    fn ootomo(&self, start: &Elements) -> Result<(Elements, usize), Error> {
        let zeros = Elements::zeros(self.unit.id().c, start.len());
        let correction = self.product((0, 1), &self.product((1, 0), &zeros)?)?;
        let step = self.unit.id().shape.sizes().2;
        let mut total = values_f32(&self.blocked(&zeros, Block::Products(step), false)?);
        add_scaled(&mut total, &values_f32(&correction), -self.lift);
        add_scaled(&mut total, &values_f32(start), 0);
        Ok((bits_f32(&total), 3))
    }
}

/// total + terms · 2^exponent, in f32 to nearest.
#[expect(clippy::cast_possible_truncation, reason = "the scaled term is rounded to f32, where it is not exact already")]
fn add_scaled(total: &mut [f32], terms: &[f32], exponent: i32) {
    for (total, term) in total.iter_mut().zip(terms) {
        *total += scaled(f64::from(*term), exponent) as f32;
    }
}

/// Multiplies the lines' powers of two back into the result.
fn unscale(d: Elements, lengths: Lengths, of_a: &Rounded, of_b: &Rounded) -> Elements {
    if of_a.line_exponents.iter().chain(&of_b.line_exponents).all(|exponent| *exponent == 0) {
        return d;
    }
    let mut values = values_f32(&d);
    for (at, value) in values.iter_mut().enumerate() {
        let exponent = of_a.line_exponents[at / lengths.n] + of_b.line_exponents[at % lengths.n];
        #[expect(clippy::cast_possible_truncation, reason = "beyond f32's range it is rounded once")]
        {
            *value = scaled(f64::from(*value), exponent) as f32;
        }
    }
    bits_f32(&values)
}

/// Values of a format whose values f32 holds.
#[expect(clippy::cast_possible_truncation, reason = "f32 holds them")]
fn values_f32(elements: &Elements) -> Vec<f32> {
    let format = elements.format();
    if format == Format::F32 {
        // Unchanged, NaN payloads included.
        return elements.iter().map(|bits| f32::from_bits(bits as u32)).collect();
    }
    elements.iter().map(|bits| format.to_f64(bits) as f32).collect()
}

fn bits_f32(values: &[f32]) -> Elements {
    Elements::from_bits(Format::F32, values.iter().map(|value| u64::from(value.to_bits())))
}

/// Rows `first` to `first + count` of a k×n matrix.
fn rows(matrix: &Elements, n: usize, first: usize, count: usize) -> Elements {
    Elements::from_bits(matrix.format(), (first * n..(first + count) * n).map(|at| matrix.get(at)))
}

/// Columns `first` to `first + count` of an m×k matrix.
fn columns(matrix: &Elements, m: usize, k: usize, first: usize, count: usize) -> Elements {
    let places = (0..m).flat_map(|row| (first..first + count).map(move |at| row * k + at));
    Elements::from_bits(matrix.format(), places.map(|at| matrix.get(at)))
}
