//! What a kernel leaves, computed by a second kernel that takes more: rows with infinities, operands that lie far apart.

use std::sync::Arc;

use mxprobe_api::{Elements, Format, GemmOperands, OperationId};

use super::{
    drive::{self, Kernel, View},
    kernels::Kernels,
    operand::{Operand, bits_of},
    path::Path,
    simd::{Factors, Join, Packed, Piece, Split, WIDE_PANEL},
    unpack::{SPECIAL, Unpacked},
};
use crate::{adder::Adder, tree::Plan};

/// The fewest elements of a row for which the second kernel, which computes all columns of the panel, is faster than
/// one element at a time.
const FEW: u32 = 4;

/// Whether a running sum stays as it is, whatever finite products follow: most sums of arbitrary bits overflow early.
pub(super) fn is_final(
    (kernel, one_nan, d): (&Kernels, Option<&OneNan>, Format),
    has_scales: bool,
    c: u64,
    (a, b): (&[Unpacked], &[Unpacked]),
) -> bool {
    let Kernels::Chain(kernel) = kernel else { return false };
    let is_infinite = [false, true].iter().any(|negative| d.infinity(*negative) == Some(c));
    // A sum to which c is added afterwards may overflow by itself.
    if !is_infinite || kernel.chain.join == Join::AddC {
        return one_nan.is_some_and(|nan| nan.bits == c);
    }
    !has_scales && a.iter().chain(b).all(|element| element.kind & SPECIAL == 0)
}

/// Computes elements of one row by the second kernel: the row, its first column and the number of columns, and a bit for
/// each element. Returns the bits of those that this kernel cannot compute either.
pub(super) fn row(
    kernel: &Kernels,
    of: (&OperationId, Path),
    view: &View<'_>,
    place: (usize, usize, usize),
    left: u64,
    out: &mut [u8],
    bench: &mut SpareBench,
) -> u64 {
    match kernel {
        _ if left.count_ones() < FEW => left,
        Kernels::Sums(kernel) => row_of(kernel, of, view, place, left, out, &mut bench.sums),
        Kernels::Grids(kernel) => row_of(&**kernel, of, view, place, left, out, &mut bench.grids),
        Kernels::Tree(kernel) => row_of(kernel, of, view, place, left, out, &mut bench.tree),
        _ => left,
    }
}

fn row_of<K: Kernel>(
    kernel: &K,
    (id, path): (&OperationId, Path),
    view: &View<'_>,
    (row, first, columns): (usize, usize, usize),
    left: u64,
    out: &mut [u8],
    panel: &mut PanelOf<K::B>,
) -> u64 {
    let GemmOperands { m, n, k, c, .. } = view.matrices;
    let (source, steps, width) = (view.source(id), drive::steps(id, k), drive::panel_for(n));
    if !panel.is_packed {
        panel.special = kernel.pack_b(&source, first, width, steps, &mut panel.b);
        panel.is_packed = true;
    }
    let (a, special_rows) = kernel.pack_a(&source, row, 1, steps);
    let mut accumulators = [K::Accumulator::default(); WIDE_PANEL];
    let at = (view.tile * m + row) * n + first;
    let special = kernel.load_c(c, at, &mut accumulators[..columns]) | panel.special;
    if special_rows[0] {
        return left;
    }
    let mut cannot = [special];
    let accumulators = &mut accumulators[..width];
    kernel.run(Piece { path, a: &a, row: 0, b: &panel.b, steps: 0..steps, accumulators, left: &mut cannot });
    let size = id.d.storage_bytes();
    // The other elements of the row are there already.
    let mut d = [0; 8 * WIDE_PANEL];
    kernel.store_d(&accumulators[..columns], &mut d[..columns * size]);
    let done = left & !cannot[0];
    for column in (0..columns).filter(|column| done >> column & 1 == 1) {
        out[column * size..][..size].copy_from_slice(&d[column * size..][..size]);
    }
    left & cannot[0]
}

