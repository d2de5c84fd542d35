//! Plans of sums on grids that lanes of 32 bits and halves of f64 hold: the units of AMD, and sums that a scale multiplies.

use mxprobe_api::{Elements, Format, OperationId, Overflow};

use super::{
    drive::{Kernel, Source},
    operand::{ABSENT, INFINITE, NAN, Operand, bits_of},
    simd::{self, Factors, LEAST_UNIT_OF_VALUES, Piece, Vectorised, vectorised},
    sums::{SumNode, SumOutput, SumTerm, SumsPlan},
    tree::Flush,
    unpack::{self, Reader, SPECIAL},
};
use crate::{
    adder::{Adder, Below, NanCause, Output, Scale, ZeroSign},
    model::Unit,
    tree::Plan,
};

/// The most nodes of one operation, and the most products of one node.
pub(crate) const MOST_NODES: usize = 16;
pub(crate) const MOST_PRODUCTS: usize = 32;

/// A plan of sums on grids.
#[derive(Clone, Debug)]
pub(super) struct GridsPlan {
    nodes: Vec<GridNode>,
    a: Operand,
    b: Operand,
    c: Format,
    d: Format,
    scale: Option<(Reader, usize)>,
    context: Context,
}

/// What every node needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Products in one operation, blocks that share a scale, and sums that one multiplies.
    pub len: usize,
    pub blocks: usize,
    pub masks: usize,
    /// The smallest normal exponent of c.
    pub least: i32,
    pub flush_c: Flush,
}

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct GridNode {
    pub width: GridWidth,
    /// The k of each, and how many they are.
    pub products: Vec<usize>,
    pub product_count: i32,
    pub others: Vec<GridTerm>,
    pub rules: Vec<GridRule>,
    /// Whether a rule looks at the leading ones of products.
    pub leads: bool,
    /// The least unit, where the node has a value whose power of two is split in halves.
    pub least_unit: Option<i32>,
    pub below: Below,
    pub value_cut_bits: i32,
    /// `2^value_cut_bits`.
    pub value_cut_unit: f64,
    pub ignored: Option<(i32, Option<i32>)>,
    pub normalised: Option<Normalised>,
    pub product_overflow: bool,
    pub output: GridOutput,
    pub flush: Flush,
    pub positive_zero: bool,
    /// The smallest normal exponent of its format, if it is a term of another node that is not the next operation's.
    pub read_again: Option<i32>,
    /// The scales' block, and the number of the node among those that have one.
    pub scale_block: usize,
    pub mask: usize,
    /// What comes of NaN, in order: bits as an f32, or `None` for the NaN itself made quiet.
    pub nan: Vec<(NanCause, Option<i32>)>,
    /// Whether there is one value, whose NaN it would be.
    pub quiet_values: bool,
}

/// How a node is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GridWidth {
    /// One value, these of whose bits are kept.
    Cut(i32),
    /// Products whose sum is exact in f32, and a scale.
    Exact,
    /// In i32.
    Words,
    /// In f64, without products.
    Doubles,
}

/// A term that is no product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GridTerm {
    C,
    /// A rounded result of an earlier node.
    Value(usize),
    /// An unrounded sum in words.
    Sum(usize),
    /// A scaled sum of products.
    Group(usize),
}

/// A grid rule for the products, if it sees them, and the other terms whose numbers are listed.
#[derive(Clone, Debug)]
pub(crate) struct GridRule {
    pub products: bool,
    pub others: Vec<usize>,
    pub leading: bool,
    pub fraction_bits: i32,
    pub floor: i32,
}

/// How a normalised sum is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Normalised {
    pub least_unit: i32,
    /// `2^−bits`, the last place kept of 1.
    pub last_place: f64,
    pub floors: bool,
}

/// What comes out of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GridOutput {
    Wide,
    /// To nearest even.
    F16,
    /// To nearest even or toward zero.
    F32 {
        toward_zero: bool,
    },
}

