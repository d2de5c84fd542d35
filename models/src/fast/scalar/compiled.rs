//! A compiled plan, and the evaluation of its dots.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use mxprobe_api::{Format, OperationId};

use super::{
    align::{Highest, Range, align, align_all, cut_parts, far_sum, grid, plain_sum, whole_range},
    output::{Adding, Causes},
    repeats::{Repeats, Step},
    wide::Wide,
    word::{Aligned, NONE, Number, Word, leading},
};
use crate::{
    adder::{Adder, Below, Class, Exponent, Scale},
    fast::unpack::{NEGATIVE, Reader, SPECIAL, Unpacked, ZERO, kind_of_product},
    model::Unit,
    tree::{Plan, Term},
};

/// A compiled plan.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Compiled {
    pub(super) nodes: Vec<Node>,
    pub(super) flat: Arc<Flat>,
    pub(super) adders: Arc<[Arc<Adding>]>,
    pub(in crate::fast) a: Reader,
    pub(in crate::fast) b: Reader,
    pub(in crate::fast) c: Reader,
    pub(in crate::fast) scale: Option<Reader>,
    pub(super) scale_block: usize,
    pub(super) product_fraction_bits: i32,
    pub(super) scale_fraction_bits: i32,
    pub(super) c_fraction_bits: i32,
    /// Whether every product fits an i64, and whether it fits an i128.
    pub(super) fits: [bool; 2],
}

/// A plan in few pieces of memory, whatever its adders are.
#[derive(Debug)]
pub(super) struct Flat {
    /// The nodes, as if none were cut later.
    nodes: Vec<Node>,
    pub(super) terms: Vec<Term>,
    runs: Vec<Run>,
    /// The largest number of terms in a node.
    pub(super) widest: usize,
}

impl Flat {
    fn new(plan: &Plan) -> Self {
        let mut nodes = Vec::with_capacity(plan.nodes.len());
        let mut terms = Vec::with_capacity(plan.nodes.iter().map(|node| node.terms.len()).sum());
        let mut runs = Vec::with_capacity(2 * plan.nodes.len());
        for node in &plan.nodes {
            let from = terms.len();
            terms.extend_from_slice(&node.terms);
            let first_run = runs.len();
            Run::append(&mut runs, &node.terms);
            let reserve = usize::BITS - node.terms.len().leading_zeros() + 2;
            let runs = (first_run, runs.len());
            nodes.push(Node { adder: node.adder, from, to: terms.len(), runs, reserve, is_cut_later: false });
        }
        let widest = nodes.iter().map(|node| node.to - node.from).max().unwrap_or(0);
        Self { nodes, terms, runs, widest }
    }
}

/// What the thread's last evaluator was made of. Those that are made one after another to fit a model mostly differ in one
/// adder.
struct Last {
    plan: Arc<Plan>,
    flat: Arc<Flat>,
    adders: Arc<[Arc<Adding>]>,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) adder: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    /// Its terms again, with equally spaced products grouped.
    runs: (usize, usize),
    /// The number of bits by which the sum of this many terms may grow, plus one for the sign.
    pub(super) reserve: u32,
    /// Whether its sum is exact, and the node that takes it cuts it at most [`CUT_LATER`] bits below its largest term.
    pub(super) is_cut_later: bool,
}

/// The most fraction bits of a grid whose unit lies above the last bits of a word that begins at the largest term.
const CUT_LATER: i32 = 40;

/// Whether an adder's grid counts the exponents of all terms of its unrounded sums, and keeps few bits below them.
fn cuts_sums(adder: &Adding) -> bool {
    let rules = &adder.rules;
    let of_sums = || rules.grid.iter().filter(|rule| matches!(rule.terms, Class::All | Class::Sums));
    rules.below != Below::OnesComplement
        && of_sums().any(|rule| rule.exponent == Exponent::Operands && rule.fraction_bits <= CUT_LATER)
        && of_sums().all(|rule| rule.fraction_bits >= 0)
}

/// Terms computed in one loop: products at `k`, `k + step`, …, or one term of another kind.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Term,
    step: usize,
    count: usize,
}

