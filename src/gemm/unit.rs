//! Whole matrices of bits through one operation.

use mxprobe_api::{Device, Elements, Error, Operation, OperationId, Product, TileBatch, execute, multiply};
use mxprobe_models::{Evaluator, Matrices, Model};

/// What computes: an operation of a device, or of a model.
pub enum Unit<'a> {
    /// A device: whole matrices where it multiplies them, else tile by tile.
    Device(&'a dyn Device, &'a Operation),
    /// A model, with the fastest evaluator that this machine has, on so many threads.
    Model(Box<Evaluator>, usize),
}

/// The lengths of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

/// Elements of A or B that one batch holds at the most.
const ELEMENTS_PER_BATCH: usize = 1 << 22;

impl<'a> Unit<'a> {
    /// An operation of a model, on every core.
    ///
    /// # Errors
    /// If the model has no such operation.
    pub fn model(model: &Model, id: &OperationId) -> Result<Self, Error> {
        let threads = super::threads();
        Ok(Self::Model(Box::new(Evaluator::new(model, id)?), threads))
    }

    /// An operation of a device.
    #[must_use]
    pub fn device(device: &'a dyn Device, operation: &'a Operation) -> Self {
        Self::Device(device, operation)
    }

    /// The operation's id.
    #[must_use]
    pub fn id(&self) -> &OperationId {
        match self {
            Self::Device(_, operation) => &operation.id,
            Self::Model(evaluator, _) => evaluator.id(),
        }
    }

    /// Nanoseconds that kernels have run so far, if the device can tell ([`Device::kernel_ns`]).
    pub(super) fn kernel_ns(&self) -> Option<u64> {
        match self {
            Self::Device(device, _) => device.kernel_ns(),
            Self::Model(..) => None,
        }
    }

    /// D = A·B + C as one operation after another along k computes it, each taking the last one's d as c; A m×k, B k×n, C
    /// and D m×n, row-major. Edges are padded with +0. k = 0 is one operation on zeros and C.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if a k longer than the operation's would need a d that is a c, and it is not, or if the
    /// operation has block scales; else what the device reports.
    pub(super) fn multiply(
        &self,
        lengths: Lengths,
        a: &Elements,
        b: &Elements,
        c: &Elements,
    ) -> Result<Elements, Error> {
        let id = self.id();
        if id.block_scale().is_some() {
            return Err(Error::unsupported(format!("{id} has block scales; whole matrices are multiplied without")));
        }
        if lengths.k > id.shape.sizes().2 && id.c != id.d {
            return Err(Error::unsupported(format!(
                "k is {}, {id} takes {} at a time, and its d, {}, cannot be the next one's c, {}",
                lengths.k, id.shape.k, id.d, id.c
            )));
        }
        match self {
            Self::Model(evaluator, threads) => {
                let Lengths { m, n, k } = lengths;
                let matrices = Matrices { m, n, k, a, b, c, scale_a: None, scale_b: None };
                evaluator.multiply(&matrices, *threads)
            }
            Self::Device(device, operation) => {
                let Lengths { m, n, k } = lengths;
                let product = Product { m, n, k, a, b, c };
                match multiply(*device, operation, &product)? {
                    Some(d) => Ok(d),
                    None => on_device(*device, operation, lengths, a, b, c),
                }
            }
        }
    }
}

/// Tiles of D in chunks, each chunk all the way along k before the next.
fn on_device(
    device: &dyn Device,
    operation: &Operation,
    lengths: Lengths,
    a: &Elements,
    b: &Elements,
    c: &Elements,
) -> Result<Elements, Error> {
    let id = &operation.id;
    let (tile_m, tile_n, tile_k) = id.shape.sizes();
    let (across, down) = (lengths.n.div_ceil(tile_n), lengths.m.div_ceil(tile_m));
    let steps = lengths.k.div_ceil(tile_k).max(1);
    let per_batch = (ELEMENTS_PER_BATCH / (tile_k * tile_m.max(tile_n))).max(1);
    let mut d = Elements::zeros(id.d, lengths.m * lengths.n);
    let tiles: Vec<(usize, usize)> =
        (0..down).flat_map(|row| (0..across).map(move |column| (row * tile_m, column * tile_n))).collect();
    for chunk in tiles.chunks(per_batch) {
        let mut batch = TileBatch::zeros(operation, chunk.len());
        for (tile, (row, column)) in chunk.iter().enumerate() {
            let from = Window { matrix: c, rows: lengths.m, columns: lengths.n, row: *row, column: *column };
            from.copy_to(&mut batch.c, tile * tile_m * tile_n, tile_m, tile_n);
        }
        for step in 0..steps {
            for (tile, (row, column)) in chunk.iter().enumerate() {
                let at = step * tile_k;
                let of_a = Window { matrix: a, rows: lengths.m, columns: lengths.k, row: *row, column: at };
                of_a.copy_to(&mut batch.a, tile * tile_m * tile_k, tile_m, tile_k);
                let of_b = Window { matrix: b, rows: lengths.k, columns: lengths.n, row: at, column: *column };
                of_b.copy_to(&mut batch.b, tile * tile_k * tile_n, tile_k, tile_n);
            }
            let sums = execute(device, operation, &batch)?;
            if step + 1 < steps {
                batch.c = sums;
                continue;
            }
            for (tile, (row, column)) in chunk.iter().enumerate() {
                for line in 0..tile_m.min(lengths.m - row) {
                    for at in 0..tile_n.min(lengths.n - column) {
                        d.set((row + line) * lengths.n + column + at, sums.get((tile * tile_m + line) * tile_n + at));
                    }
                }
            }
        }
    }
    Ok(d)
}

/// A part of a matrix that begins at a row and a column, and may reach beyond its ends.
struct Window<'a> {
    matrix: &'a Elements,
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
}

impl Window<'_> {
    /// Copies `rows`×`columns` elements; those beyond the ends are +0.
    fn copy_to(&self, target: &mut Elements, start: usize, rows: usize, columns: usize) {
        for line in 0..rows {
            for at in 0..columns {
                let inside = self.row + line < self.rows && self.column + at < self.columns;
                let place = (self.row + line) * self.columns + self.column + at;
                target.set(start + line * columns + at, if inside { self.matrix.get(place) } else { 0 });
            }
        }
    }
}
