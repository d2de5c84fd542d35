//! The compiled evaluator of one dot: any plan, words of fixed width, no allocation.
//!
//! It follows the exact evaluator step by step. Where a sum might not fit the word, the whole dot is given up and taken
//! again with a wider word: first `i64`, then `i128`, at last the exact evaluator. Every step that could lose a bit
//! checks, so that a result is either the exact evaluator's or none.

use mxprobe_api::{FloatEncoding, Format, OperationId, Overflow, Rounding, Subnormals};

use super::unpack::{INFINITE, NAN, NEGATIVE, Reader, SPECIAL, Unpacked, ZERO};
use crate::{
    adder::{Adder, Below, Class, Exponent, NanCause, Output, Scale, ZeroSign},
    exact::cut_encoding,
    model::Unit,
    tree::{Plan, Term},
};

/// No exponent: that of a zero.
const NONE: i32 = i32::MIN;

/// A signed word that sums are held in.
pub(super) trait Word:
    Copy
    + Ord
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Neg<Output = Self>
    + std::ops::Shl<u32, Output = Self>
    + std::ops::Shr<u32, Output = Self>
    + std::ops::BitAnd<Output = Self>
    + std::ops::BitOr<Output = Self>
{
    const BITS: u32;
    const ZERO: Self;
    const ONE: Self;
    fn from_u64(value: u64) -> Self;
    fn times(self, factor: u64) -> Self;
    fn length(self) -> u32;
    fn to_u128(self) -> u128;
    fn low_u64(self) -> u64;
}

macro_rules! word {
    ($name:ty) => {
        impl Word for $name {
            const BITS: u32 = <$name>::BITS;
            const ZERO: Self = 0;
            const ONE: Self = 1;

            #[inline(always)]
            #[allow(clippy::cast_possible_wrap, clippy::cast_lossless)]
            fn from_u64(value: u64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn times(self, factor: u64) -> Self {
                self * Self::from_u64(factor)
            }

            /// How many bits a magnitude has.
            #[inline(always)]
            fn length(self) -> u32 {
                Self::BITS - self.leading_zeros()
            }

            #[inline(always)]
            #[allow(clippy::cast_sign_loss, clippy::cast_lossless)]
            fn to_u128(self) -> u128 {
                self as u128
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            fn low_u64(self) -> u64 {
                self as u64
            }
        }
    };
}

word!(i64);
word!(i128);

/// One plan, made ready.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    nodes: Vec<Node>,
    terms: Vec<Term>,
    adders: Vec<Adding>,
    pub(super) a: Reader,
    pub(super) b: Reader,
    pub(super) c: Reader,
    pub(super) scale: Option<Reader>,
    scale_block: usize,
    product_fraction_bits: i32,
    scale_fraction_bits: i32,
    c_fraction_bits: i32,
    /// The most terms that one node has.
    widest: usize,
    /// Whether every product fits an i64, and an i128.
    fits: [bool; 2],
}

#[derive(Clone, Copy, Debug)]
struct Node {
    adder: usize,
    from: usize,
    to: usize,
    /// Bits that the sum of so many terms may grow by, and one for a sign.
    reserve: u32,
}

/// An adder, made ready.
#[derive(Clone, Debug)]
struct Adding {
    rules: Adder,
    /// Fraction bits and floor of the one rule, where that looks at all terms' own exponents.
    one_grid: Option<(i32, i32)>,
    /// Nothing but alignment to one grid and truncation.
    plain: bool,
    float: Option<Rounder>,
    /// The format its result is read back in.
    format: Format,
    encoding: Option<FloatEncoding>,
}

#[derive(Clone, Copy, Debug)]
struct Rounder {
    encoding: FloatEncoding,
    rounding: Rounding,
    overflow: Overflow,
    subnormals: Subnormals,
    min_exponent: i32,
    largest: u64,
    sign_at: u32,
    magnitude_mask: u64,
}

/// The operands of one dot, taken apart.
#[derive(Clone, Copy)]
pub(super) struct UnpackedDot<'a> {
    pub a: &'a [Unpacked],
    pub b: &'a [Unpacked],
    pub c: Unpacked,
    pub scale_a: &'a [Unpacked],
    pub scale_b: &'a [Unpacked],
}

