//! Plans of additions of one or two terms, to nearest even or to odd, which a processor's own f32 arithmetic computes.

use std::{ops::Range, sync::Arc};

use mxprobe_api::{Elements, Format, OperationId, Overflow, Rounding, Subnormals};

use super::{
    drive::{Kernel, OfDots, Source},
    floats::{is_covered, load_floats, store_floats},
    operand::{Operand, bits_of},
    path::Path,
    simd::{self, Packed, Piece, Vectorised, WIDE_PANEL, vectorised},
};
use crate::{
    adder::{Adder, Below, NanCause, Output, Scale, ZeroSign},
    model::Unit,
    tree::{Plan, Term},
};

/// A plan that the processor's arithmetic computes.
#[derive(Clone, Debug)]
pub(super) struct TreePlan {
    steps: Vec<Step>,
    /// The number of products in one operation.
    len: usize,
    a: Operand,
    b: Operand,
    c: Operand,
    c_format: Format,
    d: Format,
    /// How subnormal c are flushed.
    flush_c: Flush,
    /// Whether every product of finite factors is an f32.
    exact_products: bool,
    /// Whether infinite results of finite operands are right, and infinite operands may stay infinite.
    has_infinities: bool,
    /// The NaN of each step, if it computes NaN and infinities itself, which takes longer; otherwise empty.
    nans: Vec<Nan>,
}

/// One node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub kind: StepKind,
    /// Rounded to odd, otherwise to nearest even.
    pub odd: bool,
    /// Rounded again, to f16; the first rounding of a product and a value together is then to odd.
    pub half: bool,
    pub flush: Flush,
    /// A zero result is +0.
    pub positive_zero: bool,
    /// A finite sum rounded to odd that overflows is the largest number, otherwise an infinity.
    pub saturates: bool,
}

/// The NaN that a node returns, as f32 bits: those of an f16 are exact in f32.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Nan {
    /// Always the same.
    One(i32),
    /// For a NaN in A or B, for one in c or an earlier result, and for Inf·0 and Inf − Inf, in this order of precedence.
    /// `None` gives it quieted.
    ByCause { operand: Option<i32>, value: Option<i32>, invalid: i32 },
}

impl Nan {
    /// The NaN of an adder whose result is f16 or f32; `None` if its order of precedence is another one, or if one of
    /// its results is not a NaN. `of_halves` says whether all terms are of f16.
    fn of(adder: &Adder, format: Format, of_halves: bool) -> Option<Self> {
        let read = Operand::new(format, false, false)?;
        let bits = |bits: u64| {
            let bits = u32::try_from(bits).ok()?;
            read.is_nan(bits).then(|| read.value_or_special(bits).to_bits().cast_signed())
        };
        let rules = &adder.nan;
        if rules.operand == Some(rules.invalid) && rules.value == Some(rules.invalid) {
            return Some(Self::One(bits(rules.invalid)?));
        }
        // Of a NaN that comes from f32, an f16 keeps the first bits only.
        let usual = [NanCause::Operand, NanCause::Value, NanCause::Invalid];
        if rules.order != usual || !(of_halves || format == Format::F32) {
            return None;
        }
        let or_quiet = |of: Option<u64>| of.map_or(Some(None), |of| bits(of).map(Some));
        Some(Self::ByCause {
            operand: or_quiet(rules.operand)?,
            value: or_quiet(rules.value)?,
            invalid: bits(rules.invalid)?,
        })
    }
}

/// The terms of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StepKind {
    Product(usize),
    ProductAnd(usize, Input),
    Both(Input, Input),
    One(Input),
}

/// A term other than a product.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    C,
    Step(usize),
    Zero,
}

/// How values below the smallest normal one are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    None,
    Signed,
    Positive,
}

