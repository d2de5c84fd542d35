//! The kernel of sums on grids, columns in 32-bit lanes, with half vectors of f64 for sums that need more.
//!
//! **Products.** Each factor is a significand in (−2, 2) and an exponent, so no product leaves the range of f32, and
//! all are exact: two significands of at most 12 bits. A product on a grid is `significand · 2^(exponent − unit)`, cut
//! to an integer. Below 2^−100 units the power stops decreasing: the product is less than one unit either way, and
//! never 0 if rounding down needs its sign.
//!
//! **Sums.** The plan bounds each node. Sums of up to 30 bits are added in i32, those of up to 51 bits in f64, where
//! `2^(unit − unit)` and the cut are exact. A result is rounded once, from f64 to f32 with its subnormals.
//!
//! **NaN and infinities.** Their exponents show a product's class in the sum of two. A node that meets one records, per
//! lane, what it met, and the next rounded node applies the model's rules to that; other nodes pay one comparison for
//! it. Lanes that only the scalar evaluator can decide (a NaN that keeps its payload, a flushed result next to the
//! smallest normal one, an overflow that is not an infinity) are left to it.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

mod cascade;
mod doubles;
mod exact;
mod factors;
mod folded;
mod group;
mod outcome;
mod place;
mod products;
mod settle;
mod words;

use std::mem::MaybeUninit;

use super::{NARROW_PANEL, Piece, WIDE_PANEL, halves::Halves};
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};
use crate::fast::{
    grids::{Context, ExactFolds, FoldKind, Folds, GridNode, GridTerm, GridWidth, MOST_NODES, MOST_PRODUCTS},
    path::{Path, fastest},
    tree::Flush,
};
use exact::Doubles;
pub(in crate::fast) use factors::Factors;
use group::{DIRECT, DOUBLES, Largest, WORDS};
use outcome::{Outcome, Terms, read_value};
use place::{column_of, row_of};
use products::Products;

/// The lowest unit of a sum with a value, whose power of two is split in halves.
pub(in crate::fast) const LEAST_UNIT_OF_VALUES: i32 = -250;

/// Several rows through several operations, for the columns of one panel.
pub(super) struct Grids<'a> {
    pub nodes: &'a [GridNode],
    pub context: &'a Context,
    pub steps: usize,
    pub rows: usize,
    /// Significands and exponents of A, and those of its scales.
    pub a: (*const f32, *const i32),
    pub a_scales: (*const f32, *const i32),
    pub a_masks: *const i32,
    pub a_stride: usize,
    pub a_blocks: usize,
    pub a_mask_stride: usize,
    pub b: (*const f32, *const i32),
    pub b_scales: (*const f32, *const i32),
    pub b_masks: *const i32,
    pub panel: usize,
    pub accumulators: *mut f32,
    pub left: *mut u64,
}

/// The location of the operands of one operation: `R` rows of A, and the panel of B. The first groups of lanes belong to
/// the first row.
#[derive(Clone, Copy)]
struct At<const R: usize> {
    a: [usize; R],
    a_blocks: [usize; R],
    a_masks: [usize; R],
    b: usize,
    b_block: usize,
    b_mask: usize,
}

