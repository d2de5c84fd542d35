//! Deciding which plans are fused chains, and packing their operands for the kernel.

use std::sync::Arc;

use mxprobe_api::{Elements, Format, GemmOperands, OperationId, Rounding, Subnormals};

use super::{
    drive::{Kernel, OfDots, Source},
    floats::store_floats,
    operand::{Operand, bits_of},
    simd::{self, Chain, Join, NARROW_PANEL, PackedA, PackedB, Piece, Vectorised, WIDE_PANEL, vectorised},
};
use crate::{
    adder::{Adder, Below, Class, Exponent, Output, Scale, ZeroSign},
    model::Unit,
    tree::{Plan, Term},
};

/// A plan that the chain kernel computes.
#[derive(Clone, Debug)]
pub(super) struct ChainPlan {
    pub chain: Chain,
    /// The k of each product, in the order of the blocks.
    pub order: Vec<usize>,
    a: Operand,
    b: Operand,
    c: Format,
    d: Format,
    /// The number of consecutive k that share a scale, and the bias of the scale's exponent.
    scale: Option<(usize, i32)>,
}

fn product(term: &Term) -> Option<usize> {
    match term {
        Term::Product(k) => Some(*k),
        _ => None,
    }
}

/// The exponent of a block's UE8M0 scale, or `None` if it is NaN.
fn scale_exponent(bits: u64, bias: i32) -> Option<i32> {
    (bits != 0xff).then(|| i32::try_from(bits).unwrap_or(0) - bias)
}

/// The adder's output, if it is `format` rounded to nearest even with subnormals.
fn adder_output_to_nearest(format: Format, adder: &Adder) -> Option<Output> {
    match adder.output {
        Output::Float { format: this, fraction_bits, rounding, subnormals, .. }
            if this == format
                && fraction_bits == format.fraction_bits()
                && rounding == Rounding::NearestEven
                && subnormals == Subnormals::Keep =>
        {
            Some(adder.output)
        }
        _ => None,
    }
}

