//! Dots and their places in tiles.

use mxprobe_api::{Elements, Operation, OperationId, TileBatch};

/// The inputs of one element of D, as bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dot {
    /// k elements of A.
    pub a: Vec<u64>,
    /// k elements of B.
    pub b: Vec<u64>,
    /// One element of C.
    pub c: u64,
    /// Scales of A and of B, one per block of k, if the operation has them.
    pub scales: Option<(Vec<u64>, Vec<u64>)>,
}

impl Dot {
    /// The scales of a and of b.
    #[must_use]
    pub fn scale_slices(&self) -> Option<(&[u64], &[u64])> {
        self.scales.as_ref().map(|(a, b)| (&a[..], &b[..]))
    }

    /// A dot with every operand +0 and every scale 1.
    #[must_use]
    pub fn zeros(id: &OperationId) -> Self {
        let k = id.shape.sizes().2;
        let scales = id.block_scale().map(|scale| {
            let ones = vec![scale.format.one(); k.div_ceil(scale.block)];
            (ones.clone(), ones)
        });
        Self { a: vec![0; k], b: vec![0; k], c: 0, scales }
    }

    /// Writes the dot into a batch, at one row and column of a tile.
    pub fn put(&self, id: &OperationId, batch: &mut TileBatch, tile: usize, row: usize, column: usize) {
        let (m, n, k) = id.shape.sizes();
        row_of(&mut batch.a, tile * m + row, k, &self.a);
        column_of(&mut batch.b, tile * k, n, column, &self.b);
        batch.c.set((tile * m + row) * n + column, self.c);
        if let (Some((of_a, of_b)), Some(scale_a), Some(scale_b)) =
            (&self.scales, &mut batch.scale_a, &mut batch.scale_b)
        {
            row_of(scale_a, tile * m + row, of_a.len(), of_a);
            column_of(scale_b, tile * of_b.len(), n, column, of_b);
        }
    }

    /// Reads the dot for one element of a batch's D.
    #[must_use]
    pub fn at(id: &OperationId, batch: &TileBatch, element: usize) -> Self {
        let (m, n, k) = id.shape.sizes();
        let (tile, row, column) = place(id, element);
        let blocks = id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
        let of_a = |elements: &Elements, width: usize| -> Vec<u64> {
            (0..width).map(|index| elements.get((tile * m + row) * width + index)).collect()
        };
        let of_b = |elements: &Elements, height: usize| -> Vec<u64> {
            (0..height).map(|index| elements.get((tile * height + index) * n + column)).collect()
        };
        let scales = batch.scale_a.as_ref().zip(batch.scale_b.as_ref());
        Self {
            a: of_a(&batch.a, k),
            b: of_b(&batch.b, k),
            c: batch.c.get(element),
            scales: scales.map(|(a, b)| (of_a(a, blocks), of_b(b, blocks))),
        }
    }

    /// Formats all its bits, for people.
    #[must_use]
    pub fn show(&self, id: &OperationId) -> String {
        let list = |format: mxprobe_api::Format, bits: &[u64]| {
            bits.iter().map(|bits| format.hex(*bits)).collect::<Vec<_>>().join(" ")
        };
        let mut text =
            format!("a = [{}], b = [{}], c = {}", list(id.a, &self.a), list(id.b, &self.b), id.c.hex(self.c));
        if let (Some((a, b)), Some(scale)) = (&self.scales, id.block_scale()) {
            text += &format!(", scale_a = [{}], scale_b = [{}]", list(scale.format, a), list(scale.format, b));
        }
        text
    }
}

fn row_of(elements: &mut Elements, row: usize, width: usize, bits: &[u64]) {
    bits.iter().enumerate().for_each(|(index, bits)| elements.set(row * width + index, *bits));
}

fn column_of(elements: &mut Elements, first_row: usize, width: usize, column: usize, bits: &[u64]) {
    bits.iter().enumerate().for_each(|(index, bits)| elements.set((first_row + index) * width + column, *bits));
}

/// Returns the tile, row and column of an element of D.
pub fn place(id: &OperationId, element: usize) -> (usize, usize, usize) {
    let (m, n, _) = id.shape.sizes();
    (element / (m * n), element / n % m, element % n)
}

/// Packs dots into tiles, each with its own row and column; returns the batch, and each dot's element of D.
///
/// Within a tile the dots lie on a diagonal, which moves by one from tile to tile, so that as many tiles as the longer
/// side of a tile has elements use every element of a tile.
#[must_use]
pub fn pack(operation: &Operation, dots: &[Dot]) -> (TileBatch, Vec<usize>) {
    pack_from(operation, dots, 0)
}

/// Like [`pack`], with the diagonal of the first tile moved by `shift`: the same dots at other positions.
#[must_use]
pub fn pack_from(operation: &Operation, dots: &[Dot], shift: usize) -> (TileBatch, Vec<usize>) {
    let id = &operation.id;
    let (m, n, _) = id.shape.sizes();
    let a_tile = m.min(n);
    let mut batch = TileBatch::zeros(operation, dots.len().div_ceil(a_tile));
    let mut places = Vec::with_capacity(dots.len());
    for (index, dot) in dots.iter().enumerate() {
        let (tile, slot) = (index / a_tile, index % a_tile);
        let moved = slot + tile + shift;
        let (row, column) = if m >= n { (moved % m, slot) } else { (slot, moved % n) };
        dot.put(id, &mut batch, tile, row, column);
        places.push((tile * m + row) * n + column);
    }
    (batch, places)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn packing_uses_every_element_of_a_tile() {
        for text in ["mma.m16n8k16.f32.f16.f16.f32", "mma.m8n8k4.f32.f16.f16.f32", "wmma.m8n32k16.f16.f16.f16.f16"] {
            let operation = Operation::new(text.parse().unwrap(), "warp");
            let (m, n, _) = operation.id.shape.sizes();
            let dots = vec![Dot::zeros(&operation.id); m * n];
            let (_, places) = pack(&operation, &dots);
            let used: BTreeSet<usize> = places.iter().map(|place| place % (m * n)).collect();
            assert_eq!(used.len(), m * n, "{text}");
            let (_, moved) = pack_from(&operation, &dots, 1);
            assert!(places.iter().zip(&moved).all(|(one, other)| one != other), "{text}");
        }
    }
}