fn narrow(value: i64) -> i32 {
    i32::try_from(value.clamp(2 * i64::from(ABSENT), 1 << 20)).unwrap_or(0)
}

/// `2^x`.
fn power(x: i32) -> f64 {
    f64::from(x).exp2()
}

/// A NaN of f32, f16 or bf16 as that of an f32 which becomes it.
fn nan_as_f32(format: Format, bits: u64) -> Option<i32> {
    let bits = u32::try_from(bits).ok()?;
    let wide = match format {
        Format::F32 => bits,
        Format::BF16 => bits << 16,
        Format::F16 => (bits & 0x8000) << 16 | 0x7f80_0000 | (bits & 0x3ff) << 13,
        _ => return None,
    };
    (wide & 0x7fff_ffff > 0x7f80_0000).then_some(wide.cast_signed())
}

impl GridsPlan {
    /// A plan of sums in these lanes, if all of its nodes fit them.
    pub(super) fn of(sums: &SumsPlan, adders: &[Adder], unit: &Unit, plan: &Plan, id: &OperationId) -> Option<Self> {
        if plan.nodes.len() > MOST_NODES || id.a.fraction_bits() + id.b.fraction_bits() > 22 {
            return None;
        }
        let operand = |format: Format, flush: bool| Operand::new(format, flush, unit.flush.to_positive);
        let (a, b) = (operand(id.a, unit.flush.a)?, operand(id.b, unit.flush.b)?);
        if !matches!(id.c, Format::F32 | Format::F16 | Format::BF16) {
            return None;
        }
        let mut nodes: Vec<GridNode> = Vec::new();
        let mut masks = 0;
        for (index, sum) in sums.nodes.iter().enumerate() {
            let mut node = Self::node(sums, sum, &nodes, &adders[plan.nodes[index].adder], id)?;
            if node.width == GridWidth::Exact {
                node.mask = masks;
                masks += 1;
            }
            nodes.push(node);
        }
        for index in 0..nodes.len() {
            let is_term = nodes.iter().any(|node| node.others.contains(&GridTerm::Value(index)));
            if is_term {
                let format = adders[plan.nodes[index].adder].float_format()?;
                nodes[index].read_again = Some(format.as_float()?.min_exponent());
            }
        }
        // Values and significands are not packed side by side.
        let exact = nodes.iter().filter(|node| node.width == GridWidth::Exact).count();
        let with_products = nodes.iter().filter(|node| !node.products.is_empty()).count();
        if exact != 0 && exact != with_products {
            return None;
        }
        let context = Context {
            len: sums.context.len,
            blocks: sums.context.blocks,
            masks,
            least: narrow(sums.context.least),
            flush_c: sums.context.flush_c,
        };
        Some(Self { nodes, a, b, c: id.c, d: id.d, scale: sums.scale, context })
    }