impl ChainPlan {
    /// Compiles a plan to a chain, if the kernel can compute it.
    pub(super) fn of(adders: &[Arc<Adder>], unit: &Unit, plan: &Plan, id: &OperationId) -> Option<Self> {
        let (last, join) = match plan.nodes.split_last()? {
            (last, rest) if !rest.is_empty() && !last.terms.iter().any(|term| matches!(term, Term::Product(_))) => {
                let adds_c = last.terms.len() == 2
                    && last.terms.contains(&Term::C)
                    && last.terms.contains(&Term::Node(rest.len() - 1));
                (adds_c.then_some(&adders[last.adder])?, Join::AddC)
            }
            (last, _) => (&adders[last.adder], Join::Nothing),
        };
        let blocks = if join == Join::AddC { &plan.nodes[..plan.nodes.len() - 1] } else { &plan.nodes[..] };
        let adder = &adders[blocks[0].adder];
        let mut order = Vec::new();
        let mut len = None;
        for (index, node) in blocks.iter().enumerate() {
            let products: Vec<usize> = node.terms.iter().filter_map(product).collect();
            let mut rest = node.terms.iter().filter(|term| product(term).is_none());
            let before = match (rest.next(), rest.next()) {
                (Some(term), None) => Some(*term),
                (None, _) => None,
                _ => return None,
            };
            let wanted = match (index, join) {
                (0, Join::Nothing) => matches!(before, Some(Term::C)),
                (0, Join::AddC) => matches!(before, None | Some(Term::PositiveZero)),
                (index, _) => before == Some(Term::Node(index - 1)),
            };
            if !wanted || node.adder != blocks[0].adder || *len.get_or_insert(products.len()) != products.len() {
                return None;
            }
            order.extend(products);
        }
        let len = len.filter(|len| *len > 0)?;
        let k = id.shape.sizes().2;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted != (0..k).collect::<Vec<_>>() {
            return None;
        }

        let [rule] = &adder.grid[..] else { return None };
        let is_plain = rule.terms == Class::All
            && rule.exponent == Exponent::Operands
            && adder.below == Below::Truncate
            && adder.value_cut_bits == 0
            && adder.ignored_values.is_none()
            && adder.carry_bits.is_none()
            && adder.normalised_fraction_bits.is_none()
            && adder.scale == Scale::Products
            && !adder.product_overflow
            && adder.zero == ZeroSign::Positive
            && !unit.flush.c;
        let (half, mask) = match adder.output {
            Output::Float {
                format: Format::F32,
                fraction_bits,
                rounding: Rounding::TowardZero,
                subnormals: Subnormals::Keep,
                ..
            } => (false, -1 << (23 - fraction_bits)),
            Output::Float {
                format: Format::F16,
                fraction_bits: 10,
                rounding: Rounding::NearestEven,
                subnormals: Subnormals::Keep,
                ..
            } => (true, -1),
            _ => return None,
        };
        let c_is_known = id.c == Format::F32 || id.c == Format::F16;
        if !is_plain || !c_is_known || !(1..=25).contains(&rule.fraction_bits) {
            return None;
        }
        if join == Join::AddC {
            // The addition is native; c and the chain's result are in its format.
            let is_native = last.grid.is_empty()
                && last.output == adder_output_to_nearest(if half { Format::F16 } else { Format::F32 }, last)?
                && id.c == id.d;
            if !is_native || mask != -1 {
                return None;
            }
        }
        // The sign of a zero product does not matter.
        let (a, b) = (Operand::new(id.a, unit.flush.a, false)?, Operand::new(id.b, unit.flush.b, false)?);
        if id.a.fraction_bits() + id.b.fraction_bits() > 22 {
            return None;
        }
        let scale = match id.block_scale() {
            None => None,
            Some(scale) if scale.format == Format::UE8M0 && scale.block.is_multiple_of(len) => Some((scale.block, 127)),
            Some(_) => return None,
        };
        // A permutation must not move a product out of its scale's block.
        if scale.is_some() && order != sorted {
            return None;
        }
        let wide = a.dynamic || b.dynamic || scale.is_some() || (!half && id.c != Format::F32);
        // Without a floor, products of wide formats may lie below the range of the kernel's arithmetic.
        let floor = rule.exponent_floor.filter(|floor| *floor >= -150);
        let least = |format: Format| format.as_float().map_or(0, |encoding| encoding.min_exponent());
        let floor = match (wide, half) {
            (true, _) => floor?,
            (false, true) => floor.unwrap_or(-150),
            // The kernel takes the leading bit of a subnormal f32 for its exponent. Products lie far above.
            (false, false) => floor.unwrap_or(-150).max(least(Format::F32)),
        };
        let chain = Chain {
            len,
            part: Chain::largest_part(rule.fraction_bits),
            fraction_bits: rule.fraction_bits,
            floor,
            blocks: blocks.len(),
            join,
            mask,
            least: (least(id.c), least(id.d)),
            half,
            infinite: half && adder.becomes_infinite() && (join == Join::Nothing || last.becomes_infinite()),
            wide,
            base: a.base + b.base,
        };
        Some(Self { chain, order, a, b, c: id.c, d: id.d, scale })
    }