impl Grids<'_> {
    /// Computes blocks of `R` rows of some columns, those whose bits are set if there are at most 64.
    ///
    /// # Safety
    /// The processor has the instructions of `V`, and the pointers are valid for the extents that the task states.
    #[inline(always)]
    pub(super) unsafe fn run<V: Halves, const NG: usize, const R: usize>(&self, blocks: u64) {
        // SAFETY: upheld by the caller.
        unsafe {
            let zero = V::splat_i(0);
            let none = Outcome::<V, NG> {
                value: [V::splat_f(0.0); NG],
                total: [zero; NG],
                unit: [zero; NG],
                exponent: [zero; NG],
                met: [zero; NG],
                nan: [zero; NG],
                has_met: false,
            };
            let most = |of: fn(&GridNode) -> usize| self.nodes.iter().map(of).max().unwrap_or(0);
            let products = most(|node| node.products.len());
            let terms = most(|node| node.products.len() + node.others.len());
            // What no node uses is not written: all of it together is larger than a first-level cache.
            let mut results = [const { MaybeUninit::uninit() }; MOST_NODES];
            let mut exponents = [const { MaybeUninit::uninit() }; MOST_PRODUCTS];
            let mut values = [const { MaybeUninit::uninit() }; MOST_PRODUCTS];
            let mut errors = [const { MaybeUninit::uninit() }; MOST_PRODUCTS];
            let mut room = Room {
                results: filled(&mut results[..self.nodes.len()], none),
                c: none,
                products: Products {
                    exponents: filled(&mut exponents[..products], [zero; NG]),
                    values: filled(&mut values[..products], [V::splat_f(0.0); NG]),
                    errors: filled(&mut errors[..terms.min(MOST_PRODUCTS)], [V::splat_d(0.0); 2]),
                    most: [zero; NG],
                    leading: [zero; NG],
                    met: [zero; NG],
                    nan: [zero; NG],
                    has_met: false,
                },
            };
            let mut bit = 0;
            for from in (0..self.panel).step_by(NG / R * V::WIDTH) {
                for row in (0..self.rows).step_by(R) {
                    if bit > 63 || blocks >> bit & 1 == 1 {
                        self.some_rows::<V, NG, R>(row, from, &mut room);
                    }
                    bit += 1;
                }
            }
        }
    }

    /// Computes `R` rows from `first` on; the last row takes the place of those beyond it.
    #[inline(always)]
    unsafe fn some_rows<V: Halves, const NG: usize, const R: usize>(
        &self,
        first: usize,
        from: usize,
        room: &mut Room<'_, V, NG>,
    ) {
        // SAFETY: rows, columns, products and nodes are within the bounds of the task; the processor has the
        // instructions.
        unsafe {
            let context = self.context;
            let rows: [usize; R] = std::array::from_fn(|at| (first + at).min(self.rows - 1));
            let accumulators = |g: usize| {
                let row = rows[row_of::<NG, R>(g)];
                self.accumulators.add(row * self.panel + from + column_of::<V, NG, R>(g))
            };
            let Room { results, c, products } = room;
            let mut flags = [V::splat_i(0); NG];
            for g in 0..NG {
                c.value[g] = V::load_f(accumulators(g));
            }
            for step in 0..self.steps {
                let at = At {
                    a: rows.map(|row| row * self.a_stride + step * context.len),
                    a_blocks: rows.map(|row| row * self.a_blocks + step * context.blocks),
                    a_masks: rows.map(|row| row * self.a_mask_stride + step * context.masks),
                    b: step * context.len * self.panel + from,
                    b_block: step * context.blocks * self.panel + from,
                    b_mask: step * context.masks * self.panel + from,
                };
                read_value::<V, NG>(c, context.flush_c, context.least);
                for (index, node) in self.nodes.iter().enumerate() {
                    let (before, rest) = results.split_at_mut(index);
                    let terms = Terms { c, before };
                    let out = &mut rest[0];
                    match node.width {
                        GridWidth::Cut(mask) => doubles::cut_value(node, mask, terms, out, &mut flags),
                        GridWidth::Exact => self.exact_group::<V, NG, R>(node, at, out),
                        GridWidth::Cascade => self.in_cascade(node, at, terms, products, out, &mut flags),
                        GridWidth::Words => self.in_words(node, at, terms, products, out, &mut flags),
                        GridWidth::Doubles => doubles::in_doubles(node, terms, out, &mut flags),
                    }
                    if let Some(least) = node.read_again {
                        read_value::<V, NG>(out, Flush::None, least);
                    }
                }
                c.value = results[self.nodes.len() - 1].value;
            }
            for g in 0..NG {
                let lanes = V::negative_lanes(flags[g]) << (from + column_of::<V, NG, R>(g));
                *self.left.add(rows[row_of::<NG, R>(g)]) |= lanes;
                V::store_f(accumulators(g), c.value[g]);
            }
        }
    }
}

/// Memory for the results of one operation.
struct Room<'a, V: Halves, const NG: usize> {
    results: &'a mut [Outcome<V, NG>],
    c: Outcome<V, NG>,
    products: Products<'a, V, NG>,
}

