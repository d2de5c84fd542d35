//! Tiles of matrices in the order in which the kernels of whole matrices read and write them.

use std::ops::Range;

use mxprobe_api::{Elements, GemmOperands};

use super::Block;

/// The order of a product's tiles in memory.
///
/// A block is `rows` groups of tiles of D down and `columns` tiles across; a group is as many tiles, one below the
/// other, as the instruction computes at a time. A: block row after block row, step after step along k, the block's
/// tiles from top to bottom. B: block column after block column, step after step, the block's tiles from left to right,
/// each repeated as often as a group has tiles. C and D: block after block, row-major; in a block the groups,
/// row-major.
pub struct Order<'a> {
    product: &'a GemmOperands<'a>,
    tile: (usize, usize, usize),
    group: usize,
    rows: usize,
    columns: usize,
    /// The number of blocks of D, one below the other.
    pub down: usize,
    /// The number of blocks of D side by side.
    pub across: usize,
    /// The number of operations along k.
    pub steps: usize,
}

impl<'a> Order<'a> {
    /// The order of a product in tiles of m×n×k, with `group` tiles computed at a time, and blocks of this many groups.
    #[must_use]
    pub fn new(product: &'a GemmOperands<'a>, tile: (usize, usize, usize), group: usize, block: Block) -> Self {
        let Block { down: rows, across: columns } = block;
        Self {
            product,
            tile,
            group,
            rows,
            columns,
            down: product.m.div_ceil(tile.0 * group * rows),
            across: product.n.div_ceil(tile.1 * columns),
            // k = 0 is one operation on zeros and C.
            steps: product.k.div_ceil(tile.2).max(1),
        }
    }

    /// The number of tiles in a block of D.
    #[must_use]
    pub fn tiles_of_block(&self) -> usize {
        self.rows * self.group * self.columns
    }

    /// The number of pieces of A that are packed independently of each other: a step of a block row each.
    #[must_use]
    pub fn pieces_of_a(&self) -> usize {
        self.down * self.steps
    }

    /// The tiles of these pieces of A, padded with +0 beyond the matrix.
    #[must_use]
    pub fn gather_a(&self, pieces: Range<usize>) -> Elements {
        let (m, _, k) = self.tile;
        let lines = self.rows * self.group;
        let corners = pieces.flat_map(|piece| {
            let (block, step) = (piece / self.steps, piece % self.steps);
            (0..lines).map(move |line| ((block * lines + line) * m, step * k))
        });
        gather(self.product.a, (self.product.m, self.product.k), corners, (m, k))
    }

    /// The number of pieces of B that are packed independently of each other: a step of a block column each.
    #[must_use]
    pub fn pieces_of_b(&self) -> usize {
        self.across * self.steps
    }

    /// The tiles of these pieces of B, padded with +0 beyond the matrix.
    #[must_use]
    pub fn gather_b(&self, pieces: Range<usize>) -> Elements {
        let (_, n, k) = self.tile;
        let corners = pieces.flat_map(|piece| {
            let (block, step) = (piece / self.steps, piece % self.steps);
            let tiles = (0..self.columns).map(move |at| (step * k, (block * self.columns + at) * n));
            tiles.flat_map(|corner| std::iter::repeat_n(corner, self.group))
        });
        gather(self.product.b, (self.product.k, self.product.n), corners, (k, n))
    }

    /// The tiles of C in these block rows, padded with +0 beyond the matrix.
    #[must_use]
    pub fn gather_c(&self, down: Range<usize>) -> Elements {
        let (m, n, _) = self.tile;
        gather(self.product.c, (self.product.m, self.product.n), self.corners_of_d(down), (m, n))
    }

    /// The number of tiles of D in a block row.
    #[must_use]
    pub fn tiles_across(&self) -> usize {
        self.across * self.tiles_of_block()
    }

    /// The number of elements of D in a block row; the last one may be cut off.
    #[must_use]
    pub fn elements_across(&self) -> usize {
        self.rows * self.group * self.tile.0 * self.product.n
    }

    /// The first elements of the tiles of D in these block rows, in their order.
    fn corners_of_d(&self, down: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
        let (m, n, _) = self.tile;
        let blocks = down.flat_map(|down| (0..self.across).map(move |across| (down, across)));
        blocks.flat_map(move |(down, across)| {
            let groups = (0..self.rows).flat_map(|row| (0..self.columns).map(move |column| (row, column)));
            groups.flat_map(move |(row, column)| {
                let (top, left) = ((down * self.rows + row) * self.group, across * self.columns + column);
                (0..self.group).map(move |at| ((top + at) * m, left * n))
            })
        })
    }

    /// Copies the tiles of a block row of D to where its elements are.
    pub fn scatter(&self, down: usize, tiles: &Elements, into: &mut [u8]) {
        let (size, (m, n, _)) = (tiles.format().storage_bytes(), self.tile);
        let first = down * self.elements_across();
        let extent = (self.product.m, self.product.n);
        for (corner, tile) in self.corners_of_d(down..down + 1).zip(tiles.bytes().chunks_exact(m * n * size)) {
            for (line, place, count) in lines_inside(extent, corner, (m, n)) {
                into[(place - first) * size..][..count * size]
                    .copy_from_slice(&tile[line * n * size..][..count * size]);
            }
        }
    }
}

/// Tiles of a matrix one after another, each row-major, padded with +0 beyond the matrix.
fn gather(
    matrix: &Elements,
    extent: (usize, usize),
    corners: impl Iterator<Item = (usize, usize)>,
    tile: (usize, usize),
) -> Elements {
    let size = matrix.format().storage_bytes();
    let mut tiles = Vec::new();
    for corner in corners {
        let start = tiles.len();
        tiles.resize(start + tile.0 * tile.1 * size, 0);
        for (line, place, count) in lines_inside(extent, corner, tile) {
            let to = start + line * tile.1 * size;
            tiles[to..][..count * size].copy_from_slice(&matrix.bytes()[place * size..][..count * size]);
        }
    }
    Elements::from_bytes(matrix.format(), tiles).expect("elements of this format")
}

/// The lines of a tile that are inside a matrix: each with the place of its first element there and its number of
/// elements.
fn lines_inside(
    (rows, columns): (usize, usize),
    (top, left): (usize, usize),
    tile: (usize, usize),
) -> impl Iterator<Item = (usize, usize, usize)> {
    let count = tile.1.min(columns.saturating_sub(left));
    let lines = if count == 0 { 0 } else { tile.0.min(rows.saturating_sub(top)) };
    (0..lines).map(move |line| (line, (top + line) * columns + left, count))
}