impl TreePlan {
    /// Compiles a plan to steps, if the processor supports each of them on `path`.
    pub(super) fn of(adders: &[Arc<Adder>], unit: &Unit, plan: &Plan, id: &OperationId, path: Path) -> Option<Self> {
        let float = |format: Format, flush: bool| Operand::new(format, flush, unit.flush.to_positive);
        let (a, b, c) = (float(id.a, unit.flush.a)?, float(id.b, unit.flush.b)?, float(id.c, false)?);
        if id.block_scale().is_some() || !matches!(id.d, Format::F32 | Format::F16) {
            return None;
        }
        let bits = id.a.fraction_bits() + id.b.fraction_bits() + 2;
        let exact_products = bits <= 24 && !a.dynamic && !b.dynamic;
        // Whether each node's value is an f16.
        let mut halves: Vec<bool> = Vec::new();
        let mut steps = Vec::new();
        for node in &plan.nodes {
            let adder = &adders[node.adder];
            let Output::Float { format, fraction_bits, rounding, overflow, subnormals } = adder.output else {
                return None;
            };
            let odd = rounding == Rounding::ToOdd;
            let half = format == Format::F16;
            let flush = match subnormals {
                Subnormals::Keep => Flush::None,
                Subnormals::FlushBeforeRounding | Subnormals::FlushAfterRounding => Flush::Signed,
                Subnormals::FlushToPositiveZero => Flush::Positive,
            };
            let is_native = (half || format == Format::F32)
                && (odd || rounding == Rounding::NearestEven)
                && fraction_bits == format.fraction_bits()
                && matches!(overflow, Overflow::Ieee | Overflow::Infinity)
                && adder.grid.is_empty()
                && adder.below != Below::OnesComplement
                && adder.value_cut_bits == 0
                && adder.ignored_values.is_none()
                && adder.normalised_fraction_bits.is_none()
                && adder.scale == Scale::Products
                && !adder.product_overflow
                && !(half && flush != Flush::None)
                && (flush != Flush::Positive || adder.zero == ZeroSign::Positive);
            if !is_native {
                return None;
            }
            let input = |term: &Term| match *term {
                Term::C => Some(Input::C),
                Term::Node(index) => Some(Input::Step(index)),
                Term::PositiveZero => Some(Input::Zero),
                Term::Product(_) => None,
            };
            let is_half = |input: Input| match input {
                Input::C => id.c == Format::F16,
                Input::Step(index) => halves[index],
                Input::Zero => true,
            };
            let kind = match node.terms[..] {
                [Term::Product(k)] => StepKind::Product(k),
                [Term::Product(k), ref other] | [ref other, Term::Product(k)] => StepKind::ProductAnd(k, input(other)?),
                [ref one] => StepKind::One(input(one)?),
                [ref one, ref other] => StepKind::Both(input(one)?, input(other)?),
                _ => return None,
            };
            // Rounding to f32 and then to f16 equals rounding once if the first rounding is exact, or if the operands
            // are two f16: 24 bits are at least twice 11 plus 2 (Figueroa, "When is double rounding innocuous?", 1995).
            // The sum of an exact product and an f16 is rounded to odd before, which keeps what decides.
            let once = match kind {
                StepKind::Product(_) => exact_products,
                StepKind::ProductAnd(_, other) => exact_products && is_half(other),
                StepKind::Both(one, other) => is_half(one) && is_half(other),
                StepKind::One(_) => true,
            };
            // Rounding to odd needs the error of the result. The error of a sum is known; that of a product is not, so
            // it must be 0. A product below 2^−126 may lose bits, which nobody sees if it becomes zero in any case.
            let is_known = match kind {
                StepKind::Product(_) => exact_products || bits <= 24 && flush != Flush::None,
                StepKind::ProductAnd(..) => false,
                StepKind::Both(..) | StepKind::One(_) => true,
            };
            if (odd && (half || !is_known)) || (half && !once) {
                return None;
            }
            // Without FMA, a product and a sum are two operations, which is the same only if the product is exact.
            if matches!(kind, StepKind::ProductAnd(..)) && path == Path::Portable && !exact_products {
                return None;
            }
            halves.push(half);
            let positive_zero = adder.zero == ZeroSign::Positive;
            steps.push(Step { kind, odd, half, flush, positive_zero, saturates: overflow == Overflow::Ieee });
        }
        let flush_c = match (unit.flush.c, unit.flush.to_positive) {
            (false, _) => Flush::None,
            (true, false) => Flush::Signed,
            (true, true) => Flush::Positive,
        };
        // A subnormal f16 is a normal f32.
        if flush_c != Flush::None && id.c != Format::F32 {
            return None;
        }
        // To odd, a sum that overflows may be the largest number; without FMA, a product may overflow alone.
        let is_exact = |step: &Step| {
            let is_fused = path >= Path::Avx2 || !matches!(step.kind, StepKind::ProductAnd(..));
            !step.odd && is_fused
        };
        let has_infinities = steps.iter().all(is_exact) && [a, b, c].iter().all(Operand::has_ieee_specials);
        let (len, nans) = (id.shape.sizes().2, Vec::new());
        Some(Self { steps, len, a, b, c, c_format: id.c, d: id.d, flush_c, exact_products, has_infinities, nans })
    }