    #[inline(always)]
    fn pack_rows(&self, from: &Source<'_>, first: usize, rows: usize, steps: usize) -> (PackedA, Vec<bool>) {
        let k = from.matrices.k;
        let mut packed = PackedA::default();
        let len = self.chain.len;
        let step = self.order.len();
        packed.k = steps * step;
        packed.blocks = if self.chain.wide { packed.k / len } else { 0 };
        packed.values.resize(rows * packed.k, 0.0);
        packed.codes.resize(rows * packed.k, 0);
        packed.bases.resize(rows * packed.blocks, 0);
        let in_order = self.order.iter().enumerate().all(|(at, k)| at == *k);
        let mut bits = vec![0; packed.k];
        let mut ordered = vec![0; if in_order { 0 } else { packed.k }];
        let mut special_rows = Vec::with_capacity(rows);
        for row in 0..rows {
            bits_of(from.matrices.a, from.row_of_a(first + row), &mut bits[..k]);
            let bits = if in_order {
                &bits
            } else {
                for (at, slot) in ordered.iter_mut().enumerate() {
                    *slot = bits[at / step * step + self.order[at % step]];
                }
                &ordered
            };
            let values = &mut packed.values[row * packed.k..][..packed.k];
            let codes = &mut packed.codes[row * packed.k..][..packed.k];
            let mut any_special = if !self.a.dynamic {
                let (base, factor) = (self.a.base, self.a.factor(self.a.base));
                packed.bases[row * packed.blocks..][..packed.blocks].fill(base);
                if self.a.is_plain() {
                    pack_each(bits, values, codes, |bits| self.a.pack_plain(bits, factor))
                } else {
                    pack_each(bits, values, codes, |bits| self.a.pack(bits, base, factor))
                }
            } else {
                let mut special = false;
                let blocks = bits.chunks_exact(len).zip(values.chunks_exact_mut(len)).zip(codes.chunks_exact_mut(len));
                for (block, ((bits, values), codes)) in blocks.enumerate() {
                    let most = bits.iter().map(|bits| self.a.field(self.a.split(*bits).0)).max().unwrap_or(0);
                    let base = most.max(1) - self.a.bias;
                    let factor = self.a.factor(base);
                    special |= pack_each(bits, values, codes, |bits| self.a.pack(bits, base, factor));
                    packed.bases[row * packed.blocks + block] = base;
                }
                special
            };
            if let Some((block_k, bias)) = self.scale {
                for block in 0..packed.blocks {
                    let Some(bits) = from.scale_of_a(first + row, block * len / block_k) else { continue };
                    match scale_exponent(bits, bias) {
                        Some(exponent) => packed.bases[row * packed.blocks + block] += exponent,
                        None => any_special = true,
                    }
                }
            }
            special_rows.push(any_special);
        }
        (packed, special_rows)
    }

    /// Reads the elements of B that are the `index`-th factors of a panel's columns.
    #[inline(always)]
    fn row_of_panel<const PANEL: usize>(&self, from: &Source<'_>, index: usize, first: usize, into: &mut [u32; PANEL]) {
        let GemmOperands { k, n, b, .. } = *from.matrices;
        let step = self.order.len();
        // Division takes as long as reading a row, and the first operation is often the only one.
        let row = if index < step { self.order[index] } else { index / step * step + self.order[index % step] };
        if row < k {
            bits_of(b, from.row_of_b(row) + first, &mut into[..(n - first).min(PANEL)]);
        } else {
            into.fill(0);
        }
    }

