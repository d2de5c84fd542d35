//! The terms of one element of D: A, B and C as the unit reads them, and their exact sums.

use mxprobe_api::{Decoded, Format, GemmOperands, OperationId};
use mxprobe_models::Flush;

use super::{
    exact::{Exact, Sum},
    sides::power_of_two,
};

/// A number as a unit reads it: significand · 2^lsb.
#[derive(Clone, Copy)]
pub(super) struct Read {
    significand: i64,
    lsb: i32,
    /// The exponent that it is aligned by; for a subnormal, that of the smallest normal value.
    exponent: i32,
    special: Special,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    None,
    Nan,
    Infinite,
}

impl Read {
    fn new(format: Format, bits: u64, flush: bool) -> Self {
        let (mut significand, mut lsb, mut exponent, mut special) = (0, 0, 0, Special::None);
        let signed = |negative: bool, magnitude: u64| {
            let magnitude = magnitude.cast_signed();
            if negative { -magnitude } else { magnitude }
        };
        match format.decode(bits) {
            Decoded::Nan { .. } => special = Special::Nan,
            Decoded::Infinity { negative } => {
                (special, significand) = (Special::Infinite, signed(negative, 1));
            }
            Decoded::Zero { .. } => {}
            Decoded::Finite { negative, significand: magnitude, exponent: found } => {
                let fraction_bits = format.fraction_bits();
                let is_subnormal = !format.is_integer() && magnitude >> fraction_bits == 0;
                if !(flush && is_subnormal) {
                    significand = signed(negative, magnitude);
                    (lsb, exponent) = (found - fraction_bits.cast_signed(), found);
                }
            }
        }
        Self { significand, lsb, exponent, special }
    }
}

/// The decoded operands of a product: A row by row, B column by column.
pub(super) struct Reads {
    pub(super) k: usize,
    a: Vec<Read>,
    b: Vec<Read>,
    c: Vec<Read>,
    scales: Option<(Vec<Read>, Vec<Read>, usize)>,
    n: usize,
}

impl Reads {
    pub(super) fn new(id: &OperationId, flush: Flush, operands: &GemmOperands<'_>) -> Self {
        let GemmOperands { n, k, .. } = *operands;
        let read = |format: Format, elements: &mxprobe_api::Elements, flush: bool| -> Vec<Read> {
            elements.iter().map(|bits| Read::new(format, bits, flush)).collect()
        };
        let columns = |rows: &[Read], length: usize| -> Vec<Read> {
            (0..n).flat_map(|column| (0..length).map(move |row| rows[row * n + column])).collect()
        };
        let scales = id.block_scale().zip(operands.scale_a).zip(operands.scale_b).map(|((scale, a), b)| {
            let (a, b) = (read(scale.format, a, false), read(scale.format, b, false));
            (a, columns(&b, k.div_ceil(scale.block)), scale.block)
        });
        let b = read(id.b, operands.b, flush.b);
        Self { k, a: read(id.a, operands.a, flush.a), b: columns(&b, k), c: read(id.c, operands.c, flush.c), scales, n }
    }

    pub(super) fn rows(&self) -> usize {
        self.c.len() / self.n.max(1)
    }

    pub(super) fn columns(&self) -> usize {
        self.n
    }
}

/// The terms of one element.
pub(super) enum Terms {
    /// Every order gives a NaN.
    Nan,
    Sums(Box<Sums>),
}

/// Exact sums of the finite terms; infinite ones are left out.
pub(super) struct Sums {
    /// Whether there are infinities: their sign, if so (`true` is negative).
    pub(super) infinite: Option<bool>,
    pub(super) positive: Exact,
    /// The sum of magnitudes of the negative terms.
    pub(super) negative: Exact,
    /// The largest sum of operands' exponents among the nonzero products.
    pub(super) exponent: Option<i32>,
    /// The sum of 2^(sum of the operands' exponents) over the nonzero products, nearly.
    pub(super) powers: f64,
    /// The number of products smaller than 2^(sum of their operands' exponents).
    pub(super) small: usize,
    /// The exponent of the lowest bit of all terms: each is an integer multiple of 2^this. `None` if all are zero.
    pub(super) lowest: Option<i32>,
    pub(super) has_c: bool,
}