/// A panel of B, packed for a second kernel when it is first needed.
#[derive(Debug, Default)]
struct PanelOf<B> {
    b: B,
    is_packed: bool,
    /// A bit for each column that the kernel cannot take.
    special: u64,
}

/// The working memory of one thread.
#[derive(Debug, Default)]
pub(super) struct SpareBench {
    sums: PanelOf<Split>,
    grids: PanelOf<Factors>,
    tree: PanelOf<Packed<f32>>,
    /// The columns of the panel that have a NaN, once they are known.
    nan_columns: Option<u64>,
}

impl SpareBench {
    /// Called when another panel begins.
    pub(super) fn forget(&mut self) {
        (self.sums.is_packed, self.grids.is_packed, self.tree.is_packed) = (false, false, false);
        self.nan_columns = None;
    }
}

/// The one NaN that a unit returns, if there is a NaN in A or B: then nothing needs to be added.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneNan {
    bits: u64,
    a: Operand,
    b: Operand,
}

impl OneNan {
    /// The NaN, if every adder of the plan returns one of its own whatever the cause, and each one hands it on.
    pub(super) fn of(adders: &[Arc<Adder>], plan: &Plan, id: &OperationId) -> Option<Self> {
        let mut found = None;
        for node in &plan.nodes {
            let rules = &adders[node.adder].nan;
            let format = adders[node.adder].float_format()?;
            let is_nan = matches!(format.decode(rules.invalid), mxprobe_api::Decoded::Nan { .. });
            if !is_nan || rules.operand != Some(rules.invalid) || rules.value != Some(rules.invalid) {
                return None;
            }
            found = Some((format, rules.invalid));
        }
        let (_, bits) = found.filter(|(format, _)| *format == id.d)?;
        Some(Self { bits, a: Operand::new(id.a, false, false)?, b: Operand::new(id.b, false, false)? })
    }

    /// Stores the NaN where there is one in the row of A or in the column of B; returns the bits of the other elements.
    pub(super) fn fill(
        &self,
        (id, view): (&OperationId, &View<'_>),
        (row, first, columns): (usize, usize, usize),
        left: u64,
        out: &mut [u8],
        bench: &mut SpareBench,
    ) -> u64 {
        let GemmOperands { n, k, a, b, .. } = view.matrices;
        let source = view.source(id);
        let nan = if any_nan(a, source.row_of_a(row), k, self.a) {
            left
        } else {
            let of_columns = bench
                .nan_columns
                .get_or_insert_with(|| nan_columns(b, source.row_of_b(0) + first, (k, n), columns, self.b));
            left & *of_columns
        };
        let size = id.d.storage_bytes();
        for column in (0..columns).filter(|column| nan >> column & 1 == 1) {
            out[column * size..][..size].copy_from_slice(&self.bits.to_le_bytes()[..size]);
        }
        left & !nan
    }
}

/// Elements that are looked at together.
const AT_ONCE: usize = 64;

fn any_nan(elements: &Elements, start: usize, count: usize, operand: Operand) -> bool {
    let mut bits = [0; AT_ONCE];
    (0..count).step_by(AT_ONCE).any(|from| {
        let bits = &mut bits[..AT_ONCE.min(count - from)];
        bits_of(elements, start + from, bits);
        bits.iter().fold(false, |any, bits| any | operand.is_nan(*bits))
    })
}

/// The columns of a panel in which there is a NaN.
fn nan_columns(b: &Elements, start: usize, (k, n): (usize, usize), columns: usize, operand: Operand) -> u64 {
    let mut any = [false; WIDE_PANEL];
    let mut bits = [0; WIDE_PANEL];
    for row in 0..k {
        bits_of(b, start + row * n, &mut bits[..columns]);
        any.iter_mut().zip(bits).for_each(|(any, bits)| *any |= operand.is_nan(bits));
    }
    any.iter().enumerate().fold(0, |all, (column, any)| all | u64::from(*any) << column)
}
