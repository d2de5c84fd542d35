//! Dividing matrices into pieces, distributing them over threads, and presenting them to kernels.

use std::sync::{Mutex, PoisonError};

use mxprobe_api::{Elements, GemmOperands, OperationId, TileBatch};

use super::{
    path::Path,
    simd::{NARROW_PANEL, Piece, WIDE_PANEL},
};
use crate::pieces::in_threads;

/// Computes the elements that no kernel takes, one by one.
pub(super) trait OneByOne: Sync {
    /// The working memory of one thread.
    type Room: Default;

    /// The operation.
    fn id(&self) -> &OperationId;

    /// The path whose kernels compute.
    fn path(&self) -> Path;

    /// Computes rows of D from `first` on, as many as `out` holds.
    fn rows(&self, view: &View<'_>, first: usize, out: &mut [u8], room: &mut Self::Room);

    /// Computes the elements of one row that the kernel left: the row, its first column and the number of columns, and
    /// a bit for each element that is left.
    fn left_over(
        &self,
        view: &View<'_>,
        place: (usize, usize, usize),
        left: u64,
        out: &mut [u8],
        room: &mut Self::Room,
    );

    /// Called when another panel begins.
    fn forget_columns(room: &mut Self::Room);
}

/// The number of operations along k.
pub(super) fn steps(id: &OperationId, k: usize) -> usize {
    k.div_ceil(id.shape.sizes().2).max(1)
}

/// Matrices, or one tile of a batch of them.
pub(super) struct View<'a> {
    pub matrices: GemmOperands<'a>,
    pub tile: usize,
}

impl View<'_> {
    pub(super) fn source(&self, id: &OperationId) -> Source<'_> {
        let blocks = id.block_scale().map_or(0, |scale| self.matrices.k.div_ceil(scale.block));
        Source { matrices: &self.matrices, tile: self.tile, blocks }
    }
}

/// A kernel whose lanes are columns: it takes packed rows of A and a packed panel of B.
pub(super) trait Kernel: Sync {
    /// The type of an accumulator.
    type Accumulator: Copy + Default;
    /// Packed rows of A.
    type A: Sync;
    /// A packed panel of B.
    type B: Default;