/// Writes a value to all of some memory.
#[inline(always)]
fn filled<T: Copy>(memory: &mut [MaybeUninit<T>], value: T) -> &mut [T] {
    for slot in memory.iter_mut() {
        slot.write(value);
    }
    // SAFETY: all of it was written.
    unsafe { &mut *(std::ptr::from_mut(memory) as *mut [T]) }
}

/// The nodes of a plan, and the same as folds if they are.
#[derive(Clone, Copy)]
pub(in crate::fast) struct Forms<'a> {
    pub nodes: &'a [GridNode],
    pub folds: Option<&'a Folds>,
    pub exact: Option<&'a ExactFolds>,
}

/// Runs rows of A through operations with a panel of B, by sums on grids.
pub(in crate::fast) fn run_grids(
    Forms { nodes, folds, exact }: Forms<'_>,
    context: &Context,
    piece: Piece<'_, Factors, Factors, f32>,
) {
    let Piece { path, a, row, b, steps, accumulators, left } = piece;
    let (rows, panel) = (left.len(), b.panel);
    assert!(accumulators.len() >= rows * panel && !nodes.is_empty() && nodes.len() <= MOST_NODES);
    assert!(panel == WIDE_PANEL || panel == NARROW_PANEL);
    let from = |each: usize| steps.start * each;
    let holds = |a_each: usize, b_each: usize, each: usize| steps.end * each <= a_each && steps.end * each <= b_each;
    assert!(steps.start <= steps.end && holds(a.k, b.k, context.len));
    assert!(holds(a.blocks, b.blocks, context.blocks) && holds(a.masks_each, b.masks_each, context.masks));
    let last = row + rows;
    assert!(a.significands.len() >= last * a.k && a.exponents.len() >= last * a.k);
    assert!(b.significands.len() >= b.k * panel && b.exponents.len() >= b.k * panel);
    assert!(a.scales.0.len() >= last * a.blocks && a.scales.1.len() >= last * a.blocks);
    assert!(b.scales.0.len() >= b.blocks * panel && b.scales.1.len() >= b.blocks * panel);
    assert!(a.masks.len() >= last * a.masks_each && b.masks.len() >= b.masks_each * panel);
    for (index, node) in nodes.iter().enumerate() {
        assert!(node.products.len() <= MOST_PRODUCTS && node.products.iter().all(|k| *k < context.len));
        assert!(node.rules.iter().flat_map(|rule| &rule.others).all(|at| *at < node.others.len()));
        assert!(node.others.iter().all(|term| match *term {
            GridTerm::C => true,
            GridTerm::Value(at) | GridTerm::Sum(at) | GridTerm::Group(at) => at < index,
        }));
        let terms = node.products.len() + node.others.len();
        assert!(node.width != GridWidth::Cascade || (1..=MOST_PRODUCTS).contains(&terms));
        let scaled = node.width == GridWidth::Exact;
        assert!(!scaled || (node.scale_block < context.blocks && node.mask < context.masks));
    }
    let task = Grids {
        nodes,
        context,
        steps: steps.len(),
        rows,
        a: (
            a.significands[row * a.k + from(context.len)..].as_ptr(),
            a.exponents[row * a.k + from(context.len)..].as_ptr(),
        ),
        a_scales: (
            a.scales.0[row * a.blocks + from(context.blocks)..].as_ptr(),
            a.scales.1[row * a.blocks + from(context.blocks)..].as_ptr(),
        ),
        a_masks: a.masks[row * a.masks_each + from(context.masks)..].as_ptr(),
        a_stride: a.k,
        a_blocks: a.blocks,
        a_mask_stride: a.masks_each,
        b: (b.significands[from(context.len) * panel..].as_ptr(), b.exponents[from(context.len) * panel..].as_ptr()),
        b_scales: (
            b.scales.0[from(context.blocks) * panel..].as_ptr(),
            b.scales.1[from(context.blocks) * panel..].as_ptr(),
        ),
        b_masks: b.masks[from(context.masks) * panel..].as_ptr(),
        panel,
        accumulators: accumulators.as_mut_ptr(),
        left: left.as_mut_ptr(),
    };
    assert!(path <= fastest());
    let is_folded = rows <= MOST_ROWS && a.largest.len() >= last && b.largest.len() == 1;
    let folds = folds.filter(|folds| is_folded && folds.terms.iter().all(|k| *k < context.len));
    let folds = folds.map(|folds| (folds, Largest { rows: &a.largest[row..last], panel: b.largest[0] }));
    let folds = folds.as_ref();
    let doubles = exact.filter(|_| (2..=MOST_ROWS).contains(&rows)).and_then(|exact| {
        assert!(exact.terms.iter().all(|k| *k < context.len));
        Doubles::of((exact, context.len), (a, row..last), b, steps, accumulators.as_mut_ptr())
    });
    // SAFETY: the lengths were asserted above, and that the processor has the instructions.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        match (path, &doubles) {
            (Path::Avx512, Some(doubles)) => exactly_in_avx512(&task, doubles),
            (Path::Avx2, Some(doubles)) => exactly_in_avx2(&task, doubles),
            // Each node waits for the one before, so that several groups of lanes are computed in turn.
            (Path::Avx512, _) if panel == WIDE_PANEL => in_avx512::<4, 1>(&task, folds),
            (Path::Avx512, _) if rows > 1 => in_avx512::<4, 4>(&task, folds),
            (Path::Avx512, _) => in_avx512::<1, 1>(&task, None),
            (Path::Avx2, _) => in_avx2(&task, folds),
            _ => unreachable!("the plan was made for AVX2 or AVX-512"),
        }
    }
}

