//! Plans in which every node is a sum on a grid that fits 52 bits: AMD's units, block scales of sums, and similar.

use std::sync::Arc;

use mxprobe_api::{Elements, Format, OperationId, Overflow, Rounding, Specials, Subnormals};

use super::{
    drive::{Kernel, Source},
    floats::store_floats,
    operand::{Operand, bits_of},
    path::Path,
    simd::{self, Piece, Split},
    tree::Flush,
    unpack::{NEGATIVE, Reader, SPECIAL, Unpacked, ZERO},
};
use crate::{
    adder::{Adder, Below, Class, Exponent, Output, Scale, ZeroSign},
    model::Unit,
    tree::{Plan, Term},
};

/// A plan of sums on grids.
#[derive(Clone, Debug)]
pub(super) struct SumsPlan {
    pub nodes: Vec<SumNode>,
    len: usize,
    a: Reader,
    b: Reader,
    pub scale: Option<(Reader, usize)>,
    c: Operand,
    d: Format,
    pub context: Context,
}

/// The data that every node needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// The numbers of products in one operation and of blocks that share a scale.
    pub len: usize,
    pub blocks: usize,
    /// The number of consecutive products that share a scale.
    pub block: usize,
    /// The fraction bits of both factors together, and of both scales together.
    pub fraction_bits: i64,
    pub scale_fraction_bits: i64,
    /// The smallest normal exponent of c.
    pub least: i64,
    pub flush_c: Flush,
}

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct SumNode {
    pub terms: Vec<SumTerm>,
    /// The grid rules. Empty if every term is a whole number of `2^unit`, or there is only one term.
    pub rules: Vec<SumRule>,
    pub unit: i64,
    pub below: Below,
    pub value_cut_bits: i64,
    pub ignored: Option<(i64, Option<i64>)>,
    /// The number of fraction bits kept of the normalised sum, and the lowest exponent from which they count.
    pub normalised: Option<(i64, i64)>,
    pub normalised_floors: bool,
    pub scales_products: bool,
    pub scales_sum: bool,
    pub product_overflow: bool,
    /// An exact sum of any width.
    pub without_grid: bool,
    /// The number of bits that hold any aligned term and the whole sum.
    pub width: i64,
    pub output: SumOutput,
}

/// A term and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SumTerm {
    Product(usize),
    C,
    /// An earlier node, and whether it was rounded.
    Node(usize, bool),
}

/// A grid rule for the terms at these indices.
#[derive(Clone, Debug)]
pub(crate) struct SumRule {
    pub terms: Vec<usize>,
    pub leading: bool,
    pub fraction_bits: i64,
    pub floor: i64,
}

/// The format of a node's result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SumOutput {
    Wide,
    Float { fraction_bits: i64, least: i64, most: i64, nearest: bool, flush: bool, positive_zero: bool },
}

/// The exponent of a zero: so low that the sum of two such exponents is below every other sum too.
pub(crate) const ABSENT: i64 = -4000;

/// The number of bits that a sum may have to fit f64.
const WIDTH: i64 = 51;

fn log2_up(count: usize) -> i64 {
    i64::from(usize::BITS - (count.max(1) - 1).leading_zeros())
}