    fn node(sums: &SumsPlan, sum: &SumNode, before: &[GridNode], adder: &Adder, id: &OperationId) -> Option<GridNode> {
        if sum.scales_products {
            return None;
        }
        let mut products = Vec::new();
        let mut others = Vec::new();
        for term in &sum.terms {
            match *term {
                SumTerm::Product(k) => products.push(k),
                SumTerm::C => others.push(GridTerm::C),
                SumTerm::Node(index, true) => others.push(GridTerm::Value(index)),
                SumTerm::Node(index, false) if before[index].width == GridWidth::Exact => {
                    others.push(GridTerm::Group(index));
                }
                SumTerm::Node(index, false) => others.push(GridTerm::Sum(index)),
            }
        }
        let is_value = |term: &GridTerm| matches!(term, GridTerm::C | GridTerm::Value(_));
        let values = others.iter().filter(|term| is_value(term)).count();
        // Products stand first in the listing of no rule; the other terms have numbers of their own.
        let number = |at: usize| sum.terms[..at].iter().filter(|term| !matches!(term, SumTerm::Product(_))).count();
        let rules: Vec<GridRule> = sum
            .rules
            .iter()
            .map(|rule| GridRule {
                products: rule.terms.iter().any(|at| matches!(sum.terms[*at], SumTerm::Product(_))),
                others: rule
                    .terms
                    .iter()
                    .filter(|at| !matches!(sum.terms[**at], SumTerm::Product(_)))
                    .map(|at| number(*at))
                    .collect(),
                leading: rule.leading,
                fraction_bits: narrow(rule.fraction_bits),
                floor: narrow(rule.floor),
            })
            .collect();
        let leads = rules.iter().any(|rule| rule.leading && rule.products);
        // The leading one of a value is read off its exponent, so it must be a normal f32 where that matters.
        let is_normal = |term: &GridTerm| match *term {
            GridTerm::C => sums.context.flush_c != Flush::None || id.c == Format::F16,
            GridTerm::Value(index) => before[index].flush != Flush::None || before[index].output == GridOutput::F16,
            GridTerm::Sum(_) | GridTerm::Group(_) => false,
        };
        let is_readable = |rule: &GridRule| {
            !rule.leading
                || rule
                    .others
                    .iter()
                    .all(|at| is_normal(&others[*at]) || (is_value(&others[*at]) && rule.floor >= -126))
        };
        if !rules.iter().all(is_readable) || products.len() > MOST_PRODUCTS {
            return None;
        }
        let least_kept = rules.iter().map(|rule| rule.floor - rule.fraction_bits).max().unwrap_or(2 * ABSENT);
        let flush = match adder.output {
            Output::Float { subnormals, .. } => match subnormals {
                mxprobe_api::Subnormals::Keep => Flush::None,
                mxprobe_api::Subnormals::FlushToPositiveZero => Flush::Positive,
                _ => Flush::Signed,
            },
            _ => Flush::None,
        };
        let positive_zero = adder.zero == ZeroSign::Positive;
        if flush == Flush::Positive && !positive_zero {
            return None;
        }
        let width = Self::width(sum, (&products, &others), &rules, before, adder)?;
        let output = match (sum.output, adder.output) {
            (SumOutput::Wide, _) => GridOutput::Wide,
            (_, Output::Float { .. }) if matches!(width, GridWidth::Cut(_)) => GridOutput::F32 { toward_zero: false },
            (SumOutput::Float { nearest, .. }, Output::Float { format, fraction_bits, overflow, .. }) => {
                let becomes_infinite = matches!(overflow, Overflow::Ieee | Overflow::Infinity);
                let narrow_factors =
                    [id.a, id.b].iter().all(|format| format.as_float().is_some_and(|float| float.exponent_bits <= 5));
                match (format, nearest) {
                    (Format::F32, true) if fraction_bits == 23 && becomes_infinite => {
                        GridOutput::F32 { toward_zero: false }
                    }
                    (Format::F32, false) if fraction_bits == 23 => GridOutput::F32 { toward_zero: true },
                    (Format::F16, true)
                        if fraction_bits == 10
                            && becomes_infinite
                            && flush == Flush::None
                            && narrow_factors
                            && id.c == Format::F16
                            && width == GridWidth::Words =>
                    {
                        GridOutput::F16
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        if width == GridWidth::Words && values > 0 {
            // What lies below the least unit may not matter.
            let vanishes = output != GridOutput::Wide && positive_zero;
            if !vanishes && least_kept < LEAST_UNIT_OF_VALUES {
                return None;
            }
        }
        // No sum of words knows that all its terms were −0; sums of f64 do, unless they cut a negative one to it.
        if width == GridWidth::Words && output != GridOutput::Wide && !positive_zero {
            return None;
        }
        if width == GridWidth::Doubles
            && (output == GridOutput::Wide || !(positive_zero || values < others.len() || adder.below == Below::Floor))
        {
            return None;
        }
        let format = adder.float_format().unwrap_or(Format::F32);
        let word = |bits: Option<u64>| bits.map(|bits| nan_as_f32(format, bits));
        let mut nan = Vec::new();
        for cause in &adder.nan.order {
            let word = match cause {
                NanCause::Operand => word(adder.nan.operand),
                NanCause::Value => word(adder.nan.value),
                NanCause::Invalid => word(Some(adder.nan.invalid)),
            };
            let word = if output == GridOutput::Wide { None } else { word };
            nan.push((*cause, if let Some(word) = word { Some(word?) } else { None }));
        }
        let (last, first) = (products.last().copied().unwrap_or(0), products.first().copied().unwrap_or(0));
        let scale_block = first / sums.context.block.max(1);
        if width == GridWidth::Exact {
            let has_specials = |format: Format| format.nan().is_some() || format.infinity(false).is_some();
            let one_block = products.iter().all(|k| k / sums.context.block == scale_block) && last >= first;
            if !one_block || has_specials(id.a) || has_specials(id.b) || products.len() > 31 {
                return None;
            }
        }
        Some(GridNode {
            width,
            product_count: i32::try_from(products.len()).unwrap_or(0),
            products,
            others,
            rules,
            leads,
            least_unit: (width == GridWidth::Words && values > 0).then_some(LEAST_UNIT_OF_VALUES),
            below: sum.below,
            value_cut_bits: narrow(sum.value_cut_bits),
            value_cut_unit: power(narrow(sum.value_cut_bits)),
            ignored: sum.ignored.map(|(below, unless)| (narrow(below), unless.map(narrow))),
            normalised: sum.normalised.map(|(bits, floor)| Normalised {
                least_unit: narrow(floor - bits),
                last_place: power(-narrow(bits)),
                floors: sum.normalised_floors,
            }),
            product_overflow: sum.product_overflow,
            output,
            flush,
            positive_zero,
            read_again: None,
            scale_block,
            mask: 0,
            nan,
            quiet_values: values == 1,
        })
    }

    /// How a node is added, if it can be.
    fn width(
        sum: &SumNode,
        (products, others): (&[usize], &[GridTerm]),
        rules: &[GridRule],
        before: &[GridNode],
        adder: &Adder,
    ) -> Option<GridWidth> {
        let values = others.iter().filter(|term| matches!(term, GridTerm::C | GridTerm::Value(_))).count();
        if rules.is_empty() {
            if sum.scales_sum {
                let fits = others.is_empty() && adder.scale == Scale::Sum && sum.width <= 24;
                return (fits && sum.output_is_wide()).then_some(GridWidth::Exact);
            }
            let SumOutput::Float { fraction_bits, least: -126, nearest: false, flush: false, .. } = sum.output else {
                return None;
            };
            return (values == 1 && others.len() == 1 && products.is_empty())
                .then_some(GridWidth::Cut(-1 << (23 - narrow(fraction_bits))));
        }
        let is_bare = sum.value_cut_bits == 0 && sum.normalised.is_none();
        // A sum is only ever shifted down: its own grid keeps at least as many bits as this one.
        let goes_down = |at: usize, index: usize| {
            let kept = before[index].rules.iter().map(|rule| rule.fraction_bits).min().unwrap_or(0);
            before[index].width == GridWidth::Words
                && rules.iter().any(|rule| !rule.leading && rule.others.contains(&at) && rule.fraction_bits <= kept)
        };
        let sums_go_down = others.iter().enumerate().all(|(at, term)| match *term {
            GridTerm::Sum(index) => sum.below == Below::Floor && goes_down(at, index),
            GridTerm::Group(_) => false,
            GridTerm::C | GridTerm::Value(_) => true,
        });
        let small_are_ignored =
            sum.ignored.is_some_and(|(below, unless)| below <= 0 && unless.is_none_or(|at_most| at_most <= 0));
        let below_fits = match sum.below {
            Below::Floor => values == 0 || small_are_ignored,
            Below::OnesComplement => values == 1 && others.len() == 1 && sum.ignored.is_none(),
            _ => true,
        };
        if sum.width <= 30 && is_bare && sums_go_down && below_fits {
            return Some(GridWidth::Words);
        }
        let in_doubles = products.is_empty() && matches!(sum.below, Below::Truncate | Below::Floor);
        in_doubles.then_some(GridWidth::Doubles)
    }

    /// Whether factors are packed as values, else as significands and exponents.
    fn packs_values(&self) -> bool {
        self.context.masks > 0
    }

    #[inline(always)]
    fn parts(&self, operand: Operand, bits: u32) -> (f32, i32) {
        if self.packs_values() {
            let value = operand.value(bits);
            (value, i32::from(value.to_bits() << 1 != 0))
        } else {
            operand.parts(bits)
        }
    }

    fn scale_parts(reader: Reader, bits: u64) -> (f32, i32) {
        let unpack::Unpacked { significand, exponent, kind } = reader.read(bits);
        if kind & SPECIAL != 0 {
            return (1.0, if kind & unpack::NAN != 0 { NAN } else { INFINITE });
        }
        // At most four bits.
        #[allow(clippy::cast_precision_loss)]
        let value = significand as f32 / f32::from_bits((127 + reader.format.fraction_bits()) << 23);
        let value = if kind & unpack::NEGATIVE != 0 { -value } else { value };
        (value, if kind & unpack::ZERO != 0 { ABSENT } else { exponent })
    }

    #[inline(always)]
    fn pack_rows(&self, from: &Source<'_>, first: usize, rows: usize, steps: usize) -> Factors {
        let k = from.matrices.k;
        let mut packed = Factors {
            k: steps * self.context.len,
            blocks: steps * self.context.blocks,
            masks_each: steps * self.context.masks,
            ..Factors::default()
        };
        let mut bits = vec![0; packed.k];
        packed.significands.resize(rows * packed.k, 0.0);
        packed.exponents.resize(rows * packed.k, 0);
        for row in 0..rows {
            bits_of(from.matrices.a, from.row_of_a(first + row), &mut bits[..k]);
            let significands = &mut packed.significands[row * packed.k..][..packed.k];
            let exponents = &mut packed.exponents[row * packed.k..][..packed.k];
            for ((bits, significand), exponent) in bits.iter().zip(&mut *significands).zip(&mut *exponents) {
                (*significand, *exponent) = self.parts(self.a, *bits);
            }
            for step in 0..steps {
                for node in self.nodes.iter().filter(|node| node.width == GridWidth::Exact) {
                    let of = &exponents[step * self.context.len..];
                    let mask = node.products.iter().enumerate().fold(0, |mask, (at, k)| mask | of[*k] << at);
                    packed.masks.push(mask);
                }
            }
            if let Some((reader, block)) = self.scale {
                let present = k.div_ceil(block);
                for index in 0..packed.blocks {
                    let bits = match from.matrices.scale_a {
                        Some(scales) if index < present => scales.get(from.scales_of_a(first + row) + index),
                        _ => reader.format.one(),
                    };
                    packed.push_scale(Self::scale_parts(reader, bits));
                }
            }
        }
        packed
    }

    #[inline(always)]
    fn pack_panel(&self, from: &Source<'_>, first: usize, panel: usize, steps: usize, into: &mut Factors) {
        let (k, n) = (from.matrices.k, from.matrices.n);
        let columns = panel.min(n - first);
        into.clear();
        (into.k, into.panel) = (steps * self.context.len, panel);
        (into.blocks, into.masks_each) = (steps * self.context.blocks, steps * self.context.masks);
        into.significands.resize(into.k * panel, 0.0);
        into.exponents.resize(into.k * panel, 0);
        let mut bits = vec![0; panel];
        for row in 0..into.k {
            if row < k {
                bits_of(from.matrices.b, from.row_of_b(row) + first, &mut bits[..columns]);
            } else {
                bits.fill(0);
            }
            let significands = &mut into.significands[row * panel..][..panel];
            let exponents = &mut into.exponents[row * panel..][..panel];
            for ((bits, significand), exponent) in bits.iter().zip(significands).zip(exponents) {
                (*significand, *exponent) = self.parts(self.b, *bits);
            }
        }
        for step in 0..steps {
            for node in self.nodes.iter().filter(|node| node.width == GridWidth::Exact) {
                let at = into.masks.len();
                into.masks.resize(at + panel, 0);
                for (place, k) in node.products.iter().enumerate() {
                    let of = &into.exponents[(step * self.context.len + k) * panel..][..panel];
                    for (mask, some) in into.masks[at..].iter_mut().zip(of) {
                        *mask |= some << place;
                    }
                }
            }
        }
        if let Some((reader, block)) = self.scale {
            let present = k.div_ceil(block);
            for index in 0..into.blocks {
                for column in 0..panel {
                    let bits = match from.matrices.scale_b {
                        Some(scales) if index < present && column < columns => {
                            scales.get(from.scales_of_b(index) + first + column)
                        }
                        _ => reader.format.one(),
                    };
                    into.push_scale(Self::scale_parts(reader, bits));
                }
            }
        }
    }
}

/// The work of packing rows of A.
struct PackRows<'a>(&'a GridsPlan, &'a Source<'a>, usize, usize, usize);

impl Vectorised for PackRows<'_> {
    type Output = Factors;

    #[inline(always)]
    fn run(self) -> Factors {
        self.0.pack_rows(self.1, self.2, self.3, self.4)
    }
}

/// The work of packing a panel of B.
struct PackPanel<'a>(&'a GridsPlan, &'a Source<'a>, usize, usize, usize, &'a mut Factors);

impl Vectorised for PackPanel<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.pack_panel(self.1, self.2, self.3, self.4, self.5);
    }
}