/// The most rows in a call with folds, so that their blocks have a bit each.
const MOST_ROWS: usize = 16;

/// # Safety
/// The processor has these instructions, and the task's pointers are valid.
#[cfg(target_arch = "x86_64")]
unsafe fn in_avx512<const NG: usize, const R: usize>(task: &Grids<'_>, folds: Option<&(&Folds, Largest<'_>)>) {
    // SAFETY: upheld by the caller.
    unsafe {
        let Some((folds, largest)) = folds else { return nodes_in_avx512::<NG, R>(task, u64::MAX) };
        let fold = match (folds.kind, folds.sums, folds.products, task.context.plain_products) {
            (FoldKind::Direct, 0, 2, true) => folds_in_avx512::<NG, R, DIRECT, 0, 2, true>,
            (FoldKind::Direct, 0, 2, false) => folds_in_avx512::<NG, R, DIRECT, 0, 2, false>,
            (FoldKind::Words, 1, 2, true) => folds_in_avx512::<NG, R, WORDS, 1, 2, true>,
            (FoldKind::Words, 1, 2, false) => folds_in_avx512::<NG, R, WORDS, 1, 2, false>,
            (FoldKind::Words, 1, 4, true) => folds_in_avx512::<NG, R, WORDS, 1, 4, true>,
            (FoldKind::Words, 2, 2, true) => folds_in_avx512::<NG, R, WORDS, 2, 2, true>,
            (FoldKind::Words, 2, 2, false) => folds_in_avx512::<NG, R, WORDS, 2, 2, false>,
            (FoldKind::Doubles, 1, 4, false) => folds_in_avx512::<NG, R, DOUBLES, 1, 4, false>,
            (FoldKind::Doubles, 1, 8, true) => folds_in_avx512::<NG, R, DOUBLES, 1, 8, true>,
            (FoldKind::Doubles, 1, 8, false) => folds_in_avx512::<NG, R, DOUBLES, 1, 8, false>,
            (FoldKind::Doubles, 2, 8, true) => folds_in_avx512::<NG, R, DOUBLES, 2, 8, true>,
            _ => return nodes_in_avx512::<NG, R>(task, u64::MAX),
        };
        let left = fold(task, folds, largest);
        if left != 0 {
            nodes_in_avx512::<NG, R>(task, left);
        }
    }
}