    /// Packs columns of B; `operand` reads them.
    #[inline(always)]
    fn pack_panel<const PANEL: usize>(
        &self,
        operand: Operand,
        from: &Source<'_>,
        (first, steps): (usize, usize),
        into: &mut PackedB,
    ) -> u64 {
        into.panel = PANEL;
        let len = self.chain.len;
        let step = self.order.len();
        into.k = steps * step;
        into.blocks = if self.chain.wide { into.k / len } else { 0 };
        into.values.resize(into.k * PANEL, 0.0);
        into.codes.resize(into.k * PANEL, 0);
        into.bases.resize(into.blocks * PANEL, 0);
        let columns = (from.matrices.n - first).min(PANEL);
        let mut special = [0u32; PANEL];
        let (is_plain, own_factor) = (operand.is_plain(), operand.factor(operand.base));
        let mut row = [0u32; PANEL];
        for block in 0..into.k / len {
            let mut base = [operand.base; PANEL];
            let mut factor = [own_factor; PANEL];
            if operand.dynamic {
                let mut most = [1i32; PANEL];
                for index in 0..len {
                    self.row_of_panel(from, block * len + index, first, &mut row);
                    for column in 0..PANEL {
                        most[column] = most[column].max(operand.field(operand.split(row[column]).0));
                    }
                }
                for column in 0..PANEL {
                    base[column] = most[column] - operand.bias;
                    factor[column] = operand.factor(base[column]);
                }
            }
            for index in 0..len {
                self.row_of_panel(from, block * len + index, first, &mut row);
                let at = (block * len + index) * PANEL;
                let values = &mut into.values[at..at + PANEL];
                let codes = &mut into.codes[at..at + PANEL];
                if is_plain {
                    for column in 0..PANEL {
                        let (value, code, is_special) = operand.pack_plain(row[column], own_factor);
                        values[column] = value;
                        codes[column] = code;
                        special[column] |= is_special;
                    }
                } else {
                    for column in 0..PANEL {
                        let (value, code, is_special) = operand.pack(row[column], base[column], factor[column]);
                        values[column] = value;
                        codes[column] = code;
                        special[column] |= u32::from(is_special);
                    }
                }
            }
            if self.chain.wide {
                let bases = &mut into.bases[block * PANEL..][..PANEL];
                bases.copy_from_slice(&base);
                if let Some((block_k, bias)) = self.scale {
                    for column in 0..columns {
                        let Some(bits) = from.scale_of_b(block * len / block_k, first + column) else { continue };
                        match scale_exponent(bits, bias) {
                            Some(exponent) => bases[column] += exponent,
                            None => special[column] = 1,
                        }
                    }
                }
            }
        }
        special.iter().enumerate().fold(0, |mask, (column, special)| mask | u64::from(*special != 0) << column)
    }
}

/// Packs some factors of a row of A, and says whether one of them is special.
#[inline(always)]
fn pack_each<T: Into<u32>>(
    bits: &[u32],
    values: &mut [f32],
    codes: &mut [u32],
    pack: impl Fn(u32) -> (f32, u8, T),
) -> bool {
    // Words vectorise, truth values do not.
    let mut special = 0;
    for ((bits, value), codes) in bits.iter().zip(values).zip(codes) {
        let (packed, code, is_special) = pack(*bits);
        *value = packed;
        *codes = u32::from(code) * 0x0101_0101;
        special |= is_special.into();
    }
    special != 0
}

/// The work of packing rows of A.
struct PackRows<'a> {
    plan: &'a ChainPlan,
    from: &'a Source<'a>,
    first: usize,
    rows: usize,
    steps: usize,
}

impl Vectorised for PackRows<'_> {
    type Output = (PackedA, Vec<bool>);

    #[inline(always)]
    fn run(self) -> (PackedA, Vec<bool>) {
        self.plan.pack_rows(self.from, self.first, self.rows, self.steps)
    }
}

/// The work of packing a panel of B.
struct PackPanel<'a, const PANEL: usize> {
    plan: &'a ChainPlan,
    from: &'a Source<'a>,
    first: usize,
    steps: usize,
    into: &'a mut PackedB,
}

impl<const PANEL: usize> Vectorised for PackPanel<'_, PANEL> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        self.plan.pack_panel::<PANEL>(self.plan.b, self.from, (self.first, self.steps), self.into)
    }
}

/// The work of packing products of dots.
struct PackProducts<'a, const PANEL: usize> {
    plan: &'a ChainPlan,
    factors: (&'a Source<'a>, &'a Source<'a>),
    of_a: &'a mut PackedB,
    into: &'a mut PackedB,
}

