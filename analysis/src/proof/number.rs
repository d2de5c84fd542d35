//! Numbers in the course of an evaluation, as bits of any logic.

use mxprobe_api::{Encoding, FloatEncoding, Format, Specials};
use mxprobe_models::Class;

use super::{
    canonical::Bounds,
    integer::Integer,
    logic::Logic,
    words::{Word, Words},
};

/// A number: flags, and a finite value that counts if no flag is set.
#[derive(Clone, Debug)]
pub(super) struct Number<B> {
    /// The format and the bits, for operands, c and rounded results.
    pub bits: Option<(Format, Word<B>)>,
    /// Not a number.
    pub nan: B,
    /// An infinity with the sign of the finite part.
    pub infinite: B,
    /// The value otherwise.
    pub finite: Finite<B>,
    /// The causes if an unrounded sum is NaN.
    pub causes: Option<Causes<B>>,
}

/// `±magnitude · 2^lsb`.
#[derive(Clone, Debug)]
pub(super) struct Finite<B> {
    pub negative: B,
    pub magnitude: Word<B>,
    pub lsb: Integer<B>,
    /// The exponent that aligns it, if `has_exponent`.
    pub exponent: Integer<B>,
    /// Whether it is neither a zero of a format nor a product with one, so that exponents count.
    pub has_exponent: B,
    /// If it has an exponent, `lsb` is known to be at most `exponent` minus this.
    pub lsb_below_exponent: Option<i32>,
}

/// The reasons why a result is NaN: the numbers of each cause in order, each with a flag that says whether it is a NaN.
#[derive(Clone, Debug)]
pub(super) struct Causes<B> {
    pub operand: Vec<Candidate<B>>,
    /// Those of B alone.
    pub of_b: Vec<Candidate<B>>,
    pub value: Vec<Candidate<B>>,
    pub invalid: B,
}

/// A number that may be NaN.
#[derive(Clone, Debug)]
pub(super) struct Candidate<B> {
    pub nan: B,
    pub format: Format,
    pub bits: Word<B>,
}

/// A term of an addition.
pub(super) struct Term<B> {
    /// Its index among the terms in the model's order. The terms themselves are passed in sorted order, so that sums of
    /// the same terms are the same circuit; the order affects only NaN, and whose sign a one's complement takes.
    pub place: usize,
    pub class: Class,
    pub number: Number<B>,
    /// For a product, its operands, which may be NaN: that of A, that of B and scales.
    pub operands: Vec<Candidate<B>>,
    /// Whether it is NaN although no operand is.
    pub invalid: B,
}

/// The scales of a block of A and of B.
pub(super) type Scales<B> = (Number<B>, Number<B>);

impl<B: Copy + std::fmt::Debug> Finite<B> {
    /// +0.
    pub(super) fn zero(logic: &mut impl Logic<Bit = B>) -> Self {
        let no = logic.constant(false);
        Self {
            negative: no,
            magnitude: Vec::new(),
            lsb: Integer::constant(0),
            exponent: Integer::constant(0),
            has_exponent: no,
            lsb_below_exponent: None,
        }
    }

    /// The exponent of the highest bit set; meaningless if no bit is set.
    pub(super) fn leading(&self, logic: &mut impl Logic<Bit = B>) -> Integer<B> {
        if self.magnitude.is_empty() {
            return self.lsb.clone();
        }
        let zeros = logic.leading_zeros(&self.magnitude);
        let most = length(&self.magnitude) - 1;
        let zeros = Integer::new(logic, 0, most, &zeros);
        let top = self.lsb.raised(most);
        top.minus(logic, &zeros).within(logic, self.lsb.low, self.lsb.high + most)
    }
}

/// The length of a word, in the type of exponents.
pub(super) fn length<B>(word: &[B]) -> i32 {
    i32::try_from(word.len()).expect("words are far shorter than 2^31 bits")
}