impl SumsPlan {
    /// Compiles a plan to sums, if all of them fit.
    pub(super) fn of(adders: &[Arc<Adder>], unit: &Unit, plan: &Plan, id: &OperationId, path: Path) -> Option<Self> {
        // Without 64-bit shifts by lane, computing one dot at a time is as fast.
        if path < Path::Avx2 || !matches!(id.d, Format::F32 | Format::F16 | Format::BF16) {
            return None;
        }
        let c = Operand::new(id.c, false, false)?;
        let (a_encoding, b_encoding) = (id.a.as_float()?, id.b.as_float()?);
        let narrow = |format: Format| format.fraction_bits() <= 11 && Operand::new(format, false, false).is_some();
        if !narrow(id.a) || !narrow(id.b) {
            return None;
        }
        let scale = id.block_scale();
        let scale_encoding = match scale {
            Some(scale) => Some(scale.format.as_float().filter(|encoding| encoding.specials != Specials::Ieee)?),
            None => None,
        };
        let len = id.shape.sizes().2;
        let block = scale.map_or(len, |scale| scale.block);
        let scale_bits = scale_encoding.map_or(0, |encoding| if encoding.fraction_bits > 0 { 2 } else { 0 });
        let least_c = i64::from(id.c.as_float()?.min_exponent());
        let mut nodes: Vec<SumNode> = Vec::new();
        // A node's value is below 2^(its exponent + this).
        let mut heads: Vec<i64> = Vec::new();
        for node in &plan.nodes {
            let adder = &adders[node.adder];
            let covered = matches!(adder.below, Below::Truncate | Below::Floor | Below::OnesComplement);
            if adder.carry_bits.is_some() || !covered {
                return None;
            }
            let mut terms = Vec::new();
            for term in &node.terms {
                terms.push(match *term {
                    Term::Product(k) => SumTerm::Product(k),
                    Term::C => SumTerm::C,
                    Term::Node(index) => {
                        SumTerm::Node(index, !matches!(adders[plan.nodes[index].adder].output, Output::Wide))
                    }
                    Term::PositiveZero => return None,
                });
            }
            let class = |term: &SumTerm| match term {
                SumTerm::Product(_) => Class::Products,
                SumTerm::C | SumTerm::Node(_, true) => Class::Values,
                SumTerm::Node(_, false) => Class::Sums,
            };
            let scales_products = scale.is_some() && adder.scale == Scale::Products;
            let scales_sum = scale.is_some() && adder.scale == Scale::Sum;
            let head = |term: &SumTerm| match *term {
                SumTerm::Product(_) => 2 + if scales_products { scale_bits } else { 0 },
                SumTerm::C | SumTerm::Node(_, true) => 1,
                SumTerm::Node(index, false) => heads[index],
            };
            // Rounding down or to the one's complement adds up to one unit per term.
            let growth = log2_up(terms.len()) + i64::from(adder.below != Below::Truncate);
            let mut rules = Vec::new();
            for rule in &adder.grid {
                let listed: Vec<usize> = (0..terms.len())
                    .filter(|index| rule.terms == Class::All || rule.terms == class(&terms[*index]))
                    .collect();
                rules.push(SumRule {
                    terms: listed,
                    leading: rule.exponent == Exponent::Leading,
                    fraction_bits: i64::from(rule.fraction_bits),
                    floor: rule.exponent_floor.map_or(2 * ABSENT, i64::from),
                });
            }
            let mut unit_of_sum = 0;
            let mut head_of_sum = 0;
            let mut width = 0;
            let mut without_grid = false;
            if rules.is_empty() {
                let is_bare = adder.below != Below::OnesComplement
                    && adder.value_cut_bits == 0
                    && adder.ignored_values.is_none()
                    && adder.normalised_fraction_bits.is_none();
                if !is_bare {
                    return None;
                }
                let is_product = |term: &SumTerm| matches!(term, SumTerm::Product(_));
                let all_products = terms.iter().all(is_product);
                if all_products && scales_sum {
                    // Every product is a multiple of the product of the smallest values.
                    let (low_a, low_b) = (i64::from(a_encoding.min_exponent()), i64::from(b_encoding.min_exponent()));
                    let high = |format: Format| match format.decode(format.largest(false)) {
                        mxprobe_api::Decoded::Finite { exponent, .. } => i64::from(exponent),
                        _ => 0,
                    };
                    let fraction_bits = i64::from(id.a.fraction_bits() + id.b.fraction_bits());
                    unit_of_sum = low_a + low_b - fraction_bits;
                    head_of_sum = high(id.a) + high(id.b) + 2 + growth + scale_bits;
                    width = head_of_sum - unit_of_sum + 8;
                    if width > WIDTH {
                        return None;
                    }
                } else if scale.is_none()
                    && adder.output != Output::Wide
                    && (terms.len() > 1 || terms.iter().any(is_product))
                {
                    without_grid = true;
                } else if terms.len() != 1
                    || scales_sum
                    || matches!(terms[0], SumTerm::Product(_))
                    || adder.output == Output::Wide
                {
                    return None;
                }
            } else {
                if scales_sum {
                    return None;
                }
                for (index, term) in terms.iter().enumerate() {
                    // The rules that cover the term bound it.
                    let bound = rules
                        .iter()
                        .filter(|rule| rule.terms.contains(&index))
                        .map(|rule| rule.fraction_bits + if rule.leading { 1 } else { head(term) })
                        .min()?;
                    if bound + growth > WIDTH {
                        return None;
                    }
                    width = width.max(bound + growth);
                    head_of_sum = head_of_sum.max(head(term) + growth);
                }
            }
            let output = match adder.output {
                Output::Wide => SumOutput::Wide,
                Output::Float { format, fraction_bits, rounding, overflow, subnormals } => {
                    // Results out of range and flushed ones are left to another path, so their treatment does not
                    // matter.
                    let _: Overflow = overflow;
                    let encoding = format.as_float()?;
                    let nearest = match rounding {
                        Rounding::NearestEven => true,
                        Rounding::TowardZero => false,
                        _ => return None,
                    };
                    if !matches!(format, Format::F32 | Format::F16 | Format::BF16) {
                        return None;
                    }
                    SumOutput::Float {
                        fraction_bits: i64::from(fraction_bits),
                        least: i64::from(encoding.min_exponent()),
                        most: i64::from(encoding.max_exponent()),
                        nearest,
                        flush: subnormals != Subnormals::Keep,
                        positive_zero: adder.zero == ZeroSign::Positive,
                    }
                }
                Output::Integer { .. } => return None,
            };
            let normalised = adder
                .normalised_fraction_bits
                .map(|bits| (i64::from(bits), adder.normalised_exponent_floor.map_or(2 * ABSENT, i64::from)));
            let normalised_floors = match (normalised, adder.normalised_below) {
                (None, _) | (_, Below::Truncate | Below::OnesComplement) => false,
                (_, Below::Floor) => true,
                _ => return None,
            };
            heads.push(head_of_sum);
            nodes.push(SumNode {
                terms,
                rules,
                unit: unit_of_sum,
                below: adder.below,
                value_cut_bits: i64::from(adder.value_cut_bits),
                ignored: adder
                    .ignored_values
                    .map(|rule| (i64::from(rule.below_bits), rule.unless_grid_at_most.map(i64::from))),
                normalised,
                normalised_floors,
                scales_products,
                scales_sum,
                product_overflow: adder.product_overflow,
                without_grid,
                width,
                output,
            });
        }
        let flush_c = match (unit.flush.c, unit.flush.to_positive) {
            (false, _) => Flush::None,
            (true, false) => Flush::Signed,
            (true, true) => Flush::Positive,
        };
        if (flush_c != Flush::None && least_c != -126) || (len > block && !len.is_multiple_of(block)) {
            return None;
        }
        let reader = |format: Format, flush: bool| Reader::new(format, flush, unit.flush.to_positive);
        let fraction_bits = id.a.fraction_bits() + id.b.fraction_bits();
        Some(Self {
            nodes,
            len,
            a: reader(id.a, unit.flush.a),
            b: reader(id.b, unit.flush.b),
            scale: scale.map(|scale| (reader(scale.format, false), scale.block)),
            c,
            d: id.d,
            context: Context {
                len,
                blocks: if scale.is_some() { len.div_ceil(block) } else { 0 },
                block,
                fraction_bits: i64::from(fraction_bits),
                scale_fraction_bits: scale_encoding.map_or(0, |encoding| i64::from(2 * encoding.fraction_bits)),
                least: least_c,
                flush_c,
            },
        })
    }
}