#[derive(Clone, Copy)]
struct Aligned<W> {
    class: Class,
    negative: bool,
    magnitude: W,
    lsb: i32,
    exponent: i32,
}

/// The result of a node.
#[derive(Clone, Copy)]
struct Number<W> {
    kind: u32,
    wide: bool,
    magnitude: W,
    lsb: i32,
    exponent: i32,
    bits: u64,
}

/// Room for the terms and the results of a dot.
pub(super) struct Scratch {
    narrow: Room<i64>,
    wide: Room<i128>,
}

struct Room<W> {
    terms: Vec<Aligned<W>>,
    results: Vec<Number<W>>,
    /// Of unrounded sums that are NaN.
    causes: Vec<Causes>,
}

impl<W: Word> Room<W> {
    fn new(widest: usize, nodes: usize) -> Self {
        Self { terms: Vec::with_capacity(widest), results: Vec::with_capacity(nodes), causes: Vec::new() }
    }
}

/// The bits that a format's significand has.
fn significand_bits(format: Format) -> u32 {
    if format.is_integer() { format.bits() } else { format.fraction_bits() + 1 }
}

impl Compiled {
    pub(super) fn new(adders: &[Adder], unit: &Unit, plan: &Plan, id: &OperationId) -> Self {
        let scale = id.block_scale();
        let mut nodes = Vec::new();
        let mut terms = Vec::new();
        for node in &plan.nodes {
            let from = terms.len();
            terms.extend_from_slice(&node.terms);
            let reserve = usize::BITS - node.terms.len().leading_zeros() + 2;
            nodes.push(Node { adder: node.adder, from, to: terms.len(), reserve });
        }
        let scale_bits = scale.map_or(0, |scale| 2 * significand_bits(scale.format));
        let product_bits = significand_bits(id.a) + significand_bits(id.b) + scale_bits;
        let signed = |bits: u32| bits.cast_signed();
        Self {
            widest: nodes.iter().map(|node| node.to - node.from).max().unwrap_or(0),
            nodes,
            terms,
            adders: adders.iter().map(Adding::new).collect(),
            a: Reader::new(id.a, unit.flush.a, unit.flush.to_positive),
            b: Reader::new(id.b, unit.flush.b, unit.flush.to_positive),
            c: Reader::new(id.c, unit.flush.c, unit.flush.to_positive),
            scale: scale.map(|scale| Reader::new(scale.format, false, false)),
            scale_block: scale.map_or(1, |scale| scale.block),
            product_fraction_bits: signed(id.a.fraction_bits() + id.b.fraction_bits()),
            scale_fraction_bits: scale.map_or(0, |scale| signed(2 * scale.format.fraction_bits())),
            c_fraction_bits: signed(id.c.fraction_bits()),
            fits: [product_bits <= 62 && significand_bits(id.c) <= 62, product_bits <= 126],
        }
    }

    pub(super) fn scratch(&self) -> Scratch {
        let (widest, nodes) = (self.widest, self.nodes.len());
        Scratch { narrow: Room::new(widest, nodes), wide: Room::new(widest, nodes) }
    }

    /// d of one dot, or `None` where no word is wide enough.
    #[inline]
    pub(super) fn evaluate(&self, dot: UnpackedDot<'_>, scratch: &mut Scratch) -> Option<u64> {
        if self.fits[0]
            && let Some(bits) = self.run(dot, &mut scratch.narrow)
        {
            return Some(bits);
        }
        if self.fits[1] { self.run(dot, &mut scratch.wide) } else { None }
    }

    #[inline]
    fn run<W: Word>(&self, dot: UnpackedDot<'_>, room: &mut Room<W>) -> Option<u64> {
        room.results.clear();
        room.causes.clear();
        let c = Number {
            kind: dot.c.kind,
            wide: false,
            magnitude: W::from_u64(dot.c.significand),
            lsb: dot.c.exponent - self.c_fraction_bits,
            exponent: if dot.c.kind & ZERO != 0 { NONE } else { dot.c.exponent },
            bits: 0,
        };
        for node in &self.nodes {
            let result = self.add(node, dot, &c, room)?;
            room.results.push(result);
        }
        room.results.last().map(|result| result.bits)
    }