/// Computes the sums of terms.
pub(super) struct Adder<'a> {
    reads: &'a Reads,
    positive: Sum,
    negative: Sum,
    lowest: Option<i32>,
    /// Whether a product of magnitude 2^128 or more becomes an infinity.
    overflows: bool,
    /// Whether the exponents of block scales are those of sums.
    scales_sums: bool,
}

/// The exponents of the lowest bit and of the bit above the highest one.
pub(super) fn range(format: Format) -> (i32, i32) {
    let fraction = format.fraction_bits().cast_signed();
    match format.as_float() {
        Some(float) => (float.min_exponent() - fraction, float.max_exponent() + 1),
        None => (0, format.bits().cast_signed()),
    }
}

impl<'a> Adder<'a> {
    pub(super) fn new(id: &OperationId, reads: &'a Reads, overflows: bool, scales_sums: bool) -> Self {
        let scale = id.block_scale().map(|scale| scale.format);
        let factors = [Some(id.a), Some(id.b), scale, scale];
        let of_products = factors.into_iter().flatten().map(range).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let of_c = range(id.c);
        let (lowest, highest) = (of_products.0.min(of_c.0), of_products.1.max(of_c.1));
        let sum = || Sum::new(lowest, highest);
        Self { reads, positive: sum(), negative: sum(), lowest: None, overflows, scales_sums }
    }

    /// Sums the terms of the element in a row and a column.
    pub(super) fn element(&mut self, row: usize, column: usize) -> Terms {
        let Reads { k, a, b, c, scales, n } = self.reads;
        let c = c[row * n + column];
        self.positive.clear();
        self.negative.clear();
        self.lowest = None;
        let mut infinite = [false; 2];
        let (mut exponent, mut powers, mut small): (Option<i32>, f64, usize) = (None, 0.0, 0);
        match c.special {
            Special::Nan => return Terms::Nan,
            Special::Infinite => infinite[usize::from(c.significand < 0)] = true,
            Special::None => self.put(i128::from(c.significand), c.lsb),
        }
        for (at, (a, b)) in a[row * k..][..*k].iter().zip(&b[column * k..][..*k]).enumerate() {
            let mut product = i128::from(a.significand) * i128::from(b.significand);
            let (mut lsb, mut aligned) = (a.lsb + b.lsb, a.exponent + b.exponent);
            let mut specials = (a.special, b.special) != (Special::None, Special::None);
            let mut is_nan = a.special == Special::Nan || b.special == Special::Nan;
            if let Some((of_a, of_b, block)) = scales {
                let blocks = k.div_ceil(*block);
                let (x, y) = (of_a[row * blocks + at / block], of_b[column * blocks + at / block]);
                is_nan |= x.special == Special::Nan || y.special == Special::Nan;
                specials |= (x.special, y.special) != (Special::None, Special::None);
                product *= i128::from(x.significand) * i128::from(y.significand);
                lsb += x.lsb + y.lsb;
                if self.scales_sums && x.significand != 0 && y.significand != 0 {
                    exponent = exponent.max(Some(x.exponent + y.exponent));
                }
                aligned += x.exponent + y.exponent;
            }
            if specials {
                if is_nan || product == 0 {
                    return Terms::Nan;
                }
                infinite[usize::from(product < 0)] = true;
                continue;
            }
            if product == 0 {
                continue;
            }
            let leading = lsb + 127 - product.unsigned_abs().leading_zeros().cast_signed();
            if self.overflows && leading >= 128 {
                infinite[usize::from(product < 0)] = true;
                continue;
            }
            small += usize::from(leading < aligned);
            exponent = exponent.max(Some(aligned));
            powers += power_of_two(aligned);
            self.put(product, lsb);
        }
        if infinite == [true; 2] {
            return Terms::Nan;
        }
        Terms::Sums(Box::new(Sums {
            infinite: (infinite != [false; 2]).then_some(infinite[1]),
            positive: self.positive.value(),
            negative: self.negative.value(),
            exponent,
            powers,
            small,
            lowest: self.lowest,
            has_c: c.significand != 0,
        }))
    }

    fn put(&mut self, term: i128, lsb: i32) {
        if term != 0 {
            let lowest = lsb + term.trailing_zeros().cast_signed();
            self.lowest = Some(self.lowest.map_or(lowest, |before| before.min(lowest)));
        }
        if term > 0 {
            self.positive.add(term.unsigned_abs(), lsb);
        } else if term < 0 {
            self.negative.add(term.unsigned_abs(), lsb);
        }
    }
}