impl SumsPlan {
    /// Whether a node is too wide for the kernel of sums.
    pub(super) fn is_too_wide(&self) -> bool {
        self.nodes.iter().any(|node| node.without_grid)
    }
}

/// An element as the three words that lanes take: significand, exponent, and −1 for a negative sign.
#[inline(always)]
fn split(element: Unpacked) -> ([i32; 3], bool) {
    let special = element.kind & SPECIAL != 0;
    let none = special || element.kind & ZERO != 0;
    let exponent = if none { i32::try_from(ABSENT).unwrap_or(i32::MIN) } else { element.exponent };
    let significand = if none { 0 } else { i32::try_from(element.significand).unwrap_or(0) };
    ([significand, exponent, -i32::from(element.kind & NEGATIVE != 0)], special)
}

impl Kernel for SumsPlan {
    type Accumulator = f32;
    type A = Split;
    type B = Split;

    fn pack_a(&self, from: &Source<'_>, first: usize, rows: usize, steps: usize) -> (Split, Vec<bool>) {
        let k = from.matrices.k;
        let padded = steps * self.len;
        let blocks = steps * self.context.blocks;
        let mut packed = Split::default();
        (packed.k, packed.blocks) = (padded, blocks);
        let mut special_rows = Vec::with_capacity(rows);
        let mut bits = vec![0; padded];
        for row in 0..rows {
            bits_of(from.matrices.a, from.row_of_a(first + row), &mut bits[..k]);
            let mut any = false;
            for bits in &bits {
                let (words, special) = split(self.a.read(u64::from(*bits)));
                packed.push(words);
                any |= special;
            }
            if let Some((reader, _)) = self.scale {
                for index in 0..blocks {
                    let bits = from.scale_of_a(first + row, index).unwrap_or(reader.format.one());
                    let (words, special) = split(reader.read(bits));
                    packed.push_scale(words);
                    any |= special;
                }
            }
            special_rows.push(any);
        }
        (packed, special_rows)
    }