impl<const PANEL: usize> Vectorised for PackProducts<'_, PANEL> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let Self { plan, factors: (a, b), of_a, into } = self;
        let special =
            plan.pack_panel::<PANEL>(plan.a, a, (0, 1), of_a) | plan.pack_panel::<PANEL>(plan.b, b, (0, 1), into);
        into.values.iter_mut().zip(&of_a.values).for_each(|(value, of_a)| *value *= of_a);
        // The sum of two codes is at most 254.
        into.codes.iter_mut().zip(&of_a.codes).for_each(|(code, of_a)| *code += of_a);
        into.bases.iter_mut().zip(&of_a.bases).for_each(|(base, of_a)| *base += of_a);
        special
    }
}

/// Loads elements of C from `start` on, infinities and NaN as 0, and returns a bit for each of those.
struct LoadC<'a, const HALF: bool> {
    from: &'a Elements,
    start: usize,
    into: &'a mut [f32],
}

impl<const HALF: bool> Vectorised for LoadC<'_, HALF> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let mut bits = [0u32; WIDE_PANEL];
        let bits = &mut bits[..self.into.len()];
        bits_of(self.from, self.start, bits);
        let exponents = if HALF { 0x7c00 } else { 0x7f80_0000 };
        let mut special = 0;
        for (bits, slot) in bits.iter().zip(self.into) {
            let mask = if bits & exponents == exponents { u32::MAX } else { 0 };
            let finite = bits & !mask;
            *slot = if HALF {
                // 2^112 moves the bias from 15 to 127, and makes a subnormal normal.
                f32::from_bits((finite & 0x7fff) << 13 | (finite & 0x8000) << 16) * f32::from_bits(239 << 23)
            } else {
                f32::from_bits(finite)
            };
            special |= mask;
        }
        // Most rows have none.
        if special == 0 {
            return 0;
        }
        let is_special = |bits: u32| bits & exponents == exponents;
        bits.iter().enumerate().fold(0, |all, (column, bits)| all | u64::from(is_special(*bits)) << column)
    }
}

impl Kernel for ChainPlan {
    type Accumulator = f32;
    type A = PackedA;
    type B = PackedB;

    fn pack_a(&self, from: &Source<'_>, first: usize, rows: usize, steps: usize) -> (PackedA, Vec<bool>) {
        vectorised(PackRows { plan: self, from, first, rows, steps })
    }

    fn pack_b(&self, from: &Source<'_>, first: usize, panel: usize, steps: usize, into: &mut PackedB) -> u64 {
        match panel {
            WIDE_PANEL => vectorised(PackPanel::<'_, WIDE_PANEL> { plan: self, from, first, steps, into }),
            _ => vectorised(PackPanel::<'_, NARROW_PANEL> { plan: self, from, first, steps, into }),
        }
    }

    fn load_c(&self, from: &Elements, start: usize, into: &mut [f32]) -> u64 {
        if self.c == Format::F32 {
            vectorised(LoadC::<'_, false> { from, start, into })
        } else {
            vectorised(LoadC::<'_, true> { from, start, into })
        }
    }

    fn store_d(&self, from: &[f32], into: &mut [u8]) {
        store_floats(self.d, from, into);
    }

    fn run(&self, piece: Piece<'_, PackedA, PackedB, f32>) {
        simd::run_chain(&self.chain, piece);
    }
}

impl OfDots for ChainPlan {
    fn ones(&self) -> Option<PackedA> {
        let (k, blocks) = (self.order.len(), if self.chain.wide { self.chain.blocks } else { 0 });
        let (values, codes, bases) = (vec![1.0; k], vec![0; k], vec![0; blocks]);
        self.scale.is_none().then_some(PackedA { values, codes, bases, k, blocks })
    }

    fn pack_products(
        &self,
        factors: (&Source<'_>, &Source<'_>),
        panel: usize,
        of_a: &mut PackedB,
        into: &mut PackedB,
    ) -> u64 {
        match panel {
            WIDE_PANEL => vectorised(PackProducts::<'_, WIDE_PANEL> { plan: self, factors, of_a, into }),
            _ => vectorised(PackProducts::<'_, NARROW_PANEL> { plan: self, factors, of_a, into }),
        }
    }
}
