//! Dots asked of a product of whole matrices: as many at once as it has columns or rows.

use std::{cell::Cell, sync::Arc};

use mxprobe_api::{Device, Elements, Error, Operation, TileBatch, execute};

/// Elements of A, B and C that one request holds at the most, where a product alone does not hold more.
const ELEMENTS: usize = 1 << 23;

/// The operand of one dot that differs from dot to dot: k elements, most of them shared with other dots.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// What each k holds, as bits.
    pub(super) base: Arc<[u64]>,
    /// What some of them hold instead.
    pub(super) changes: Vec<(usize, u64)>,
}

impl Line {
    /// A line without exceptions.
    pub(super) fn plain(base: Arc<[u64]>) -> Self {
        Self { base, changes: Vec::new() }
    }

    /// The bits of every k.
    pub(super) fn bits(&self) -> Vec<u64> {
        let mut bits = self.base.to_vec();
        for (at, value) in &self.changes {
            bits[*at] = *value;
        }
        bits
    }
}

/// Elements of D that are computed alike, as far as is known: those of one row or of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// They lie in one row, side by side, and differ in their columns; else the other way round.
    pub(super) in_a_row: bool,
    /// That row, or that column.
    pub(super) fixed: usize,
    /// Their columns, or rows.
    pub(super) varied: Vec<usize>,
}

/// A product of one shape, and the elements of it that are asked.
pub(super) struct Product<'d> {
    device: &'d dyn Device,
    pub(super) operation: Operation,
    pub(super) places: Places,
    /// Dots asked so far.
    asked: Cell<u64>,
    /// Requests so far.
    requests: Cell<u64>,
}

impl<'d> Product<'d> {
    /// All elements of the longer side of D's first row or column.
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

    /// The products of one dot.
    pub(super) fn k(&self) -> usize {
        self.operation.id.shape.sizes().2
    }

    /// Dots asked, and the requests that they took.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.asked.get(), self.requests.get())
    }

    /// D of whole products.
    ///
    /// # Errors
    /// What the device reports.
    pub(super) fn whole(&self, batch: &TileBatch) -> Result<Elements, Error> {
        let (m, n, _) = self.operation.id.shape.sizes();
        self.requests.set(self.requests.get() + 1);
        self.asked.set(self.asked.get() + (batch.tiles * m * n) as u64);
        execute(self.device, &self.operation, batch)
    }

    /// d of dots that share one operand, `fixed`, of k elements, and that have c each, or one for all. `lines` are lines of B
    /// where dots lie side by side, and of A where they lie one below another.
    ///
    /// # Errors
    /// What the device reports.
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

    fn element(&self, varied: usize) -> (usize, usize) {
        if self.places.in_a_row { (self.places.fixed, varied) } else { (varied, self.places.fixed) }
    }

    /// One operand to every line of its side, and the lines to theirs.
    fn fill(&self, batch: &mut TileBatch, tile: usize, fixed: &[u64], lines: &[Line]) {
        let (m, n, k) = self.operation.id.shape.sizes();
        if self.places.in_a_row {
            (0..m).for_each(|row| put(&mut batch.a, (tile * m + row) * k, fixed));
            // Row by row of B, as memory lies.
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

fn put(elements: &mut Elements, start: usize, bits: &[u64]) {
    bits.iter().enumerate().filter(|(_, bits)| **bits != 0).for_each(|(at, bits)| elements.set(start + at, *bits));
}