    fn pack_b(&self, from: &Source<'_>, first: usize, panel: usize, steps: usize, into: &mut Split) -> u64 {
        let (k, n) = (from.matrices.k, from.matrices.n);
        let columns = panel.min(n - first);
        into.clear();
        (into.k, into.blocks, into.panel) = (steps * self.len, steps * self.context.blocks, panel);
        let mut left = 0;
        let mut bits = vec![0; panel];
        for row in 0..into.k {
            if row < k {
                bits_of(from.matrices.b, from.row_of_b(row) + first, &mut bits[..columns]);
            } else {
                bits.fill(0);
            }
            for (column, bits) in bits.iter().enumerate() {
                let (words, special) = split(self.b.read(u64::from(*bits)));
                into.push(words);
                left |= u64::from(special) << column;
            }
        }
        if let Some((reader, _)) = self.scale {
            for index in 0..into.blocks {
                for column in 0..panel {
                    let bits = from.scale_of_b(index, first + column).unwrap_or(reader.format.one());
                    let (words, special) = split(reader.read(bits));
                    into.push_scale(words);
                    left |= u64::from(special) << column;
                }
            }
        }
        left
    }

    fn load_c(&self, from: &Elements, start: usize, into: &mut [f32]) -> u64 {
        let mut bits = vec![0; into.len()];
        bits_of(from, start, &mut bits);
        let mut special = 0;
        for (column, (slot, bits)) in into.iter_mut().zip(bits).enumerate() {
            let value = self.c.value(bits);
            special |= u64::from(!value.is_finite()) << column;
            *slot = if value.is_finite() { value } else { 0.0 };
        }
        special
    }

    fn store_d(&self, from: &[f32], into: &mut [u8]) {
        store_floats(self.d, from, into);
    }

    fn run(&self, piece: Piece<'_, Split, Split, f32>) {
        simd::run_sums(&self.nodes, &self.context, piece);
    }
}