    /// The same plan, computing NaN and infinities too; `None` if some node may return another NaN than those that it
    /// knows, or if an operand has another form of NaN than IEEE 754 formats.
    pub(super) fn with_specials(&self, adders: &[Arc<Adder>], plan: &Plan, path: Path) -> Option<Self> {
        let is_known = [self.a, self.b, self.c].iter().all(Operand::has_ieee_specials)
            // Without FMA, a product that overflows alone would meet infinities.
            && path >= Path::Avx2;
        // Then every result is an f16 too.
        let of_halves =
            [self.a, self.b, self.c].iter().all(Operand::is_half) && self.steps.iter().all(|step| step.half);
        let nan = |adder: &Adder| Nan::of(adder, adder.float_format()?, of_halves);
        let nans = plan.nodes.iter().map(|node| nan(&adders[node.adder])).collect::<Option<_>>()?;
        is_known.then(|| Self { nans, ..self.clone() })
    }

    fn has_specials(&self) -> bool {
        !self.nans.is_empty()
    }

    /// Packs a panel of factors that `operand` reads.
    #[inline(always)]
    fn pack_factors(
        &self,
        operand: Operand,
        from: &Source<'_>,
        (first, panel): (usize, usize),
        padded: usize,
        into: &mut Packed<f32>,
    ) {
        if self.reads_specials() {
            pack_panel(from, first, panel, padded, into, |bits| operand.value_or_special(bits));
        } else {
            pack_panel(from, first, panel, padded, into, |bits| operand.value(bits));
        }
    }

    /// Whether infinite operands are read as infinities.
    fn reads_specials(&self) -> bool {
        self.has_infinities || self.has_specials()
    }
}

impl Kernel for TreePlan {
    type Accumulator = f32;
    type A = Packed<f32>;
    type B = Packed<f32>;

    fn pack_a(&self, from: &Source<'_>, first: usize, rows: usize, steps: usize) -> (Packed<f32>, Vec<bool>) {
        // Zeros of padding are +0 in every format.
        let padded = steps * self.len;
        let packed = vectorised(PackRows { plan: self, from, rows: first..first + rows, padded });
        // A row with a NaN or an infinity gives nothing else.
        let is_special = |row: &[f32]| !self.has_specials() && row.iter().any(|value| value.is_nan());
        let special = packed.values.chunks(packed.k.max(1)).map(is_special).collect();
        (packed, special)
    }

    fn pack_b(&self, from: &Source<'_>, first: usize, panel: usize, steps: usize, into: &mut Packed<f32>) -> u64 {
        let padded = steps * self.len;
        vectorised(PackPanel { plan: self, operand: self.b, from, first, panel, padded, into });
        0
    }

    fn load_c(&self, from: &Elements, start: usize, into: &mut [f32]) -> u64 {
        // An infinity or a NaN shows in the result.
        if is_covered(self.c_format) {
            load_floats(self.c_format, from, start, into);
            return 0;
        }
        let mut bits = [0; WIDE_PANEL];
        let bits = &mut bits[..into.len()];
        bits_of(from, start, bits);
        let value = |bits: u32| if self.reads_specials() { self.c.value_or_special(bits) } else { self.c.value(bits) };
        into.iter_mut().zip(bits).for_each(|(slot, bits)| *slot = value(*bits));
        0
    }