    #[inline]
    fn add<W: Word>(&self, node: &Node, dot: UnpackedDot<'_>, c: &Number<W>, room: &mut Room<W>) -> Option<Number<W>> {
        let adder = &self.adders[node.adder];
        let scales_products = self.scale.is_some() && adder.rules.scale == Scale::Products;
        room.terms.clear();
        let mut kinds = 0;
        let mut highest = NONE;
        for term in &self.terms[node.from..node.to] {
            let aligned = match *term {
                Term::Product(k) => {
                    let (a, b) = (dot.a[k], dot.b[k]);
                    let mut kind = a.kind | b.kind;
                    let mut negative = (a.kind ^ b.kind) & NEGATIVE != 0;
                    let mut magnitude = W::from_u64(a.significand).times(b.significand);
                    let mut exponent = a.exponent + b.exponent;
                    let mut lsb = exponent - self.product_fraction_bits;
                    if scales_products {
                        let (a, b) = (dot.scale_a[k / self.scale_block], dot.scale_b[k / self.scale_block]);
                        kind |= a.kind | b.kind;
                        negative ^= (a.kind ^ b.kind) & NEGATIVE != 0;
                        magnitude = magnitude.times(a.significand).times(b.significand);
                        exponent += a.exponent + b.exponent;
                        lsb += a.exponent + b.exponent - self.scale_fraction_bits;
                    }
                    kinds |= kind;
                    let exponent = if kind & ZERO != 0 { NONE } else { exponent };
                    Aligned { class: Class::Products, negative, magnitude, lsb, exponent }
                }
                Term::PositiveZero => {
                    Aligned { class: Class::Values, negative: false, magnitude: W::ZERO, lsb: 0, exponent: NONE }
                }
                Term::C | Term::Node(_) => {
                    let number = if let Term::Node(index) = *term { &room.results[index] } else { c };
                    kinds |= number.kind;
                    let class = if number.wide { Class::Sums } else { Class::Values };
                    let negative = number.kind & NEGATIVE != 0;
                    let Number { magnitude, lsb, exponent, .. } = *number;
                    Aligned { class, negative, magnitude, lsb, exponent }
                }
            };
            highest = highest.max(aligned.exponent);
            room.terms.push(aligned);
        }
        let mut group = None;
        if adder.rules.scale == Scale::Sum
            && self.scale.is_some()
            && let Some(Term::Product(k)) = self.terms.get(node.from)
        {
            let scales = (dot.scale_a[k / self.scale_block], dot.scale_b[k / self.scale_block]);
            kinds |= scales.0.kind | scales.1.kind;
            group = Some(scales);
        }
        let overflows = adder.rules.product_overflow
            && room.terms.iter().any(|term| term.class == Class::Products && leading(term).is_some_and(|at| at >= 128));
        if kinds & SPECIAL != 0 || overflows {
            if let Some(special) = self.special(node, dot, c, room) {
                return Some(special);
            }
            // The one thing special was a scale that is infinite or an operand that the sum does not see: none such.
            return None;
        }
        self.sum(adder, node, &room.terms, highest, group)
    }

