//! The kernel of plans that the processor's own f32 arithmetic computes, columns in lanes.
//!
//! Each node is one multiplication, addition or fused multiply-add, in the order of the plan. NaN and infinities
//! propagate through sums and products, so checking the results is enough: a lane whose result is NaN is left to the same
//! kernel with `SPECIALS`, which also computes which NaN each node returns, or to the scalar evaluator. So is an infinite
//! result if a node rounds to odd, or multiplies and adds without FMA.
//!
//! If results below the normal range are flushed, they are recognised by the rounded value, with one exception: 2^−126
//! may have been rounded up from below, as if by gradual underflow. That lane is left as well.

use super::{Job, lanes::Lanes};
use crate::fast::tree::{Flush, Input, Nan, Step, StepKind};

/// Several rows through several operations, for the columns of one panel.
pub(super) struct Tree<'a> {
    pub nodes: &'a [Step],
    /// The NaN of each node, for [`Rows`] with `SPECIALS`.
    pub nans: &'a [Nan],
    pub len: usize,
    pub flush_c: Flush,
    /// Whether infinite results are right.
    pub has_infinities: bool,
    pub steps: usize,
    pub rows: usize,
    pub a: *const f32,
    pub a_stride: usize,
    pub b: *const f32,
    pub panel: usize,
    /// Memory for the results of all nodes.
    pub results: *mut f32,
    pub accumulators: *mut f32,
    pub left: *mut u64,
}

/// Its rows, one after another: with `SPECIALS` for any values, NaN and infinities included, which takes the NaN of each
/// node; with `PANEL` a single row, whose A is a panel too.
pub(super) struct Rows<'a, const SPECIALS: bool, const PANEL: bool>(pub Tree<'a>);

impl<const SPECIALS: bool, const PANEL: bool> Job for Rows<'_, SPECIALS, PANEL> {
    #[inline(always)]
    unsafe fn run<V: Lanes, const NG: usize>(&self) {
        for from in (0..self.0.panel).step_by(NG * V::WIDTH) {
            for row in 0..self.0.rows {
                // SAFETY: upheld by the caller.
                unsafe { self.0.one_row::<V, NG, SPECIALS, PANEL>(row, from) };
            }
        }
    }
}