    fn store_d(&self, from: &[f32], into: &mut [u8]) {
        store_floats(self.d, from, into);
    }

    fn run(&self, piece: Piece<'_, Packed<f32>, Packed<f32>, f32>) {
        simd::run_tree(&self.steps, self.len, self.flush_c, self.has_infinities, &self.nans, piece);
    }
}

impl OfDots for TreePlan {
    fn ones(&self) -> Option<Packed<f32>> {
        (!self.has_specials()).then(|| Packed { values: vec![1.0; self.len], k: self.len, panel: 0 })
    }

    fn place_of_a<'a>(&self, ones: &'a Packed<f32>, of_a: &'a Packed<f32>) -> &'a Packed<f32> {
        if self.exact_products { ones } else { of_a }
    }

    fn pack_products(
        &self,
        (a, b): (&Source<'_>, &Source<'_>),
        panel: usize,
        of_a: &mut Packed<f32>,
        into: &mut Packed<f32>,
    ) -> u64 {
        let (plan, first, padded) = (self, 0, self.len);
        vectorised(PackPanel { plan, operand: self.a, from: a, first, panel, padded, into: of_a });
        vectorised(PackPanel { plan, operand: self.b, from: b, first, panel, padded, into });
        if self.exact_products {
            into.values.iter_mut().zip(&of_a.values).for_each(|(product, of_a)| *product *= of_a);
        }
        // A NaN or an infinity shows in the result.
        0
    }
}

/// The work of packing rows of A.
struct PackRows<'a> {
    plan: &'a TreePlan,
    from: &'a Source<'a>,
    rows: Range<usize>,
    padded: usize,
}

impl Vectorised for PackRows<'_> {
    type Output = Packed<f32>;

    #[inline(always)]
    fn run(self) -> Packed<f32> {
        let Self { plan, from, rows, padded } = self;
        if plan.reads_specials() {
            pack_rows(from, rows, padded, |bits| plan.a.value_or_special(bits))
        } else {
            pack_rows(from, rows, padded, |bits| plan.a.value(bits))
        }
    }
}

/// The work of packing a panel of factors that `operand` reads.
struct PackPanel<'a> {
    plan: &'a TreePlan,
    operand: Operand,
    from: &'a Source<'a>,
    first: usize,
    panel: usize,
    padded: usize,
    into: &'a mut Packed<f32>,
}

impl Vectorised for PackPanel<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { plan, operand, from, first, panel, padded, into } = self;
        plan.pack_factors(operand, from, (first, panel), padded, into);
    }
}

/// Packs rows of A as `value(bits)`, padded with `value(0)`.
#[inline(always)]
fn pack_rows(from: &Source<'_>, rows: Range<usize>, padded: usize, value: impl Fn(u32) -> f32) -> Packed<f32> {
    let k = from.matrices.k;
    let mut bits = vec![0; padded];
    let mut values = vec![0.0; rows.len() * padded];
    for (row, values) in rows.zip(values.chunks_exact_mut(padded.max(1))) {
        bits_of(from.matrices.a, from.row_of_a(row), &mut bits[..k]);
        values.iter_mut().zip(&bits).for_each(|(slot, bits)| *slot = value(*bits));
    }
    Packed { values, k: padded, panel: 0 }
}

/// Packs a panel of B, likewise.
#[inline(always)]
fn pack_panel(
    from: &Source<'_>,
    first: usize,
    panel: usize,
    padded: usize,
    into: &mut Packed<f32>,
    value: impl Fn(u32) -> f32,
) {
    let (k, n) = (from.matrices.k, from.matrices.n);
    let columns = panel.min(n - first);
    (into.k, into.panel) = (padded, panel);
    into.values.resize(padded * panel, 0.0);
    let mut bits = [0; WIDE_PANEL];
    let bits = &mut bits[..panel];
    for (row, values) in into.values.chunks_exact_mut(panel).enumerate() {
        if row < k {
            bits_of(from.matrices.b, from.row_of_b(row) + first, &mut bits[..columns]);
        } else {
            bits.fill(0);
        }
        values.iter_mut().zip(&*bits).for_each(|(slot, bits)| *slot = value(*bits));
    }
}