    #[inline]
    fn sum<W: Word>(
        &self,
        adder: &Adding,
        node: &Node,
        terms: &[Aligned<W>],
        highest: i32,
        group: Option<(Unpacked, Unpacked)>,
    ) -> Option<Number<W>> {
        let limit = W::BITS - node.reserve;
        let grid = match adder.one_grid {
            Some((fraction_bits, floor)) => {
                let exponent = highest.max(floor);
                (exponent != NONE).then(|| (exponent - fraction_bits, exponent))
            }
            None => grid(&adder.rules, terms),
        };
        let (total, unit) = match grid {
            Some((unit, _)) if adder.plain => {
                let mut total = W::ZERO;
                for term in terms {
                    let shift = term.lsb - unit;
                    let aligned = if shift > 0 {
                        if term.magnitude != W::ZERO && term.magnitude.length() + shift.cast_unsigned() > limit {
                            return None;
                        }
                        term.magnitude << shift.cast_unsigned().min(W::BITS - 1)
                    } else {
                        term.magnitude >> (-shift).cast_unsigned().min(W::BITS - 1)
                    };
                    if aligned.length() > limit {
                        return None;
                    }
                    total = total + if term.negative { -aligned } else { aligned };
                }
                (total, unit)
            }
            Some((unit, _)) => (align_all(&adder.rules, terms, unit, limit)?, unit),
            None => match whole_range(terms, limit) {
                Range::Fits(unit) => (align_all(&adder.rules, terms, unit, limit)?, unit),
                Range::Exceeds(unit) => {
                    let rules = &adder.rules;
                    let kept_bits = adder.float?.encoding.fraction_bits + 4;
                    let is_sum = rules.below != Below::OnesComplement
                        && rules.value_cut_bits == 0
                        && rules.ignored_values.is_none()
                        && rules.normalised_fraction_bits.is_none()
                        && group.is_none();
                    let total = if is_sum { odd_sum(terms, unit, limit)? } else { return None };
                    let length = if total < W::ZERO { (-total).length() } else { total.length() };
                    // The bit that stands for all that was lost must lie well below the last bit that is kept.
                    if length < kept_bits {
                        return None;
                    }
                    (total, unit)
                }
            },
        };
        self.finish(adder, terms, total, unit, grid, highest, group)
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn finish<W: Word>(
        &self,
        adder: &Adding,
        terms: &[Aligned<W>],
        total: W,
        unit: i32,
        grid: Option<(i32, i32)>,
        highest: i32,
        group: Option<(Unpacked, Unpacked)>,
    ) -> Option<Number<W>> {
        let mut total = total;
        if let (Some(carry_bits), Some((unit, exponent))) = (adder.rules.carry_bits, grid) {
            let width = (exponent - unit).max(0).cast_unsigned() + 1 + carry_bits;
            if width + 2 < W::BITS {
                // Two's complement of `width` bits and a sign.
                let up = W::BITS - 1 - width;
                total = (total << up) >> up;
            }
        }
        let mut negative = total < W::ZERO;
        let mut magnitude = if negative { -total } else { total };
        let mut lsb = unit;
        let mut exponent = grid.map_or(highest, |(_, exponent)| exponent);
        if let Some((a, b)) = group {
            if magnitude.length() + 16 > W::BITS {
                return None;
            }
            magnitude = magnitude.times(a.significand).times(b.significand);
            lsb += a.exponent + b.exponent - self.scale_fraction_bits;
            let any = highest != NONE && (a.kind | b.kind) & ZERO == 0;
            exponent = if any { a.exponent + b.exponent } else { NONE };
        }
        if let Some(bits) = adder.rules.normalised_fraction_bits
            && magnitude != W::ZERO
        {
            let leading = lsb + magnitude.length().cast_signed() - 1;
            let exponent = adder.rules.normalised_exponent_floor.map_or(leading, |floor| floor.max(leading));
            let unit = exponent - bits.cast_signed();
            if unit > lsb {
                let sum = Aligned { class: Class::All, negative, magnitude, lsb, exponent };
                let signed = align(&sum, unit, adder.rules.normalised_below, W::BITS - 2)?;
                negative = signed < W::ZERO;
                magnitude = if negative { -signed } else { signed };
                lsb = unit;
            }
        }
        adder.output(terms, negative, magnitude, lsb, exponent)
    }

    /// The result where a NaN or an infinity is among the terms.
    #[cold]
    #[inline(never)]
    fn special<W: Word>(
        &self,
        node: &Node,
        dot: UnpackedDot<'_>,
        c: &Number<W>,
        room: &mut Room<W>,
    ) -> Option<Number<W>> {
        let adder = &self.adders[node.adder];
        let scales_products = adder.rules.scale == Scale::Products;
        let mut causes = Causes::default();
        let mut infinities = [false, false];
        let scales_of = |k: usize| {
            let reader = self.scale?;
            let index = k / self.scale_block;
            Some([(reader.format, dot.scale_a[index]), (reader.format, dot.scale_b[index])])
        };
        for (term, aligned) in self.terms[node.from..node.to].iter().zip(&room.terms) {
            match *term {
                Term::Product(k) => {
                    let mut factors = [None; 4];
                    factors[0] = Some((self.a.format, dot.a[k]));
                    factors[1] = Some((self.b.format, dot.b[k]));
                    if scales_products && let Some([a, b]) = scales_of(k) {
                        factors[2] = Some(a);
                        factors[3] = Some(b);
                    }
                    let factors = factors.into_iter().flatten();
                    let kind = factors.clone().fold(0, |kind, (_, factor)| kind | factor.kind);
                    if kind & NAN != 0 {
                        let nan = factors.clone().find(|(_, factor)| factor.kind & NAN != 0);
                        causes.operand = causes.operand.or(nan);
                    } else if kind & INFINITE != 0 {
                        if kind & ZERO != 0 {
                            causes.invalid = true;
                        } else {
                            infinities[usize::from(aligned.negative)] = true;
                        }
                    } else if adder.rules.product_overflow && leading(aligned).is_some_and(|at| at >= 128) {
                        infinities[usize::from(aligned.negative)] = true;
                    }
                }
                Term::PositiveZero => {}
                Term::C | Term::Node(_) => {
                    let (number, format) = match *term {
                        Term::Node(index) => (&room.results[index], self.adders[self.nodes[index].adder].format),
                        _ => (c, self.c.format),
                    };
                    if number.kind & NAN != 0 {
                        if number.wide {
                            // An unrounded sum hands its causes on.
                            let earlier = room.causes[usize::try_from(number.bits).unwrap_or(0)];
                            causes.operand = causes.operand.or(earlier.operand);
                            causes.value = causes.value.or(earlier.value);
                            causes.invalid |= earlier.invalid;
                        } else {
                            let significand = number.magnitude.low_u64();
                            let nan = Unpacked { significand, exponent: 0, kind: number.kind };
                            causes.value = causes.value.or(Some((format, nan)));
                        }
                    } else if number.kind & INFINITE != 0 {
                        infinities[usize::from(number.kind & NEGATIVE != 0)] = true;
                    }
                }
            }
        }
        if adder.rules.scale == Scale::Sum
            && let Some(Term::Product(k)) = self.terms.get(node.from)
            && let Some(scales) = scales_of(*k)
        {
            let nan = scales.into_iter().find(|(_, scale)| scale.kind & NAN != 0);
            causes.value = causes.value.or(nan);
        }
        causes.invalid |= infinities == [true, true];
        let blank = Number { kind: 0, wide: true, magnitude: W::ZERO, lsb: 0, exponent: NONE, bits: 0 };
        if causes.operand.is_some() || causes.value.is_some() || causes.invalid {
            let Output::Float { .. } = adder.rules.output else {
                room.causes.push(causes);
                let bits = u64::try_from(room.causes.len() - 1).unwrap_or(0);
                return Some(Number { kind: NAN, bits, ..blank });
            };
            let bits = adder.nan_bits(&causes);
            // The exact evaluator calls it a NaN whatever its bits say.
            let read = Reader::new(adder.format, false, false).read(bits);
            if read.kind & NAN == 0 {
                return None;
            }
            let magnitude = W::from_u64(read.significand);
            return Some(Number { kind: read.kind, wide: false, magnitude, bits, ..blank });
        }
        if infinities == [false, false] {
            return None;
        }
        let negative = infinities[1];
        let kind = INFINITE | if negative { NEGATIVE } else { 0 };
        Some(match adder.rules.output {
            Output::Float { format, .. } => {
                let bits =
                    format.infinity(negative).or_else(|| format.nan()).unwrap_or_else(|| format.largest(negative));
                Number { kind, wide: false, bits, ..blank }
            }
            _ => Number { kind, ..blank },
        })
    }
}

/// Why a result is NaN: the first number of each cause, in its format.
#[derive(Clone, Copy, Default)]
struct Causes {
    operand: Option<(Format, Unpacked)>,
    value: Option<(Format, Unpacked)>,
    invalid: bool,
}

#[inline(always)]
fn leading<W: Word>(term: &Aligned<W>) -> Option<i32> {
    let length = term.magnitude.length().cast_signed();
    (length > 0).then(|| term.lsb + length - 1)
}

/// The unit and the exponent of the highest grid rule.
fn grid<W: Word>(adder: &Adder, terms: &[Aligned<W>]) -> Option<(i32, i32)> {
    let mut grid: Option<(i32, i32)> = None;
    for rule in &adder.grid {
        let mut exponent = rule.exponent_floor.unwrap_or(NONE);
        for term in terms {
            if rule.terms == Class::All || rule.terms == term.class {
                let this = match rule.exponent {
                    Exponent::Operands => term.exponent,
                    Exponent::Leading => leading(term).unwrap_or(NONE),
                };
                exponent = exponent.max(this);
            }
        }
        if exponent != NONE {
            let unit = exponent - rule.fraction_bits;
            grid = Some(grid.map_or((unit, exponent), |best| (best.0.max(unit), best.1.max(exponent))));
        }
    }
    grid
}

/// Where the bits of a sum without grid lie.
enum Range {
    /// All of them above this bit fit the word.
    Fits(i32),
    /// They do not; the word has room for those above this bit.
    Exceeds(i32),
}

#[inline]
fn whole_range<W: Word>(terms: &[Aligned<W>], limit: u32) -> Range {
    let (mut lowest, mut highest) = (i32::MAX, NONE);
    for term in terms {
        if let Some(leading) = leading(term) {
            lowest = lowest.min(term.lsb);
            highest = highest.max(leading);
        }
    }
    if lowest == i32::MAX {
        return Range::Fits(0);
    }
    let room = highest - limit.cast_signed() + 1;
    if lowest >= room { Range::Fits(lowest) } else { Range::Exceeds(room) }
}

/// The sum in whole units, its lowest bit set if anything below was lost; `None` where that cannot be said.
///
/// `x + odd(y)` is `odd(x + y)` where x is even: the odd neighbour of y, moved by an even number, is the odd neighbour
/// of the sum. So one term may be cut, if the others are whole numbers of two units.
#[inline]
fn odd_sum<W: Word>(terms: &[Aligned<W>], unit: i32, limit: u32) -> Option<W> {
    let mut total = W::ZERO;
    let mut cut = false;
    for term in terms {
        if term.magnitude == W::ZERO {
            continue;
        }
        let shift = term.lsb - unit;
        let magnitude = if shift > 0 {
            if term.magnitude.length() + shift.cast_unsigned() > limit {
                return None;
            }
            term.magnitude << shift.cast_unsigned()
        } else {
            if cut {
                return None;
            }
            cut = true;
            let shift = (-shift).cast_unsigned();
            let kept = term.magnitude >> shift.min(W::BITS - 1);
            let lost = if shift >= W::BITS - 1 { true } else { kept << shift != term.magnitude };
            if lost { kept | W::ONE } else { kept }
        };
        total = total + if term.negative { -magnitude } else { magnitude };
    }
    Some(total)
}

#[inline]
fn align_all<W: Word>(rules: &Adder, terms: &[Aligned<W>], unit: i32, limit: u32) -> Option<W> {
    // The adder's value is the last term that is one.
    let reference = rules.below == Below::OnesComplement
        && terms.iter().rev().find(|term| term.class == Class::Values).is_some_and(|term| term.negative);
    let counts_signs = rules.below == Below::OnesComplement && terms.iter().any(|term| term.magnitude != W::ZERO);
    let mut total = W::ZERO;
    for term in terms {
        let cut = if term.class == Class::Values { rules.value_cut_bits } else { 0 };
        if term.class == Class::Values
            && let Some(ignored) = rules.ignored_values
            && ignored.unless_grid_at_most.is_none_or(|at_most| unit > at_most)
            && leading(term).is_some_and(|at| at < unit + cut.cast_signed() - ignored.below_bits)
        {
            continue;
        }
        let mut aligned = align(term, unit + cut.cast_signed(), rules.below, limit.saturating_sub(cut))?;
        aligned = aligned << cut.min(W::BITS - 1);
        if counts_signs && term.negative != reference {
            aligned = if reference { aligned + W::ONE } else { aligned - W::ONE };
        }
        total = total + aligned;
    }
    Some(total)
}

/// A term as a whole number of `2^unit`, if that has at most `limit` bits.
#[inline]
fn align<W: Word>(term: &Aligned<W>, unit: i32, below: Below, limit: u32) -> Option<W> {
    if term.magnitude == W::ZERO {
        return Some(W::ZERO);
    }
    let shift = term.lsb - unit;
    if shift >= 0 {
        if term.magnitude.length() + shift.cast_unsigned() > limit {
            return None;
        }
        let magnitude = term.magnitude << shift.cast_unsigned();
        return Some(if term.negative { -magnitude } else { magnitude });
    }
    let shift = (-shift).cast_unsigned();
    let kept = term.magnitude >> shift.min(W::BITS - 1);
    if kept.length() > limit {
        return None;
    }
    let signed = if term.negative { -kept } else { kept };
    match below {
        Below::Truncate | Below::OnesComplement => return Some(signed),
        _ => {}
    }
    let lost = if shift >= W::BITS - 1 { term.magnitude } else { term.magnitude - (kept << shift) };
    if lost == W::ZERO {
        return Some(signed);
    }
    Some(match below {
        Below::Truncate | Below::OnesComplement => signed,
        Below::Floor => signed - if term.negative { W::ONE } else { W::ZERO },
        Below::Nearest | Below::NearestAway => {
            // Beyond the word, half a unit is more than any term.
            let up = shift < W::BITS - 1 && {
                let half = W::ONE << (shift - 1);
                let tied_up = below == Below::NearestAway || kept & W::ONE == W::ONE;
                lost > half || (lost == half && tied_up)
            };
            let kept = if up { kept + W::ONE } else { kept };
            if term.negative { -kept } else { kept }
        }
        Below::Sticky => {
            let kept = kept | W::ONE;
            if term.negative { -kept } else { kept }
        }
    })
}

impl Adding {
    fn new(rules: &Adder) -> Self {
        let float = match rules.output {
            Output::Float { format, fraction_bits, rounding, overflow, subnormals } => {
                let encoding = cut_encoding(format, fraction_bits);
                let largest =
                    encoding.encode(false, 1, 5000, Rounding::TowardZero, Overflow::Saturate, Subnormals::Keep).bits;
                Some(Rounder {
                    encoding,
                    rounding,
                    overflow,
                    subnormals,
                    min_exponent: encoding.min_exponent(),
                    largest: largest >> encoding.unread_bits,
                    sign_at: format.bits() - 1,
                    magnitude_mask: format.mask() >> 1,
                })
            }
            _ => None,
        };
        let format = rules.output_format().filter(|format| !format.is_integer()).unwrap_or(Format::F32);
        let one_grid = match &rules.grid[..] {
            [rule] if rule.terms == Class::All && rule.exponent == Exponent::Operands => {
                Some((rule.fraction_bits, rule.exponent_floor.unwrap_or(NONE)))
            }
            _ => None,
        };
        let plain = rules.below == Below::Truncate && rules.value_cut_bits == 0 && rules.ignored_values.is_none();
        let format = rules.output_format().unwrap_or(format);
        Self { plain, one_grid, float, format, encoding: format.as_float(), rules: rules.clone() }
    }