impl Tree<'_> {
    /// The first factors of product `k` in a group of lanes, from `a` on.
    #[inline(always)]
    unsafe fn of_a<V: Lanes, const PANEL: bool>(&self, a: *const f32, k: usize, group: usize) -> V::F {
        // SAFETY: upheld by the caller.
        unsafe { if PANEL { V::load_f(a.add(k * self.panel + group * V::WIDTH)) } else { V::splat_f(a.add(k).read()) } }
    }

    #[inline(always)]
    unsafe fn one_row<V: Lanes, const NG: usize, const SPECIALS: bool, const PANEL: bool>(
        &self,
        row: usize,
        from: usize,
    ) {
        // SAFETY: rows, columns, products and nodes are within the bounds of the task; the processor has the
        // instructions.
        unsafe {
            let mut a = self.a.add(if PANEL { from } else { row * self.a_stride });
            let mut b = self.b.add(from);
            let accumulators = self.accumulators.add(row * self.panel + from);
            let mut acc = [V::splat_f(0.0); NG];
            let mut flags = [V::splat_i(0); NG];
            for g in 0..NG {
                acc[g] = V::load_f(accumulators.add(g * V::WIDTH));
            }
            for _ in 0..self.steps {
                if self.flush_c != Flush::None {
                    for g in 0..NG {
                        acc[g] = flushed::<V>(acc[g], self.flush_c).0;
                    }
                }
                let c = acc;
                let mut last = c;
                for (index, node) in self.nodes.iter().enumerate() {
                    let load = |input: Input, g: usize| match input {
                        Input::C => c[g],
                        Input::Zero => V::splat_f(0.0),
                        Input::Step(at) if at + 1 == index => last[g],
                        Input::Step(at) => V::load_f(self.results.add((at * NG + g) * V::WIDTH)),
                    };
                    let product = |k: usize, g: usize| {
                        (self.of_a::<V, PANEL>(a, k, g), V::load_f(b.add(k * self.panel + g * V::WIDTH)))
                    };
                    let mut value = last;
                    match node.kind {
                        StepKind::Product(k) => {
                            for g in 0..NG {
                                let (a, b) = product(k, g);
                                value[g] = V::mul(a, b);
                            }
                        }
                        StepKind::ProductAnd(k, x) => {
                            for g in 0..NG {
                                let (a, b) = product(k, g);
                                value[g] =
                                    if node.half { V::fma_to_odd(a, b, load(x, g)) } else { V::fma(a, b, load(x, g)) };
                            }
                        }
                        StepKind::Both(x, y) => {
                            for g in 0..NG {
                                let (x, y) = (load(x, g), load(y, g));
                                value[g] = if node.odd { V::odd_sum(x, y) } else { V::add_f(x, y) };
                            }
                        }
                        StepKind::One(x) => {
                            for g in 0..NG {
                                value[g] = load(x, g);
                            }
                        }
                    }
                    if node.half {
                        for g in 0..NG {
                            value[g] = V::as_f16(value[g]);
                        }
                    }
                    if node.flush != Flush::None {
                        for g in 0..NG {
                            let (kept, unknown) = flushed::<V>(value[g], node.flush);
                            flags[g] = V::or(flags[g], unknown);
                            value[g] = kept;
                        }
                    }
                    if node.positive_zero {
                        for g in 0..NG {
                            value[g] = V::add_f(value[g], V::splat_f(0.0));
                        }
                    }
                    if SPECIALS {
                        value = self.with_specials::<V, NG>(index, (a, b), (c, last), value);
                    }
                    for g in 0..NG {
                        V::store_f(self.results.add((index * NG + g) * V::WIDTH), value[g]);
                    }
                    last = value;
                }
                acc = last;
                a = a.add(if PANEL { self.len * self.panel } else { self.len });
                b = b.add(self.len * self.panel);
            }
            let mut left = 0;
            let most = if self.has_infinities { 0x7f80_0000 } else { 0x7f7f_ffff };
            for g in 0..NG {
                let magnitude = V::and(V::bits(acc[g]), V::splat_i(i32::MAX));
                let special = if SPECIALS { V::splat_i(0) } else { V::greater(magnitude, V::splat_i(most)) };
                left |= V::negative_lanes(V::or(flags[g], special)) << (from + g * V::WIDTH);
                V::store_f(accumulators.add(g * V::WIDTH), acc[g]);
            }
            *self.left.add(row) |= left;
        }
    }
}

impl Tree<'_> {
    /// Replaces NaN among a node's values by the NaN that it returns for its terms, and an infinite sum of finite terms by
    /// the largest number if the node returns that.
    #[inline(always)]
    unsafe fn with_specials<V: Lanes, const NG: usize>(
        &self,
        index: usize,
        (a, b): (*const f32, *const f32),
        (c, last): ([V::F; NG], [V::F; NG]),
        mut value: [V::F; NG],
    ) -> [V::F; NG] {
        // SAFETY: as in `one_row`.
        unsafe {
            let Step { kind, odd, saturates, .. } = self.nodes[index];
            for g in 0..NG {
                let load = |input: Input| match input {
                    Input::C => c[g],
                    Input::Zero => V::splat_f(0.0),
                    Input::Step(at) if at + 1 == index => last[g],
                    Input::Step(at) => V::load_f(self.results.add((at * NG + g) * V::WIDTH)),
                };
                if let (StepKind::Both(x, y), true) = (kind, odd) {
                    value[g] = saturated::<V>(value[g], load(x), load(y), saturates);
                }
                let nan = is_nan::<V>(value[g]);
                if V::negative_lanes(nan) == 0 {
                    continue;
                }
                let found = match self.nans[index] {
                    Nan::One(bits) => V::splat_i(bits),
                    Nan::ByCause { operand, value, invalid } => {
                        let mut found = V::splat_i(invalid);
                        // What comes later is replaced by what comes before.
                        if let StepKind::Both(_, y) = kind {
                            found = or_nan_of::<V>(load(y), value, found);
                        }
                        if let StepKind::ProductAnd(_, x) | StepKind::Both(x, _) | StepKind::One(x) = kind {
                            found = or_nan_of::<V>(load(x), value, found);
                        }
                        if let StepKind::Product(k) | StepKind::ProductAnd(k, _) = kind {
                            let of_a = V::splat_f(a.add(k).read());
                            let of_b = V::load_f(b.add(k * self.panel + g * V::WIDTH));
                            found = or_nan_of::<V>(of_b, operand, found);
                            found = or_nan_of::<V>(of_a, operand, found);
                        }
                        found
                    }
                };
                value[g] = V::from_bits(V::select(nan, found, V::bits(value[g])));
            }
            value
        }
    }
}