impl Run {
    /// Appends the terms of a node, in order, as runs.
    fn append(runs: &mut Vec<Self>, terms: &[Term]) {
        let from = runs.len();
        for term in terms {
            let last = runs[from..].last_mut();
            if let (Term::Product(k), Some(Self { first: Term::Product(first), step, count })) = (term, last)
                && *k > *first
                && (*count == 1 || *k == *first + *step * *count)
            {
                if *count == 1 {
                    *step = *k - *first;
                }
                *count += 1;
            } else {
                runs.push(Self { first: *term, step: 0, count: 1 });
            }
        }
    }
}

/// The operands of one dot, unpacked.
#[derive(Clone, Copy)]
pub(in crate::fast) struct UnpackedDot<'a> {
    pub a: &'a [Unpacked],
    pub b: &'a [Unpacked],
    /// The products of A and B, unscaled; empty if they were not computed, or if one might not fit a word.
    pub products: &'a [Unpacked],
    pub c: Unpacked,
    pub scale_a: &'a [Unpacked],
    pub scale_b: &'a [Unpacked],
}

impl UnpackedDot<'_> {
    #[inline]
    fn kind(&self, k: usize) -> u32 {
        self.products.get(k).map_or_else(|| kind_of_product(self.a[k].kind, self.b[k].kind), |product| product.kind)
    }

    /// Whether a product is +0.
    #[inline]
    fn is_quiet(&self, k: usize) -> bool {
        self.kind(k) == ZERO
    }

    #[inline]
    fn is_finite(&self, k: usize) -> bool {
        self.kind(k) & SPECIAL == 0
    }
}

/// Memory for the terms and the results of a dot.
pub(in crate::fast) struct Scratch {
    pub(super) narrow: Room<i64>,
    pub(super) wide: Room<i128>,
    /// Few dots need these, so their memory is allocated on demand.
    pub(super) wider: Room<Wide<5>>,
    pub(super) widest: Room<Wide<10>>,
    /// Nodes whose results repeat others. `None` if few products are zero.
    repeats: Option<Repeats>,
    /// The exponents up to which finite numbers remain finite, once they are asked for.
    pub(super) finite_up_to: Option<Option<i32>>,
}

/// Memory for dots of one plan.
pub(in crate::fast) struct ScratchOf {
    plan: Arc<Plan>,
    pub(in crate::fast) scratch: Box<Scratch>,
}

thread_local! {
    /// The memory of the thread's last evaluator.
    static KEPT: Cell<Option<ScratchOf>> = const { Cell::new(None) };
}

impl ScratchOf {
    /// Keeps it for the thread's next evaluator.
    #[inline(never)]
    pub(in crate::fast) fn keep(self) {
        KEPT.set(Some(self));
    }
}

pub(super) struct Room<W> {
    pub(super) terms: Vec<Aligned<W>>,
    pub(super) results: Vec<Number<W>>,
    /// The NaN causes of unrounded sums.
    pub(super) causes: Vec<Causes>,
}

impl<W: Word> Room<W> {
    pub(super) fn new(widest: usize, nodes: usize) -> Self {
        let mut room = Self { terms: Vec::new(), results: Vec::new(), causes: Vec::new() };
        room.fit(widest, nodes);
        room
    }

    /// Makes room for this many terms of one node, and for this many nodes.
    fn fit(&mut self, widest: usize, nodes: usize) {
        if self.terms.len() < widest {
            let term = Aligned { class: Class::Values, negative: false, magnitude: W::ZERO, lsb: 0, exponent: NONE };
            self.terms.resize(widest, term);
        }
        if self.results.len() < nodes {
            let zero = Number { kind: ZERO, wide: false, magnitude: W::ZERO, lsb: 0, exponent: NONE, bits: 0 };
            self.results.resize(nodes, zero);
        }
    }
}

/// The number of bits in a format's significand.
pub(in crate::fast) fn significand_bits(format: Format) -> u32 {
    if format.is_integer() { format.bits() } else { format.fraction_bits() + 1 }
}