/// Decodes the bits of a format.
pub(super) fn read<L: Logic>(logic: &mut L, format: Format, bits: &[L::Bit]) -> Number<L::Bit> {
    let kept = Some((format, bits.to_vec()));
    match format.encoding() {
        Encoding::Float(encoding) => Number { bits: kept, ..read_float(logic, encoding, bits) },
        Encoding::Integer { signed, .. } => Number { bits: kept, ..read_integer(logic, signed, bits) },
    }
}

fn read_float<L: Logic>(logic: &mut L, encoding: FloatEncoding, bits: &[L::Bit]) -> Number<L::Bit> {
    let no = logic.constant(false);
    let bits = &bits[encoding.unread_bits as usize..];
    let (fraction, rest) = bits.split_at(encoding.fraction_bits as usize);
    let (field, rest) = rest.split_at(encoding.exponent_bits as usize);
    let negative = if encoding.is_signed() { rest[0] } else { no };
    let (field_ones, fraction_ones) = (logic.all(field), logic.all(fraction));
    let all_ones = logic.and(field_ones, fraction_ones);
    let (field_any, fraction_any) = (logic.any(field), logic.any(fraction));
    let is_zero = {
        let any = logic.or(field_any, fraction_any);
        logic.not(any)
    };
    let nan = match encoding.specials {
        Specials::Ieee => logic.and(field_ones, fraction_any),
        Specials::AllOnesNan | Specials::UnsignedAllOnesNan | Specials::PowerOfTwo => all_ones,
        Specials::NegativeZeroNan => logic.and(negative, is_zero),
        Specials::None => no,
    };
    let infinite = if encoding.specials == Specials::Ieee { logic.and_not(field_ones, fraction_any) } else { no };
    let (low, high) = (encoding.min_exponent(), encoding.max_exponent());
    let fraction_bits = encoding.fraction_bits.cast_signed();
    let finite = if encoding.specials == Specials::PowerOfTwo {
        let yes = logic.constant(true);
        let exponent = Integer::new(logic, low, high, field);
        Finite {
            negative: no,
            magnitude: vec![yes],
            lsb: exponent.clone(),
            exponent,
            has_exponent: yes,
            lsb_below_exponent: Some(0),
        }
    } else {
        // The exponent field, in which 0 counts as 1; and the same minus 1, which is the distance to the smallest
        // exponent.
        let subnormal = logic.not(field_any);
        let mut counted = field.to_vec();
        counted[0] = logic.or(counted[0], subnormal);
        let one = logic.number(1, counted.len());
        let above = logic.minus(&counted, &one, counted.len());
        let exponent = Integer::new(logic, low, high, &above);
        let mut magnitude = fraction.to_vec();
        magnitude.push(field_any);
        Finite {
            negative,
            magnitude,
            lsb: exponent.raised(-fraction_bits),
            exponent,
            has_exponent: logic.not(is_zero),
            lsb_below_exponent: Some(fraction_bits),
        }
    };
    Number { bits: None, nan, infinite, finite, causes: None }
}

fn read_integer<L: Logic>(logic: &mut L, signed: bool, bits: &[L::Bit]) -> Number<L::Bit> {
    let no = logic.constant(false);
    let negative = if signed { *bits.last().expect("a format has bits") } else { no };
    let magnitude = logic.negated_where(negative, bits);
    let finite = Finite {
        negative,
        has_exponent: logic.any(&magnitude),
        magnitude,
        lsb: Integer::constant(0),
        exponent: Integer::constant(0),
        lsb_below_exponent: Some(0),
    };
    Number { bits: None, nan: no, infinite: no, finite, causes: None }
}

