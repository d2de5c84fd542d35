//! A plan made ready, and its dots.

use mxprobe_api::{Format, OperationId};

use super::{
    align::{Range, align, align_all, grid, odd_sum, whole_range},
    output::{Adding, Causes},
    wide::Wide,
    word::{Aligned, NONE, Number, Word, leading},
};
use crate::{
    adder::{Adder, Below, Class, Scale},
    fast::unpack::{NEGATIVE, Reader, SPECIAL, Unpacked, ZERO},
    model::Unit,
    tree::{Plan, Term},
};

/// One plan, made ready.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Compiled {
    pub(super) nodes: Vec<Node>,
    pub(super) terms: Vec<Term>,
    pub(super) adders: Vec<Adding>,
    pub(in crate::fast) a: Reader,
    pub(in crate::fast) b: Reader,
    pub(in crate::fast) c: Reader,
    pub(in crate::fast) scale: Option<Reader>,
    pub(super) scale_block: usize,
    pub(super) product_fraction_bits: i32,
    pub(super) scale_fraction_bits: i32,
    pub(super) c_fraction_bits: i32,
    /// The most terms that one node has.
    pub(super) widest: usize,
    /// Whether every product fits an i64, and an i128.
    pub(super) fits: [bool; 2],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) adder: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    /// Bits that the sum of so many terms may grow by, and one for a sign.
    pub(super) reserve: u32,
}

/// The operands of one dot, taken apart.
#[derive(Clone, Copy)]
pub(in crate::fast) struct UnpackedDot<'a> {
    pub a: &'a [Unpacked],
    pub b: &'a [Unpacked],
    pub c: Unpacked,
    pub scale_a: &'a [Unpacked],
    pub scale_b: &'a [Unpacked],
}

/// Room for the terms and the results of a dot.
pub(in crate::fast) struct Scratch {
    pub(super) narrow: Room<i64>,
    pub(super) wide: Room<i128>,
    /// Few dots need these: their room is made where one does.
    pub(super) wider: Room<Wide<5>>,
    pub(super) widest: Room<Wide<10>>,
}

pub(super) struct Room<W> {
    pub(super) terms: Vec<Aligned<W>>,
    pub(super) results: Vec<Number<W>>,
    /// Of unrounded sums that are NaN.
    pub(super) causes: Vec<Causes>,
}

impl<W: Word> Room<W> {
    pub(super) fn new(widest: usize, nodes: usize) -> Self {
        Self { terms: Vec::with_capacity(widest), results: Vec::with_capacity(nodes), causes: Vec::new() }
    }
}

/// The bits that a format's significand has.
pub(super) fn significand_bits(format: Format) -> u32 {
    if format.is_integer() { format.bits() } else { format.fraction_bits() + 1 }
}

impl Compiled {
    pub(in crate::fast) fn new(adders: &[Adder], unit: &Unit, plan: &Plan, id: &OperationId) -> Self {
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

    pub(in crate::fast) fn scratch(&self) -> Scratch {
        let (widest, nodes) = (self.widest, self.nodes.len());
        Scratch {
            narrow: Room::new(widest, nodes),
            wide: Room::new(widest, nodes),
            wider: Room::new(0, 0),
            widest: Room::new(0, 0),
        }
    }

    /// d of one dot, or `None` where no word is wide enough.
    #[inline]
    pub(in crate::fast) fn evaluate(&self, dot: UnpackedDot<'_>, scratch: &mut Scratch) -> Option<u64> {
        if self.fits[0]
            && let Some(bits) = self.run(dot, &mut scratch.narrow)
        {
            return Some(bits);
        }
        if !self.fits[1] {
            return None;
        }
        self.run(dot, &mut scratch.wide).or_else(|| self.in_wide_words(dot, scratch))
    }

    #[cold]
    #[inline(never)]
    fn in_wide_words(&self, dot: UnpackedDot<'_>, scratch: &mut Scratch) -> Option<u64> {
        self.run(dot, &mut scratch.wider).or_else(|| self.run(dot, &mut scratch.widest))
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
}
