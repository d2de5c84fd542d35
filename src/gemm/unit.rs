//! Whole matrices of bits through one operation.

use std::sync::Arc;

use mxprobe_api::{Device, Elements, Error, GemmOperands, Operation, OperationId, TileBatch, execute, multiply};
use mxprobe_models::Model;
use mxprobe_sim::ModelDevice;

/// An operation of a device, which computes.
#[derive(Clone)]
pub struct Unit {
    device: Arc<dyn Device>,
    operation: Operation,
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

impl Unit {
    /// An operation of a device.
    ///
    /// # Errors
    /// If the device has no such operation.
    pub fn new(device: Arc<dyn Device>, id: &OperationId) -> Result<Self, Error> {
        let missing = || Error::invalid(format!("{} has no operation {id}", device.info().selector));
        let operation = device.operations().get(id).ok_or_else(missing)?.clone();
        Ok(Self { device, operation })
    }

    /// An operation of a model, on every core.
    ///
    /// # Errors
    /// If the model has no such operation.
    pub fn of_model(model: &Model, id: &OperationId) -> Result<Self, Error> {
        Self::new(Arc::new(ModelDevice::new(model.clone())), id)
    }

    /// The device.
    pub(super) fn device(&self) -> &dyn Device {
        self.device.as_ref()
    }

    /// The operation's id.
    #[must_use]
    pub fn id(&self) -> &OperationId {
        &self.operation.id
    }

    /// Nanoseconds that kernels have run so far, if the device can tell ([`mxprobe_api::Matrices::kernel_ns`]).
    pub(super) fn kernel_ns(&self) -> Option<u64> {
        self.device.matrices()?.kernel_ns()
    }

    /// D = A·B + C as one operation after another along k computes it, each taking the last one's d as c, row-major. Edges are
    /// padded with +0, and scales with 1. k = 0 is one operation on zeros and C.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if a k longer than the operation's would need a d that is a c, and it is not; else what the
    /// device reports.
    pub(super) fn multiply(&self, operands: &GemmOperands<'_>) -> Result<Elements, Error> {
        match multiply(self.device(), &self.operation, operands)? {
            Some(d) => Ok(d),
            None => tile_by_tile(self.device(), &self.operation, operands),
        }
    }
}

/// Tiles of D in chunks, each chunk all the way along k before the next.
fn tile_by_tile(device: &dyn Device, operation: &Operation, operands: &GemmOperands<'_>) -> Result<Elements, Error> {
    let GemmOperands { m, n, k, a, b, c, scale_a, scale_b } = *operands;
    let id = &operation.id;
    let (tile_m, tile_n, tile_k) = id.shape.sizes();
    let (across, down) = (n.div_ceil(tile_n), m.div_ceil(tile_m));
    let steps = k.div_ceil(tile_k).max(1);
    let per_batch = (ELEMENTS_PER_BATCH / (tile_k * tile_m.max(tile_n))).max(1);
    let mut d = Elements::zeros(id.d, m * n);
    let tiles: Vec<(usize, usize)> =
        (0..down).flat_map(|row| (0..across).map(move |column| (row * tile_m, column * tile_n))).collect();
    for chunk in tiles.chunks(per_batch) {
        let mut batch = TileBatch::zeros(operation, chunk.len());
        for (tile, (row, column)) in chunk.iter().enumerate() {
            let from = Window { matrix: c, rows: m, columns: n, row: *row, column: *column, beyond: 0 };
            from.copy_to(&mut batch.c, tile * tile_m * tile_n, tile_m, tile_n);
        }
        for step in 0..steps {
            for (tile, (row, column)) in chunk.iter().enumerate() {
                let at = step * tile_k;
                let of_a = Window { matrix: a, rows: m, columns: k, row: *row, column: at, beyond: 0 };
                of_a.copy_to(&mut batch.a, tile * tile_m * tile_k, tile_m, tile_k);
                let of_b = Window { matrix: b, rows: k, columns: n, row: at, column: *column, beyond: 0 };
                of_b.copy_to(&mut batch.b, tile * tile_k * tile_n, tile_k, tile_n);
                let Some(scale) = id.block_scale() else { continue };
                let (blocks, in_tile) = (k.div_ceil(scale.block), tile_k.div_ceil(scale.block));
                let (at, beyond) = (at / scale.block, scale.format.one());
                if let (Some(matrix), Some(into)) = (scale_a, &mut batch.scale_a) {
                    let from = Window { matrix, rows: m, columns: blocks, row: *row, column: at, beyond };
                    from.copy_to(into, tile * tile_m * in_tile, tile_m, in_tile);
                }
                if let (Some(matrix), Some(into)) = (scale_b, &mut batch.scale_b) {
                    let from = Window { matrix, rows: blocks, columns: n, row: at, column: *column, beyond };
                    from.copy_to(into, tile * in_tile * tile_n, in_tile, tile_n);
                }
            }
            let sums = execute(device, operation, &batch)?;
            if step + 1 < steps {
                batch.c = sums;
                continue;
            }
            for (tile, (row, column)) in chunk.iter().enumerate() {
                for line in 0..tile_m.min(m - row) {
                    for at in 0..tile_n.min(n - column) {
                        d.set((row + line) * n + column + at, sums.get((tile * tile_m + line) * tile_n + at));
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
    /// What lies beyond the ends.
    beyond: u64,
}

impl Window<'_> {
    /// Copies `rows`×`columns` elements.
    fn copy_to(&self, target: &mut Elements, start: usize, rows: usize, columns: usize) {
        for line in 0..rows {
            for at in 0..columns {
                let inside = self.row + line < self.rows && self.column + at < self.columns;
                let place = (self.row + line) * self.columns + self.column + at;
                target.set(start + line * columns + at, if inside { self.matrix.get(place) } else { self.beyond });
            }
        }
    }
}