/// Whether bits of a format are a value within bounds.
pub(super) fn within<L: Logic>(logic: &mut L, format: Format, bits: &[L::Bit], bounds: Bounds) -> L::Bit {
    let Number { nan, infinite, finite, .. } = read(logic, format, bits);
    let special = logic.or(nan, infinite);
    let mut excluded = vec![];
    if !bounds.nan {
        excluded.push(nan);
    }
    if !bounds.infinite {
        excluded.push(infinite);
    }
    let mut outside = Vec::new();
    if !bounds.negative_zero {
        outside.push(logic.and_not(finite.negative, finite.has_exponent));
    }
    if finite.exponent.high >= bounds.top {
        let below = finite.exponent.less(logic, &Integer::constant(bounds.top));
        outside.push(logic.and_not(finite.has_exponent, below));
    }
    for (place, bit) in (0..).zip(&finite.magnitude) {
        let lsb = finite.lsb.raised(place);
        if lsb.low < bounds.low {
            let below = lsb.less(logic, &Integer::constant(bounds.low));
            outside.push(logic.and(*bit, below));
        }
    }
    let outside = logic.any(&outside);
    excluded.push(logic.and_not(outside, special));
    let excluded = logic.any(&excluded);
    logic.not(excluded)
}

/// Replaces subnormal values by zeros.
pub(super) fn flushed<L: Logic>(logic: &mut L, number: Number<L::Bit>, to_positive: bool) -> Number<L::Bit> {
    let Some((format, bits)) = &number.bits else { return number };
    let Some(encoding) = format.as_float().filter(|encoding| encoding.specials != Specials::PowerOfTwo) else {
        return number;
    };
    let from = (encoding.unread_bits + encoding.fraction_bits) as usize;
    let field = &bits[from..from + encoding.exponent_bits as usize];
    let normal = logic.any(field);
    let Finite { negative, magnitude, has_exponent, .. } = &number.finite;
    // A zero keeps its sign: only subnormals are flushed.
    let subnormal = logic.and_not(*has_exponent, normal);
    let negative = if to_positive { logic.and_not(*negative, subnormal) } else { *negative };
    let finite = Finite {
        negative,
        magnitude: logic.where_set(normal, magnitude),
        has_exponent: logic.and(*has_exponent, normal),
        ..number.finite.clone()
    };
    Number { finite, ..number }
}

/// A product of operands, and whether it is NaN although no operand is.
pub(super) fn product<L: Logic>(logic: &mut L, factors: &[&Number<L::Bit>]) -> (Number<L::Bit>, L::Bit) {
    let no = logic.constant(false);
    let yes = logic.constant(true);
    let (mut nan, mut infinite, mut zero) = (no, no, no);
    let mut finite = Finite {
        negative: no,
        magnitude: vec![yes],
        lsb: Integer::constant(0),
        exponent: Integer::constant(0),
        has_exponent: yes,
        lsb_below_exponent: Some(0),
    };
    for factor in factors {
        nan = logic.or(nan, factor.nan);
        infinite = logic.or(infinite, factor.infinite);
        // An infinity is not zero; its finite part does not count.
        let special = logic.or(factor.nan, factor.infinite);
        let nonzero = logic.or(factor.finite.has_exponent, special);
        let is_zero = logic.not(nonzero);
        zero = logic.or(zero, is_zero);
        finite.negative = logic.xor(finite.negative, factor.finite.negative);
        finite.magnitude = match finite.magnitude.as_slice() {
            [one] if logic.known(*one) == Some(true) => factor.finite.magnitude.clone(),
            magnitude => {
                let product = logic.times(magnitude, &factor.finite.magnitude);
                logic.note_product([magnitude, &factor.finite.magnitude], &product);
                product
            }
        };
        finite.lsb = finite.lsb.plus(logic, &factor.finite.lsb);
        finite.exponent = finite.exponent.plus(logic, &factor.finite.exponent);
        finite.has_exponent = logic.and(finite.has_exponent, factor.finite.has_exponent);
        finite.lsb_below_exponent =
            finite.lsb_below_exponent.zip(factor.finite.lsb_below_exponent).map(|(one, other)| one + other);
    }
    let both = logic.and(infinite, zero);
    let invalid = logic.and_not(both, nan);
    let is_nan = logic.or(nan, both);
    infinite = logic.and_not(infinite, is_nan);
    (Number { bits: None, nan: is_nan, infinite, finite, causes: None }, invalid)
}