    #[inline]
    fn output<W: Word>(
        &self,
        terms: &[Aligned<W>],
        negative: bool,
        magnitude: W,
        lsb: i32,
        exponent: i32,
    ) -> Option<Number<W>> {
        let sign = |negative: bool| if negative { NEGATIVE } else { 0 };
        Some(match (self.rules.output, &self.float) {
            (Output::Float { .. }, Some(rounder)) => {
                let negative = if magnitude == W::ZERO { self.zero_is_negative(terms) } else { negative };
                let mut bits = rounder.encode(negative, magnitude, lsb);
                if self.rules.zero == ZeroSign::Positive && bits & rounder.magnitude_mask == 0 {
                    bits = 0;
                }
                self.read(bits)
            }
            (Output::Integer { format, saturates }, _) => {
                // Integers have no bits below 1, unless a grid made some.
                if lsb != 0 {
                    return None;
                }
                self.read(integer(format, saturates, negative, magnitude))
            }
            _ => {
                let zero = if magnitude == W::ZERO { ZERO } else { 0 };
                // The exact evaluator's sum of no magnitude is not negative.
                Number { kind: sign(negative) | zero, wide: true, magnitude, lsb, exponent, bits: 0 }
            }
        })
    }

    /// A result in the adder's format, read back.
    #[inline]
    fn read<W: Word>(&self, bits: u64) -> Number<W> {
        let read = Reader::new(self.format, false, false).read(bits);
        let fraction_bits = self.encoding.map_or(0, |encoding| encoding.fraction_bits).cast_signed();
        Number {
            kind: read.kind,
            wide: false,
            magnitude: W::from_u64(read.significand),
            lsb: read.exponent - fraction_bits,
            exponent: if read.kind & ZERO != 0 { NONE } else { read.exponent },
            bits,
        }
    }