    /// Packs rows `first..first + rows` of A, padded to `steps` operations, and says which rows the kernel cannot take.
    fn pack_a(&self, from: &Source<'_>, first: usize, rows: usize, steps: usize) -> (Self::A, Vec<bool>);

    /// Packs the columns from `first` on, as many as a panel of `panel` columns holds. Returns one bit for each column
    /// that the kernel cannot take.
    fn pack_b(&self, from: &Source<'_>, first: usize, panel: usize, steps: usize, into: &mut Self::B) -> u64;

    /// Loads elements of C from `start` on. Returns one bit for each element that the kernel cannot take.
    fn load_c(&self, from: &Elements, start: usize, into: &mut [Self::Accumulator]) -> u64;

    /// Stores accumulators as elements of D.
    fn store_d(&self, from: &[Self::Accumulator], into: &mut [u8]);

    /// Runs rows of A through operations for the columns of the panel.
    fn run(&self, piece: Piece<'_, Self::A, Self::B, Self::Accumulator>);
}

/// A kernel whose lanes may hold dots that share no operands: if it multiplies exactly, it takes products in place of B,
/// and a row of ones in place of that of A; otherwise, both factors as panels.
pub(super) trait OfDots: Kernel {
    /// A packed row of ones for one operation; `None` if the kernel takes no dots of this plan.
    fn ones(&self) -> Option<Self::A>;

    /// What takes the place of A: the ones, or the packed factors.
    fn place_of_a<'a>(&self, ones: &'a Self::A, _of_a: &'a Self::B) -> &'a Self::A {
        ones
    }

    /// Packs one operation's products of these factors, each given as a matrix B whose columns are dots, in the
    /// columns of a panel; or the first factors in `of_a`, otherwise working memory, and the second ones. Returns one bit
    /// for each column that the kernel cannot take.
    fn pack_products(
        &self,
        factors: (&Source<'_>, &Source<'_>),
        panel: usize,
        of_a: &mut Self::B,
        into: &mut Self::B,
    ) -> u64;
}

/// The location of the operands of one tile.
pub(super) struct Source<'a> {
    pub matrices: &'a GemmOperands<'a>,
    pub tile: usize,
    /// The number of scales in one row of A.
    pub blocks: usize,
}

impl Source<'_> {
    pub(super) fn row_of_a(&self, row: usize) -> usize {
        (self.tile * self.matrices.m + row) * self.matrices.k
    }

    pub(super) fn row_of_b(&self, k: usize) -> usize {
        (self.tile * self.matrices.k + k) * self.matrices.n
    }

    /// The scale of a block of k in a row of A; `None` beyond the last block.
    pub(super) fn scale_of_a(&self, row: usize, block: usize) -> Option<u64> {
        let scales = self.matrices.scale_a.filter(|_| block < self.blocks)?;
        Some(scales.get((self.tile * self.matrices.m + row) * self.blocks + block))
    }

    /// The scale of a block of k in a column of B; `None` beyond the last block or column.
    pub(super) fn scale_of_b(&self, block: usize, column: usize) -> Option<u64> {
        let n = self.matrices.n;
        let scales = self.matrices.scale_b.filter(|_| block < self.blocks && column < n)?;
        Some(scales.get((self.tile * self.blocks + block) * n + column))
    }
}

/// The working memory of one thread.
struct Bench<K: Kernel, R> {
    room: R,
    b: K::B,
    accumulators: Vec<K::Accumulator>,
    left: Vec<u64>,
    out: Vec<u8>,
}

impl<K: Kernel, R: Default> Default for Bench<K, R> {
    fn default() -> Self {
        let (accumulators, left) = (Vec::new(), Vec::new());
        Self { room: R::default(), b: K::B::default(), accumulators, left, out: Vec::new() }
    }
}

/// Computes D of every tile of a batch.
pub(super) fn tiles<K: Kernel, E: OneByOne>(
    evaluator: &E,
    kernel: Option<&K>,
    batch: &TileBatch,
    threads: usize,
) -> Elements {
    let id = evaluator.id();
    let (m, n, k) = id.shape.sizes();
    let (a, b, c) = (&batch.a, &batch.b, &batch.c);
    let (scale_a, scale_b) = (batch.scale_a.as_ref(), batch.scale_b.as_ref());
    let matrices = GemmOperands { m, n, k, a, b, c, scale_a, scale_b };
    let d = Mutex::new(Elements::zeros(id.d, batch.tiles * m * n));
    let tile_bytes = m * n * id.d.storage_bytes();
    // Several tiles at a time share one lock and one copy.
    let at_once = (16_384 / (m * n * k)).clamp(1, 64);
    // Starting a thread costs as much as a few hundred thousand products.
    let threads = threads.min(1 + batch.tiles * m * n * k / 400_000);
    in_threads(batch.tiles.div_ceil(at_once), threads, Bench::default, |piece, bench: &mut Bench<K, E::Room>| {
        let from = piece * at_once;
        let count = at_once.min(batch.tiles - from);
        let mut out = std::mem::take(&mut bench.out);
        out.resize(count * tile_bytes, 0);
        for (tile, out) in out.chunks_exact_mut(tile_bytes).enumerate() {
            let view = View { matrices, tile: from + tile };
            match kernel {
                Some(kernel) => {
                    let source = view.source(id);
                    let a = kernel.pack_a(&source, 0, m, 1);
                    let panel = panel_for(n);
                    for first in (0..n).step_by(panel) {
                        let place = Place { first_row: 0, rows: m, first, panel, stride: n, offset: first };
                        one_panel(evaluator, kernel, &view, &a, &place, out, bench);
                    }
                }
                None => evaluator.rows(&view, 0, out, &mut bench.room),
            }
        }
        let mut d = d.lock().unwrap_or_else(PoisonError::into_inner);
        d.bytes_mut()[from * tile_bytes..][..out.len()].copy_from_slice(&out);
        bench.out = out;
    });
    d.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Computes D of one product.
pub(super) fn matrices<K: Kernel, E: OneByOne>(
    evaluator: &E,
    kernel: Option<&K>,
    matrices: &GemmOperands<'_>,
    threads: usize,
) -> Elements {
    let id = evaluator.id();
    let (m, n) = (matrices.m, matrices.n);
    let mut d = Elements::zeros(id.d, m * n);
    if m * n == 0 {
        return d;
    }
    let size = id.d.storage_bytes();
    let view = View { matrices: *matrices, tile: 0 };
    let threads = threads.max(1);
    // Rows and columns of one piece.
    let (rows, columns) = match kernel {
        Some(_) => {
            let pieces = (4 * threads).div_ceil(n.div_ceil(WIDE_PANEL));
            let rows = if threads == 1 { m } else { m.div_ceil(pieces).next_multiple_of(ROWS).min(m) };
            (rows, panel_for(n))
        }
        None => (m.div_ceil(threads * 4).clamp(1, 64), n),
    };
    let packed: Vec<_> = match kernel {
        Some(kernel) => {
            let source = view.source(id);
            let steps = steps(id, matrices.k);
            (0..m).step_by(rows).map(|row| kernel.pack_a(&source, row, rows.min(m - row), steps)).collect()
        }
        None => Vec::new(),
    };
    let (across, down) = (n.div_ceil(columns), m.div_ceil(rows));
    if let (Some(kernel), 1) = (kernel, threads) {
        // One band of rows, written where it belongs.
        let mut bench: Bench<K, E::Room> = Bench::default();
        for first in (0..n).step_by(columns) {
            let place = Place { first_row: 0, rows, first, panel: columns, stride: n, offset: first };
            one_panel(evaluator, kernel, &view, &packed[0], &place, d.bytes_mut(), &mut bench);
        }
        return d;
    }
    let d = Mutex::new(d);
    in_threads(across * down, threads, Bench::default, |piece, bench: &mut Bench<K, E::Room>| {
        let (band, first) = (piece / across, piece % across * columns);
        let first_row = band * rows;
        let rows = rows.min(m - first_row);
        let width = columns.min(n - first);
        let mut out = std::mem::take(&mut bench.out);
        out.resize(rows * width * size, 0);
        match kernel {
            Some(kernel) => {
                let place = Place { first_row, rows, first, panel: columns, stride: width, offset: 0 };
                one_panel(evaluator, kernel, &view, &packed[band], &place, &mut out, bench);
            }
            None => evaluator.rows(&view, first_row, &mut out, &mut bench.room),
        }
        let mut d = d.lock().unwrap_or_else(PoisonError::into_inner);
        for (row, from) in out.chunks_exact(width * size).enumerate() {
            let at = ((first_row + row) * n + first) * size;
            d.bytes_mut()[at..at + from.len()].copy_from_slice(from);
        }
        drop(d);
        bench.out = out;
    });
    d.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The number of rows whose accumulators stay in the first-level cache while a part of a panel passes.
const ROWS: usize = 16;

/// Rows of D and the columns of one panel, and their place in the output.
struct Place {
    first_row: usize,
    rows: usize,
    first: usize,
    panel: usize,
    /// Elements from one row of the output to the next, and elements before the first column.
    stride: usize,
    offset: usize,
}

fn one_panel<K: Kernel, E: OneByOne>(
    evaluator: &E,
    kernel: &K,
    view: &View<'_>,
    (a, special_rows): &(K::A, Vec<bool>),
    place: &Place,
    out: &mut [u8],
    bench: &mut Bench<K, E::Room>,
) {
    let Place { first_row, rows, first, panel, stride, offset } = *place;
    let GemmOperands { m, n, k, c, .. } = view.matrices;
    let id = evaluator.id();
    let (steps, step) = (steps(id, k), id.shape.sizes().2);
    let columns = panel.min(n - first);
    let size = id.d.storage_bytes();
    let special_columns = kernel.pack_b(&view.source(id), first, panel, steps, &mut bench.b);
    // As many operations at a time as keep their part of the panel in the first-level cache.
    let steps_at_once = (64 / step).max(1);
    let all = u64::MAX >> (64 - columns);
    bench.accumulators.clear();
    bench.accumulators.resize(ROWS * panel, K::Accumulator::default());
    bench.left.resize(ROWS, 0);
    E::forget_columns(&mut bench.room);
    for start in (0..rows).step_by(ROWS) {
        let rows = ROWS.min(rows - start);
        for row in 0..rows {
            let at = (view.tile * m + first_row + start + row) * n + first;
            let accumulators = &mut bench.accumulators[row * panel..][..columns];
            let special = kernel.load_c(c, at, accumulators) | special_columns;
            bench.left[row] = if special_rows[start + row] { all } else { special };
        }
        if bench.left[..rows].iter().any(|left| left & all != all) {
            for from in (0..steps).step_by(steps_at_once) {
                kernel.run(Piece {
                    path: evaluator.path(),
                    a,
                    row: start,
                    b: &bench.b,
                    steps: from..(from + steps_at_once).min(steps),
                    accumulators: &mut bench.accumulators[..rows * panel],
                    left: &mut bench.left[..rows],
                });
            }
        }
        for row in 0..rows {
            let out = &mut out[((start + row) * stride + offset) * size..][..columns * size];
            kernel.store_d(&bench.accumulators[row * panel..][..columns], out);
            let left = bench.left[row] & all;
            if left != 0 {
                evaluator.left_over(view, (first_row + start + row, first, columns), left, out, &mut bench.room);
            }
        }
    }
}

/// The width of the panels of B for n columns.
pub(super) fn panel_for(n: usize) -> usize {
    if n <= 32 { NARROW_PANEL } else { WIDE_PANEL }
}