impl Kernel for GridsPlan {
    type Accumulator = f32;
    type A = Factors;
    type B = Factors;

    fn pack_a(&self, from: &Source<'_>, first: usize, rows: usize, steps: usize) -> (Factors, Vec<bool>) {
        (vectorised(PackRows(self, from, first, rows, steps)), vec![false; rows])
    }

    fn pack_b(&self, from: &Source<'_>, first: usize, panel: usize, steps: usize, into: &mut Factors) -> u64 {
        vectorised(PackPanel(self, from, first, panel, steps, into));
        0
    }

    fn load_c(&self, from: &Elements, start: usize, into: &mut [f32]) -> u64 {
        let mut bits = vec![0; into.len()];
        bits_of(from, start, &mut bits);
        for (slot, bits) in into.iter_mut().zip(bits) {
            *slot = match self.c {
                Format::F16 if bits & 0x7c00 == 0x7c00 => {
                    f32::from_bits((bits & 0x8000) << 16 | 0x7f80_0000 | (bits & 0x3ff) << 13)
                }
                Format::F16 => f32::from_bits((bits & 0x7fff) << 13 | (bits & 0x8000) << 16) * 2f32.powi(112),
                Format::BF16 => f32::from_bits(bits << 16),
                _ => f32::from_bits(bits),
            };
        }
        0
    }

    fn store_d(&self, from: &[f32], into: &mut [u8]) {
        let size = self.d.storage_bytes();
        for (value, slot) in from.iter().zip(into.chunks_exact_mut(size)) {
            let bits = value.to_bits();
            let word = match self.d {
                Format::F16 if !value.is_finite() => (bits >> 16 & 0x8000) | 0x7c00 | (bits >> 13 & 0x3ff),
                Format::F16 => {
                    // Exact, for the value is one of f16.
                    let small = (value * f32::from_bits(15 << 23)).to_bits();
                    (small >> 13 & 0x7fff) | (small >> 16 & 0x8000)
                }
                Format::BF16 => bits >> 16,
                _ => bits,
            };
            slot.copy_from_slice(&word.to_le_bytes()[..size]);
        }
    }

    fn run(&self, piece: Piece<'_, Factors, Factors, f32>) {
        simd::run_grids(&self.nodes, &self.context, piece);
    }
}