/// # Safety
/// The processor has these instructions, and the task's pointers are valid.
#[cfg(target_arch = "x86_64")]
unsafe fn in_avx2(task: &Grids<'_>, folds: Option<&(&Folds, Largest<'_>)>) {
    // SAFETY: upheld by the caller.
    unsafe {
        let Some((folds, largest)) = folds else { return nodes_in_avx2(task, u64::MAX) };
        let fold = match (folds.kind, folds.sums, folds.products, task.context.plain_products) {
            (FoldKind::Direct, 0, 2, true) => folds_in_avx2::<DIRECT, 0, 2, true>,
            (FoldKind::Direct, 0, 2, false) => folds_in_avx2::<DIRECT, 0, 2, false>,
            (FoldKind::Words, 1, 2, true) => folds_in_avx2::<WORDS, 1, 2, true>,
            (FoldKind::Words, 1, 2, false) => folds_in_avx2::<WORDS, 1, 2, false>,
            (FoldKind::Words, 1, 4, true) => folds_in_avx2::<WORDS, 1, 4, true>,
            (FoldKind::Words, 2, 2, true) => folds_in_avx2::<WORDS, 2, 2, true>,
            (FoldKind::Words, 2, 2, false) => folds_in_avx2::<WORDS, 2, 2, false>,
            (FoldKind::Doubles, 1, 4, false) => folds_in_avx2::<DOUBLES, 1, 4, false>,
            (FoldKind::Doubles, 1, 8, true) => folds_in_avx2::<DOUBLES, 1, 8, true>,
            (FoldKind::Doubles, 1, 8, false) => folds_in_avx2::<DOUBLES, 1, 8, false>,
            (FoldKind::Doubles, 2, 8, true) => folds_in_avx2::<DOUBLES, 2, 8, true>,
            _ => return nodes_in_avx2(task, u64::MAX),
        };
        let left = fold(task, folds, largest);
        if left != 0 {
            nodes_in_avx2(task, left);
        }
    }
}

/// # Safety
/// The processor has these instructions, and the task's pointers are valid.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn nodes_in_avx512<const NG: usize, const R: usize>(task: &Grids<'_>, blocks: u64) {
    // SAFETY: this function's features; the rest is upheld by its caller.
    unsafe { task.run::<Avx512, NG, R>(blocks) }
}

/// # Safety
/// The processor has these instructions, and the task's pointers are valid.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn nodes_in_avx2(task: &Grids<'_>, blocks: u64) {
    // SAFETY: as above.
    unsafe { task.run::<Avx2, 2, 1>(blocks) }
}

/// # Safety
/// The processor has these instructions, and the task's pointers are valid, also for the k of all terms.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn folds_in_avx512<
    const NG: usize,
    const R: usize,
    const KIND: u8,
    const S: usize,
    const P: usize,
    const PLAIN: bool,
>(
    task: &Grids<'_>,
    folds: &Folds,
    largest: &Largest<'_>,
) -> u64 {
    // SAFETY: as above.
    unsafe { task.fold::<Avx512, NG, R, KIND, S, P, PLAIN>(folds, largest) }
}

/// # Safety
/// The processor has these instructions, and the task's pointers are valid, also for the k of all terms.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn folds_in_avx2<const KIND: u8, const S: usize, const P: usize, const PLAIN: bool>(
    task: &Grids<'_>,
    folds: &Folds,
    largest: &Largest<'_>,
) -> u64 {
    // SAFETY: as above.
    unsafe { task.fold::<Avx2, 2, 1, KIND, S, P, PLAIN>(folds, largest) }
}

/// # Safety
/// The processor has these instructions, and the pointers of the task and the factors are valid.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn exactly_in_avx512(task: &Grids<'_>, doubles: &Doubles<'_>) {
    // SAFETY: as above.
    unsafe {
        let left = doubles.fold::<Avx512, 4, 4>();
        if left != 0 {
            nodes_in_avx512::<4, 4>(task, left);
        }
    }
}

/// # Safety
/// The processor has these instructions, and the pointers of the task and the factors are valid.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn exactly_in_avx2(task: &Grids<'_>, doubles: &Doubles<'_>) {
    // SAFETY: as above.
    unsafe {
        let left = doubles.fold::<Avx2, 2, 1>();
        if left != 0 {
            nodes_in_avx2(task, left);
        }
    }
}