    fn zero_is_negative<W: Word>(&self, terms: &[Aligned<W>]) -> bool {
        if self.rules.zero == ZeroSign::Positive {
            return false;
        }
        let zeros_of = |negative: bool| terms.iter().all(|term| term.magnitude == W::ZERO && term.negative == negative);
        if zeros_of(true) {
            true
        } else if zeros_of(false) {
            false
        } else {
            self.float.is_some_and(|rounder| rounder.rounding == Rounding::Down)
        }
    }

    fn nan_bits(&self, causes: &Causes) -> u64 {
        let rules = &self.rules.nan;
        let of = |(from, nan): (Format, Unpacked), fixed: Option<u64>| {
            fixed.unwrap_or_else(|| self.quieted(from, nan.kind, nan.significand))
        };
        let first = rules.order.iter().find_map(|cause| match cause {
            NanCause::Operand => causes.operand.map(|nan| of(nan, rules.operand)),
            NanCause::Value => causes.value.map(|nan| of(nan, rules.value)),
            NanCause::Invalid => causes.invalid.then_some(rules.invalid),
        });
        first.unwrap_or(rules.invalid)
    }

    /// A NaN in the adder's output format: sign and payload kept, payload at the top of the fraction, quiet bit set.
    fn quieted(&self, from: Format, kind: u32, payload: u64) -> u64 {
        let (to, otherwise) = (self.format, self.rules.nan.invalid);
        let ieee = |format: Format| format.infinity(false).is_some();
        let Some(encoding) = to.as_float().filter(|_| ieee(to) && ieee(from)) else { return otherwise };
        let Some(quiet) = to.nan() else { return otherwise };
        let (from, into) = (from.fraction_bits(), encoding.fraction_bits);
        let payload = if into >= from { payload << (into - from) } else { payload >> (from - into) };
        quiet | (payload << encoding.unread_bits) | u64::from(kind & NEGATIVE != 0) << (to.bits() - 1)
    }
}

impl Rounder {
    #[inline]
    fn encode<W: Word>(&self, negative: bool, magnitude: W, lsb: i32) -> u64 {
        let encoding = &self.encoding;
        let length = magnitude.length();
        let leading = lsb + length.cast_signed() - 1;
        if length > 0 && leading >= self.min_exponent && leading + encoding.bias < 1 << encoding.exponent_bits {
            let fraction_bits = encoding.fraction_bits;
            let significand = if length - 1 <= fraction_bits {
                magnitude.low_u64() << (fraction_bits - (length - 1))
            } else {
                let drop = length - 1 - fraction_bits;
                let kept = (magnitude >> drop).low_u64();
                let lost = magnitude - ((magnitude >> drop) << drop);
                let up = match self.rounding {
                    Rounding::TowardZero => false,
                    Rounding::NearestEven => {
                        let half = W::ONE << (drop - 1);
                        lost > half || (lost == half && kept & 1 == 1)
                    }
                    Rounding::Down => negative && lost != W::ZERO,
                    Rounding::Up => !negative && lost != W::ZERO,
                    Rounding::ToOdd => lost != W::ZERO && kept & 1 == 0,
                };
                kept + u64::from(up)
            };
            // A carry out of the significand raises the exponent by one.
            let biased = u64::from((leading + encoding.bias - 1).cast_unsigned());
            let field = (biased << fraction_bits) + significand;
            if field <= self.largest && leading + encoding.bias >= 1 {
                let sign = u64::from(negative && encoding.is_signed()) << self.sign_at;
                return field << encoding.unread_bits | sign;
            }
        }
        self.encode_any(negative, magnitude.to_u128(), lsb)
    }

    #[inline(never)]
    fn encode_any(&self, negative: bool, magnitude: u128, lsb: i32) -> u64 {
        self.encoding.encode(negative, magnitude, lsb, self.rounding, self.overflow, self.subnormals).bits
    }
}

fn integer<W: Word>(format: Format, saturates: bool, negative: bool, magnitude: W) -> u64 {
    let magnitude = magnitude.to_u128();
    if saturates {
        format.encode(negative, magnitude, 0, Rounding::TowardZero, Overflow::Saturate, Subnormals::Keep).bits
    } else {
        let wide = if negative { magnitude.wrapping_neg() } else { magnitude };
        u64::try_from(wide & u128::from(format.mask())).unwrap_or(0)
    }
}