/// The sum of a node's terms, which do not all fit the word above the unit, and the unit of the sum.
#[inline(never)]
fn far<W: Word>(
    adder: &Adding,
    terms: &[Aligned<W>],
    unit: i32,
    is_on_grid: bool,
    bits: (u32, u32),
) -> Option<(W, i32)> {
    let rules = &adder.rules;
    let is_odd =
        adder.keeps_unit || if is_on_grid { rules.carry_bits.is_some() } else { rules.below == Below::OnesComplement };
    // The wide words hold every sum without this.
    if W::BITS > i128::BITS || is_odd || !rules.cuts_all_alike() {
        return None;
    }
    // What is normalised has to be exact.
    let rounder = adder.float.filter(|_| rules.normalised_fraction_bits.is_none());
    let fraction_bits = rounder.map(|rounder| rounder.encoding.fraction_bits);
    if !is_on_grid {
        return Some((far_sum(terms.iter().map(Aligned::part), unit, bits, fraction_bits)?, unit));
    }
    let parts = cut_parts(terms, unit, rules.below);
    let (Range::Fits(unit) | Range::Exceeds(unit)) = whole_range(parts.clone(), bits.0);
    Some((far_sum(parts, unit, bits, fraction_bits)?, unit))
}

impl Compiled {
    pub(in crate::fast) fn new(adders: &[Arc<Adder>], unit: &Unit, plan: &Arc<Plan>, id: &OperationId) -> Self {
        let scale = id.block_scale();
        let (flat, adders) = LAST.with_borrow_mut(|last| {
            let flat = last.as_ref().filter(|last| Arc::ptr_eq(&last.plan, plan)).map(|last| Arc::clone(&last.flat));
            let flat = flat.unwrap_or_else(|| Arc::new(Flat::new(plan)));
            let known = last.as_ref().map_or(&[][..], |last| &last.adders[..]);
            let adders = Adding::of(adders, known);
            *last = Some(Last { plan: Arc::clone(plan), flat: Arc::clone(&flat), adders: Arc::clone(&adders) });
            (flat, adders)
        });
        let mut nodes = flat.nodes.clone();
        if scale.is_none() && adders.iter().any(|adder| adder.is_exact()) {
            for node in &mut nodes {
                node.is_cut_later = adders[node.adder].is_exact();
            }
            for taker in plan.nodes.iter().filter(|taker| !cuts_sums(&adders[taker.adder])) {
                for term in &taker.terms {
                    if let Term::Node(index) = *term {
                        nodes[index].is_cut_later = false;
                    }
                }
            }
        }
        let scale_bits = scale.map_or(0, |scale| 2 * significand_bits(scale.format));
        let product_bits = significand_bits(id.a) + significand_bits(id.b) + scale_bits;
        let signed = |bits: u32| bits.cast_signed();
        Self {
            nodes,
            flat,
            adders,
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
        let (widest, nodes) = (self.flat.widest, self.nodes.len());
        Scratch {
            narrow: Room::new(widest, nodes),
            wide: Room::new(widest, nodes),
            wider: Room::new(0, 0),
            widest: Room::new(0, 0),
            repeats: None,
            finite_up_to: None,
        }
    }

    /// The same, for dots of which most products are +0. It is that of the last evaluator if that had the same plan.
    pub(in crate::fast) fn scratch_for_zeros(&self, plan: &Arc<Plan>) -> ScratchOf {
        // Scales may be NaN, and then such products are too.
        let repeats = self.scale.is_none();
        if let Some(mut kept) = KEPT.take()
            && Arc::ptr_eq(&kept.plan, plan)
            && kept.scratch.repeats.is_some() == repeats
        {
            kept.scratch.finite_up_to = None;
            return kept;
        }
        let scratch = Scratch { repeats: repeats.then(|| self.repeats()), ..self.scratch() };
        ScratchOf { plan: Arc::clone(plan), scratch: Box::new(scratch) }
    }

    /// The nodes that may repeat others. Scales, which multiply sums of products alone, leave +0 as it is.
    pub(super) fn repeats(&self) -> Repeats {
        Repeats::of(self.nodes.iter().map(|node| (node.adder, self.terms_of(node))))
    }

    pub(super) fn terms_of(&self, node: &Node) -> &[Term] {
        &self.flat.terms[node.from..node.to]
    }

    /// Computes d of one dot, or returns `None` if no word is wide enough.
    ///
    /// Generic functions that call it are compiled in the crate that uses them, which may be optimised for size. Code
    /// that is not inlined into them is compiled here.
    #[inline(never)]
    pub(in crate::fast) fn evaluate(&self, dot: UnpackedDot<'_>, scratch: &mut Scratch) -> Option<u64> {
        if self.fits[0]
            && let Some(bits) = self.run(dot, &mut scratch.narrow, scratch.repeats.as_mut())
        {
            return Some(bits);
        }
        self.evaluate_wide(dot, scratch)
    }

    /// Like `evaluate`, for a dot that may not fit the narrowest word.
    #[inline(never)]
    pub(in crate::fast) fn evaluate_wide(&self, dot: UnpackedDot<'_>, scratch: &mut Scratch) -> Option<u64> {
        if !self.fits[1] {
            return None;
        }
        self.run(dot, &mut scratch.wide, scratch.repeats.as_mut()).or_else(|| self.in_wide_words(dot, scratch))
    }

    #[cold]
    #[inline(never)]
    fn in_wide_words(&self, dot: UnpackedDot<'_>, scratch: &mut Scratch) -> Option<u64> {
        let Scratch { wider, widest, repeats, .. } = scratch;
        self.run(dot, wider, repeats.as_mut()).or_else(|| self.run(dot, widest, repeats.as_mut()))
    }

    #[inline]
    fn run<W: Word>(&self, dot: UnpackedDot<'_>, room: &mut Room<W>, mut repeats: Option<&mut Repeats>) -> Option<u64> {
        room.fit(self.flat.widest, self.nodes.len());
        room.causes.clear();
        let c = Number {
            kind: dot.c.kind,
            wide: false,
            magnitude: W::from_u64(dot.c.significand),
            lsb: dot.c.exponent - self.c_fraction_bits,
            exponent: if dot.c.kind & ZERO != 0 { NONE } else { dot.c.exponent },
            bits: 0,
        };
        if let Some(repeats) = &mut repeats {
            repeats.begin();
        }
        for index in 0..self.nodes.len() {
            let Some(repeats) = &mut repeats else {
                self.add(index, dot, &c, room, |node| node)?;
                continue;
            };
            // To a NaN, every number is as good as +0.
            let adds_to_nan = !self.adders[self.nodes[index].adder].rules.product_overflow
                && repeats.like(index).is_some_and(|other| room.results[other].is_nan());
            let terms = self.terms_of(&self.nodes[index]);
            let step = repeats.step(index, terms, |k| dot.is_quiet(k) || adds_to_nan && dot.is_finite(k));
            if step == Step::Known {
                continue;
            }
            self.add(index, dot, &c, room, |node| repeats.place(node))?;
            repeats.is_unchanged(step, index, |other| room.results[index].is(&room.results[other]));
        }
        room.results[..self.nodes.len()].last().map(|result| result.bits)
    }

    /// Computes a node into the room; `None` if it may not fit the word. `place` says which node has the result of one.
    ///
    /// Terms and results are written to their final place, field by field: copying several fields together waits until
    /// each of them has reached the cache.
    #[inline]
    fn add<W: Word>(
        &self,
        index: usize,
        dot: UnpackedDot<'_>,
        c: &Number<W>,
        room: &mut Room<W>,
        place: impl Fn(usize) -> usize,
    ) -> Option<()> {
        let node = &self.nodes[index];
        let adder = &self.adders[node.adder];
        let scales_products = self.scale.is_some() && adder.rules.scale == Scale::Products;
        let mut kinds = 0;
        let mut highest = Highest::default();
        let (before, results) = room.results.split_at_mut(index);
        let slots = &mut room.terms[..node.to - node.from];
        let mut left = slots.iter_mut();
        for run in &self.flat.runs[node.runs.0..node.runs.1] {
            if let Term::Product(first) = run.first {
                for (at, slot) in left.by_ref().take(run.count).enumerate() {
                    let k = first + at * run.step;
                    let (mut kind, mut magnitude, mut exponent);
                    if let Some(product) = dot.products.get(k) {
                        (kind, magnitude, exponent) =
                            (product.kind, W::from_u64(product.significand), product.exponent);
                    } else {
                        let (a, b) = (dot.a[k], dot.b[k]);
                        kind = kind_of_product(a.kind, b.kind);
                        magnitude = W::from_u64(a.significand).times(b.significand);
                        exponent = a.exponent + b.exponent;
                    }
                    let mut lsb = exponent - self.product_fraction_bits;
                    if scales_products {
                        let (a, b) = (dot.scale_a[k / self.scale_block], dot.scale_b[k / self.scale_block]);
                        kind = kind_of_product(kind, kind_of_product(a.kind, b.kind));
                        magnitude = magnitude.times(a.significand).times(b.significand);
                        exponent += a.exponent + b.exponent;
                        lsb += a.exponent + b.exponent - self.scale_fraction_bits;
                    }
                    kinds |= kind;
                    let exponent = if kind & ZERO != 0 { NONE } else { exponent };
                    slot.class = Class::Products;
                    slot.negative = kind & NEGATIVE != 0;
                    slot.magnitude = magnitude;
                    slot.lsb = lsb;
                    slot.exponent = exponent;
                    highest.products = highest.products.max(exponent);
                }
                continue;
            }
            let Some(slot) = left.next() else { break };
            let number = match run.first {
                Term::Node(index) => &before[place(index)],
                Term::C => c,
                Term::PositiveZero | Term::Product(_) => {
                    slot.class = Class::Values;
                    slot.negative = false;
                    slot.magnitude = W::ZERO;
                    slot.lsb = 0;
                    slot.exponent = NONE;
                    continue;
                }
            };
            kinds |= number.kind;
            slot.class = if number.wide { Class::Sums } else { Class::Values };
            slot.negative = number.kind & NEGATIVE != 0;
            slot.magnitude = number.magnitude;
            slot.lsb = number.lsb;
            slot.exponent = number.exponent;
            let of_class = if number.wide { &mut highest.sums } else { &mut highest.values };
            *of_class = (*of_class).max(number.exponent);
        }
        let mut group = None;
        if adder.rules.scale == Scale::Sum
            && self.scale.is_some()
            && let Some(Term::Product(k)) = self.flat.terms.get(node.from)
        {
            let scales = (dot.scale_a[k / self.scale_block], dot.scale_b[k / self.scale_block]);
            kinds |= scales.0.kind | scales.1.kind;
            group = Some(scales);
        }
        let overflows = adder.rules.product_overflow
            && slots.iter().any(|term| term.class == Class::Products && leading(term).is_some_and(|at| at >= 128));
        if kinds & SPECIAL != 0 || overflows {
            // `special` returns `None` if the only special element is an infinite scale or an operand that the sum does
            // not read; the exact evaluator then decides.
            let special = self.special(node, dot, c, room, place)?;
            room.results[index] = special;
            return Some(());
        }
        let is_last = index + 1 == self.nodes.len();
        self.sum(adder, node, slots, highest, group, (&mut results[0], is_last))
    }

    #[inline]
    fn sum<W: Word>(
        &self,
        adder: &Adding,
        node: &Node,
        terms: &[Aligned<W>],
        highest: Highest,
        group: Option<(Unpacked, Unpacked)>,
        into: (&mut Number<W>, bool),
    ) -> Option<()> {
        let limit = W::BITS - node.reserve;
        let grid = match adder.one_grid {
            Some((fraction_bits, floor)) => {
                let exponent = highest.of(Class::All).max(floor);
                (exponent != NONE).then(|| (exponent - fraction_bits, exponent))
            }
            None => grid(&adder.rules, terms, highest),
        };
        let unit = match grid {
            Some((unit, _)) => Range::Fits(unit),
            None => whole_range(terms.iter().map(Aligned::part), limit),
        };
        let near = match unit {
            Range::Fits(unit) if adder.plain => plain_sum(terms, unit, limit),
            Range::Fits(unit) => align_all(&adder.rules, terms, unit, limit),
            Range::Exceeds(_) => None,
        };
        let (Range::Fits(unit) | Range::Exceeds(unit)) = unit;
        let (total, unit) = match near {
            Some(total) => (total, unit),
            None if group.is_some() => return None,
            None => far(adder, terms, unit, grid.is_some(), (limit, node.reserve))?,
        };
        self.finish(adder, terms, total, unit, grid, highest.of(Class::All), group, into)
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
        into: (&mut Number<W>, bool),
    ) -> Option<()> {
        let mut total = total;
        if let (Some(carry_bits), Some((unit, exponent))) = (adder.rules.carry_bits, grid) {
            let width = (exponent - unit).max(0).cast_unsigned() + 1 + carry_bits;
            if width + 2 < W::BITS {
                // Wraps in two's complement with `width` bits and a sign.
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
        adder.output(terms, negative, magnitude, lsb, exponent, into)
    }
}