/// The lanes that are NaN.
#[inline(always)]
unsafe fn is_nan<V: Lanes>(value: V::F) -> V::I {
    // SAFETY: upheld by the caller.
    unsafe { V::greater(V::and(V::bits(value), V::splat_i(i32::MAX)), V::splat_i(0x7f80_0000)) }
}

/// The result for a NaN among the terms, quieted if there is no other rule, and `otherwise` if it is none.
#[inline(always)]
unsafe fn or_nan_of<V: Lanes>(term: V::F, rule: Option<i32>, otherwise: V::I) -> V::I {
    // SAFETY: upheld by the caller.
    unsafe {
        let of_term = match rule {
            Some(bits) => V::splat_i(bits),
            None => V::or(V::bits(term), V::splat_i(0x0040_0000)),
        };
        V::select(is_nan::<V>(term), of_term, otherwise)
    }
}

/// Replaces an infinite sum to odd of two finite terms by the largest number, if `always`, or if the exact sum is below
/// 2^128: that number is odd.
#[inline(always)]
unsafe fn saturated<V: Lanes>(sum: V::F, x: V::F, y: V::F, always: bool) -> V::F {
    // SAFETY: upheld by the caller.
    unsafe {
        let infinity = V::splat_i(0x7f80_0000);
        let magnitude = V::splat_i(i32::MAX);
        let finite_x = V::greater(infinity, V::and(V::bits(x), magnitude));
        let finite_y = V::greater(infinity, V::and(V::bits(y), magnitude));
        let bits = V::bits(sum);
        let mut infinite = V::greater(V::and(bits, magnitude), V::splat_i(0x7f7f_ffff));
        if !always && V::negative_lanes(infinite) != 0 {
            // Of terms whose sum is so large, neither loses a bit when it is halved.
            let half = V::splat_f(0.5);
            let halves = V::odd_sum(V::mul(x, half), V::mul(y, half));
            let below = V::greater(V::splat_i(0x7f00_0000), V::and(V::bits(halves), magnitude));
            infinite = V::and(infinite, below);
        }
        // The bits of the largest number are those of infinity less one.
        V::from_bits(V::add(bits, V::and(infinite, V::and(finite_x, finite_y))))
    }
}

/// Replaces values below 2^−126 by zero; the mask is −1 where the value is ±2^−126, which may have been smaller.
#[inline(always)]
unsafe fn flushed<V: Lanes>(value: V::F, flush: Flush) -> (V::F, V::I) {
    // SAFETY: upheld by the caller.
    unsafe {
        let bits = V::bits(value);
        let magnitude = V::and(bits, V::splat_i(i32::MAX));
        let tiny = V::greater(V::splat_i(0x0080_0000), magnitude);
        let mut zero = V::and(bits, V::splat_i(i32::MIN));
        if flush == Flush::Positive {
            // A zero keeps its sign.
            zero = V::and(zero, V::greater(V::splat_i(1), magnitude));
        }
        let edge =
            V::and(V::greater(V::splat_i(0x0080_0001), magnitude), V::greater(magnitude, V::splat_i(0x007f_ffff)));
        (V::from_bits(V::select(tiny, zero, bits)), edge)
    }
}
