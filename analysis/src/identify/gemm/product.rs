//! Dots asked through products of whole matrices: each product computes as many as it has columns or rows.

use std::{cell::Cell, sync::Arc};

use mxprobe_api::{Device, Elements, Error, Operation, TileBatch, execute};

/// Maximum number of elements of A, B and C in one request, unless a single product has more.
const ELEMENTS: usize = 1 << 23;

/// The operand of one dot that differs from dot to dot: k elements, most of them shared with other dots.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The bits at each k.
    pub(super) base: Arc<[u64]>,
    /// Exceptions to `base`: k, and the bits there.
    pub(super) changes: Vec<(usize, u64)>,
}

impl Line {
    /// Makes a line without exceptions.
    pub(super) fn plain(base: Arc<[u64]>) -> Self {
        Self { base, changes: Vec::new() }
    }

    /// Returns the bits at every k.
    pub(super) fn bits(&self) -> Vec<u64> {
        let mut bits = self.base.to_vec();
        for (at, value) in &self.changes {
            bits[*at] = *value;
        }
        bits
    }
}

/// Elements of D in one row or one column that are computed alike, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// Whether they lie in one row and differ in their columns; otherwise they lie in one column and differ in their
    /// rows.
    pub(super) in_a_row: bool,
    /// The row or column in which they lie.
    pub(super) fixed: usize,
    /// The columns or rows in which they differ.
    pub(super) varied: Vec<usize>,
}

/// A product of one shape, and the elements of it at which dots are asked.
pub(super) struct Product<'d> {
    device: &'d dyn Device,
    pub(super) operation: Operation,
    pub(super) places: Places,
    /// Number of dots asked so far.
    asked: Cell<u64>,
    /// Number of requests so far.
    requests: Cell<u64>,
}

impl<'d> Product<'d> {
    /// Makes a product that asks dots at every element of D's first row or first column, whichever is longer.
    pub(super) fn new(device: &'d dyn Device, operation: &Operation) -> Self {
        let (m, n, _) = operation.id.shape.sizes();
        let in_a_row = n >= m;
        let places = Places { in_a_row, fixed: 0, varied: (0..m.max(n)).collect() };
        Self { device, operation: operation.clone(), places, asked: Cell::new(0), requests: Cell::new(0) }
    }

    /// The device.
    pub(super) fn device(&self) -> &'d dyn Device {
        self.device
    }

    /// Returns the number of products in one dot.
    pub(super) fn k(&self) -> usize {
        self.operation.id.shape.sizes().2
    }

    /// Returns the number of dots asked, and of the requests that they took.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.asked.get(), self.requests.get())
    }

    /// Computes D of whole products.
    ///
    /// # Errors
    /// Any error that the device reports.
    pub(super) fn whole(&self, batch: &TileBatch) -> Result<Elements, Error> {
        let (m, n, _) = self.operation.id.shape.sizes();
        self.requests.set(self.requests.get() + 1);
        self.asked.set(self.asked.get() + (batch.tiles * m * n) as u64);
        execute(self.device, &self.operation, batch)
    }

    /// Asks for dots that share the operand `fixed`, of k elements, and returns d of each. `c` has a value for each
    /// dot, or one for all. `lines` are columns of B if the dots lie in a row of D, and rows of A if they lie in a
    /// column.
    ///
    /// # Errors
    /// Any error that the device reports.
    pub(super) fn ask(&self, fixed: &[u64], lines: &[Line], c: &[u64]) -> Result<Vec<u64>, Error> {
        let id = &self.operation.id;
        let (m, n, k) = id.shape.sizes();
        let per_tile = self.places.varied.len();
        let tiles = (ELEMENTS / (m * k + k * n + m * n)).max(1);
        let mut found = Vec::with_capacity(lines.len());
        for (request, lines) in lines.chunks(per_tile * tiles).enumerate() {
            let tiles = lines.len().div_ceil(per_tile);
            let mut batch = TileBatch::zeros(&self.operation, tiles);
            let c_of = |at: usize| c[if c.len() == 1 { 0 } else { request * per_tile * tiles + at }];
            for (tile, lines) in lines.chunks(per_tile).enumerate() {
                self.fill(&mut batch, tile, fixed, lines);
                for (at, varied) in (0..lines.len()).zip(&self.places.varied) {
                    let (row, column) = self.element(*varied);
                    batch.c.set((tile * m + row) * n + column, c_of(tile * per_tile + at));
                }
            }
            let d = self.whole(&batch)?;
            self.asked.set(self.asked.get() + lines.len() as u64 - (tiles * m * n) as u64);
            for (tile, lines) in lines.chunks(per_tile).enumerate() {
                for (_, varied) in lines.iter().zip(&self.places.varied) {
                    let (row, column) = self.element(*varied);
                    found.push(d.get((tile * m + row) * n + column));
                }
            }
        }
        Ok(found)
    }

    /// Returns the row and the column of one of the places.
    fn element(&self, varied: usize) -> (usize, usize) {
        if self.places.in_a_row { (self.places.fixed, varied) } else { (varied, self.places.fixed) }
    }

    /// Writes `fixed` to every line of its operand, and `lines` to theirs.
    fn fill(&self, batch: &mut TileBatch, tile: usize, fixed: &[u64], lines: &[Line]) {
        let (m, n, k) = self.operation.id.shape.sizes();
        if self.places.in_a_row {
            (0..m).for_each(|row| put(&mut batch.a, (tile * m + row) * k, fixed));
            // Row by row of B, in the order of memory.
            let first: Vec<&[u64]> = lines.iter().map(|line| &*line.base).collect();
            for at in 0..k {
                let row = (tile * k + at) * n;
                for (base, varied) in first.iter().zip(&self.places.varied) {
                    if base[at] != 0 {
                        batch.b.set(row + varied, base[at]);
                    }
                }
            }
            for (line, varied) in lines.iter().zip(&self.places.varied) {
                line.changes.iter().for_each(|(at, bits)| batch.b.set((tile * k + at) * n + varied, *bits));
            }
        } else {
            for (at, bits) in fixed.iter().enumerate() {
                (0..n).for_each(|column| batch.b.set((tile * k + at) * n + column, *bits));
            }
            for (line, varied) in lines.iter().zip(&self.places.varied) {
                let start = (tile * m + varied) * k;
                put(&mut batch.a, start, &line.base);
                line.changes.iter().for_each(|(at, bits)| batch.a.set(start + at, *bits));
            }
        }
    }
}

/// Writes bits from `start` on to elements that are zero so far.
fn put(elements: &mut Elements, start: usize, bits: &[u64]) {
    bits.iter().enumerate().filter(|(_, bits)| **bits != 0).for_each(|(at, bits)| elements.set(start + at, *bits));
}
