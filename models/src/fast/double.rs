//! Chains of f64 fused multiply-adds, which processors compute natively; factors of f32 are exact in f64.

use std::sync::Arc;

use mxprobe_api::{Elements, Format, OperationId, Overflow, Rounding, Subnormals};

use super::{
    drive::{Kernel, OfDots, Source},
    path::Path,
    simd::{self, Packed, Piece},
};
use crate::{
    adder::{Adder, Below, Output, Scale, ZeroSign},
    model::{Flush, Unit},
    tree::{Plan, Term},
};

/// A chain of f64 fused multiply-adds.
#[derive(Clone, Debug)]
pub(super) struct DoublePlan {
    /// The k of each product, in order.
    order: Vec<usize>,
    rounding: Rounding,
}

impl DoublePlan {
    /// Compiles a plan to a chain, if the processor supports its rounding on `path`.
    pub(super) fn of(adders: &[Arc<Adder>], unit: &Unit, plan: &Plan, id: &OperationId, path: Path) -> Option<Self> {
        let is_read = |format: Format| matches!(format, Format::F32 | Format::F64);
        let are_read = is_read(id.a) && is_read(id.b) && [id.c, id.d] == [Format::F64; 2];
        if !are_read || id.block_scale().is_some() || unit.flush != Flush::default() || path < Path::Avx2 {
            return None;
        }
        let mut order = Vec::new();
        let mut first_rounding = None;
        for (index, node) in plan.nodes.iter().enumerate() {
            let adder = &adders[node.adder];
            let Output::Float { fraction_bits: 52, rounding, overflow, subnormals: Subnormals::Keep, .. } =
                adder.output
            else {
                return None;
            };
            let before = if index == 0 { Term::C } else { Term::Node(index - 1) };
            let k = match node.terms[..] {
                [Term::Product(k), other] | [other, Term::Product(k)] if other == before => k,
                _ => return None,
            };
            let overflow_is_native =
                overflow == Overflow::Ieee || (overflow == Overflow::Infinity && rounding == Rounding::NearestEven);
            let is_native = overflow_is_native
                && *first_rounding.get_or_insert(rounding) == rounding
                && adder.grid.is_empty()
                && adder.below != Below::OnesComplement
                && adder.value_cut_bits == 0
                && adder.ignored_values.is_none()
                && adder.normalised_fraction_bits.is_none()
                && adder.scale == Scale::Products
                && !adder.product_overflow
                && adder.zero == ZeroSign::Ieee;
            if !is_native {
                return None;
            }
            order.push(k);
        }
        let rounding = first_rounding?;
        let has = match rounding {
            Rounding::NearestEven => true,
            Rounding::TowardZero | Rounding::Down | Rounding::Up => path == Path::Avx512,
            Rounding::ToOdd => false,
        };
        let mut sorted = order.clone();
        sorted.sort_unstable();
        (has && sorted == (0..id.shape.sizes().2).collect::<Vec<_>>()).then_some(Self { order, rounding })
    }
}

/// Reads elements of f64 or f32.
fn doubles_of(elements: &Elements, start: usize, into: &mut [f64]) {
    if elements.format() == Format::F32 {
        let bytes = &elements.bytes()[start * 4..][..into.len() * 4];
        for (slot, four) in into.iter_mut().zip(bytes.chunks_exact(4)) {
            *slot = f64::from(f32::from_le_bytes(four.try_into().expect("four bytes")));
        }
        return;
    }
    let bytes = &elements.bytes()[start * 8..][..into.len() * 8];
    for (slot, eight) in into.iter_mut().zip(bytes.chunks_exact(8)) {
        *slot = f64::from_le_bytes(eight.try_into().expect("eight bytes"));
    }
}

impl Kernel for DoublePlan {
    type Accumulator = f64;
    type A = Packed<f64>;
    type B = Packed<f64>;

    fn pack_a(&self, from: &Source<'_>, first: usize, rows: usize, steps: usize) -> (Packed<f64>, Vec<bool>) {
        let (k, len) = (from.matrices.k, self.order.len());
        let mut row_of = vec![0.0; steps * len];
        let mut packed = Packed { values: Vec::with_capacity(rows * steps * len), k: steps * len, panel: 0 };
        for row in 0..rows {
            doubles_of(from.matrices.a, from.row_of_a(first + row), &mut row_of[..k]);
            packed.values.extend((0..steps * len).map(|at| row_of[at / len * len + self.order[at % len]]));
        }
        (packed, vec![false; rows])
    }

    fn pack_b(&self, from: &Source<'_>, first: usize, panel: usize, steps: usize, into: &mut Packed<f64>) -> u64 {
        let (k, n, len) = (from.matrices.k, from.matrices.n, self.order.len());
        let columns = panel.min(n - first);
        (into.k, into.panel) = (steps * len, panel);
        into.values.clear();
        into.values.resize(into.k * panel, 0.0);
        for at in 0..into.k {
            let row = at / len * len + self.order[at % len];
            if row < k {
                doubles_of(from.matrices.b, from.row_of_b(row) + first, &mut into.values[at * panel..][..columns]);
            }
        }
        0
    }

    fn load_c(&self, from: &Elements, start: usize, into: &mut [f64]) -> u64 {
        doubles_of(from, start, into);
        0
    }

    fn store_d(&self, from: &[f64], into: &mut [u8]) {
        from.iter().zip(into.chunks_exact_mut(8)).for_each(|(value, slot)| slot.copy_from_slice(&value.to_le_bytes()));
    }

    fn run(&self, piece: Piece<'_, Packed<f64>, Packed<f64>, f64>) {
        simd::run_doubles(self.rounding, self.order.len(), piece);
    }
}

impl OfDots for DoublePlan {
    fn ones(&self) -> Option<Packed<f64>> {
        Some(Packed::default())
    }

    fn place_of_a<'a>(&self, _ones: &'a Packed<f64>, of_a: &'a Packed<f64>) -> &'a Packed<f64> {
        of_a
    }

    fn pack_products(
        &self,
        (a, b): (&Source<'_>, &Source<'_>),
        panel: usize,
        of_a: &mut Packed<f64>,
        into: &mut Packed<f64>,
    ) -> u64 {
        self.pack_b(a, 0, panel, 1, of_a) | self.pack_b(b, 0, panel, 1, into)
    }
}
